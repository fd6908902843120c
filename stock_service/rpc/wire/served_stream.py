"""One client's connection as a server that dispatches requests sees it: a state machine, without I/O.

| state | what happens | next | what the server then does |
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
| READING, PAUSED | the client's last byte, or a stopping server's | ENDING | answers what came before |
| ENDING | all is answered, said and taken; the client has ended | CLOSED | closes |
| ENDING | all is answered, said and taken; the client has not ended | LEAVING | half-closes |
| LEAVING | what the client still sends | LEAVING | reads and drops it |
| LEAVING | the client's end, or long enough | CLOSED | closes |
| all of these | the client is gone, or takes nothing for so long | BROKEN | drops replies; dispatches no more |
| BROKEN | no request is in flight | CLOSED | closes |

LEAVING is there because a kernel that is told to close with bytes unread resets the connection, which destroys replies
on their way. What is long enough, ``closing.py`` of the server core says.

``received`` is written by the reading thread alone. ``answered`` is written by whoever answers, one at a time: the
owner has a lock for it. So the reading thread subtracts the two without that lock. It may see too many requests in
flight, and never too few. It announces that it is about to look (``release`` leaves READING) before it reads
``answered``. Whoever answers counts before looking at the state (``replied``). So one of the two always sees the other.
At a connection that is ``queued`` for a turn the reading thread looks in any case. It stops being so before that look.

Left out: the bytes of replies, which their sender keeps; who wakes whom.
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
    """Cuts one connection's bytes into requests. One thread's."""

    @property
    def pending_bytes(self) -> int:
        """Bytes held of a request that is not whole yet."""

    @property
    def ended(self) -> bool:
        """Whether a request said that it is the last of its connection; what follows it is not read."""

    def take_interim(self) -> bytes:
        """What the half request wants to be told before it sends on, once; nearly always nothing."""

    def retire(self) -> bool:
        """The connection is old: whether its client is told to go on with another one, so that ``ended`` comes soon.

        Else whoever reads ends it.
        """

    def feed(self, data: bytes) -> Sequence[Request_co]:
        """The requests that these bytes complete. Raises FramingError, with those before it, for what is none."""


class Session(RequestDecoder[Request], Protocol[Request]):
    """A decoder that speaks by itself: it has words of its own to send, and decides when replies leave.

    Its owner has one lock for all of it. With that held, it feeds and asks from any thread.
    """

    @property
    def outgoing(self) -> Sized:
        """Empty where ``take_outgoing`` has nothing to give. The same object for ever."""

    @property
    def held(self) -> Sized:
        """Replies of which not all may leave yet; the same object for ever."""

    @property
    def held_bytes(self) -> int:
        """Bytes of them."""

    @property
    def ready(self) -> Sized:
        """Empty where ``take_ready`` has nothing to give. The same object for ever."""

    @property
    def occupied(self) -> bool:
        """Whether calls are open that no request, and no reply, is under way for: such a connection is not idle."""

    @property
    def reads_on(self) -> bool:
        """Whether it must be fed though no request is taken any more, or replies would never leave."""

    @property
    def toils(self) -> bool:
        """Whether it is to be read in small pieces: what came last took more of the reading thread than work would."""

    @property
    def later_ns(self) -> int:
        """Nanoseconds, beside what the method does, to answer what came last: more than to read it."""

    def take_outgoing(self) -> bytes:
        """What is to be sent now."""

    def take_ready(self) -> Sequence[Request]:
        """The requests that had to wait for another's answer, and need to no more."""

    def admit(self, request: Request, reply: bytes) -> bytes:
        """What of a request's reply leaves now; the rest is held, and given by ``take_outgoing`` later."""

    def renew(self) -> None:
        """Has the calls answered again that watch what may have changed."""

    def drain(self) -> None:
        """The server is stopping: no further request is taken, and whoever is there is told so."""

    def lose(self) -> None:
        """The client sends no more. What waited for that never leaves."""


class State(Enum):
    """Where a connection is; see the module."""

    READING = auto()
    PAUSED = auto()
    ENDING = auto()
    LEAVING = auto()
    BROKEN = auto()
    CLOSED = auto()


READING, PAUSED, ENDING, LEAVING, BROKEN, CLOSED = State


class Overdue(Enum):
    """What a connection's time is up for."""

    NOTHING = auto()
    REQUEST = auto()
    """A request that is half there; the stream is ending, and the server is to say so."""
    REPLY = auto()
    """A reply that the client does not take."""
    IDLE = auto()


