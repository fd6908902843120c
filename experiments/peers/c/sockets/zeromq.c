/* ZeroMQ, by libzmq. It sets TCP_NODELAY itself and has no option for it. Connecting returns at once, whether or not a
 * server is there. A side that has sent and closes still delivers, for LINGER_MS at most.
 */
#include "channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

enum { LINGER_MS = 1000, URL_BYTES = 64 };

struct channel {
    void *context, *socket;
};

struct channel *channel_create(enum pattern pattern, enum role role, int wait_ms)
{
    struct channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    int kind = pattern != REQUEST_REPLY ? ZMQ_PAIR : role == SERVER ? ZMQ_REP : ZMQ_REQ;
    /* step: create */
    c->context = zmq_ctx_new();
    c->socket = zmq_socket(c->context, kind);
    int linger_ms = LINGER_MS;
    if (c->socket == NULL || zmq_setsockopt(c->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms) != 0 ||
        zmq_setsockopt(c->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms) != 0)
        return NULL;
    /* end */
    return c;
}

int channel_bind(struct channel *c, const char *host, int port)
{
    char url[URL_BYTES];
    snprintf(url, sizeof url, "tcp://%s:%d", host, port);
    /* step: bind */
    if (zmq_bind(c->socket, url) != 0)
        return -1;
    /* end */
    return 0;
}

int channel_connect(struct channel *c, const char *host, int port)
{
    char url[URL_BYTES];
    snprintf(url, sizeof url, "tcp://%s:%d", host, port);
    /* step: connect */
    if (zmq_connect(c->socket, url) != 0)
        return -1;
    /* end */
    return 0;
}

int channel_send(struct channel *c, const void *message, size_t bytes)
{
    /* step: send */
    if (zmq_send(c->socket, message, bytes, 0) < 0)
        return -1;
    /* end */
    return 0;
}

ssize_t channel_receive(struct channel *c, void *room, size_t room_bytes)
{
    /* step: receive */
    int bytes = zmq_recv(c->socket, room, room_bytes, 0);
    if (bytes < 0)
        return zmq_errno() == EAGAIN ? NOTHING_YET : GONE;
    /* end */
    return (size_t)bytes <= room_bytes ? bytes : NOTHING_YET; /* a longer message is dropped */
}

void channel_close(struct channel *c)
{
    /* step: close */
    zmq_close(c->socket);
    zmq_ctx_term(c->context);
    /* end */
    free(c);
}

const char *channel_error(void)
{
    return zmq_strerror(zmq_errno());
}
