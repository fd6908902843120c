"""Connections of a server of servicers, whose handlers hear of the end of their calls, and may speak before it.

``OpenCalls`` stands in for the table of open calls, so that each end of a call is seen where it happens: its reply, the
client's reset, the client's loss. A callback is called once the connection's lock is free again, by the thread that
ended the call: nearly always the reading thread, so it must be short.

A call whose method takes several messages is one request, from its headers on. Its messages go to an ``Inbox``, as they
come; its client may send as many bytes again once the handler has taken them. Replies before the end are pushed: they
leave as far as the windows allow, and then the handler waits until they have left.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.grpc_calls import PLAIN, GrpcRequest, Progress
from stock_service.rpc.wire.grpc_heads import Heads, Kind, Part, part
from stock_service.rpc.wire.grpc_replies import HEADER_LIST_BYTES_MAX, parted
from stock_service.rpc.wire.grpc_session import GrpcSession
from stock_service.rpc.wire.header_blocks import BlockReader

Callback = Callable[[], object]
Ask = Callable[["HandlerConnection"], None]

_MESSAGE_BYTES = 64
"""Bytes of memory for a message that waits, besides its own."""

_log = logging.getLogger(__name__)


class Inbox(Progress):
    """Messages of a call that its handler has not taken, with their flags; None: the call has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: SimpleQueue[tuple[bytes, int] | None] = SimpleQueue()


class _Passing(deque[tuple[bytes, int]]):
    """Messages that wait for the answer to another one: none does, since each is passed on."""

    def __init__(self, take: Callable[[tuple[bytes, int]], None]) -> None:
        super().__init__()
        self._take = take

    def append(self, message: tuple[bytes, int]) -> None:
        """Passes a message on."""
        self._take(message)


class OpenCalls(dict[int, int]):
    """The open calls of one connection, each with its window's credit. Its connection's lock guards it."""

    def __init__(self) -> None:
        super().__init__()
        self.connection: HandlerConnection | None = None
        """The connection; None once it is closed."""
        self.lost = False
        """True once the client is gone."""
        self.due: deque[Callback] = deque()
        """Callbacks of calls that have ended. Any thread takes them."""
        self._callbacks: dict[int, list[Callback]] = {}

    def pop(self, stream: int, *default: Any) -> Any:
        """Removes a call, which has ended."""
        if self._callbacks:
            self.due.extend(self._callbacks.pop(stream, ()))
        return super().pop(stream, *default)

    def has(self, stream: int) -> bool:
        """True where a call has not ended. Any thread may ask, without the lock."""
        return stream in self and not self.lost

    def listen(self, stream: int, callback: Callback) -> bool:
        """Has a callback called at a call's end; returns False where it has ended."""
        if not self.has(stream):
            return False
        self._callbacks.setdefault(stream, []).append(callback)
        return True

    def lose(self) -> None:
        """Notes that the client is gone: every call has ended, though its reply may still be tried."""
        self.lost = True
        while self._callbacks:
            self.due.extend(self._callbacks.popitem()[1])


class HandlerSession(GrpcSession):
    """A session that gives handlers all metadata, the token in ``authorization`` too.

    So what a client shows stays in memory with the heads that its connection remembers.
    """

    def __init__(self, kinds: Mapping[bytes, Kind], message_bytes_max: int, streams_max: int) -> None:
        super().__init__(kinds, message_bytes_max, streams_max, time.monotonic_ns)
        self._blocks = BlockReader(_part, Heads(kinds).head, HEADER_LIST_BYTES_MAX)
        self._known = self._blocks.known
        self.calls = self._calls.open = OpenCalls()
        """The open calls."""
        self._taken = 0  # messages that handlers were given, since the last count of toil

    @property
    def held_bytes(self) -> int:
        """See ``served_stream.Session``; with the memory for messages that wait."""
        inboxes = (call.progress for call in self._calls.kept.values())
        count = sum(each.messages.qsize() for each in inboxes if isinstance(each, Inbox))
        return super().held_bytes + _MESSAGE_BYTES * count

    def lose(self) -> None:
        """See ``served_stream.Session``."""
        super().lose()
        self.calls.lose()

    def drain(self) -> None:
        """See ``served_stream.Session``; what handlers have begun goes on to its end."""
        kept = dict(self._calls.kept)
        self._calls.kept.clear()
        super().drain()
        self._calls.kept.update(kept)

    def _on_headers(self, stream: int, ends: bool, block: bytes, requests: list[GrpcRequest]) -> None:
        super()._on_headers(stream, ends, block, requests)
        incoming = self._calls.kept.get(stream)
        if incoming is None or incoming.head.kind is not Kind.STREAMED or incoming.begun:
            return
        inbox = incoming.progress = Inbox()

        def take(message: tuple[bytes, int]) -> None:
            self._taken += 1
            inbox.messages.put(message)

        came, incoming.waiting = incoming.waiting, _Passing(take)
        for message in came:
            take(message)
        incoming.begun = incoming.busy = True
        self.calls[stream] = incoming.credit
        requests.append((incoming.head, stream, b"", PLAIN, self.calls, inbox))

    def _count_toil(self, toil: int, requests: int) -> None:
        self._calls.answered += self._taken  # a message brings work, as a call does
        super()._count_toil(toil, requests + self._taken)
        self._taken = 0

    def grant(self, stream: int, size: int) -> bool:
        """Lets the client send as many bytes again as its handler has taken; returns False where it sends no more."""
        incoming = self._calls.kept.get(stream)
        if incoming is None:
            return False
        incoming.waiting_bytes -= size
        if not incoming.ended:
            self.outgoing.extend(http2.window_update(stream, size))
        return not incoming.ended

    def push(self, stream: int, frames: bytes, first: bool) -> bytes:
        """The part of a reply's frames that may leave now, before the call's end; the rest is held."""
        incoming = self._calls.kept.get(stream)
        if incoming is None:
            return b""
        before, body, after, _ = parted(frames)
        credit = self.calls[stream] + (0 if first else incoming.credit)  # there it is counted while a part is held
        incoming.credit = 0
        allowed = self._endpoint.send_body(stream, body, False, after, credit)
        self.calls[stream] = credit - len(body)
        self._calls.sent_bytes += len(body)
        self._calls.count()
        return before + allowed

    def cancel(self, stream: int) -> None:
        """Ends a call with RST_STREAM, CANCEL; does nothing where it has ended."""
        if self.calls.has(stream):
            incoming = self._calls.incoming(stream)
            self._calls.reset(stream, http2.ErrorCode.CANCEL, incoming is None or incoming.ended)


