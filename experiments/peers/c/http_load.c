/* A load client for HTTP/1.1, in C: one thread with epoll, and a connection for each request, as ab has it.
 *
 *     http_load --address HOST:PORT --request "VERB /path" [--body TEXT] [--connections N] [--keep]
 *               (--requests N [--warm-up N] | --seconds S [--warm-up-seconds S])
 *               [--first-id N] [--per-id N] [--expect TEXT] [--times FILE]
 *
 * A closed loop: each of N connections makes the next request once the one before has ended. A request's time begins
 * before it connects. It ends when its reply is whole and the server has closed, as ab's does; with --keep connections
 * stay, and it ends with the reply. Connecting and the rest are told apart. Requests of the warm-up count nowhere. With
 * --requests, those that count begin once the last one of the warm-up has ended.
 *
 * In path, body and expected reply {id} is the request's key: FIRST_ID, then the next one after PER_ID requests, of
 * which {turn} is the number, from 0. Every reply must have status 200 and the body of --expect; without that, the body
 * of the first reply. Others, and connections that broke or were never made, are errors; there are no retries.
 *
 * One line of JSON comes out. Times are means in us; connect_us and processing_us are the two parts of response_us.
 * began_ns and ended_ns are moments of CLOCK_MONOTONIC: the first counted request's begin, the last one's end.
 * all_requests are those of the warm-up too; cpu_s is this program's processor time over elapsed_s, all of the load;
 * reply is the first body, in hexadecimal. FILE gets the time of every counted request in ns, as 64-bit numbers of the
 * machine. HOST is an IPv4 address. A server that says nothing for 10 s ends it with exit code 1, and so does the system
 * when it has refused to begin 100 connections.
 *
 * Built by: cc -O2 -o http_load http_load.c
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BYTES_MAX = 4096, /* of a request, and of a reply */
    CONNECTIONS_MAX = 4096,
    EVENTS_MAX = 256,
    REFUSALS_MAX = 100, /* of the system to begin a connection */
    SILENT_MS = 10000 /* how long the server may say nothing */
};

struct connection {
    int descriptor; /* -1: none */
    int connected, counted, under_way, whole;
    int64_t began_ns, connected_ns;
    int64_t number; /* of its request, from 0 */
    size_t held;    /* bytes of the reply that have come */
    size_t sent;    /* bytes of the request */
    char reply[BYTES_MAX + 1];
};

static struct {
    struct sockaddr_in address;
    const char *request, *body, *expect, *times;
    int connections, keep;
    int64_t requests, warm_up, first_id, per_id;
    double seconds, warm_up_seconds;
} asked = {.connections = 1, .per_id = INT64_MAX, .body = ""};

static char host[64];
static int epoll, has_first, refusals, under_way;
static int64_t started, due, load_began_ns, load_began_cpu_ns, from_ns, until_ns;
static int64_t answered, errors, all_answered, began_ns, ended_ns, received_bytes, sent_bytes;
static double connect_ns_sum, response_ns_sum;
static int64_t *times_ns; /* of every counted request */
static size_t times_room;
static char first_body[BYTES_MAX + 1];
static struct connection connections[CONNECTIONS_MAX];

