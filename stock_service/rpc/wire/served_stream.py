"""State machine of one client's connection, in a server that dispatches each request to a thread. No I/O.

| state | event | next | action of the server |
|---|---|---|---|
| READING | requests within the pipeline's limit | READING | dispatches the requests |
| READING | requests over the pipeline's limit | PAUSED | stops reading; dispatches the rest as replies make room |
| READING | a request, while connections wait for a turn | PAUSED | stops reading; dispatches the request in its turn |
| READING | a reply that the client does not take | PAUSED | stops reading; sends the rest when the client takes more |
| READING | bytes that are no request | ENDING | answers the requests before, then sends the fault |
| READING | a request that is marked as the last request | ENDING | answers the request |
| READING | half a request, and the client waits for an interim response | READING | sends the response in its turn |
| READING, PAUSED | the age limit, if the protocol cannot tell the client | ENDING | answers the requests read before |
| READING | a request that is not whole after ``read_timeout_s`` | ENDING | sends the fault at once |
| READING | no event for ``idle_timeout_s`` | CLOSED | closes the connection |
| PAUSED | room in the pipeline, no unsent byte, no waiting request | READING | reads again |
| PAUSED | no request in flight and no unsent byte, for ``idle_timeout_s`` | CLOSED | closes the connection |
| READING, PAUSED | the client ends its sending, or the server stops | ENDING | answers the requests before |
| ENDING | the kernel has all replies; the client has ended | CLOSED | closes the connection |
| ENDING | the kernel has all replies; the client has not ended | LEAVING | half-closes the connection |
| LEAVING | bytes that the client still sends | LEAVING | reads and drops the bytes |
| LEAVING | the client's end, or the time limit of ``closing.py`` | CLOSED | closes the connection |
| all of these | the client is gone, or takes no byte for ``read_timeout_s`` | BROKEN | drops replies; no new requests |
| BROKEN | no request is in flight | CLOSED | closes the connection |

LEAVING is necessary. If the server closed a connection with unread bytes, the kernel would reset the connection. The
reset would destroy replies that are still on their way. ``closing.py`` of the server core limits this state.

Only the reading thread writes ``received``. The answering threads write ``answered``, one at a time, under the lock of
the connection's owner. The reading thread computes ``received - answered`` without this lock. So the reading thread may
see too many requests in flight, but never too few. The reading thread first leaves READING (``release``), and then
reads ``answered``. An answering thread first counts its reply, and then looks at the state (``replied``). So at least
one of the two threads sees the write of the other thread, and looks at the connection. The reading thread always looks
at a connection that is ``queued`` for a turn, and sets ``queued`` to False before this look.

Left out: code that wakes threads. ``ServedConnection`` keeps the unsent bytes of replies.
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
    """Cuts one connection's bytes into requests. Not thread-safe."""

    @property
    def pending_bytes(self) -> int:
        """Number of bytes that the decoder holds of an unfinished request."""

    @property
    def ended(self) -> bool:
        """True if a request was marked as the connection's last. The decoder reads no bytes after this request."""

    def take_interim(self) -> bytes:
        """Returns, once, the interim response that a client needs before it sends the rest of a request; else none."""

    def retire(self) -> bool:
        """Tells the client of an old connection to open another connection, so that ``ended`` is True soon. Returns
        False if the protocol cannot tell this; then the caller ends the connection.
        """

    def feed(self, data: bytes) -> Sequence[Request_co]:
        """Takes bytes; returns the requests that the bytes complete. Raises FramingError with the earlier requests."""


class Session(RequestDecoder[Request], Protocol[Request]):
    """A decoder that also has its own bytes to send, and decides when replies are sent.

    The owner of a session has a lock. Any thread that holds this lock may use the session.
    """

    @property
    def outgoing(self) -> Sized:
        """Container that is empty if ``take_outgoing`` would return no bytes. Always the same object."""

    @property
    def held(self) -> Sized:
        """Replies whose rest must wait, for example for a flow-control window. Always the same object."""

    @property
    def held_bytes(self) -> int:
        """Number of bytes of the replies in ``held``."""

    @property
    def ready(self) -> Sized:
        """Container that is empty if ``take_ready`` would return no requests. Always the same object."""

    @property
    def occupied(self) -> bool:
        """True if a call is open, even without a request or reply under way: the connection then is not idle."""

    @property
    def reads_on(self) -> bool:
        """True if the server must read window updates to send its replies, even if it takes no further requests."""

    @property
    def toils(self) -> bool:
        """True if the last bytes took long to decode, for few requests. The server must then read in small pieces."""

    @property
    def later_ns(self) -> int:
        """Estimated nanoseconds that workers will take to decode the messages in the last bytes."""

    def take_outgoing(self) -> bytes:
        """Removes and returns the bytes to send now."""

    def take_ready(self) -> Sequence[Request]:
        """Removes and returns the requests that had to wait for the answer to an earlier request, and may now begin."""

    def admit(self, request: Request, reply: bytes) -> bytes:
        """Returns the part of a request's reply to send now. ``take_outgoing`` returns the held rest later."""

    def renew(self) -> None:
        """Makes the server answer each watch (a call that waits for changes) again: the answer may have changed."""

    def drain(self) -> None:
        """Stops taking requests, and tells the client that the server is stopping."""

    def lose(self) -> None:
        """Notes that the client sends no more bytes, and drops the replies that waited for window updates."""


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
    """Time limit that a connection has passed."""

    NOTHING = auto()
    REQUEST = auto()
    """Limit for an unfinished request. The state is now ENDING; the server must send the fault."""
    REPLY = auto()
    """Limit for a reply that the client does not take."""
    IDLE = auto()


