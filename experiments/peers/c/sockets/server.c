/* The receiver: sends every message back in full, or only counts them where they come one way. One thread; which API, the linked file decides.
 *
 *     NAME_server [--host HOST] [--port N] [--pattern request-reply|pair|one-way] [--grace-s S] [--report N]
 *
 * It prints "ready HOST:PORT" once it serves. SIGTERM or SIGINT: what has come by then is answered, exit 0; 1 where that
 * takes longer than --grace-s. A second signal ends it at once with exit 1. A bad option, or a port that is taken: one
 * line, exit 2.
 *
 * With --report it prints what the receiver saw, when it stops, in lines of JSON. One for each of the first N messages:
 * at_ns, when it had come, since the first; answer_ns, from then until its reply was sent; cycle_ns, from *before* the
 * receive until then, which is what the original called the response time, though it holds the wait for the message.
 * Then one for each second since the first message, with the messages and bytes that came in it.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

enum { WAIT_MS = 50, SECONDS_MAX = 7200, REPORT_MAX = 10000000, GRACE_MAX_S = 3600 };

#define DRAIN_NS (NS_PER_S / 20)  /* after the signal: messages that were on their way have come by then */
#define SETTLE_NS (NS_PER_S / 20) /* before the close: nanomsg and NNG drop what they have not yet sent */
#define GRACE_LEAST_S 0.25        /* what a server with nothing to finish takes to end */

struct options {
    const char *host;
    int port;
    enum pattern pattern;
    double grace_s;
    size_t report;
};

struct sample {
    int64_t at_ns, answer_ns, cycle_ns;
};

struct second {
    uint64_t messages, bytes;
};

static atomic_int stopping;
static double grace_s;

static struct sample *samples;
static size_t samples_count, samples_room;
static struct second seconds[SECONDS_MAX];
static size_t seconds_count;
static int64_t began_ns; /* when the first message had come */

static struct options parse(int count, char **words)
{
    struct options given = {.host = "127.0.0.1", .port = 50081, .pattern = REQUEST_REPLY, .grace_s = 5};
    static const struct option known[] = {
        {"host", required_argument, NULL, 'h'},    {"port", required_argument, NULL, 'p'},
        {"pattern", required_argument, NULL, 'a'}, {"grace-s", required_argument, NULL, 'g'},
        {"report", required_argument, NULL, 'n'},  {NULL, 0, NULL, 0},
    };
    struct in_addr address;
    opterr = 0;
    for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) {
        switch (option) {
        case 'h':
            if (inet_pton(AF_INET, optarg, &address) != 1 || ntohl(address.s_addr) >> 24 != 127)
                refuse("--host: got %s, allowed: a loopback address of IPv4, such as 127.0.0.1", optarg);
            given.host = optarg;
            break;
        case 'p': given.port = (int)number_of("port", optarg, 0, 65535); break;
        case 'a': given.pattern = pattern_of(optarg); break;
        case 'g': given.grace_s = number_of("grace-s", optarg, 0, GRACE_MAX_S); break;
        case 'n': given.report = (size_t)number_of("report", optarg, 0, REPORT_MAX); break;
        default: refuse("%s: no such option, or no value", words[optind - 1]);
        }
    }
    if (optind < count)
        refuse("got %s, allowed: options alone", words[optind]);
    return given;
}

/* A port that is free now. nanomsg cannot say which one it took, so all four are given one. */
static int free_port(const char *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, host, &address.sin_addr);
    if (probe < 0 || bind(probe, (struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(probe, (struct sockaddr *)&address, &bytes) < 0)
        refuse("--port: no free one on %s", host);
    close(probe);
    return ntohs(address.sin_port);
}

/* The thread that takes the signals, which all others have blocked. It ends the process where nothing else does. */
static void *take_signals(void *set)
{
    int number;
    double whole_s = grace_s > GRACE_LEAST_S ? grace_s : GRACE_LEAST_S;
    struct timespec patience = {.tv_sec = (time_t)whole_s};
    patience.tv_nsec = (long)((whole_s - (double)patience.tv_sec) * 1e9);
    sigwait(set, &number);
    atomic_store(&stopping, 1);
    if (sigtimedwait(set, NULL, &patience) < 0)
        fprintf(stderr, "--grace-s %g was too short: what had not ended was given up\n", grace_s);
    _exit(FAILED_EXIT);
}

static void note(int64_t from_ns, int64_t came_ns, int64_t done_ns, size_t bytes)
{
    if (began_ns == 0)
        began_ns = came_ns;
    size_t second = (size_t)((came_ns - began_ns) / NS_PER_S);
    if (second < SECONDS_MAX) {
        seconds[second].messages++;
        seconds[second].bytes += bytes;
        seconds_count = second + 1;
    }
    if (samples_count < samples_room)
        samples[samples_count++] =
            (struct sample){.at_ns = came_ns - began_ns, .answer_ns = done_ns - came_ns, .cycle_ns = done_ns - from_ns};
}

/* Receives until the signal, and for a moment more. */
static void serve(struct channel *channel, int echo, void *room)
{
    int64_t until_ns = INT64_MAX, from_ns = clock_ns();
    for (;;) {
        ssize_t bytes = channel_receive(channel, room, MESSAGE_BYTES_MAX);
        int64_t came_ns = clock_ns();
        if (bytes >= 0) {
            if (echo && channel_send(channel, room, (size_t)bytes) < 0)
                fprintf(stderr, "a reply could not be sent: %s\n", channel_error());
            int64_t done_ns = clock_ns();
            note(from_ns, came_ns, done_ns, (size_t)bytes);
            from_ns = done_ns;
        } else if (bytes == GONE) {
            fail("no message can be received: %s", channel_error());
        }
        if (until_ns == INT64_MAX && atomic_load_explicit(&stopping, memory_order_relaxed))
            until_ns = came_ns + DRAIN_NS;
        if (came_ns >= until_ns)
            return;
    }
}

static void print_report(void)
{
    for (size_t place = 0; place < samples_count; place++)
        printf("{\"what\":\"message\",\"at_ns\":%lld,\"answer_ns\":%lld,\"cycle_ns\":%lld}\n",
               (long long)samples[place].at_ns, (long long)samples[place].answer_ns,
               (long long)samples[place].cycle_ns);
    for (size_t place = 0; place < seconds_count; place++)
        printf("{\"what\":\"second\",\"number\":%zu,\"messages\":%llu,\"bytes\":%llu}\n", place,
               (unsigned long long)seconds[place].messages, (unsigned long long)seconds[place].bytes);
    fflush(stdout);
}

int main(int count, char **words)
{
    struct options given = parse(count, words);
    static sigset_t signals;
    pthread_t thread;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before the first thread, so that all have them blocked */
    signal(SIGPIPE, SIG_IGN);
    grace_s = given.grace_s;
    samples = room_for(given.report, sizeof *samples);
    samples_room = given.report;
    void *room = room_for(MESSAGE_BYTES_MAX, 1);
    struct channel *channel = channel_create(given.pattern, SERVER, WAIT_MS);
    if (channel == NULL)
        fail("no socket: %s", channel_error());
    int port = given.port ? given.port : free_port(given.host);
    if (channel_bind(channel, given.host, port) < 0)
        refuse("--port %d: %s; allowed: a port that is not taken, or 0 for a free one", port, channel_error());
    if (pthread_create(&thread, NULL, take_signals, &signals) != 0)
        fail("no thread for signals");
    printf("ready %s:%d\n", given.host, port);
    fflush(stdout);
    serve(channel, given.pattern != ONE_WAY, room);
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
    channel_close(channel);
    if (given.report)
        print_report();
    return 0;
}
