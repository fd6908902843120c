/* A load client for the sockets protocol, in C: as little between the clock and the wire as a program can have.
 *
 *     load HOST PORT METHOD PAYLOAD_HEX TIMEOUT_MS CONNECTIONS WARM_UP_S DURATION_S RATE_HZ [TIMES_FILE]
 *
 * Many connections in one thread with epoll, each with one request under way at most. With RATE_HZ 0 it is a closed
 * loop. With a rate, requests are due at a constant one, and whichever connection is free sends what is due; the thread
 * never sleeps then. Times are from just before the write to just after the whole reply was read, whatever was due
 * when. The server is told TIMEOUT_MS with every request; 0: none. One line of JSON comes out: requests in the measured
 * window, errors, throughput in 1/s, times in µs, the replies in all, those of the warm-up too, and the requests in the
 * window of the connections that were served least and most. TIMES_FILE gets every time in the window, ascending, in
 * ns, as 32-bit numbers of the machine. A lost connection, or bytes that are no reply, end it with exit code 1; there
 * are no retries. Without a reply in the window all numbers of it but the errors are 0. HOST is an IPv4 address.
 *
 * Built by: cc -O2 -o load load.c
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
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
    REQUEST_HEAD = 13, /* length, call, timeout in ms: 4 bytes each; length of the method */
    REPLY_HEAD = 9,    /* length, call: 4 bytes each; code */
    REPLY_MAX = 4096,
    FRAME_MAX = 4096,
    CONNECTIONS_MAX = 4096,
    EVENTS_MAX = 256,
    SILENT_MS = 10000 /* how long the server may say nothing */
};

struct connection {
    int descriptor;
    uint32_t call;
    int64_t sent_ns;
    int busy; /* with a request under way */
    uint32_t served; /* requests in the window, without errors */
    size_t held; /* bytes of the reply that have come */
    uint8_t reply[REPLY_MAX];
};

static uint8_t frame[FRAME_MAX];
static size_t frame_bytes;
static uint32_t *times_ns; /* of every request in the window; 4.3 s is the longest it can say */
static size_t times_count, times_room, errors, all_requests;