class ServedStream(Generic[Request]):
    """State of one connection; see the module. Answering threads call only ``replied`` and ``said``, with the lock."""

    def __init__(
        self,
        decoder: RequestDecoder[Request],
        objection: Callable[[FramingError], bytes],
        pipeline_max: int,
        now_ns: int,
        session: Session[Request] | None = None,
    ) -> None:
        """``objection`` encodes the reply to a FramingError. ``session`` is the ``decoder``, if it is a ``Session``."""
        self.state = READING
        self.received = 0
        """Number of dispatched requests, plus the number of faults and interim responses sent without a request."""
        self.answered = 0
        self.unsent = False
        """True if bytes of a reply wait until the client takes them."""
        self.queued = False
        """True if the connection waits for a turn: then the reading thread looks at the connection (``queue.py``)."""
        self._pipeline_max = pipeline_max
        self._decoder = decoder
        self._session = session
        self._objection = objection
        self._waiting: deque[tuple[Request, int]] = deque()  # requests not released yet, with their arrival times
        self._waiting_bytes = 0  # upper bound for the bytes of ``_waiting``
        self._last_words = b""  # last bytes to send, after the replies to all requests
        self._active_ns = now_ns  # time of the last event, wrong by one sweep of the connections at most
        self._partial_ns = 0  # time since which a request is not whole; 0 without an unfinished request
        self._blocked_ns = 0  # time since which the client takes no bytes; 0 if the client takes bytes
        self._held = False  # True: the last ``settle`` left the state PAUSED
        self._ended = False  # True: the client has sent its end

    @property
    def in_flight(self) -> int:
        """Number of requests that were dispatched and not answered yet."""
        return self.received - self.answered

    @property
    def owes(self) -> bool:
        """True if the client may still wait for replies: requests in flight, unsent or held bytes, open calls."""
        if self.received != self.answered or self.unsent:
            return True
        return self._session is not None and bool(self._session.held or self._session.occupied)

    @property
    def idle(self) -> bool:
        """True if the state is READING and the server owes the client nothing."""
        return self.state is READING and not self.owes

    @property
    def idle_since_ns(self) -> int:
        """Time of the last event, for a connection without a request under way; 0 for any other connection.

        A connection with only watches (open calls, no request) also has such a time, and so may be closed.
        """
        settled = self.state is READING and self.received == self.answered and not self.unsent
        return self._active_ns if settled and not (self._session and self._session.held) else 0

    @property
    def done(self) -> bool:
        """True if the server may close the connection. Either all replies are sent and the client has ended its
        sending, or the connection is broken and every dispatched request is answered."""
        if self.state is BROKEN:
            return self.received == self.answered
        return self._ended and self.finished

    @property
    def finished(self) -> bool:
        """True if the state is ENDING, and the kernel has the bytes of all replies."""
        settled = self.state is ENDING and not self._waiting and not self._last_words
        settled = settled and self.received == self.answered and not self.unsent
        return settled and (self._session is None or not (self._session.held or self._session.ready))

    @property
    def reads_on(self) -> bool:
        """True if the state is ENDING, and the session must read window updates to send its held replies."""
        return self.state is ENDING and self._session is not None and self._session.reads_on and not self.unsent

    # ---- threads that answer, one at a time

    def replied(self, unsent: bool, count: int = 1) -> bool:
        """Notes that ``count`` replies were sent. ``unsent`` is True if some of their bytes wait for the client.

        Returns True if the reading thread must look at the connection now.
        """
        self.unsent = unsent
        self.answered += count
        return unsent or (self.state is not READING and self.state is not CLOSED and not self.queued)

    def said(self, unsent: bool, moved: bool) -> None:
        """Notes that bytes other than a new reply were sent. ``unsent``: some wait. ``moved``: held bytes were sent."""
        self.unsent = unsent
        if moved:
            self._blocked_ns = 0

    def flushed(self, unsent: bool) -> None:
        """Notes that the client took bytes that waited. ``unsent`` is True if some bytes still wait."""
        self.unsent = unsent
        self._blocked_ns = 0

    # ---- the reading thread

    def take(self, data: bytes, now_ns: int, arrived_ns: int) -> Request | None:
        """Takes bytes that were read. Nearly always returns the request to dispatch; after None, call ``release``.

        Call ``take`` only in READING, while no request waits. The kernel has had the bytes since ``arrived_ns``.
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
        """Releases up to ``count`` requests, within the pipeline's limit. Returns each request and its arrival time.

        Call ``settle`` afterwards. If more requests can be released, set ``queued``: the connection waits for a turn.
        """
        if self.state is READING:
            self.state = PAUSED  # before a read of ``answered``: a thread that answers later sees PAUSED, and wakes us
        count = min(count, self.releasable())
        self.received += count
        return [self._waiting.popleft() for _ in range(count)]

    def held_bytes(self) -> int:
        """Memory in bytes of unfinished and waiting requests, and of a session's held replies.

        While requests wait, all bytes read with them count. A growing bytearray takes an eighth more memory.
        """
        if not self._waiting:
            self._waiting_bytes = 0
        pending = self._decoder.pending_bytes
        held = self._waiting_bytes + pending + pending // 8
        return held if self._session is None else held + self._session.held_bytes

    def release_ready(self, now_ns: int) -> list[tuple[Request, int]]:
        """Releases requests that waited for the answer to an earlier request. These requests now count as in flight."""
        assert self._session is not None
        ready = self._session.take_ready()
        self.received += len(ready)
        return [(request, now_ns) for request in ready]

    def releasable(self) -> int:
        """Number of requests that ``release`` would return."""
        return 0 if self.unsent else max(0, min(len(self._waiting), self._pipeline_max - self.in_flight))

    def put_back(self, request: Request, arrived_ns: int) -> None:
        """Takes back a released request that was not dispatched. Put back several requests in reverse order."""
        self.received -= 1
        self._waiting.appendleft((request, arrived_ns))

    def heads(self) -> Iterator[tuple[Request, int]]:
        """Yields the requests that ``release`` would return, each with its arrival time. Changes nothing."""
        return islice(self._waiting, self.releasable())

    def words(self) -> bytes:
        """Takes bytes to send now: an interim response, the last fault, or mostly none. They count as a reply."""
        if self._waiting or self.in_flight:
            return b""
        words, self._last_words = self._last_words, b""
        if self.state is PAUSED:
            words = words or self._decoder.take_interim()
        if words:
            self.received += 1
        return words

    def settle(self, now_ns: int) -> None:
        """Changes PAUSED to READING, if the pipeline has room. Call ``settle`` after ``release``."""
        if self.state is PAUSED and not (self._waiting or self.unsent or self.in_flight >= self._pipeline_max):
            self.state = READING
            if self._held and self._partial_ns:  # the client could not send the rest while the server did not read
                self._partial_ns = now_ns
        self._held = self.state is PAUSED
        if self.unsent or (self._session is not None and self._session.held):
            self._blocked_ns = self._blocked_ns or now_ns
        elif self._session is not None:
            self._blocked_ns = 0  # the client may have cancelled the calls of held replies

    def end(self, by_client: bool = False) -> None:
        """Stops the reading. Read requests are still answered. ``by_client``: the client has ended its sending."""
        self._ended = self._ended or by_client
        if self.state is READING or self.state is PAUSED:
            self.state = ENDING

    def retire(self) -> None:
        """Begins the end of an old connection, and loses as few requests as the protocol allows."""
        if not self._decoder.retire():
            self.end()

    def leave(self) -> None:
        """Changes the state to LEAVING: received bytes are dropped. Call ``leave`` only while ``finished`` is True."""
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
        """Returns the time limit that the connection has passed, or NOTHING.

        ``read_ns`` limits an unfinished request, and a client that takes no bytes. ``idle_ns`` limits idle time.
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
            self.received += 1  # the fault counts as one more reply, which waits for no other reply
            return Overdue.REQUEST
        if now_ns - self._active_ns > idle_ns and not self.in_flight:
            return Overdue.IDLE
        return Overdue.NOTHING

    def _note_partial(self, whole: bool, now_ns: int) -> None:
        """Notes the time since which a request is not whole. ``whole``: the last bytes completed another request."""
        if not self._decoder.pending_bytes:
            self._partial_ns = 0
        elif whole or not self._partial_ns:
            self._partial_ns = now_ns
