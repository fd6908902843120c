/* Looks stocks up over the sockets protocol: one thread with epoll, and no memory asked for while it serves. What a
 * server of this protocol can do at most on one core, so that others can be measured against it.
 *
 *     stock_server [--host HOST] [--port N] [--catalog FILE] [--grace-s S]
 *
 * It answers Lookup alone, whose frames stand in stock_service/rpc/wire/framing.py and whose messages in protos/: no
 * stock is ever traded or changed. Any other method is the fault UNIMPLEMENTED. Stocks are the default four, or those
 * of a catalog file, of which it reads the lines [[stocks]] and KEY = VALUE. A connection whose peer does not read its
 * replies is not read either. Deadlines are not looked at: nothing waits here.
 *
 * It prints "ready HOST:PORT" once it serves. SIGTERM or SIGINT: no more connections, what has come is answered within
 * --grace-s, exit 0; 1 where that was too short. A second signal ends it at once with exit 1. A bad option, or a port
 * that is taken: one line, exit 2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sockets/program.h"
#include "stocks.h"

enum {
    REQUEST_HEAD = 13, /* length, call, timeout in ms: 4 bytes each; length of the method */
    REPLY_HEAD = 9,    /* length, call: 4 bytes each; code */
    FRAME_MAX = 4096,
    UNSENT_MAX = 16384,
    CONNECTIONS_MAX = 4096,
    EVENTS_MAX = 256,
    BACKLOG = 4096,
    GRACE_MAX_S = 3600,
    INVALID_ARGUMENT = 3, /* faults, as in stock_service/rpc/errors.py */
    UNIMPLEMENTED = 12
};

#define LINGER_NS (NS_PER_S / 20) /* after the last reply: a client hangs up first, and nothing is reset */

static const char METHOD[] = "/stock_service.v1.StockService/Lookup";

struct connection {
    int descriptor;
    int ended;  /* our side of it, when stopping */
    size_t held, unsent, sent;
    uint8_t in[FRAME_MAX], out[UNSENT_MAX];
};

static struct connection connections[CONNECTIONS_MAX]; /* by descriptor; the kernel gives memory to those in use */
static int highest, alive, stopping, poller;

static uint32_t u32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return ntohl(value);
}

static void put_u32(uint8_t *to, size_t value)
{
    uint32_t bytes = htonl((uint32_t)value);
    memcpy(to, &bytes, sizeof bytes);
}

static void hang_up(struct connection *of)
{
    close(of->descriptor);
    of->descriptor = 0;
    alive--;
}

static void put_reply(struct connection *of, uint32_t call, uint8_t code, const void *payload, size_t bytes)
{
    uint8_t *to = of->out + of->unsent;
    put_u32(to, REPLY_HEAD - 4 + bytes);
    put_u32(to + 4, call);
    to[8] = code;
    memcpy(to + REPLY_HEAD, payload, bytes);
    of->unsent += REPLY_HEAD + bytes;
}

static void answer(struct connection *of, const uint8_t *frame, size_t bytes)
{
    uint32_t call = u32(frame + 4);
    size_t method = frame[12], head = REQUEST_HEAD + method;
    uint8_t reply[LOOKUP_REPLY_MAX];
    if (method != sizeof METHOD - 1 || memcmp(frame + REQUEST_HEAD, METHOD, method) != 0) {
        static const char said[] = "no such method here";
        put_reply(of, call, UNIMPLEMENTED, said, sizeof said - 1);
        return;
    }
    size_t answered = lookup(frame + head, bytes - head, reply);
    static const char said[] = "no LookupRequest";
    if (answered == 0)
        put_reply(of, call, INVALID_ARGUMENT, said, sizeof said - 1);
    else
        put_reply(of, call, 0, reply, answered);
}

/* Answers the whole frames of what is held, as long as replies have room. Says how many, or -1 where the bytes are no
 * frames. */
static int cut(struct connection *of)
{
    size_t start = 0;
    int frames = 0;
    for (; of->held - start >= 4 && of->unsent + REPLY_HEAD + LOOKUP_REPLY_MAX <= UNSENT_MAX; frames++) {
        const uint8_t *frame = of->in + start;
        size_t bytes = 4 + (size_t)u32(frame);
        if (bytes < REQUEST_HEAD || bytes > FRAME_MAX)
            return -1;
        if (of->held - start < bytes)
            break;
        if (u32(frame + 4) == 0 || REQUEST_HEAD + (size_t)frame[12] > bytes)
            return -1;
        answer(of, frame, bytes);
        start += bytes;
    }
    if (start)
        memmove(of->in, of->in + start, of->held -= start);
    return frames;
}

/* Sends what it can. Says whether the connection lives. */
static int flush(struct connection *of)
{
    while (of->sent < of->unsent) {
        ssize_t bytes = send(of->descriptor, of->out + of->sent, of->unsent - of->sent, MSG_NOSIGNAL);
        if (bytes < 0)
            return errno == EAGAIN;
        of->sent += (size_t)bytes;
    }
    of->sent = of->unsent = 0;
    return 1;
}

