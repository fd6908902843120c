"""One client's connection in a server that dispatches requests: a state machine, without I/O.

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

LEAVING is there because a kernel that closes with bytes unread resets the connection, which destroys replies on their
way. ``closing.py`` of the server core has the time that is enough.

Only the reading thread writes ``received``. The threads that answer write ``answered``, one at a time: the owner has a
lock for this. So the reading thread subtracts the two without that lock. It may see too many requests in flight, and
never too few. It announces that it is about to look (``release`` leaves READING) before it reads ``answered``. A thread
that answers counts before it looks at the state (``replied``). So one of the two always sees the other. The reading
thread looks in any case at a connection that is ``queued`` for a turn. It ends ``queued`` before that look.

Left out: the bytes of replies, which their sender keeps; waking threads.
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
        """True where a request was marked as the last of its connection; bytes after it are not read."""

    def take_interim(self) -> bytes:
        """Bytes for which a client waits before it sends the rest of a request, given once; nearly always empty."""

    def retire(self) -> bool:
        """Tells the client of an old connection to use another connection, so that ``ended`` is True soon. Returns
        False if the protocol cannot tell this; then the reader ends the connection.
        """

    def feed(self, data: bytes) -> Sequence[Request_co]:
        """Requests that these bytes complete. Raises FramingError, with the requests before, for other bytes."""


class Session(RequestDecoder[Request], Protocol[Request]):
    """A decoder that also sends bytes of its own, and decides when replies leave.

    Its owner has one lock for all of it. With the lock held, any thread may use it.
    """

    @property
    def outgoing(self) -> Sized:
        """Object that is empty where ``take_outgoing`` gives no bytes. Always the same object."""

    @property
    def held(self) -> Sized:
        """Replies that may not leave whole yet. Always the same object."""

    @property
    def held_bytes(self) -> int:
        """Number of bytes of these replies."""

    @property
    def ready(self) -> Sized:
        """Object that is empty where ``take_ready`` gives no requests. Always the same object."""

    @property
    def occupied(self) -> bool:
        """True if calls are open without a request or reply under way: a connection with open calls is not idle."""

    @property
    def reads_on(self) -> bool:
        """True if the session must get bytes though it takes no more requests: without these bytes, replies would never
        leave.
        """

    @property
    def toils(self) -> bool:
        """True where it is to be read in small pieces: its last bytes cost the reading thread more than requests."""

    @property
    def later_ns(self) -> int:
        """Nanoseconds of work to answer the last bytes, besides the method's work and the reading."""

    def take_outgoing(self) -> bytes:
        """Takes the bytes to send now."""

    def take_ready(self) -> Sequence[Request]:
        """Takes the requests that had to wait for the answer to another one, and may begin."""

    def admit(self, request: Request, reply: bytes) -> bytes:
        """The part of a request's reply that leaves now; ``take_outgoing`` gives the held rest later."""

    def renew(self) -> None:
        """Makes the server answer watching calls again, because their answer may have changed."""

    def drain(self) -> None:
        """Takes no further request, and tells the client: the server is stopping."""

    def lose(self) -> None:
        """Notes that the client sends no more. Replies that waited for its bytes never leave."""


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
        """True where bytes of a reply wait for the client to take them."""
        self.queued = False
        """True if the connection waits for a turn, when the reading thread looks at it without being asked."""
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
        """Number of requests dispatched and not answered yet."""
        return self.received - self.answered

    @property
    def owes(self) -> bool:
        """True if requests may have begun and their replies are not complete."""
        if self.received != self.answered or self.unsent:
            return True
        return self._session is not None and bool(self._session.held or self._session.occupied)

    @property
    def idle(self) -> bool:
        """True where no request is under way, and the client has been given all replies."""
        return self.state is READING and not self.owes

    @property
    def idle_since_ns(self) -> int:
        """Time of the last event, for a connection without a request under way; 0 for any other connection.

        Calls may be open on it without a request under way: a client that only watches gives way to a new one.
        """
        settled = self.state is READING and self.received == self.answered and not self.unsent
        return self._active_ns if settled and not (self._session and self._session.held) else 0

    @property
    def done(self) -> bool:
        """True where the connection can be closed."""
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
        """True where it is ending, and its session must still be fed: else replies would never leave."""
        return self.state is ENDING and self._session is not None and self._session.reads_on and not self.unsent

    # ---- threads that answer, one at a time

    def replied(self, unsent: bool, count: int = 1) -> bool:
        """Notes replies that were sent, or kept in part (``unsent``). Returns True if the reading thread must look
        now.
        """
        self.unsent = unsent
        self.answered += count
        return unsent or (self.state is not READING and self.state is not CLOSED and not self.queued)

    def said(self, unsent: bool, moved: bool) -> None:
        """Notes other bytes that were sent, or kept in part (``unsent``); ``moved``: held ones were among them."""
        self.unsent = unsent
        if moved:
            self._blocked_ns = 0

    def flushed(self, unsent: bool) -> None:
        """Notes that the client took some kept bytes; ``unsent``: not all of them."""
        self.unsent = unsent
        self._blocked_ns = 0

    # ---- the reading thread

    def take(self, data: bytes, now_ns: int, arrived_ns: int) -> Request | None:
        """Takes bytes that were read. Returns the request to dispatch, nearly always; None: call ``release``.

        To be called while READING, where no request waits. ``arrived_ns`` is the time when the bytes could be read.
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

        ``settle`` comes after. A connection with more requests to release is to be ``queued``, for another turn.
        """
        if self.state is READING:
            self.state = PAUSED  # before ``answered`` is read: a thread that answers later makes us look again
        count = min(count, self.releasable())
        self.received += count
        return [self._waiting.popleft() for _ in range(count)]

    def held_bytes(self) -> int:
        """Bytes of memory for requests that are not whole, or wait: for waiting ones, all bytes read since none waited.

        A bytearray that grows takes an eighth more than it has.
        """
        if not self._waiting:
            self._waiting_bytes = 0
        pending = self._decoder.pending_bytes
        held = self._waiting_bytes + pending + pending // 8
        return held if self._session is None else held + self._session.held_bytes

    def release_ready(self, now_ns: int) -> list[tuple[Request, int]]:
        """Requests of a session that waited for the answer to another one; from now on they count as in flight."""
        assert self._session is not None
        ready = self._session.take_ready()
        self.received += len(ready)
        return [(request, now_ns) for request in ready]

    def releasable(self) -> int:
        """Number of requests that ``release`` would give."""
        return 0 if self.unsent else max(0, min(len(self._waiting), self._pipeline_max - self.in_flight))

    def put_back(self, request: Request, arrived_ns: int) -> None:
        """Takes back a request that was released and not dispatched; of several, the last first."""
        self.received -= 1
        self._waiting.appendleft((request, arrived_ns))

    def heads(self) -> Iterator[tuple[Request, int]]:
        """Requests that ``release`` would give, each with its arrival."""
        return islice(self._waiting, self.releasable())

    def words(self) -> bytes:
        """Bytes to send now, which count as one more reply: for half a request, or at the end. Nearly always empty."""
        if self._waiting or self.in_flight:
            return b""
        words, self._last_words = self._last_words, b""
        if self.state is PAUSED:
            words = words or self._decoder.take_interim()
        if words:
            self.received += 1
        return words

    def settle(self, now_ns: int) -> None:
        """Reads on, if there is room; to be called after ``release``."""
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
        """Stops reading; requests that came are answered. ``by_client``: the client has sent its end."""
        self._ended = self._ended or by_client
        if self.state is READING or self.state is PAUSED:
            self.state = ENDING

    def retire(self) -> None:
        """Begins the end of an old connection, with as few lost requests as the protocol allows."""
        if not self._decoder.retire():
            self.end()

    def leave(self) -> None:
        """Begins LEAVING, once ``finished``: bytes that still come are dropped."""
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
        """The reason why the time is over, if it is: ``read_ns`` is the limit for reading and sending, ``idle_ns`` for
        any event.
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
        """Keeps the time since which a request is not whole; ``whole``: at least one has just become whole."""
        if not self._decoder.pending_bytes:
            self._partial_ns = 0
        elif whole or not self._partial_ns:
            self._partial_ns = now_ns
