"""State machine of one client's connection, in a server that dispatches requests. No I/O.

| state | event | next | action of the server |
|---|---|---|---|
| READING | requests that the pipeline has room for | READING | dispatches them |
| READING | more requests than that | PAUSED | reads no more; dispatches the rest as others are answered |
| READING | a request, while others wait for their turn | PAUSED | reads no more; dispatches it in its turn |
| READING | a reply that the client does not take | PAUSED | reads no more; sends on when the client takes more |
| READING | what is no request | ENDING | answers what came before it, then says the fault |
| READING | a request that says it is the last | ENDING | answers it |
| READING | half a request that asks whether to go on | READING | says so, once all before it is answered |
| READING, PAUSED | its age is up, and its protocol has no word for that | ENDING | answers what was read |
| READING | a request that stays half there for ``read_timeout_s`` | ENDING | says the fault at once |
| READING | nothing, for ``idle_timeout_s`` | CLOSED | closes |
| PAUSED | room, nothing unsent, nothing waits | READING | reads on |
| PAUSED | nothing in flight or unsent, for ``idle_timeout_s`` | CLOSED | closes |
| READING, PAUSED | the client's last byte, or a stopping server's | ENDING | answers the requests before |
| ENDING | all is answered, sent and taken; the client has ended | CLOSED | closes |
| ENDING | all is answered, sent and taken; the client has not ended | LEAVING | half-closes |
| LEAVING | bytes that the client still sends | LEAVING | reads and drops them |
| LEAVING | the client's end, or enough time | CLOSED | closes |
| all of these | the client is gone, or takes no byte for ``read_timeout_s`` | BROKEN | drops replies; begins no more |
| BROKEN | no request is in flight | CLOSED | closes |

LEAVING is necessary because a kernel that closes a connection with unread bytes resets the connection, which destroys
replies on their way. ``closing.py`` of the server core decides how long LEAVING lasts.

Only the reading thread writes ``received``. The answering threads write ``answered``, one at a time, under the owner's
lock. The reading thread computes ``received - answered`` without this lock. So the reading thread may see too many
requests in flight, but never too few. The reading thread first leaves READING (``release``), and then reads
``answered``. An answering thread first counts its reply, and then looks at the state (``replied``). So at least one of
the two threads sees the other's write, and looks at the connection. The reading thread always looks at a connection
that is ``queued`` for a turn, and ends ``queued`` before this look.

Left out: the bytes of replies, which ``ServedConnection`` keeps; waking threads.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence, Sized
from enum import Enum, auto
from itertools import islice
from typing import Generic, Protocol, TypeVar

from stock_service.rpc.wire.framing import FramingError

Request = TypeVar("Request")
Request_co = TypeVar("Request_co", covariant=True)


class RequestDecoder(Protocol[Request_co]):
    """Cuts one connection's bytes into requests. For one thread."""

    @property
    def pending_bytes(self) -> int:
        """Number of bytes held of a request that is not whole yet."""

    @property
    def ended(self) -> bool:
        """True if a request was marked as the last request of the connection; bytes after it are not read."""

    def take_interim(self) -> bytes:
        """Bytes for which a client waits before it sends the rest of a request. They are returned once."""

    def retire(self) -> bool:
        """Tells an old connection's client to use another one, so that ``ended`` is True soon. Returns False if the
        protocol cannot tell this; then the reader ends the connection.
        """

    def feed(self, data: bytes) -> Sequence[Request_co]:
        """Takes bytes; returns the requests that they complete. Other bytes: FramingError, with the requests before."""


