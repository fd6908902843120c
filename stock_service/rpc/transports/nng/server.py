"""The server of the NNG transport: one thread at a time receives, each request is a task of the executor.

NNG gives every request a context, by which its reply goes back, from any thread. The receiving thread takes a context
that is free, waits in it for a request, and leaves both to the executor. Contexts are made as they are needed.

To hand a request over costs more than a Lookup. So on the static pool, which gives a batch to one thread too, a thread
of the pool may receive by itself: it *leads*. A task begins with one request, answers it, and receives the next one.
It goes on until a request takes it over ``PATIENCE_S``, or the receiving thread, which watches, finds it stuck for
``TICK_S``. Then that thread receives again, and others of the pool answer. What is not read yet waits meanwhile:
for each request before it up to ``PATIENCE_S``, for one that is stuck up to twice ``TICK_S``.
"""

import logging
import socket
import time
from collections import deque
from contextlib import suppress
from functools import partial
from threading import Condition, Thread

import pynng

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.concurrency.static_pool import PATIENCE_S, StaticPool
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.messaging.answering import DROPPED_TIMES, Messages, check_kept
from stock_service.rpc.server_core.answering import Answering, methods_of, stamping
from stock_service.rpc.server_core.options import NOBODY
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, ServeOptions

_log = logging.getLogger(__name__)

TICK_S = 0.001
"""How often the leader is looked at while it is at work. A look takes some 10 us."""

QUICK_MIN = 32
"""So many quick answers in a row, and a thread of the pool leads again though requests are under way."""

_CLOSED = (pynng.NNGException, TypeError)
"""What pynng raises where a context was closed by another thread: TypeError where that was just before."""

_PATIENCE_NS = int(PATIENCE_S * 1e9)


