/* The patterns that the study shows and does not measure: one run of each, in one process, over inproc.
 *
 *     NAME_patterns pub-sub|pipeline|bus|survey
 *
 * Each of zeromq.c, nanomsg.c and nng.c has the five functions below. run.c is the patterns, and the same for all.
 */
#ifndef PATTERNS_H
#define PATTERNS_H

#include <stddef.h>

enum kind { PUB, SUB, PUSH, PULL, BUS, SURVEYOR, RESPONDENT, KINDS };

enum { WAIT_MS = 100 }; /* how long a receive may wait */

struct node;

struct node *node_open(enum kind kind); /* NULL where the library has no such kind; a SUB gets everything */
int node_bind(struct node *node, const char *url);
int node_connect(struct node *node, const char *url);
int node_send(struct node *node, const char *text);
int node_receive(struct node *node, char *room, size_t room_bytes); /* 0: a text is in the room; -1: none came */
void node_close(struct node *node);

#endif
