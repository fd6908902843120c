#include "program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void say(const char *said, va_list values)
{
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, said, values);
    fputc('\n', stderr);
}

void refuse(const char *said, ...)
{
    va_list values;
    va_start(values, said);
    say(said, values);
    va_end(values);
    exit(USAGE_EXIT);
}

void fail(const char *said, ...)
{
    va_list values;
    va_start(values, said);
    say(said, values);
    va_end(values);
    exit(FAILED_EXIT);
}

double number_of(const char *option, const char *value, double least, double most)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || !(number >= least && number <= most))
        refuse("--%s: got %s, allowed: %.10g to %.10g", option, value, least, most);
    return number;
}

enum pattern pattern_of(const char *value)
{
    if (strcmp(value, "request-reply") == 0)
        return REQUEST_REPLY;
    if (strcmp(value, "pair") == 0)
        return PAIR;
    if (strcmp(value, "one-way") == 0)
        return ONE_WAY;
    refuse("--pattern: got %s, allowed: request-reply, pair, one-way", value);
}

void *room_for(size_t count, size_t bytes)
{
    void *room = malloc(count * bytes + 1);
    if (room == NULL)
        fail("no memory for %zu times %zu bytes", count, bytes);
    return memset(room, 0xFF, count * bytes + 1); /* not zero: that memory could still be missing */
}