static void fail(const char *said, ...)
{
    va_list values;
    va_start(values, said);
    fputs("http_load: ", stderr);
    vfprintf(stderr, said, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Writes a text with {id} and {turn} filled in. Says how long it is. */
static size_t fill(char *into, const char *text, int64_t number)
{
    size_t length = 0;
    for (long long value; *text;) {
        size_t skipped;
        if (length + 24 > BYTES_MAX)
            fail("a request, or an expected reply, of over %d bytes", BYTES_MAX);
        if (strncmp(text, "{id}", 4) == 0)
            value = asked.first_id + number / asked.per_id, skipped = 4;
        else if (strncmp(text, "{turn}", 6) == 0)
            value = number % asked.per_id, skipped = 6;
        else {
            into[length++] = *text++;
            continue;
        }
        length += (size_t)sprintf(into + length, "%lld", value);
        text += skipped;
    }
    into[length] = 0;
    return length;
}

static size_t fill_request(char *into, int64_t number)
{
    char body[BYTES_MAX + 1], line[BYTES_MAX + 1];
    const char *connection = asked.keep ? "keep-alive" : "close";
    size_t body_bytes = fill(body, asked.body, number);
    fill(line, asked.request, number);
    int bytes = snprintf(into, BYTES_MAX, "%s HTTP/1.1\r\nHost: %s\r\nConnection: %s\r\n", line, host, connection);
    if (body_bytes && bytes < BYTES_MAX)
        bytes += snprintf(into + bytes, (size_t)(BYTES_MAX - bytes),
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", body_bytes, body);
    else if (bytes < BYTES_MAX)
        bytes += snprintf(into + bytes, (size_t)(BYTES_MAX - bytes), "\r\n");
    if (bytes >= BYTES_MAX)
        fail("a request of over %d bytes", BYTES_MAX);
    return (size_t)bytes;
}

/* Whether another request is to be made now. */
static int goes_on(void)
{
    return asked.requests ? started < due : clock_ns(CLOCK_MONOTONIC) < until_ns;
}

static void note(int64_t took_ns)
{
    if ((size_t)answered == times_room) {
        times_room = times_room ? 2 * times_room : 1 << 16;
        times_ns = realloc(times_ns, times_room * sizeof *times_ns);
        if (times_ns == NULL)
            fail("no memory for %zu times", times_room);
    }
    times_ns[answered++] = took_ns;
}

/* The body of a reply that is whole, or NULL. A reply of another status than 200 is whole without one. */
static const char *body_of(struct connection *c, size_t *bytes)
{
    c->reply[c->held] = 0;
    char *end = strstr(c->reply, "\r\n\r\n");
    if (end == NULL)
        return NULL;
    char *field = strcasestr(c->reply, "\r\nContent-Length:");
    *bytes = field != NULL && field < end ? strtoul(field + 17, NULL, 10) : 0;
    return c->held >= (size_t)(end + 4 - c->reply) + *bytes ? end + 4 : NULL;
}

static int is_as_expected(struct connection *c, const char *body, size_t bytes)
{
    char expected[BYTES_MAX + 1];
    if (strncmp(c->reply, "HTTP/1.1 200 ", 13) != 0)
        return 0;
    if (!has_first && bytes <= BYTES_MAX) {
        memcpy(first_body, body, bytes);
        has_first = 1;
    }
    if (asked.expect == NULL)
        return strlen(first_body) == bytes && memcmp(body, first_body, bytes) == 0;
    return fill(expected, asked.expect, c->number) == bytes && memcmp(body, expected, bytes) == 0;
}

static void begin(struct connection *c);

/* Ends a request. Whoever has a connection goes on with the next one. */
static void end_request(struct connection *c, int is_right)
{
    int64_t done_ns = clock_ns(CLOCK_MONOTONIC);
    under_way--;
    c->under_way = 0;
    if (is_right)
        all_answered++;
    if (c->counted && is_right) {
        note(done_ns - c->began_ns);
        connect_ns_sum += (double)(c->connected_ns - c->began_ns);
        response_ns_sum += (double)(done_ns - c->began_ns);
        received_bytes += (int64_t)c->held;
        sent_bytes += (int64_t)c->sent;
        if (began_ns == 0 || c->began_ns < began_ns)
            began_ns = c->began_ns;
        ended_ns = done_ns;
    } else if (!is_right)
        errors++;
    if (!asked.keep || !is_right) {
        close(c->descriptor);
        c->descriptor = -1;
    }
    if (goes_on())
        begin(c);
}

static void send_request(struct connection *c)
{
    char request[BYTES_MAX];
    c->sent = fill_request(request, c->number);
    if (write(c->descriptor, request, c->sent) != (ssize_t)c->sent)
        end_request(c, 0);
}

static void begin(struct connection *c)
{
    int on = 1;
    c->number = started++;
    c->held = c->sent = 0;
    c->whole = 0;
    c->began_ns = c->connected_ns = clock_ns(CLOCK_MONOTONIC);
    c->counted = asked.requests ? c->number >= asked.warm_up : c->began_ns >= from_ns;
    under_way++;
    c->under_way = 1;
    if (c->descriptor >= 0)
        return send_request(c);
    c->connected = 0;
    c->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->descriptor < 0)
        fail("no socket: %s", strerror(errno));
    setsockopt(c->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->descriptor, (struct sockaddr *)&asked.address, sizeof asked.address) < 0 && errno != EINPROGRESS) {
        if (++refusals == REFUSALS_MAX)
            fail("%d connections could not begin: %s", refusals, strerror(errno));
        return end_request(c, 0);
    }
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->descriptor, &wanted) < 0)
        fail("epoll takes no connection: %s", strerror(errno));
}