class ServedStream(Generic[Request]):
    """See the module. All is the reading thread's but ``replied``, and what it reads."""

    def __init__(
        self,
        decoder: RequestDecoder[Request],
        objection: Callable[[FramingError], bytes],
        pipeline_max: int,
        now_ns: int,
        session: Session[Request] | None = None,
    ) -> None:
        """``objection`` gives the words about what is no request. ``session``: the decoder, if it speaks by itself."""
        self.state = READING
        self.received = 0
        """Requests dispatched, and faults that were said besides."""
        self.answered = 0
        self.unsent = False
        """Whether bytes of a reply wait for the client to take them."""
        self.queued = False
        """Whether it has a turn to come: the reading thread looks by itself, whoever answers need not have it look."""
        self._pipeline_max = pipeline_max
        self._decoder = decoder
        self._session = session
        self._objection = objection
        self._waiting: deque[tuple[Request, int]] = deque()  # read when, held back by the pipeline's limit
        self._waiting_bytes = 0  # of which those are, at most
        self._last_words = b""  # the words to end with, once all before it is answered
        self._active_ns = now_ns  # when something last happened, to within a sweep
        self._partial_ns = 0  # since when a request is half there; 0: none is
        self._blocked_ns = 0  # since when the client takes no bytes; 0: it does
        self._held = False  # whether the last look left it paused
        self._ended = False  # whether the client has said that it sends no more

    @property
    def in_flight(self) -> int:
        """Requests dispatched and not answered yet."""
        return self.received - self.answered

    @property
    def owes(self) -> bool:
        """Whether requests may have been begun of which the replies are not all given."""
        if self.received != self.answered or self.unsent:
            return True
        return self._session is not None and bool(self._session.held or self._session.occupied)

    @property
    def idle(self) -> bool:
        """Whether no request is under way, and its client has been given all replies."""
        return self.state is READING and not self.owes

    @property
    def idle_since_ns(self) -> int:
        """Since when nothing came, of a connection on which no request is under way; 0: of any other.

        Calls may be open on it that nothing is under way for: who only watches yields to who has something to ask.
        """
        settled = self.state is READING and self.received == self.answered and not self.unsent
        return self._active_ns if settled and not (self._session and self._session.held) else 0

    @property
    def done(self) -> bool:
        """Whether nothing is left to do but to close."""
        if self.state is BROKEN:
            return self.received == self.answered
        return self._ended and self.finished

    @property
    def finished(self) -> bool:
        """Whether it is ending, and all is answered, said and given to the kernel."""
        settled = self.state is ENDING and not self._waiting and not self._last_words
        settled = settled and self.received == self.answered and not self.unsent
        return settled and (self._session is None or not (self._session.held or self._session.ready))

    @property
    def reads_on(self) -> bool:
        """Whether it is ending, and its session is to be fed all the same, or replies would never leave."""
        return self.state is ENDING and self._session is not None and self._session.reads_on and not self.unsent

    # ---- whoever answers, one at a time

    def replied(self, unsent: bool, count: int = 1) -> bool:
        """Replies were sent, or kept in part (``unsent``); says whether the reading thread must look now."""
        self.unsent = unsent
        self.answered += count
        return unsent or (self.state is not READING and self.state is not CLOSED and not self.queued)

    def said(self, unsent: bool, moved: bool) -> None:
        """Bytes that are no reply were sent, or kept in part (``unsent``); ``moved``: held ones were among them."""
        self.unsent = unsent
        if moved:
            self._blocked_ns = 0

    def flushed(self, unsent: bool) -> None:
        """The client took some of what was kept; ``unsent``: not all of it."""
        self.unsent = unsent
        self._blocked_ns = 0

    # ---- the reading thread

    def take(self, data: bytes, now_ns: int, arrived_ns: int) -> Request | None:
        """Bytes that were read. The request to dispatch, which nearly always is what they are; None: ``release``.

        To be given while READING, where nothing waits. ``arrived_ns``: when they were there to be read.
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
        """Up to so many requests that the pipeline's limit lets through now, and when each arrived.

        ``settle`` comes after. A connection that has still more to release is to be ``queued``, for another turn.
        """
        if self.state is READING:
            self.state = PAUSED  # before ``answered`` is read: whoever answers from here on has us look again
        count = min(count, self.releasable())
        self.received += count
        return [self._waiting.popleft() for _ in range(count)]

    def held_bytes(self) -> int:
        """Bytes of memory for requests that are not whole, or wait: of these, what was read since none waited.

        A bytearray that grows takes an eighth more than it has.
        """
        if not self._waiting:
            self._waiting_bytes = 0
        pending = self._decoder.pending_bytes
        held = self._waiting_bytes + pending + pending // 8
        return held if self._session is None else held + self._session.held_bytes

    def release_ready(self, now_ns: int) -> list[tuple[Request, int]]:
        """The requests of a session that waited for another's answer; they count among those in flight."""
        assert self._session is not None
        ready = self._session.take_ready()
        self.received += len(ready)
        return [(request, now_ns) for request in ready]

    def releasable(self) -> int:
        """How many requests ``release`` would give."""
        return 0 if self.unsent else max(0, min(len(self._waiting), self._pipeline_max - self.in_flight))

    def put_back(self, request: Request, arrived_ns: int) -> None:
        """A request that was released, and is not dispatched after all; of several, the last first."""
        self.received -= 1
        self._waiting.appendleft((request, arrived_ns))

    def heads(self) -> Iterator[tuple[Request, int]]:
        """The requests that ``release`` would give, and when each arrived."""
        return islice(self._waiting, self.releasable())

    def words(self) -> bytes:
        """What to say now, which counts as one reply more: to half a request, or to end with. Nearly always nothing."""
        if self._waiting or self.in_flight:
            return b""
        words, self._last_words = self._last_words, b""
        if self.state is PAUSED:
            words = words or self._decoder.take_interim()
        if words:
            self.received += 1
        return words

    def settle(self, now_ns: int) -> None:
        """After all that could be dispatched was: reads on, if there is room."""
        if self.state is PAUSED and not (self._waiting or self.unsent or self.in_flight >= self._pipeline_max):
            self.state = READING
            if self._held and self._partial_ns:  # while nothing was read, the rest could not come
                self._partial_ns = now_ns
        self._held = self.state is PAUSED
        if self.unsent or (self._session is not None and self._session.held):
            self._blocked_ns = self._blocked_ns or now_ns
        elif self._session is not None:
            self._blocked_ns = 0  # what was held may have been given up

    def end(self, by_client: bool = False) -> None:
        """Stops reading; what came is answered. ``by_client``: it has said that it sends no more."""
        self._ended = self._ended or by_client
        if self.state is READING or self.state is PAUSED:
            self.state = ENDING

    def retire(self) -> None:
        """The connection is old: it is to end soon, with as few requests lost as its protocol can tell its client."""
        if not self._decoder.retire():
            self.end()

    def leave(self) -> None:
        """All is said, once ``finished``: what comes now is dropped."""
        self.state = LEAVING

    def cut(self) -> None:
        """The client is gone."""
        self._waiting.clear()
        self._last_words = b""
        self.state = BROKEN

    def close(self) -> None:
        """Nobody reads or sends any more."""
        self.state = CLOSED

    def overdue(self, now_ns: int, idle_ns: int, read_ns: int) -> Overdue:
        """What the connection's time is up for: ``read_ns`` to read and send, ``idle_ns`` for anything to happen."""
        if self.state is LEAVING or self.state is CLOSED:
            return Overdue.NOTHING
        if self.in_flight or self.unsent or (self._session is not None and self._session.occupied):
            self._active_ns = now_ns
        if self._blocked_ns and now_ns - self._blocked_ns > read_ns:
            return Overdue.REPLY
        if self._partial_ns and not self._decoder.pending_bytes:
            self._partial_ns = 0  # whoever answered has ended the call that was half there
        if self._partial_ns and now_ns - self._partial_ns > read_ns and self.state is READING:
            self.state = ENDING
            self.received += 1  # the fault counts as one reply more; it waits for none
            return Overdue.REQUEST
        if now_ns - self._active_ns > idle_ns and not self.in_flight:
            return Overdue.IDLE
        return Overdue.NOTHING

    def _note_partial(self, whole: bool, now_ns: int) -> None:
        """Keeps since when a request is half there; ``whole``: at least one has just become whole."""
        if not self._decoder.pending_bytes:
            self._partial_ns = 0
        elif whole or not self._partial_ns:
            self._partial_ns = now_ns
