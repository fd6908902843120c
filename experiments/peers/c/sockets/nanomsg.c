/* nanomsg, by libnanomsg. TCP_NODELAY is off unless it is asked for; here it is. Connecting returns at once, whether or
 * not a server is there. A side that closes may lose what it has just sent: this version has no linger.
 */
#include "channel.h"

#include <errno.h>
#include <nanomsg/nn.h>
#include <nanomsg/pair.h>
#include <nanomsg/reqrep.h>
#include <nanomsg/tcp.h>
#include <stdio.h>
#include <stdlib.h>

enum { URL_BYTES = 64 };

struct channel {
    int socket;
};

struct channel *channel_create(enum pattern pattern, enum role role, int wait_ms)
{
    struct channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    int kind = pattern != REQUEST_REPLY ? NN_PAIR : role == SERVER ? NN_REP : NN_REQ;
    /* step: create */
    c->socket = nn_socket(AF_SP, kind);
    int on = 1;
    if (c->socket < 0 || nn_setsockopt(c->socket, NN_TCP, NN_TCP_NODELAY, &on, sizeof on) < 0 ||
        nn_setsockopt(c->socket, NN_SOL_SOCKET, NN_RCVTIMEO, &wait_ms, sizeof wait_ms) < 0)
        return NULL;
    /* end */
    return c;
}

int channel_bind(struct channel *c, const char *host, int port)
{
    char url[URL_BYTES];
    snprintf(url, sizeof url, "tcp://%s:%d", host, port);
    /* step: bind */
    if (nn_bind(c->socket, url) < 0)
        return -1;
    /* end */
    return 0;
}

int channel_connect(struct channel *c, const char *host, int port)
{
    char url[URL_BYTES];
    snprintf(url, sizeof url, "tcp://%s:%d", host, port);
    /* step: connect */
    if (nn_connect(c->socket, url) < 0)
        return -1;
    /* end */
    return 0;
}

int channel_send(struct channel *c, const void *message, size_t bytes)
{
    /* step: send */
    if (nn_send(c->socket, message, bytes, 0) < 0)
        return -1;
    /* end */
    return 0;
}

ssize_t channel_receive(struct channel *c, void *room, size_t room_bytes)
{
    /* step: receive */
    int bytes = nn_recv(c->socket, room, room_bytes, 0);
    if (bytes < 0)
        return nn_errno() == ETIMEDOUT ? NOTHING_YET : GONE;
    /* end */
    return (size_t)bytes <= room_bytes ? bytes : NOTHING_YET; /* a longer message is dropped */
}

void channel_close(struct channel *c)
{
    /* step: close */
    nn_close(c->socket);
    /* end */
    free(c);
}

const char *channel_error(void)
{
    return nn_strerror(nn_errno());
}
