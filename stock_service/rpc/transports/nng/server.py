"""The server of the NNG transport: a thread receives a request in a context, answers it, and replies.

NNG gives every request a context, by which its reply goes back, from any thread. The receiving thread waits for a
request in a context, and leaves both to the executor. Contexts are made as they are needed.

To hand a request over costs more than a Lookup. So on the static pool threads of the pool receive by themselves: they
*lead*. One that has answered a request receives the next in the same context. One that begins with a request and leaves
nobody to receive has another thread of the pool join. The receiving thread only watches. When all threads of the pool
are at work, and for ``TICK_S`` none has begun with another request, it receives. What it receives waits in the pool's
queue, or is refused. A leader that has answered then gives its thread back to the pool.

Leaders and the receiving thread never wait at the same time. Or a request might go to that thread while every thread of
the pool waits in NNG, and nobody would answer it.
"""

import logging
import socket
import time
from collections import deque
from contextlib import suppress
from functools import partial
from threading import Condition, Lock, Thread

import pynng

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.messaging.answering import DROPPED_TIMES, Messages, check_kept
from stock_service.rpc.option_types import family_of, shown_address
from stock_service.rpc.server_core.options import NOBODY
from stock_service.rpc.server_core.protocol import Answering, methods_of, stamping
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, ServeOptions

_log = logging.getLogger(__name__)

TICK_S = 0.01
"""How often the leaders are looked at while requests come: some 10 us each. What comes while all threads are stuck
waits in its connection for twice as long at most, before it is queued or refused."""

HELLO_S = 0.02
"""What a stop leaves to connections that are being made; a hundred times what one takes. NNG (1.11) never closes the
descriptors of a connection whose listener is closed meanwhile: of a server stopped right after, one in ten."""

_CLOSED = (pynng.NNGException, TypeError)
"""What pynng raises where a context was closed by another thread: TypeError where that was just before."""


