/* What server and client have in common: the clock, options, and how a program says that something is wrong. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdint.h>

#include "channel.h"

enum { FAILED_EXIT = 1, USAGE_EXIT = 2 };

#define NS_PER_S INT64_C(1000000000)

/* Nanoseconds of CLOCK_MONOTONIC. */
int64_t clock_ns(void);

/* Ends the process: with exit 2 where the command line is at fault, with exit 1 elsewhere. One line. */
__attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *said, ...);
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *said, ...);

/* What stands behind an option, checked; refuses it else. */
double number_of(const char *option, const char *value, double least, double most);
enum pattern pattern_of(const char *value);

/* Memory that is there when it is first used. Fails where there is none. */
void *room_for(size_t count, size_t bytes);

#endif
