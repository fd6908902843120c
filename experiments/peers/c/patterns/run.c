/* See patterns.h. Connections are made in the background, and a publisher, a bus and a surveyor drop what nobody is there
 * to get; so what was not received is sent again.
 */
#include "patterns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 100, TEXT_BYTES = 64 };

static const char *program;

static void fail(const char *said)
{
    fprintf(stderr, "%s: %s\n", program, said);
    exit(1);
}

static struct node *opened(enum kind kind)
{
    struct node *node = node_open(kind);
    if (node == NULL)
        fail("this library does not have the pattern");
    return node;
}

static struct node *bound(enum kind kind, const char *url)
{
    struct node *node = opened(kind);
    if (node_bind(node, url) < 0)
        fail("an address cannot be bound");
    return node;
}

static struct node *connected(enum kind kind, const char *url)
{
    struct node *node = opened(kind);
    if (node_connect(node, url) < 0)
        fail("an address cannot be connected to");
    return node;
}

/* Sends a text until a node has it, and says who that is. A copy from an earlier try may come before it. */
static void deliver(struct node *from, const char *text, struct node *to, const char *name)
{
    char room[TEXT_BYTES];
    for (int tries = 0; tries < TRIES; tries++) {
        if (node_send(from, text) < 0)
            continue;
        while (node_receive(to, room, sizeof room) == 0) {
            if (strcmp(room, text) == 0) {
                printf("%s got: %s\n", name, text);
                return;
            }
        }
    }
    fail("a message did not come");
}

/* One publishes, all subscribers get it. */
static void pub_sub(void)
{
    struct node *publisher = bound(PUB, "inproc://news");
    struct node *one = connected(SUB, "inproc://news"), *other = connected(SUB, "inproc://news");
    deliver(publisher, "news", one, "subscriber 1");
    deliver(publisher, "news", other, "subscriber 2");
    node_close(other);
    node_close(one);
    node_close(publisher);
}

/* Work goes one way, from stage to stage. */
static void pipeline(void)
{
    struct node *sink = bound(PULL, "inproc://results"), *tasks = bound(PUSH, "inproc://tasks");
    struct node *in = connected(PULL, "inproc://tasks"), *out = connected(PUSH, "inproc://results");
    deliver(tasks, "task", in, "worker");
    deliver(out, "result", sink, "sink");
    node_close(out);
    node_close(in);
    node_close(tasks);
    node_close(sink);
}

/* Each sends to all that it is connected with. */
static void bus(void)
{
    struct node *a = bound(BUS, "inproc://a"), *b = bound(BUS, "inproc://b"), *c = opened(BUS);
    if (node_connect(b, "inproc://a") < 0 || node_connect(c, "inproc://a") < 0 || node_connect(c, "inproc://b") < 0)
        fail("an address cannot be connected to");
    deliver(a, "from a", b, "b");
    deliver(a, "from a", c, "c");
    deliver(b, "from b", c, "c");
    deliver(c, "from c", a, "a");
    node_close(c);
    node_close(b);
    node_close(a);
}

/* One asks, all answer. An answer counts for the last question alone, so that all is asked again if anything is missing. */
static void survey(void)
{
    struct node *surveyor = bound(SURVEYOR, "inproc://survey");
    struct node *one = connected(RESPONDENT, "inproc://survey"), *other = connected(RESPONDENT, "inproc://survey");
    char asked[2][TEXT_BYTES], answers[2][TEXT_BYTES];
    for (int tries = 0;; tries++) {
        if (tries == TRIES)
            fail("a message did not come");
        if (node_send(surveyor, "who is there?") == 0 && node_receive(one, asked[0], TEXT_BYTES) == 0 &&
            node_receive(other, asked[1], TEXT_BYTES) == 0 && node_send(one, "one") == 0 &&
            node_receive(surveyor, answers[0], TEXT_BYTES) == 0 && node_send(other, "two") == 0 &&
            node_receive(surveyor, answers[1], TEXT_BYTES) == 0)
            break;
    }
    for (int number = 0; number < 2; number++)
        printf("respondent %d got: %s\nsurveyor got: %s\n", number + 1, asked[number], answers[number]);
    node_close(other);
    node_close(one);
    node_close(surveyor);
}

int main(int count, char **words)
{
    program = words[0];
    const char *pattern = count == 2 ? words[1] : "";
    if (strcmp(pattern, "pub-sub") == 0) {
        pub_sub();
    } else if (strcmp(pattern, "pipeline") == 0) {
        pipeline();
    } else if (strcmp(pattern, "bus") == 0) {
        bus();
    } else if (strcmp(pattern, "survey") == 0) {
        survey();
    } else {
        fprintf(stderr, "%s: needed: pub-sub, pipeline, bus or survey\n", program);
        return 2;
    }
    return 0;
}