/* Reads all that has come, until there is no more or the server has closed. */
static void receive(struct connection *c)
{
    for (;;) {
        size_t bytes = 0;
        ssize_t got = c->held < BYTES_MAX ? read(c->descriptor, c->reply + c->held, BYTES_MAX - c->held) : 0;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got > 0)
            c->held += (size_t)got;
        const char *body = body_of(c, &bytes);
        c->whole = body != NULL;
        if (got <= 0 || (asked.keep && c->whole)) /* closed, or reset behind a whole reply */
            return end_request(c, c->whole && is_as_expected(c, body, bytes));
    }
}

static void happened(struct connection *c, uint32_t events)
{
    if (!c->under_way) { /* kept between two requests: the next one makes another, if the server has closed it */
        if (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) {
            close(c->descriptor);
            c->descriptor = -1;
        }
    } else if (!c->connected) {
        int fault = 0;
        socklen_t size = sizeof fault;
        getsockopt(c->descriptor, SOL_SOCKET, SO_ERROR, &fault, &size);
        if (fault)
            end_request(c, 0);
        else if (events & EPOLLOUT) {
            c->connected = 1;
            c->connected_ns = clock_ns(CLOCK_MONOTONIC);
            send_request(c);
        }
    } else if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
        receive(c);
}

/* Makes requests until no more are to be made, and all have ended. */
static void drive(void)
{
    struct epoll_event events[EVENTS_MAX];
    for (int place = 0; place < asked.connections && goes_on(); place++)
        begin(&connections[place]);
    while (under_way) {
        int ready = epoll_wait(epoll, events, EVENTS_MAX, SILENT_MS);
        if (ready == 0)
            fail("no reply within %d ms", SILENT_MS);
        for (int place = 0; place < ready; place++)
            happened(events[place].data.ptr, events[place].events);
    }
}

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double at_us(double share)
{
    int64_t place = (int64_t)(share * (double)answered);
    return answered ? (double)times_ns[place < answered ? place : answered - 1] / 1e3 : 0;
}

static void print_report(void)
{
    double count = answered ? (double)answered : 1, total_s = (double)(ended_ns - began_ns) / 1e9;
    double cpu_s = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - load_began_cpu_ns) / 1e9;
    double elapsed_s = (double)(clock_ns(CLOCK_MONOTONIC) - load_began_ns) / 1e9;
    if (asked.times != NULL) {
        FILE *file = fopen(asked.times, "wb");
        if (file == NULL || fwrite(times_ns, sizeof *times_ns, (size_t)answered, file) != (size_t)answered ||
            fclose(file) != 0)
            fail("%s cannot be written", asked.times);
    }
    qsort(times_ns, (size_t)answered, sizeof *times_ns, ascending);
    printf("{\"requests\": %lld, \"errors\": %lld, \"all_requests\": %lld, \"total_s\": %.6f, \"throughput_hz\": %.3f, ",
           (long long)answered, (long long)errors, (long long)all_answered, total_s, total_s > 0 ? count / total_s : 0);
    printf("\"response_us\": %.3f, \"connect_us\": %.3f, \"processing_us\": %.3f, \"p50_us\": %.3f, \"p99_us\": %.3f, "
           "\"max_us\": %.3f, ",
           response_ns_sum / count / 1e3, connect_ns_sum / count / 1e3,
           (response_ns_sum - connect_ns_sum) / count / 1e3, at_us(0.5), at_us(0.99), at_us(1));
    printf("\"received_bytes\": %lld, \"sent_bytes\": %lld, \"cpu_s\": %.6f, \"elapsed_s\": %.6f, \"began_ns\": %lld, "
           "\"ended_ns\": %lld, \"reply\": \"",
           (long long)received_bytes, (long long)sent_bytes, cpu_s, elapsed_s, (long long)began_ns,
           (long long)ended_ns);
    for (const char *byte = first_body; *byte; byte++)
        printf("%02x", (unsigned char)*byte);
    puts("\"}");
}

