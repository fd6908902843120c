/* NNG, nanomsg's successor, by libnng. It sets TCP_NODELAY unless it is told otherwise. Connecting waits until the server
 * is there. A side that closes may lose what it has just sent.
 */
#include "channel.h"

#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>

enum { URL_BYTES = 64 };

struct channel {
    nng_socket socket;
};

static int error; /* of the last call; NNG gives errors back and keeps none */

struct channel *channel_create(enum pattern pattern, enum role role, int wait_ms)
{
    struct channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    int (*open)(nng_socket *) = pattern != REQUEST_REPLY ? nng_pair0_open : role == SERVER ? nng_rep0_open : nng_req0_open;
    /* step: create */
    error = open(&c->socket);
    if (error != 0 || (error = nng_socket_set_ms(c->socket, NNG_OPT_RECVTIMEO, wait_ms)) != 0)
        return NULL;
    /* end */
    return c;
}

int channel_bind(struct channel *c, const char *host, int port)
{
    char url[URL_BYTES];
    snprintf(url, sizeof url, "tcp://%s:%d", host, port);
    /* step: bind */
    if ((error = nng_listen(c->socket, url, NULL, 0)) != 0)
        return -1;
    /* end */
    return 0;
}

int channel_connect(struct channel *c, const char *host, int port)
{
    char url[URL_BYTES];
    snprintf(url, sizeof url, "tcp://%s:%d", host, port);
    /* step: connect */
    if ((error = nng_dial(c->socket, url, NULL, 0)) != 0)
        return -1;
    /* end */
    return 0;
}

int channel_send(struct channel *c, const void *message, size_t bytes)
{
    /* step: send */
    if ((error = nng_send(c->socket, (void *)message, bytes, 0)) != 0) /* copies: NNG_FLAG_ALLOC is not given */
        return -1;
    /* end */
    return 0;
}

ssize_t channel_receive(struct channel *c, void *room, size_t room_bytes)
{
    /* step: receive */
    size_t bytes = room_bytes;
    if ((error = nng_recv(c->socket, room, &bytes, 0)) != 0)
        return error == NNG_ETIMEDOUT || error == NNG_EMSGSIZE ? NOTHING_YET : GONE;
    /* end */
    return (ssize_t)bytes;
}

void channel_close(struct channel *c)
{
    /* step: close */
    nng_close(c->socket);
    /* end */
    free(c);
}

const char *channel_error(void)
{
    return nng_strerror(error);
}