class HandlerConnection(ServedConnection[GrpcRequest]):
    """A connection whose calls may be listened to, spoken in and cancelled by any thread."""

    def __init__(self, served: ServedConnection[GrpcRequest], ask: Ask, pause: Callable[[int], None]) -> None:
        """Takes the place of ``served``, which nobody has used. ``ask`` has the reading thread look at it, ``pause``
        has the pool count a handler that waits.
        """
        session = served._session
        assert isinstance(session, HandlerSession)
        super().__init__(served.bytes, served.stream, session)
        self._handled, self._ask, self._pause = session, ask, pause
        self._senders: dict[int, threading.Event] = {}  # those that wait for a part of a reply to leave
        session.calls.connection = self

    def listen(self, stream: int, callback: Callback) -> bool:
        """Has a callback called at a call's end; returns False where it has ended."""
        with self._lock:
            return self._handled.calls.listen(stream, callback)

    def speak(self, stream: int, frames: bytes) -> None:
        """Sends frames of a call that flow control does not count, if it is open."""
        with self._lock:
            if self._handled.calls.has(stream):
                self._put(frames)
                self.stream.said(bool(self._outbox), False)
        if self.stream.unsent:
            self._ask(self)

    def grant(self, stream: int, size: int) -> None:
        """Lets a call's client send so many bytes more."""
        with self._lock:
            if self._handled.grant(stream, size):
                self._say(self._handled)
        if self.stream.unsent:
            self._ask(self)

    def push(self, stream: int, frames: bytes, first: bool) -> bool:
        """Sends a reply before the call's end, and blocks until it has left; returns False where the call has ended."""
        left = None
        with self._lock:
            if self._handled.calls.has(stream):
                self._put(self._handled.push(stream, frames, first))
                self.stream.said(bool(self._outbox), False)
            if not self._sent(stream):
                left = self._senders[stream] = threading.Event()
        if left is not None:
            self._ask(self)
            self.waited(left.wait)
        return self._handled.calls.has(stream)

    def waited(self, wait: Callable[[], Any]) -> Any:
        """Has a handler wait for its client: the reading thread then goes on as if no call were under way."""
        self._pause(1)
        try:
            return wait()
        finally:
            self._pause(-1)

    def _sent(self, stream: int) -> bool:
        """True where nothing of a call has still to leave, or nobody takes it any more."""
        return not self._handled.calls.has(stream) or not (self._outbox or stream in self._handled.held)

    def cancel(self, *streams: int) -> None:
        """Cancels calls, all where none is named: their clients hear of it, and their replies are dropped."""
        with self._lock:
            for stream in streams or list(self._handled.calls):
                self._handled.cancel(stream)
            if self._handled.outgoing:
                self._say(self._handled)
        self._tell()
        if self.stream.unsent:
            self._ask(self)

    # ---- as ``ServedConnection`` has them, and then the ended calls' callbacks

    def _take(self, data: bytes, now_ns: int, arrived_ns: int) -> GrpcRequest | None:
        request = super()._take(data, now_ns, arrived_ns)
        self._tell()
        return request

    def answer(self, request: GrpcRequest, reply: bytes) -> bool:
        """See ``ServedConnection``."""
        looks = super().answer(request, reply)
        self._tell()
        return looks

    def end(self, by_client: bool) -> None:
        """See ``ServedConnection``."""
        super().end(by_client)
        self._tell()

    def flush(self) -> None:
        """See ``ServedConnection``."""
        super().flush()
        self._tell()

    def cut(self) -> None:
        """See ``ServedConnection``."""
        super().cut()
        self._lose()

    def close(self) -> None:
        """See ``ServedConnection``."""
        self._lose()
        self._handled.calls.connection = None  # breaks a circle
        super().close()

    def _lose(self) -> None:
        with self._lock:
            self._handled.lose()
        self._tell()

    def _tell(self) -> None:
        due = self._handled.calls.due
        while due:
            try:
                due.popleft()()
            except Exception:
                _log.exception("a callback of a call that has ended raised")
        if self._senders:
            with self._lock:
                for stream in [each for each in self._senders if self._sent(each)]:
                    self._senders.pop(stream).set()


def _part(name: bytes, value: bytes) -> Part:
    """Part of a head for one field, as ``grpc_heads.part`` gives it; a token is metadata like any other."""
    if name != b"authorization":
        return part(name, value)
    role, _, wrong, said = part(b"token", value)
    return role, name, wrong, tuple(("authorization", text) for _, text in said)