class NngServer:
    """A server that is listening; see the module, and ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        check_kept(options, ("idle_s", "pipeline_max"), "NNG")
        self._executor = executor
        methods = methods_of(service.with_health())
        self._messages = Messages(methods, options.frame_bytes_max)
        self._answer: Answering[bytes] = self._messages.answer
        self._timeline = options.timeline
        if options.timeline is not None:
            self._answer = stamping(options.timeline, methods, self._messages)
        self._connections_max = options.connections_max
        self._peers: dict[pynng.Pipe, Address] = {}  # changed by NNG's threads, one at a time
        with socket.create_server(
            (options.host, options.port), family=family_of(options.host)
        ) as probe:  # which says what is wrong with an address
            self.address: Address = probe.getsockname()[:2]
        self._stopping = self._closed = False
        self._rep = pynng.Rep0(recv_max_size=DROPPED_TIMES * options.frame_bytes_max)
        self._rep.add_pre_pipe_connect_cb(self._admit)
        self._rep.add_post_pipe_remove_cb(self._forget)
        try:
            self._rep.listen(f"tcp://{shown_address(self.address)}")
        except pynng.NNGException as error:
            self._rep.close()
            raise OSError(str(error)) from error
        self._free: deque[pynng.Context] = deque()  # of any thread
        self._leaders_max = 0
        self._lock = Lock()  # guards all below, and _stopping and _closed
        self._changed = Condition(self._lock)
        self._waiting: set[pynng.Context] = set()  # where requests are received
        self._tasks = 0  # that the executor has
        self._receives = False  # the receiving thread does, and no leader
        self._under_way = 0  # requests
        self._begun = 0  # requests that a thread of the executor has begun with, ever
        self._watch_sleeps = False
        self._thread = Thread(target=self._run, name="nng-receiver")
        self._thread.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``. A reply has ended once the kernel has it, as far as it takes it at once.

        NNG says no more than that. What is left then of a reply of megabytes, to a client that does not read, is lost.
        """
        with self._lock:
            self._stopping = True
            in_time = self._changed.wait_for(lambda: not self._under_way, grace_s) or self._closed
        if not self._closed:
            time.sleep(HELLO_S)
        with self._lock:
            first, self._closed = not self._closed, True
            waiting = tuple(self._waiting)
            self._changed.notify_all()
        if first:
            for context in waiting:  # before the socket: NNG aborts the process over one that begins to wait then
                _close(context)
            self._thread.join()
            while self._free:
                _close(self._free.pop())
            self._rep.close()
        return in_time

    # ---- NNG's threads

    def _admit(self, pipe: pynng.Pipe) -> None:
        """Closes a connection that is one too many, or comes after a stop."""
        if self._stopping or len(self._peers) >= self._connections_max:
            pipe.close()
            return
        host, _, port = str(pipe.remote_address).rpartition(":")
        self._peers[pipe] = host.strip("[]"), int(port)

    def _forget(self, pipe: pynng.Pipe) -> None:
        self._peers.pop(pipe, None)

    # ---- a thread of the executor

    def _begin(self, context: pynng.Context, message: bytes, arrived_ns: int, peer: Address) -> None:
        """One task: answers a request that the receiving thread has left; on the static pool, then leads."""
        with self._lock:
            joins = self._joins()
        if joins:
            self._add_leader()
        self._answer_in(context, message, arrived_ns, peer)
        self._lead(context)

    def _lead(self, context: pynng.Context) -> None:
        """Receives and answers requests, until some wait for a thread of the pool, or the server is closed."""
        try:
            while self._goes_on(context):
                message, arrived_ns, peer, accepted = self._received(context)
                if accepted:
                    self._answer_in(context, message, arrived_ns, peer)
                else:
                    self._reply(context, self._refused(message))
        except _CLOSED:  # the server has stopped, or else the receiving thread learns what is wrong
            self._ended(context)

    def _goes_on(self, context: pynng.Context) -> bool:
        """Whether this thread is to receive in its context. If not, its task has ended."""
        with self._lock:
            if self._tasks <= self._leaders_max and not self._receives and not self._closed:
                self._waiting.add(context)
                return True
        self._ended(context)
        return False

    def _received(self, context: pynng.Context) -> tuple[bytes, int, Address, bool]:
        """A leader's next request: its message, when it came, whom it is from, and whether it came before a stop.

        Blocks; raises ``_CLOSED``.
        """
        received = context.recv_msg()
        arrived_ns = time.monotonic_ns()
        with self._lock:
            self._waiting.discard(context)
            self._under_way += 1
            joins, accepted = self._joins(), not self._stopping
        if joins:
            self._add_leader()
        return received.bytes, arrived_ns, self._peers.get(received.pipe, NOBODY), accepted

    def _joins(self) -> bool:
        """With the lock held: a thread begins with a request. Whether another is to lead, as nobody else receives."""
        self._begun += 1
        if self._waiting:
            return False
        if self._watch_sleeps:
            self._changed.notify_all()
        joins = self._tasks < self._leaders_max and not self._stopping
        self._tasks += joins
        return joins

    def _add_leader(self) -> None:
        """Has another thread of the pool lead. Raises ``_CLOSED``."""
        context = self._context()
        try:
            self._executor.execute(partial(self._lead, context))
        except Fault:  # it stops, or has more to do
            self._ended(context)

    def _answer_in(self, context: pynng.Context, message: bytes, arrived_ns: int, peer: Address) -> None:
        """Answers a request and sends the reply."""
        self._reply(context, self._answer(message, arrived_ns, peer))
        if self._timeline is not None:
            self._timeline.local.stamper.end()

    # ---- any thread

    def _reply(self, context: pynng.Context, reply: bytes) -> None:
        """Sends a reply. The request is no longer under way."""
        with suppress(*_CLOSED):  # the client has gone, or the server has given the request up
            context.send(reply)
        with self._lock:
            self._under_way -= 1
            if self._stopping and not self._under_way:
                self._changed.notify_all()

    def _ended(self, context: pynng.Context) -> None:
        """The task that had this context is over."""
        with self._lock:
            self._tasks -= 1
            self._waiting.discard(context)
            if not self._closed:
                self._free.append(context)
                return
        _close(context)

    def _context(self) -> pynng.Context:
        """One that is free. Raises ``_CLOSED``."""
        with suppress(IndexError):
            return self._free.pop()
        return self._rep.new_context()

    # ---- the receiving thread

    def _run(self) -> None:
        try:
            while True:
                context = self._context()
                if not self._to_receive(context):
                    _close(context)
                    return
                received = context.recv_msg()
                self._take(context, received.bytes, self._peers.get(received.pipe, NOBODY))
        except _CLOSED:
            if not self._closed:
                _log.exception("nothing is received any more")

    def _to_receive(self, context: pynng.Context) -> bool:
        """Blocks for as long as leaders receive by themselves; False once the server is closed."""
        seen = -1
        with self._lock:
            while 0 < self._tasks <= self._leaders_max and not self._closed:
                if seen != self._begun:
                    seen = self._begun
                    self._changed.wait(TICK_S)
                elif self._waiting:
                    self._watch_sleeps = True
                    self._changed.wait()
                    self._watch_sleeps = False
                else:  # every leader is at work, and none has begun with another request
                    break
            self._receives = True
            self._waiting.add(context)
            return not self._closed

    def _take(self, context: pynng.Context, message: bytes, peer: Address) -> None:
        """Has the executor answer a request, or refuses it."""
        arrived_ns = time.monotonic_ns()
        with self._lock:
            self._waiting.discard(context)
            self._receives = False
            self._under_way += 1
            self._tasks += 1
            stopping = self._stopping
        try:
            if not stopping:
                self._executor.execute(partial(self._begin, context, message, arrived_ns, peer))
                return
            refused = self._refused(message)
        except Fault as fault:
            refused = self._messages.refusal(message, fault.code, fault.detail)
        self._reply(context, refused)
        self._ended(context)

    def _refused(self, message: bytes) -> bytes:
        """What is said to a request that comes after a stop."""
        return self._messages.refusal(message, FaultCode.UNAVAILABLE, "the server is stopping")


def _close(context: pynng.Context) -> None:
    with suppress(*_CLOSED):  # with its socket
        context.close()
