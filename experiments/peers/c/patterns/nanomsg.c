/* nanomsg has all four patterns. */
#include "patterns.h"

#include <nanomsg/bus.h>
#include <nanomsg/nn.h>
#include <nanomsg/pipeline.h>
#include <nanomsg/pubsub.h>
#include <nanomsg/survey.h>
#include <stdlib.h>
#include <string.h>

struct node {
    int socket;
};

struct node *node_open(enum kind kind)
{
    static const int kinds[KINDS] = {NN_PUB, NN_SUB, NN_PUSH, NN_PULL, NN_BUS, NN_SURVEYOR, NN_RESPONDENT};
    struct node *node = malloc(sizeof *node);
    int wait_ms = WAIT_MS;
    if (node == NULL || (node->socket = nn_socket(AF_SP, kinds[kind])) < 0)
        return NULL;
    nn_setsockopt(node->socket, NN_SOL_SOCKET, NN_RCVTIMEO, &wait_ms, sizeof wait_ms);
    nn_setsockopt(node->socket, NN_SOL_SOCKET, NN_SNDTIMEO, &wait_ms, sizeof wait_ms);
    if (kind == SUB)
        nn_setsockopt(node->socket, NN_SUB, NN_SUB_SUBSCRIBE, "", 0);
    return node;
}

int node_bind(struct node *node, const char *url)
{
    return nn_bind(node->socket, url) < 0 ? -1 : 0;
}

int node_connect(struct node *node, const char *url)
{
    return nn_connect(node->socket, url) < 0 ? -1 : 0;
}

int node_send(struct node *node, const char *text)
{
    return nn_send(node->socket, text, strlen(text) + 1, 0) < 0 ? -1 : 0;
}

int node_receive(struct node *node, char *room, size_t room_bytes)
{
    int bytes = nn_recv(node->socket, room, room_bytes, 0);
    return bytes < 0 || (size_t)bytes > room_bytes ? -1 : 0;
}

void node_close(struct node *node)
{
    nn_close(node->socket);
    free(node);
}
