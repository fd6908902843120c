/* One socket API, as far as the study of socket APIs uses it. Each of berkeley.c, zeromq.c, nanomsg.c and nng.c is one.
 *
 * The same functions in each file, in the same order. The lines of a step stand between "step: NAME" and "end", and hold
 * no more than that step needs, its errors included, so that a program can count them.
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <stddef.h>
#include <sys/types.h>

enum pattern { REQUEST_REPLY, PAIR, ONE_WAY }; /* one way: a pair, of which one side never sends */
enum role { SERVER, CLIENT };

enum { MESSAGE_BYTES_MAX = 1000000 }; /* under the 1 MiB that nanomsg and NNG allow by default */

/* What a receive gives when it gives no message. */
enum { NOTHING_YET = -1, GONE = -2 };

struct channel;

/* Every function but the receive gives 0, or else -1, where channel_error says why; create gives NULL then. Blocking, and
 * for one thread. A receive waits for a message for wait_ms at most; after that, a request of NNG's has no reply more. */
struct channel *channel_create(enum pattern pattern, enum role role, int wait_ms);
int channel_bind(struct channel *channel, const char *host, int port);
int channel_connect(struct channel *channel, const char *host, int port);
int channel_send(struct channel *channel, const void *message, size_t bytes);
/* The length of a message that has come in time; NOTHING_YET; or GONE, where the other side has left for good. */
ssize_t channel_receive(struct channel *channel, void *room, size_t room_bytes);
void channel_close(struct channel *channel);
const char *channel_error(void);

#endif