/* Reads, answers and sends until nothing more comes, or the peer does not read. Closes what is lost or no frame. */
static void serve(struct connection *of)
{
    int emptied = 0; /* a read that does not fill its room has emptied the socket: epoll(7), question 9 */
    for (;;) {
        int frames = cut(of);
        if (!flush(of) || frames < 0) {
            hang_up(of);
            return;
        }
        if (of->unsent)
            return; /* it goes on when the peer has read */
        if (frames && of->held)
            continue; /* there may have been no room for their replies */
        if (emptied)
            return;
        size_t room = FRAME_MAX - of->held;
        ssize_t bytes = recv(of->descriptor, of->in + of->held, room, 0);
        if (bytes < 0 && errno == EAGAIN)
            return;
        if (bytes <= 0) {
            hang_up(of);
            return;
        }
        of->held += (size_t)bytes;
        emptied = (size_t)bytes < room;
    }
}

static void watch(int descriptor, uint32_t what)
{
    struct epoll_event event = {.events = what, .data.fd = descriptor};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) < 0)
        fail("epoll: %s", strerror(errno));
}

static void take(int listener)
{
    for (int descriptor; (descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        if (descriptor >= CONNECTIONS_MAX) {
            close(descriptor);
            continue;
        }
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        struct connection *of = &connections[descriptor];
        of->descriptor = descriptor;
        of->held = of->unsent = of->sent = 0;
        of->ended = 0;
        alive++;
        if (descriptor > highest)
            highest = descriptor;
        watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLET);
    }
}

/* When stopping: ends our side of every connection that owes nothing. Says how many owe something. */
static int end_those_that_may(void)
{
    int owing = 0;
    for (struct connection *of = connections; of <= &connections[highest]; of++) {
        if (of->descriptor && !of->ended)
            serve(of); /* what came just now */
        if (!of->descriptor || of->ended)
            continue;
        if (of->held || of->unsent) {
            owing++;
        } else {
            shutdown(of->descriptor, SHUT_WR);
            of->ended = 1;
        }
    }
    return owing;
}

/* A connection whose end was said: what still comes is not answered, and its peer's end closes it. */
static void let_go(struct connection *of)
{
    ssize_t bytes;
    while ((bytes = recv(of->descriptor, of->in, FRAME_MAX, 0)) > 0)
        continue;
    if (bytes == 0 || errno != EAGAIN)
        hang_up(of);
}

static void turn(int listener, int signals, int wait_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(poller, events, EVENTS_MAX, wait_ms);
    for (int place = 0; place < count; place++) {
        int descriptor = events[place].data.fd;
        if (descriptor == signals) {
            struct signalfd_siginfo signal;
            if (read(signals, &signal, sizeof signal) > 0 && stopping++)
                _exit(FAILED_EXIT);
        } else if (descriptor == listener) {
            take(listener);
        } else if (connections[descriptor].ended) {
            let_go(&connections[descriptor]);
        } else if (connections[descriptor].descriptor) {
            serve(&connections[descriptor]);
        }
    }
}

/* Serves until a signal, and then until nothing is owed. Gives the exit code. */
static int run(int listener, int signals, double grace_s)
{
    while (!stopping)
        turn(listener, signals, -1);
    int64_t until_ns = clock_ns() + (int64_t)(grace_s * 1e9), ended_ns = 0;
    take(listener); /* they had come before it */
    close(listener);
    for (;;) {
        int owing = end_those_that_may();
        int64_t now_ns = clock_ns();
        if (!owing && ended_ns == 0)
            ended_ns = now_ns;
        if (!owing && (!alive || now_ns - ended_ns >= LINGER_NS))
            return 0;
        if (owing && now_ns >= until_ns) {
            fprintf(stderr, "--grace-s %g was too short: what had not ended was given up\n", grace_s);
            return FAILED_EXIT;
        }
        turn(-1, signals, 1);
    }
}

static int listening(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || ntohl(address.sin_addr.s_addr) >> 24 != 127)
        refuse("--host: got %s, allowed: a loopback address of IPv4, such as 127.0.0.1", host);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, BACKLOG) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &bytes) < 0)
        refuse("--port %d: %s; allowed: a port that is not taken, or 0 for a free one", port, strerror(errno));
    printf("ready %s:%d\n", host, ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int count, char **words)
{
    const char *host = "127.0.0.1";
    int port = 50052;
    double grace_s = 5;
    static const struct option known[] = {
        {"host", required_argument, NULL, 'h'},    {"port", required_argument, NULL, 'p'},
        {"catalog", required_argument, NULL, 'c'}, {"grace-s", required_argument, NULL, 'g'},
        {NULL, 0, NULL, 0},
    };
    const char *catalog = NULL;
    opterr = 0;
    for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) {
        switch (option) {
        case 'h': host = optarg; break;
        case 'p': port = (int)number_of("port", optarg, 0, 65535); break;
        case 'c': catalog = optarg; break;
        case 'g': grace_s = number_of("grace-s", optarg, 0, GRACE_MAX_S); break;
        default: refuse("%s: no such option, or no value", words[optind - 1]);
        }
    }
    if (optind < count)
        refuse("got %s, allowed: options alone", words[optind]);
    read_stocks(catalog);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    poller = epoll_create1(EPOLL_CLOEXEC);
    int listener = listening(host, port);
    watch(signals, EPOLLIN);
    watch(listener, EPOLLIN);
    return run(listener, signals, grace_s);
}