static void take_address(char *text)
{
    char *colon = strrchr(text, ':');
    int port = colon == NULL ? 0 : atoi(colon + 1);
    if (port < 1 || port > 65535 || strlen(text) >= sizeof host)
        fail("--address: got %s, allowed: HOST:PORT with an IPv4 address", text);
    strcpy(host, text);
    *colon = 0;
    asked.address.sin_family = AF_INET;
    asked.address.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, text, &asked.address.sin_addr) != 1)
        fail("%s is no IPv4 address", text);
}

static void take_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"address", 1, NULL, 'a'},   {"request", 1, NULL, 'r'},  {"body", 1, NULL, 'b'},     {"connections", 1, NULL, 'c'},
        {"keep", 0, NULL, 'k'},      {"requests", 1, NULL, 'n'}, {"warm-up", 1, NULL, 'w'},  {"seconds", 1, NULL, 's'},
        {"first-id", 1, NULL, 'i'},  {"per-id", 1, NULL, 'p'},   {"expect", 1, NULL, 'e'},   {"times", 1, NULL, 't'},
        {"warm-up-seconds", 1, NULL, 'u'}, {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'a': take_address(optarg); break;
        case 'r': asked.request = optarg; break;
        case 'b': asked.body = optarg; break;
        case 'c': asked.connections = atoi(optarg); break;
        case 'k': asked.keep = 1; break;
        case 'n': asked.requests = atoll(optarg); break;
        case 'w': asked.warm_up = atoll(optarg); break;
        case 's': asked.seconds = atof(optarg); break;
        case 'u': asked.warm_up_seconds = atof(optarg); break;
        case 'i': asked.first_id = atoll(optarg); break;
        case 'p': asked.per_id = atoll(optarg); break;
        case 'e': asked.expect = optarg; break;
        case 't': asked.times = optarg; break;
        default: exit(1);
        }
    if (asked.request == NULL || asked.address.sin_port == 0 || optind != argc)
        fail("--address and --request are needed, and no other words");
    if ((asked.requests > 0) == (asked.seconds > 0) || asked.warm_up < 0 || asked.per_id < 1)
        fail("--requests or --seconds over 0 is needed, and not both");
    if (asked.connections < 1 || asked.connections > CONNECTIONS_MAX)
        fail("1 to %d connections are needed", CONNECTIONS_MAX);
}

int main(int argc, char **argv)
{
    take_options(argc, argv);
    signal(SIGPIPE, SIG_IGN); /* a write to a closed connection is an error of its request */
    if ((epoll = epoll_create1(0)) < 0)
        fail("no epoll: %s", strerror(errno));
    for (int place = 0; place < asked.connections; place++)
        connections[place].descriptor = -1;
    load_began_ns = clock_ns(CLOCK_MONOTONIC);
    load_began_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID); /* not what was spent on the way to this program */
    from_ns = load_began_ns + (int64_t)(asked.warm_up_seconds * 1e9);
    until_ns = from_ns + (int64_t)(asked.seconds * 1e9);
    due = asked.warm_up;
    drive(); /* the warm-up; all where seconds are asked for */
    due += asked.requests;
    drive();
    print_report();
    return 0;
}
