/* The stocks that are looked up: read once, then never changed. */
#ifndef STOCKS_H
#define STOCKS_H

#include <stddef.h>
#include <stdint.h>

enum { LOOKUP_REPLY_MAX = 32 };

/* Reads a catalog file, or has the default four where it is NULL. Refuses a file that is none. */
void read_stocks(const char *file);

/* Answers a LookupRequest with a LookupResponse; gives its bytes, or 0 where the request is no protobuf. */
size_t lookup(const uint8_t *request, size_t bytes, uint8_t reply[LOOKUP_REPLY_MAX]);

#endif