static void fail(const char *said, ...)
{
    va_list values;
    va_start(values, said);
    fputs("load: ", stderr);
    vfprintf(stderr, said, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void put_u32(uint8_t *at, uint32_t value)
{
    value = htonl(value);
    memcpy(at, &value, 4);
}

static uint32_t get_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static void make_frame(const char *method, const char *payload, uint32_t timeout_ms)
{
    size_t method_bytes = strlen(method), payload_bytes = strlen(payload) / 2;
    frame_bytes = REQUEST_HEAD + method_bytes + payload_bytes;
    if (method_bytes > 255 || strlen(payload) % 2 || frame_bytes > FRAME_MAX)
        fail("a method of 255 bytes at most and a payload of whole bytes in hexadecimal are needed");
    put_u32(frame, (uint32_t)frame_bytes - 4);
    put_u32(frame + 8, timeout_ms);
    frame[12] = (uint8_t)method_bytes;
    memcpy(frame + REQUEST_HEAD, method, method_bytes);
    for (size_t place = 0; place < payload_bytes; place++) {
        unsigned value;
        if (sscanf(payload + 2 * place, "%2x", &value) != 1)
            fail("%s is not hexadecimal", payload);
        frame[REQUEST_HEAD + method_bytes + place] = (uint8_t)value;
    }
}

static void dial(struct connection *c, const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail("%s is no IPv4 address", host);
    c->descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (c->descriptor < 0 || connect(c->descriptor, (struct sockaddr *)&address, sizeof address) < 0)
        fail("no connection to %s:%d", host, port);
    setsockopt(c->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void send_request(struct connection *c)
{
    c->call = c->call == UINT32_MAX ? 1 : c->call + 1;
    c->held = 0;
    c->busy = 1;
    put_u32(frame + 4, c->call);
    c->sent_ns = clock_ns();
    if (write(c->descriptor, frame, frame_bytes) != (ssize_t)frame_bytes)
        fail("a request could not be sent");
}

static void note(int64_t took_ns)
{
    if (times_count == times_room) {
        times_room = times_room ? 2 * times_room : 1 << 20;
        times_ns = realloc(times_ns, times_room * sizeof *times_ns);
        if (times_ns == NULL)
            fail("no memory for %zu times", times_room);
    }
    times_ns[times_count++] = took_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)took_ns;
}

/* Reads what has come. Says whether the reply is whole. */
static int receive(struct connection *c, int64_t from_ns, int64_t until_ns)
{
    ssize_t got = read(c->descriptor, c->reply + c->held, REPLY_MAX - c->held);
    if (got <= 0)
        fail("the server closed a connection");
    c->held += (size_t)got;
    if (c->held < REPLY_HEAD)
        return 0;
    size_t whole = (size_t)get_u32(c->reply) + 4;
    if (whole < REPLY_HEAD || whole > REPLY_MAX || c->held > whole || get_u32(c->reply + 4) != c->call)
        fail("a reply that belongs to no request");
    if (c->held < whole)
        return 0;
    int64_t done_ns = clock_ns();
    c->busy = 0;
    all_requests++;
    if (c->sent_ns >= from_ns && c->sent_ns < until_ns) {
        if (c->reply[8] == 0) {
            note(done_ns - c->sent_ns);
            c->served++;
        } else {
            errors++;
        }
    }
    return 1;
}

/* A constant rate: what is due next, and whose turn it is. */
struct schedule {
    int64_t began_ns, until_ns;
    double gap_ns;
    uint64_t number;
    int turn;
};

/* Sends what is due by now on connections that are free, in turns. Says how many were sent; the others wait. */
static int send_due(struct schedule *s, struct connection *connections, int count)
{
    int sent = 0;
    for (int looked = 0; looked < count; looked++) {
        struct connection *c = &connections[s->turn];
        int64_t due_ns = s->began_ns + (int64_t)((double)s->number * s->gap_ns);
        if (due_ns >= s->until_ns || due_ns > clock_ns())
            break;
        s->turn = (s->turn + 1) % count;
        if (c->busy)
            continue;
        s->number++;
        sent++;
        send_request(c);
    }
    return sent;
}

static void drive(struct connection *connections, int count, int64_t from_ns, int64_t until_ns, double rate_hz)
{
    struct epoll_event events[EVENTS_MAX];
    struct schedule schedule = {.began_ns = clock_ns(), .until_ns = until_ns, .gap_ns = 1e9 / rate_hz};
    int epoll = epoll_create1(0), open_loop = rate_hz > 0, under_way = 0;
    for (int place = 0; place < count; place++) {
        struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = &connections[place]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[place].descriptor, &wanted) < 0)
            fail("epoll takes no connection");
        if (!open_loop) {
            send_request(&connections[place]);
            under_way++;
        }
    }
    while (under_way || (open_loop && clock_ns() < until_ns)) {
        if (open_loop)
            under_way += send_due(&schedule, connections, count);
        int ready = epoll_wait(epoll, events, EVENTS_MAX, open_loop ? 0 : SILENT_MS);
        if (ready < 0 || (ready == 0 && !open_loop) || clock_ns() > until_ns + SILENT_MS * INT64_C(1000000))
            fail("no reply within %d ms", SILENT_MS);
        for (int place = 0; place < ready; place++) {
            struct connection *c = events[place].data.ptr;
            if (!receive(c, from_ns, until_ns))
                continue;
            if (!open_loop && clock_ns() < until_ns)
                send_request(c);
            else
                under_way--;
        }
    }
    close(epoll);
}

static int ascending(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static double at_us(double share)
{
    size_t place = (size_t)(share * (double)times_count);
    if (times_count == 0)
        return 0;
    return times_ns[place < times_count ? place : times_count - 1] / 1e3;
}

static void print_report(const struct connection *connections, int count, double duration_s)
{
    double sum_us = 0;
    uint32_t least = connections->served, most = least;
    for (int place = 1; place < count; place++) {
        least = connections[place].served < least ? connections[place].served : least;
        most = connections[place].served > most ? connections[place].served : most;
    }
    qsort(times_ns, times_count, sizeof *times_ns, ascending);
    for (size_t place = 0; place < times_count; place++)
        sum_us += times_ns[place] / 1e3;
    printf("{\"requests\": %zu, \"errors\": %zu, \"throughput_hz\": %.3f, \"mean_us\": %.3f, \"p50_us\": %.3f, "
           "\"p99_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, \"all_requests\": %zu, \"served_least\": %u, "
           "\"served_most\": %u}\n",
           times_count, errors, (double)times_count / duration_s, times_count ? sum_us / (double)times_count : 0, at_us(0.5),
           at_us(0.99), at_us(0.999), at_us(1), all_requests, least, most);
}

static void write_times(const char *file)
{
    FILE *times = fopen(file, "wb");
    if (times == NULL || fwrite(times_ns, sizeof *times_ns, times_count, times) != times_count || fclose(times) != 0)
        fail("%s cannot be written", file);
}

int main(int argc, char **argv)
{
    if (argc != 10 && argc != 11)
        fail("usage: load HOST PORT METHOD PAYLOAD_HEX TIMEOUT_MS CONNECTIONS WARM_UP_S DURATION_S RATE_HZ "
             "[TIMES_FILE]");
    int port = atoi(argv[2]), timeout_ms = atoi(argv[5]), count = atoi(argv[6]);
    double warm_up_s = atof(argv[7]), duration_s = atof(argv[8]), rate_hz = atof(argv[9]);
    if (port < 1 || port > 65535 || count < 1 || count > CONNECTIONS_MAX || warm_up_s < 0 || duration_s <= 0)
        fail("a port of 1 to 65535, 1 to %d connections, and seconds over 0 are needed", CONNECTIONS_MAX);
    if (timeout_ms < 0 || rate_hz < 0)
        fail("a timeout and a rate of 0 or more are needed");
    make_frame(argv[3], argv[4], (uint32_t)timeout_ms);
    struct connection *connections = calloc((size_t)count, sizeof *connections);
    if (connections == NULL)
        fail("no memory for %d connections", count);
    for (int place = 0; place < count; place++)
        dial(&connections[place], argv[1], port);
    int64_t from_ns = clock_ns() + (int64_t)(warm_up_s * 1e9), until_ns = from_ns + (int64_t)(duration_s * 1e9);
    drive(connections, count, from_ns, until_ns, rate_hz);
    print_report(connections, count, duration_s);
    if (argc == 11)
        write_times(argv[10]);
    for (int place = 0; place < count; place++)
        close(connections[place].descriptor);
    free(connections);
    free(times_ns);
    return 0;
}
