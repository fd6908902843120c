/* ZeroMQ has publish-subscribe and the pipeline; it has no bus and no survey. */
#include "patterns.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

struct node {
    void *socket;
};

static void *context; /* one for all nodes, because inproc joins sockets of one context; the process ends with it */

struct node *node_open(enum kind kind)
{
    static const int kinds[KINDS] = {ZMQ_PUB, ZMQ_SUB, ZMQ_PUSH, ZMQ_PULL, -1, -1, -1};
    struct node *node = malloc(sizeof *node);
    int wait_ms = WAIT_MS, linger_ms = 0;
    if (context == NULL)
        context = zmq_ctx_new();
    if (node == NULL || kinds[kind] < 0 || (node->socket = zmq_socket(context, kinds[kind])) == NULL)
        return NULL;
    zmq_setsockopt(node->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(node->socket, ZMQ_SNDTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(node->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    if (kind == SUB)
        zmq_setsockopt(node->socket, ZMQ_SUBSCRIBE, "", 0);
    return node;
}

int node_bind(struct node *node, const char *url)
{
    return zmq_bind(node->socket, url);
}

int node_connect(struct node *node, const char *url)
{
    return zmq_connect(node->socket, url);
}

int node_send(struct node *node, const char *text)
{
    return zmq_send(node->socket, text, strlen(text) + 1, 0) < 0 ? -1 : 0;
}

int node_receive(struct node *node, char *room, size_t room_bytes)
{
    int bytes = zmq_recv(node->socket, room, room_bytes, 0);
    return bytes < 0 || (size_t)bytes > room_bytes ? -1 : 0;
}

void node_close(struct node *node)
{
    zmq_close(node->socket);
    free(node);
}
