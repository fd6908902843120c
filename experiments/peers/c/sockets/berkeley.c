/* Berkeley sockets. TCP knows no messages: four bytes of length, big-endian, stand before each.
 *
 * A server has one connection at a time, the next one when the client has closed it; so both patterns are the same.
 * TCP_NODELAY is set, on both sides.
 */
#include "channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HEAD_BYTES = 4, BACKLOG = 128 };

struct channel {
    int listener, connection; /* -1: none */
    enum role role;
    uint8_t head[HEAD_BYTES];
    size_t held; /* bytes of the next message that have come, its head among them */
};

struct channel *channel_create(enum pattern pattern, enum role role, int wait_ms)
{
    struct channel *c = calloc(1, sizeof *c);
    (void)pattern;
    if (c == NULL)
        return NULL;
    c->role = role;
    c->listener = c->connection = -1;
    /* step: create */
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (descriptor < 0)
        return NULL;
    int on = 1;
    struct timeval wait = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
    if (setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0)
        return NULL;
    /* end */
    *(role == SERVER ? &c->listener : &c->connection) = descriptor;
    return c;
}

static int address_of(struct sockaddr_in *address, const char *host, int port)
{
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, host, &address->sin_addr) == 1 ? 0 : -1;
}

int channel_bind(struct channel *c, const char *host, int port)
{
    /* step: bind */
    int on = 1;
    struct sockaddr_in address;
    if (setsockopt(c->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || address_of(&address, host, port) < 0 ||
        bind(c->listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(c->listener, BACKLOG) < 0)
        return -1;
    /* end */
    return 0;
}

int channel_connect(struct channel *c, const char *host, int port)
{
    /* step: connect */
    struct sockaddr_in address;
    if (address_of(&address, host, port) < 0 ||
        connect(c->connection, (struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    /* end */
    return 0;
}

int channel_send(struct channel *c, const void *message, size_t bytes)
{
    /* step: send */
    uint32_t length = htonl((uint32_t)bytes);
    struct iovec parts[2] = {{&length, HEAD_BYTES}, {(void *)message, bytes}};
    for (int part = 0; part < 2;) {
        ssize_t sent = writev(c->connection, parts + part, 2 - part);
        if (sent < 0)
            return -1;
        for (size_t left = (size_t)sent; part < 2; part++) {
            size_t taken = left < parts[part].iov_len ? left : parts[part].iov_len;
            parts[part].iov_base = (char *)parts[part].iov_base + taken;
            parts[part].iov_len -= taken;
            left -= taken;
            if (parts[part].iov_len > 0)
                break;
        }
    }
    /* end */
    return 0;
}

/* A server's next connection; 0 where none has come. */
static int has_connection(struct channel *c)
{
    if (c->connection < 0 && (c->connection = accept(c->listener, NULL, NULL)) >= 0) {
        c->held = 0; /* Linux gives an accepted connection the listener's options */
    }
    return c->connection >= 0;
}

/* After the client has left, or has sent what is no message. */
static ssize_t without_connection(struct channel *c)
{
    if (c->role == CLIENT)
        return GONE;
    close(c->connection);
    c->connection = -1;
    return NOTHING_YET;
}

ssize_t channel_receive(struct channel *c, void *room, size_t room_bytes)
{
    if (!has_connection(c))
        return NOTHING_YET;
    /* step: receive */
    for (;;) {
        uint32_t length = 0;
        memcpy(&length, c->head, HEAD_BYTES);
        size_t whole = HEAD_BYTES + (c->held < HEAD_BYTES ? 0 : (size_t)ntohl(length));
        if (whole > HEAD_BYTES + room_bytes)
            return without_connection(c);
        if (c->held >= HEAD_BYTES && c->held == whole) {
            c->held = 0;
            return (ssize_t)(whole - HEAD_BYTES);
        }
        void *at = c->held < HEAD_BYTES ? c->head + c->held : (uint8_t *)room + (c->held - HEAD_BYTES);
        ssize_t got = read(c->connection, at, c->held < HEAD_BYTES ? HEAD_BYTES - c->held : whole - c->held);
        if (got < 0 && errno == EAGAIN)
            return NOTHING_YET;
        if (got <= 0)
            return without_connection(c);
        c->held += (size_t)got;
    }
    /* end */
}

void channel_close(struct channel *c)
{
    /* step: close */
    if (c->connection >= 0)
        close(c->connection);
    if (c->listener >= 0)
        close(c->listener);
    /* end */
    free(c);
}

const char *channel_error(void)
{
    return strerror(errno);
}