class NngServer:
    """A server that is listening; see the module, and ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        check_kept(options, ("idle_s", "pipeline_max"), "NNG")
        self._executor = executor
        methods = methods_of(service)
        self._messages = Messages(methods, options.frame_bytes_max)
        self._answer: Answering[bytes] = self._messages.answer
        self._timeline = options.timeline
        if options.timeline is not None:
            self._answer = stamping(options.timeline, methods, self._messages)
        self._connections_max = options.connections_max
        self._peers: dict[pynng.Pipe, Address] = {}  # changed by NNG's threads, one at a time
        with socket.create_server((options.host, options.port)) as probe:  # which says what is wrong with an address
            self.address: Address = probe.getsockname()[:2]
        self._stopping = self._closed = False
        self._rep = pynng.Rep0(recv_max_size=DROPPED_TIMES * options.frame_bytes_max)
        self._rep.add_pre_pipe_connect_cb(self._admit)
        self._rep.add_post_pipe_remove_cb(self._forget)
        try:
            self._rep.listen("tcp://{}:{}".format(*self.address))
        except pynng.NNGException as error:
            self._rep.close()
            raise OSError(str(error)) from error
        self._free: deque[pynng.Context] = deque()  # of any thread
        self._changed = Condition()  # guards all below, and _stopping and _closed
        self._under_way = 0
        self._waiting: pynng.Context | None = None  # where the next request is received
        self._may_lead = isinstance(executor, StaticPool)
        self._quick = 0  # answers in a row that took no longer than PATIENCE_S, while nobody led
        self._leader: pynng.Context | None = None  # of the thread of the pool that receives
        self._led = 0  # requests that leaders have begun with
        self._at_work = False  # the leader has a request
        self._watch_sleeps = False
        self._thread = Thread(target=self._run, name="nng-receiver")
        self._thread.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``. A reply has ended once the kernel has it, as far as it takes it at once.

        NNG says no more than that. What is left then of a reply of megabytes, to a client that does not read, is lost.
        """
        with self._changed:
            self._stopping = True
            in_time = self._changed.wait_for(lambda: not self._under_way, grace_s) or self._closed
            first, self._closed = not self._closed, True
            waiting = self._waiting
            self._changed.notify_all()
        if first:
            if waiting is not None:
                _close(waiting)  # before its socket: NNG aborts the process over one that begins to wait meanwhile
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
        self._peers[pipe] = host, int(port)

    def _forget(self, pipe: pynng.Pipe) -> None:
        self._peers.pop(pipe, None)

    # ---- any thread

    def _serve(self, context: pynng.Context, message: bytes, arrived_ns: int, peer: Address) -> None:
        """One task: answers a request and sends the reply."""
        quick = self._answer_by(context, message, arrived_ns, peer)
        with self._changed:
            self._quick = self._quick + 1 if quick else 0
            self._end()
            if not self._closed:
                self._free.append(context)
                return
        _close(context)

    def _answer_by(self, context: pynng.Context, message: bytes, arrived_ns: int, peer: Address) -> bool:
        """Answers a request and sends the reply; whether the answer took no longer than ``PATIENCE_S``."""
        began_ns = time.monotonic_ns()
        reply = self._answer(message, arrived_ns, peer)
        took_ns = time.monotonic_ns() - began_ns
        _send(context, reply)
        if self._timeline is not None:
            self._timeline.local.stamper.end()
        return took_ns < _PATIENCE_NS

    def _end(self) -> None:
        """A request is no longer under way. With the lock held."""
        self._under_way -= 1
        if self._stopping and not self._under_way:
            self._changed.notify_all()

    # ---- a thread of the pool

    def _lead(self, context: pynng.Context, message: bytes, arrived_ns: int, peer: Address) -> None:
        """One task: answers a request, and those that come after it, for as long as this thread is the leader."""
        try:
            while True:
                if not self._goes_on(context, self._answer_by(context, message, arrived_ns, peer)):
                    return
                received = context.recv_msg()
                message, arrived_ns = received.bytes, time.monotonic_ns()
                peer = self._peers.get(received.pipe, NOBODY)
                with self._changed:
                    self._under_way += 1
                    self._led += 1
                    self._at_work, self._waiting = True, None
                    stopping = self._stopping
                    if self._watch_sleeps:
                        self._changed.notify_all()
                if stopping:
                    _send(context, self._refused(message))
                    self._goes_on(context, quick=False)
                    return
        except _CLOSED:  # the server has stopped, or else the receiving thread learns what is wrong
            with self._changed:
                self._leader = None
                self._changed.notify_all()
            _close(context)

    def _goes_on(self, context: pynng.Context, quick: bool) -> bool:
        """Whether the thread that has answered in a context is to receive the next request in it."""
        with self._changed:
            self._end()
            if self._leader is context:
                self._at_work = False
                if quick and not self._stopping:
                    self._waiting = context
                    return True
                self._leader = None
                self._changed.notify_all()
            if not self._closed:
                self._free.append(context)
                return False
        _close(context)
        return False

    # ---- the receiving thread

    def _run(self) -> None:
        try:
            while True:
                context = self._free.pop() if self._free else self._rep.new_context()
                with self._changed:
                    self._waiting = context
                    if self._closed:
                        break
                message = context.recv_msg()
                self._take(context, message.bytes, self._peers.get(message.pipe, NOBODY))
                self._watch()
        except _CLOSED:
            if not self._closed:
                _log.exception("nothing is received any more")
        if self._waiting is not None:
            _close(self._waiting)

    def _take(self, context: pynng.Context, message: bytes, peer: Address) -> None:
        """Has the executor answer a request, or refuses it. With nothing slow under way a thread of the pool leads."""
        arrived_ns = time.monotonic_ns()
        with self._changed:
            self._waiting, stopping = None, self._stopping
            leads = self._may_lead and (not self._under_way or self._quick >= QUICK_MIN) and not stopping
            self._under_way += 1
            if leads:
                self._leader, self._at_work = context, True
                self._led += 1
                self._quick = 0
        if stopping:
            refused = self._refused(message)
        else:
            answer = self._lead if leads else self._serve
            try:
                self._executor.execute(partial(answer, context, message, arrived_ns, peer))
                return
            except Fault as fault:
                refused = self._messages.refusal(message, fault.code, fault.detail)
        _send(context, refused)
        with self._changed:
            self._leader = None
            self._end()
            self._free.append(context)

    def _watch(self) -> None:
        """Blocks for as long as a thread of the pool leads; ends that where it is stuck.

        When the leader had nothing to do for ``TICK_S`` this thread sleeps, and is woken by the next request.
        """
        with self._changed:
            before = -1
            while self._leader is not None and not self._closed:
                led, at_work = self._led, self._at_work
                self._watch_sleeps = led == before and not at_work
                self._changed.wait(None if self._watch_sleeps else TICK_S)
                self._watch_sleeps = False
                if at_work and self._at_work and self._led == led:
                    self._leader = None
                before = led

    def _refused(self, message: bytes) -> bytes:
        """What is said to a request that comes after a stop."""
        return self._messages.refusal(message, FaultCode.UNAVAILABLE, "the server is stopping")


def _send(context: pynng.Context, reply: bytes) -> None:
    with suppress(*_CLOSED):  # the client has gone, or the server has given the request up
        context.send(reply)


def _close(context: pynng.Context) -> None:
    with suppress(*_CLOSED):  # with its socket
        context.close()
