/* The sender: sends messages one after another, each when the last one has come back, and times the round trip.
 *
 *     NAME_client --address HOST:PORT [--pattern request-reply|pair|one-way] [--size BYTES] [--rate HZ]
 *                 [--count N] [--seconds S] [--timeout-s S]
 *
 * A time begins just before the send and ends when the whole reply is here. Every reply is compared with what was sent,
 * outside the time. With --rate a message is due at each of its moments; one that is due before the last has come back
 * goes out late, and none is left out. With rate 0 the next one goes out at once. It ends after --count messages or
 * --seconds, whichever is first. With --pattern one-way it waits for no reply: the receiver counts.
 *
 * In the end it prints a line of JSON for each time, in nanoseconds: {"what":"connect","ns":…}, then
 * {"what":"first call","at_ns":…,"ns":…}, which holds the connecting of an API that connects later, and for every other
 * message {"what":"call",…}. at_ns is when it was sent, since the first. One way: {"what":"sent",…} alone.
 * A lost server, or a wrong reply, ends it with exit code 1, a bad option with 2.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program.h"

enum { SIZE_LEAST = 8, COUNT_MAX = 10000000, SECONDS_MOST = 7200, HOST_BYTES = 64 };

struct options {
    char host[HOST_BYTES];
    int port;
    enum pattern pattern;
    size_t size, count;
    double rate_hz, seconds, timeout_s;
};

struct sample {
    int64_t sent_ns, took_ns;
};

static struct options parse(int count, char **words)
{
    struct options given = {.port = -1, .size = 10000, .count = 1000, .seconds = SECONDS_MOST, .timeout_s = 5};
    static const struct option known[] = {
        {"address", required_argument, NULL, 'a'}, {"pattern", required_argument, NULL, 'p'},
        {"size", required_argument, NULL, 's'},    {"rate", required_argument, NULL, 'r'},
        {"count", required_argument, NULL, 'c'},   {"seconds", required_argument, NULL, 'd'},
        {"timeout-s", required_argument, NULL, 't'}, {NULL, 0, NULL, 0},
    };
    char after;
    opterr = 0;
    for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) {
        switch (option) {
        case 'a':
            if (sscanf(optarg, "%63[0-9.]:%d%c", given.host, &given.port, &after) != 2 || given.port < 1 ||
                given.port > 65535)
                refuse("--address: got %s, allowed: an IPv4 address, a colon and a port", optarg);
            break;
        case 'p': given.pattern = pattern_of(optarg); break;
        case 's': given.size = (size_t)number_of("size", optarg, SIZE_LEAST, MESSAGE_BYTES_MAX); break;
        case 'r': given.rate_hz = number_of("rate", optarg, 0, 1e6); break;
        case 'c': given.count = (size_t)number_of("count", optarg, 1, COUNT_MAX); break;
        case 'd': given.seconds = number_of("seconds", optarg, 0, SECONDS_MOST); break;
        case 't': given.timeout_s = number_of("timeout-s", optarg, 0.01, 3600); break;
        default: refuse("%s: no such option, or no value", words[optind - 1]);
        }
    }
    if (optind < count)
        refuse("got %s, allowed: options alone", words[optind]);
    if (given.port < 0)
        refuse("--address: HOST:PORT is needed");
    return given;
}

static void sleep_until(int64_t moment_ns)
{
    struct timespec moment = {.tv_sec = moment_ns / NS_PER_S, .tv_nsec = moment_ns % NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) != 0)
        ;
}

/* Waits for the reply to a message, and gives when it was here; fails where it does not come, or is another. */
static int64_t receive_reply(struct channel *channel, const struct options *given, const char *message, char *room)
{
    ssize_t bytes = channel_receive(channel, room, MESSAGE_BYTES_MAX);
    int64_t came_ns = clock_ns();
    if (bytes == NOTHING_YET)
        fail("no reply within %g s", given->timeout_s);
    if (bytes == GONE)
        fail("the server has closed the connection");
    if ((size_t)bytes != given->size || memcmp(room, message, given->size) != 0)
        fail("a reply of %zd bytes that is not what was sent", bytes);
    return came_ns;
}

/* Sends all messages; gives how many there were. */
static size_t drive(struct channel *channel, const struct options *given, struct sample *samples)
{
    char *message = room_for(given->size, 1), *room = room_for(MESSAGE_BYTES_MAX, 1);
    int64_t began_ns = clock_ns(), until_ns = began_ns + (int64_t)(given->seconds * 1e9);
    size_t number = 0;
    for (; number < given->count && clock_ns() < until_ns; number++) {
        if (given->rate_hz > 0)
            sleep_until(began_ns + (int64_t)((double)number / given->rate_hz * 1e9));
        memcpy(message, &number, sizeof number);
        int64_t sent_ns = clock_ns();
        if (channel_send(channel, message, given->size) < 0)
            fail("a message could not be sent: %s", channel_error());
        if (given->pattern != ONE_WAY)
            samples[number] = (struct sample){sent_ns, receive_reply(channel, given, message, room) - sent_ns};
    }
    free(message);
    free(room);
    return number;
}

int main(int count, char **words)
{
    struct options given = parse(count, words);
    signal(SIGPIPE, SIG_IGN);
    struct sample *samples = room_for(given.pattern == ONE_WAY ? 0 : given.count, sizeof *samples);
    int64_t began_ns = clock_ns();
    struct channel *channel = channel_create(given.pattern, CLIENT, (int)(given.timeout_s * 1e3));
    if (channel == NULL || channel_connect(channel, given.host, given.port) < 0)
        fail("no connection to %s:%d: %s", given.host, given.port, channel_error());
    int64_t connected_ns = clock_ns();
    size_t sent = drive(channel, &given, samples);
    int64_t ended_ns = clock_ns();
    channel_close(channel);
    printf("{\"what\":\"connect\",\"ns\":%lld}\n", (long long)(connected_ns - began_ns));
    if (given.pattern == ONE_WAY)
        printf("{\"what\":\"sent\",\"messages\":%zu,\"ns\":%lld}\n", sent, (long long)(ended_ns - connected_ns));
    for (size_t place = 0; place < sent && given.pattern != ONE_WAY; place++)
        printf("{\"what\":\"%s\",\"at_ns\":%lld,\"ns\":%lld}\n", place ? "call" : "first call",
               (long long)(samples[place].sent_ns - samples[0].sent_ns), (long long)samples[place].took_ns);
    free(samples);
    return 0;
}