class Session(RequestDecoder[Request], Protocol[Request]):
    """A decoder that also has its own bytes to send, and decides when replies are sent.

    The owner of a session has a lock. Any thread that holds this lock may use the session.
    """

    @property
    def outgoing(self) -> Sized:
        """Object that is empty if ``take_outgoing`` would return no bytes. Always the same object."""

    @property
    def held(self) -> Sized:
        """Replies of which a part must wait before it is sent. Always the same object."""

    @property
    def held_bytes(self) -> int:
        """Number of bytes of the replies in ``held``."""

    @property
    def ready(self) -> Sized:
        """Object that is empty if ``take_ready`` would return no requests. Always the same object."""

    @property
    def occupied(self) -> bool:
        """True if a call is open, even without a request or reply under way: the connection is not idle."""

    @property
    def reads_on(self) -> bool:
        """True if some replies could never be sent without more bytes, although no more requests are taken."""

    @property
    def toils(self) -> bool:
        """True if the connection must be read in small pieces: its last bytes cost more time than requests."""

    @property
    def later_ns(self) -> int:
        """Nanoseconds of work to answer the last bytes, without the method's work and the reading."""

    def take_outgoing(self) -> bytes:
        """Takes the bytes to send now."""

    def take_ready(self) -> Sequence[Request]:
        """Takes the requests that had to wait for the answer to an earlier request, and may now begin."""

    def admit(self, request: Request, reply: bytes) -> bytes:
        """The part of a request's reply to send now. The rest is held, and ``take_outgoing`` returns it later."""

    def renew(self) -> None:
        """Makes the server answer calls that watch for changes again, because the answer may have changed."""

    def drain(self) -> None:
        """Stops taking requests, and tells the client: the server is stopping."""

    def lose(self) -> None:
        """Notes that the client sends no more bytes. Replies that waited for the client's bytes are never sent."""


class State(Enum):
    """State of a connection; see the module."""

    READING = auto()
    PAUSED = auto()
    ENDING = auto()
    LEAVING = auto()
    BROKEN = auto()
    CLOSED = auto()


READING, PAUSED, ENDING, LEAVING, BROKEN, CLOSED = State


class Overdue(Enum):
    """Reason why the time of a connection is over."""

    NOTHING = auto()
    REQUEST = auto()
    """A request that is not whole; the stream is ending, and the server is to send the fault."""
    REPLY = auto()
    """A reply that the client does not take."""
    IDLE = auto()


