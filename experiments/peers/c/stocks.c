/* See stocks.h. A table with open addressing finds a stock by its name. */
#include "stocks.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sockets/program.h"

enum { STOCKS_MAX = 100000, PLACES = 262144, NAME_BYTES_MAX = 256, LINE_MAX_BYTES = 1024 };

enum { STATUS_OK = 1, STATUS_SUSPENDED = 2, STATUS_UNKNOWN_STOCK = 3 };

enum { NAME_FIELD = 1, VARINT = 0, FIXED_64 = 1, LENGTH = 2, FIXED_32 = 5 };

struct stock {
    char name[NAME_BYTES_MAX + 1];
    size_t name_bytes;
    uint64_t price_cents, volume_limit;
};

static struct stock stocks[STOCKS_MAX];
static size_t count;
static const struct stock *places[PLACES];

static const struct stock **place_of(const char *name, size_t bytes)
{
    uint32_t hash = 2166136261; /* FNV-1a */
    for (size_t place = 0; place < bytes; place++)
        hash = (hash ^ (uint8_t)name[place]) * 16777619;
    const struct stock **found = &places[hash % PLACES];
    while (*found && ((*found)->name_bytes != bytes || memcmp((*found)->name, name, bytes) != 0))
        found = found + 1 < places + PLACES ? found + 1 : places;
    return found;
}

static void add(const char *file, const struct stock *last)
{
    const struct stock **place = place_of(last->name, last->name_bytes);
    if (last->name_bytes == 0 || *place)
        refuse("--catalog: %s: stocks[%zu]: got no name, or one for the second time", file, count + 1);
    stocks[count] = *last;
    *place = &stocks[count++];
}

static void read_line(const char *file, int number, const char *line, struct stock *into)
{
    double price;
    char end;
    if (sscanf(line, " name = \"%256[^\"]%c", into->name, &end) == 2 && end == '"')
        into->name_bytes = strlen(into->name);
    else if (sscanf(line, " price = %lf", &price) == 1 && price >= 0)
        into->price_cents = (uint64_t)llround(price * 100);
    else if (sscanf(line, " volume_limit = %lu", &into->volume_limit) != 1 && line[strspn(line, " \t\r\n")] != '\0' &&
             line[strspn(line, " \t")] != '#')
        refuse("--catalog: %s, line %d: allowed: [[stocks]], name, price and volume_limit", file, number);
}

void read_stocks(const char *file)
{
    static const struct stock usual[] = {{"GameStart", 9, 1599, 1000000},
                                         {"FishCo", 6, 4250, 1000000},
                                         {"BoarCo", 6, 875, 1000000},
                                         {"MenhirCo", 8, 10120, 1000000}};
    if (file == NULL) {
        for (size_t number = 0; number < sizeof usual / sizeof *usual; number++)
            add("", &usual[number]);
        return;
    }
    FILE *lines = fopen(file, "r");
    if (lines == NULL)
        refuse("--catalog: %s: %s", file, strerror(errno));
    char line[LINE_MAX_BYTES];
    struct stock last = {0};
    int begun = 0;
    for (int number = 1; fgets(line, sizeof line, lines); number++) {
        if (strncmp(line, "[[stocks]]", 10) != 0) {
            read_line(file, number, line, &last);
            continue;
        }
        if (begun++)
            add(file, &last);
        if (count == STOCKS_MAX)
            refuse("--catalog: %s: allowed: %d stocks", file, STOCKS_MAX);
        last = (struct stock){0};
    }
    fclose(lines);
    if (!begun)
        refuse("--catalog: %s: got no stock, allowed: tables [[stocks]]", file);
    add(file, &last);
}

/* A varint of at most 10 bytes; gives the byte behind it, or NULL. */
static const uint8_t *read_varint(const uint8_t *from, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; from < end && shift < 70; shift += 7, from++) {
        *value |= (uint64_t)(*from & 0x7F) << (shift & 63);
        if (*from < 0x80)
            return from + 1;
    }
    return NULL;
}

static uint8_t *put_varint(uint8_t *to, uint8_t tag, uint64_t value)
{
    if (value == 0)
        return to; /* as protobuf has it */
    *to++ = tag;
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

size_t lookup(const uint8_t *request, size_t bytes, uint8_t reply[LOOKUP_REPLY_MAX])
{
    const uint8_t *from = request, *end = request + bytes, *name = request;
    uint64_t tag, value, name_bytes = 0;
    while (from < end) {
        if ((from = read_varint(from, end, &tag)) == NULL || tag >> 3 == 0)
            return 0;
        switch (tag & 7) {
        case VARINT:
            from = read_varint(from, end, &value);
            value = 0; /* bytes that follow */
            break;
        case FIXED_64: value = 8; break;
        case FIXED_32: value = 4; break;
        case LENGTH: from = read_varint(from, end, &value); break;
        default: return 0;
        }
        if (from == NULL || value > (uint64_t)(end - from))
            return 0;
        if (tag == (NAME_FIELD << 3 | LENGTH))
            name = from, name_bytes = value;
        from += value;
    }
    const struct stock *found = *place_of((const char *)name, name_bytes);
    if (found == NULL)
        return (size_t)(put_varint(reply, 1 << 3, STATUS_UNKNOWN_STOCK) - reply);
    uint8_t *to = put_varint(reply, 1 << 3, found->volume_limit ? STATUS_OK : STATUS_SUSPENDED);
    return (size_t)(put_varint(to, 2 << 3, found->price_cents) - reply);
}
