/* NNG has all four patterns. */
#include "patterns.h"

#include <nng/nng.h>
#include <nng/protocol/bus0/bus.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/survey0/respond.h>
#include <nng/protocol/survey0/survey.h>
#include <stdlib.h>
#include <string.h>

struct node {
    nng_socket socket;
};

struct node *node_open(enum kind kind)
{
    static int (*const opens[KINDS])(nng_socket *) = {nng_pub0_open, nng_sub0_open,      nng_push0_open,      nng_pull0_open,
                                                      nng_bus0_open, nng_surveyor0_open, nng_respondent0_open};
    struct node *node = malloc(sizeof *node);
    if (node == NULL || opens[kind](&node->socket) != 0)
        return NULL;
    nng_socket_set_ms(node->socket, NNG_OPT_RECVTIMEO, WAIT_MS);
    nng_socket_set_ms(node->socket, NNG_OPT_SENDTIMEO, WAIT_MS);
    if (kind == SUB)
        nng_socket_set(node->socket, NNG_OPT_SUB_SUBSCRIBE, "", 0);
    return node;
}

int node_bind(struct node *node, const char *url)
{
    return nng_listen(node->socket, url, NULL, 0) != 0 ? -1 : 0;
}

int node_connect(struct node *node, const char *url)
{
    return nng_dial(node->socket, url, NULL, 0) != 0 ? -1 : 0;
}

int node_send(struct node *node, const char *text)
{
    return nng_send(node->socket, (void *)text, strlen(text) + 1, 0) != 0 ? -1 : 0;
}

int node_receive(struct node *node, char *room, size_t room_bytes)
{
    return nng_recv(node->socket, room, &room_bytes, 0) != 0 ? -1 : 0;
}

void node_close(struct node *node)
{
    nng_close(node->socket);
    free(node);
}