class ServedStream(Generic[Request]):
    """State of one connection; see the module. For the reading thread, except ``replied`` and the fields it reads."""

    def __init__(
        self,
        decoder: RequestDecoder[Request],
        objection: Callable[[FramingError], bytes],
        pipeline_max: int,
        now_ns: int,
        session: Session[Request] | None = None,
    ) -> None:
        """``objection`` makes the bytes about a FramingError. ``session`` is the decoder, if it is a ``Session``."""
        self.state = READING
        self.received = 0
        """Number of dispatched requests, plus the number of other faults that were sent."""
        self.answered = 0
        self.unsent = False
        """True if bytes of a reply wait until the client takes them."""
        self.queued = False
        """True if the connection waits for a turn (``queue.py``): the reading thread looks at it unasked."""
        self._pipeline_max = pipeline_max
        self._decoder = decoder
        self._session = session
        self._objection = objection
        self._waiting: deque[tuple[Request, int]] = deque()  # requests not released yet, with their arrivals
        self._waiting_bytes = 0  # largest size of these
        self._last_words = b""  # last bytes to send, once all requests before are answered
        self._active_ns = now_ns  # time of the last event, to within a sweep
        self._partial_ns = 0  # time since which a request is not whole; 0: none is
        self._blocked_ns = 0  # time since which the client takes no bytes; 0: it does
        self._held = False  # True: the last look left it paused
        self._ended = False  # True: the client has sent its end

    @property
    def in_flight(self) -> int:
        """Number of requests that were dispatched and not answered yet."""
        return self.received - self.answered

    @property
    def owes(self) -> bool:
        """True if requests may have begun and their replies are not complete."""
        if self.received != self.answered or self.unsent:
            return True
        return self._session is not None and bool(self._session.held or self._session.occupied)

    @property
    def idle(self) -> bool:
        """True if no request is under way, and all replies were sent to the client."""
        return self.state is READING and not self.owes

    @property
    def idle_since_ns(self) -> int:
        """Time of the last event, for a connection without a request under way; 0 for any other connection.

        A client that only watches (open calls, no request) also has such a time: it may be evicted for a new client.
        """
        settled = self.state is READING and self.received == self.answered and not self.unsent
        return self._active_ns if settled and not (self._session and self._session.held) else 0

    @property
    def done(self) -> bool:
        """True if the connection can be closed."""
        if self.state is BROKEN:
            return self.received == self.answered
        return self._ended and self.finished

    @property
    def finished(self) -> bool:
        """True if the connection is ending, and the kernel has all replies."""
        settled = self.state is ENDING and not self._waiting and not self._last_words
        settled = settled and self.received == self.answered and not self.unsent
        return settled and (self._session is None or not (self._session.held or self._session.ready))

    @property
    def reads_on(self) -> bool:
        """True if the connection is ending, and some replies could never be sent without more bytes."""
        return self.state is ENDING and self._session is not None and self._session.reads_on and not self.unsent

    # ---- threads that answer, one at a time

    def replied(self, unsent: bool, count: int = 1) -> bool:
        """Notes ``count`` replies that were sent; ``unsent``: some bytes wait for the client.

        Returns True if the reading thread must look at the connection now.
        """
        self.unsent = unsent
        self.answered += count
        return unsent or (self.state is not READING and self.state is not CLOSED and not self.queued)

    def said(self, unsent: bool, moved: bool) -> None:
        """Notes other bytes that were sent. ``unsent``: some bytes wait. ``moved``: held bytes were among them."""
        self.unsent = unsent
        if moved:
            self._blocked_ns = 0

    def flushed(self, unsent: bool) -> None:
        """Notes that the client took bytes that waited. ``unsent`` is True if some bytes still wait."""
        self.unsent = unsent
        self._blocked_ns = 0

    # ---- the reading thread

    def take(self, data: bytes, now_ns: int, arrived_ns: int) -> Request | None:
        """Takes bytes that were read. Returns the request to dispatch, nearly always; after None, call ``release``.

        Call this only while READING, and while no request waits. The bytes could be read from ``arrived_ns`` on.
        """
        self._active_ns = now_ns
        decoder = self._decoder
        try:
            frames = decoder.feed(data)
        except FramingError as error:
            self._waiting.extend((frame, arrived_ns) for frame in error.frames)
            self._last_words = self._objection(error)
            self.state = ENDING
            return None
        partial = self._partial_ns or decoder.pending_bytes
        if partial:
            self._note_partial(bool(frames), now_ns)
        if decoder.ended:
            self.state = ENDING
        elif len(frames) == 1 and not partial and self.received - self.answered < self._pipeline_max:
            self.received += 1
            return frames[0]
        self._waiting.extend((frame, arrived_ns) for frame in frames)
        self._waiting_bytes += len(data)
        return None

    def release(self, count: int) -> list[tuple[Request, int]]:
        """Releases up to ``count`` requests, as far as the pipeline's limit allows, each with its arrival.

        Call ``settle`` afterwards. Set ``queued`` if the connection has more requests to release, for another turn.
        """
        if self.state is READING:
            self.state = PAUSED  # before ``answered`` is read: a thread that answers later makes us look again
        count = min(count, self.releasable())
        self.received += count
        return [self._waiting.popleft() for _ in range(count)]

    def held_bytes(self) -> int:
        """Bytes of memory for requests that are not whole or wait.

        Waiting requests count as all bytes read since no request waited. A growing bytearray takes an eighth more.
        """
        if not self._waiting:
            self._waiting_bytes = 0
        pending = self._decoder.pending_bytes
        held = self._waiting_bytes + pending + pending // 8
        return held if self._session is None else held + self._session.held_bytes

    def release_ready(self, now_ns: int) -> list[tuple[Request, int]]:
        """Requests that waited for the answer to an earlier request. From now on they count as in flight."""
        assert self._session is not None
        ready = self._session.take_ready()
        self.received += len(ready)
        return [(request, now_ns) for request in ready]

    def releasable(self) -> int:
        """Number of requests that ``release`` would return."""
        return 0 if self.unsent else max(0, min(len(self._waiting), self._pipeline_max - self.in_flight))

    def put_back(self, request: Request, arrived_ns: int) -> None:
        """Takes back a request that was released and not dispatched. Put back several requests in reverse order."""
        self.received -= 1
        self._waiting.appendleft((request, arrived_ns))

    def heads(self) -> Iterator[tuple[Request, int]]:
        """Requests that ``release`` would return, each with its arrival."""
        return islice(self._waiting, self.releasable())

    def words(self) -> bytes:
        """Bytes to send now, nearly always none: an interim answer, or the last words. They count as a reply."""
        if self._waiting or self.in_flight:
            return b""
        words, self._last_words = self._last_words, b""
        if self.state is PAUSED:
            words = words or self._decoder.take_interim()
        if words:
            self.received += 1
        return words

    def settle(self, now_ns: int) -> None:
        """Returns to READING, if the pipeline has room. Call this after ``release``."""
        if self.state is PAUSED and not (self._waiting or self.unsent or self.in_flight >= self._pipeline_max):
            self.state = READING
            if self._held and self._partial_ns:  # while nothing was read, the rest could not come
                self._partial_ns = now_ns
        self._held = self.state is PAUSED
        if self.unsent or (self._session is not None and self._session.held):
            self._blocked_ns = self._blocked_ns or now_ns
        elif self._session is not None:
            self._blocked_ns = 0  # held replies may have been given up

    def end(self, by_client: bool = False) -> None:
        """Stops reading; requests that have come are answered. ``by_client`` is True if the client has sent its end."""
        self._ended = self._ended or by_client
        if self.state is READING or self.state is PAUSED:
            self.state = ENDING

    def retire(self) -> None:
        """Begins the end of an old connection, with as few lost requests as the protocol allows."""
        if not self._decoder.retire():
            self.end()

    def leave(self) -> None:
        """Begins LEAVING, in which received bytes are dropped. Call this once ``finished`` is True."""
        self.state = LEAVING

    def cut(self) -> None:
        """Notes that the client is gone."""
        self._waiting.clear()
        self._last_words = b""
        self.state = BROKEN

    def close(self) -> None:
        """Notes that the connection is closed."""
        self.state = CLOSED

    def overdue(self, now_ns: int, idle_ns: int, read_ns: int) -> Overdue:
        """The reason why the connection's time is over, if it is over.

        ``read_ns`` is the limit for reading a request and for sending, ``idle_ns`` the limit without any event.
        """
        if self.state is LEAVING or self.state is CLOSED:
            return Overdue.NOTHING
        if self.in_flight or self.unsent or (self._session is not None and self._session.occupied):
            self._active_ns = now_ns
        if self._blocked_ns and now_ns - self._blocked_ns > read_ns:
            return Overdue.REPLY
        if self._partial_ns and not self._decoder.pending_bytes:
            self._partial_ns = 0  # a thread that answered has ended the unfinished call
        if self._partial_ns and now_ns - self._partial_ns > read_ns and self.state is READING:
            self.state = ENDING
            self.received += 1  # the fault counts as one reply more; it waits for none
            return Overdue.REQUEST
        if now_ns - self._active_ns > idle_ns and not self.in_flight:
            return Overdue.IDLE
        return Overdue.NOTHING

    def _note_partial(self, whole: bool, now_ns: int) -> None:
        """Keeps the time since which a request is not whole. ``whole``: a request has just become whole."""
        if not self._decoder.pending_bytes:
            self._partial_ns = 0
        elif whole or not self._partial_ns:
            self._partial_ns = now_ns
