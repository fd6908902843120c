"""The server that dispatches requests: one thread reads every connection, each request is a task.

The reading thread sleeps in epoll, and has the protocol cut what arrives into requests. It gives them to the executor,
which decides who runs them, and which thread reads. The thread that ran a request sends its reply. Replies to
pipelined requests leave as they are ready; with a ``pipeline_max`` of 1, in the order of their requests.

Who may touch what: only the thread that reads accepts, reads, registers and closes. So no descriptor can be closed, and
its number reused, under another's hands. Who runs a request only sends, under the connection's lock. Where more is to
be done, it asks for the reading thread. ``wire/served_stream.py`` decides what is to be done.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Generic

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core.admission import READING_NS, Admission
from stock_service.rpc.server_core.answering import Methods, stamping
from stock_service.rpc.server_core.byte_stream import ByteStream, PlainStream
from stock_service.rpc.server_core.counting import CountedRefusals, WaitSamples
from stock_service.rpc.server_core.dispatch import Dispatch
from stock_service.rpc.server_core.group_commit import polling_behind, serving_again
from stock_service.rpc.server_core.held_bytes import HeldBytes, budget_bytes, noting
from stock_service.rpc.server_core.leaving import LOOK_S, Departures
from stock_service.rpc.server_core.lengthy import PAUSE_S, Lengthy
from stock_service.rpc.server_core.listening import ACCEPTS_A_TURN, BACKLOG, FEW_BYTES, Listening, refuse_connection
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.server_core.served_connection import ServedConnection
from stock_service.rpc.server_core.tasks import Task, plain_task, session_task, stamped_task
from stock_service.rpc.server_core.tls_stream import tls_streams
from stock_service.rpc.server_core.turns import Turns
from stock_service.rpc.server_core.waking import Waker
from stock_service.rpc.server_core.yielding import Yielding
from stock_service.rpc.wire.served_stream import CLOSED, LEAVING, READING, Overdue, ServedStream, Session

_IN = select.EPOLLIN

_EVENTS_MAX = 256
"""Events taken from epoll at a time: bounds how long an accept or a stop waits for its turn."""


class RequestServer(Generic[Request]):
    """A server that is listening; see the module, and ``transports.Server``."""

    def __init__(
        self,
        methods: Methods,
        protocol: WireProtocol[Request],
        executor: Executor,
        options: ServeOptions,
        own: ReadOptions,
        carrier: Callable[[socket.socket, Address], ByteStream] | None = None,
        sessions: Callable[[], Session[Request]] | None = None,
    ) -> None:
        """``sessions`` makes what cuts a connection's bytes, of a protocol that speaks by itself; else ``decoder``.
        ``carrier`` makes what moves an accepted connection's bytes; None: what the options ask for."""
        self._carrier: Callable[[socket.socket, Address], ByteStream]
        self._carrier = carrier or (PlainStream if options.tls is None else tls_streams(options.tls))
        self._answer = protocol.answer
        if options.metrics is not None:
            protocol = CountedRefusals(protocol, options.metrics)
        self._protocol = protocol
        self._task: Task[Request] = (plain_task if sessions is None else session_task)(self._answer, self._ask)
        self._sessions = sessions
        if options.timeline is not None:
            self._task = stamped_task(stamping(options.timeline, methods, protocol), self._ask, options.timeline)
        self._reads_clock, self._executor, self._options = options.timeline is not None, executor, options
        self._turns = Turns(protocol, Admission(own.delay_target_ms, options.requests_max))
        settle = methods.settle if options.timeline is None else None  # with a timeline a request waits on its thread
        if settle is not None:
            self._task = serving_again(self._task)
        samples = None if options.metrics is None else WaitSamples(self._task, options.metrics)
        self._dispatch = Dispatch(protocol, executor, self._turns, self._attend, self._ask, settle, samples)
        self._batch = self._dispatch.batch
        self._reader, self._over = executor.reader(self._run, self._end), Event()
        self._read_s, self._next_sweep_ns = own.read_s, 0
        self._sweep_s = max(0.05, min(options.idle_s, own.read_s) / 4)
        self._listening = Listening(options, select.epoll)
        self.address, self._epoll = self._listening.address, self._listening.epoll
        self._poll = self._epoll.poll if methods.settle is None else polling_behind(self._epoll.poll)
        self._waker = Waker()
        self._wake = self._waker.wake
        self._epoll.register(self._waker.fd, select.EPOLLIN)
        self._yielding: Yielding[Request] = Yielding()
        self._lengthy: Lengthy[Request] = Lengthy(self._read_late, self._look_after)
        self._connections: dict[int, ServedConnection[Request]] = {}
        self._attention: deque[ServedConnection[Request]] = deque()  # appended to by any thread
        self._leaving = Departures(own.read_s, protocol.goodbye(), self._close)
        self._held = HeldBytes(budget_bytes(own.held_bytes_max, options.frame_bytes_max), self._make_pay)
        self._read = self._read_once if options.tls is None else noting(self._read_once, self._held)
        self._readable: Callable[[ServedConnection[Request], int], object] = self._read
        self._stopping = self._draining = self._abandon = False
        self._reader.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``."""
        self._leaving.stop(grace_s)
        self._stopping = True
        self._wake()
        until_s = time.monotonic() + grace_s
        in_time = self._over.wait(grace_s)
        if not in_time:
            self._abandon = True
            self._wake()
            self._over.wait()
        self._reader.join(max(0.0, until_s - time.monotonic()))
        self._waker.close()
        return in_time

    # ---- any thread

    def _ask(self, connection: ServedConnection[Request]) -> None:
        """Has the reading thread look at a connection."""
        self._attention.append(connection)
        self._wake()

    # ---- the reading thread

    def _run(self) -> None:
        """Reads until all is said."""
        turns, lengthy, batch, dispatch = self._turns, self._lengthy, self._batch, self._dispatch.dispatch
        waiting_turns, muted = turns.queue, turns.muted
        while not (self._abandon or (self._draining and not self._connections)):
            events = self._poll(self._timeout_s(), _EVENTS_MAX)
            now_ns = time.monotonic_ns()
            self._turn_to(events, now_ns)
            if len(batch) > 1 and not turns.behind:  # who had the last reply sends now, or would wait for two turns
                self._turn_to(self._poll(0, _EVENTS_MAX), time.monotonic_ns())
            if waiting_turns:
                now_ns = time.monotonic_ns()  # reading, and what was begun meanwhile, took a while
            while self._attention:
                self._attend(self._attention.popleft(), now_ns)
            if now_ns >= self._next_sweep_ns:
                self._sweep(now_ns)
            if self._leaving:
                self._leaving.look(now_ns)
            if self._stopping and not self._draining:
                self._drain(now_ns)
            if muted:
                turns.unmute(now_ns, self._attend)
            if batch or waiting_turns:
                lengthy.given_ns = now_ns
                dispatch(now_ns)
            if lengthy.queue:
                self._serve_lengthy(not events or bool(waiting_turns))

    def _turn_to(self, events: list[tuple[int, int]], now_ns: int) -> None:
        """Does what epoll says that there is to do."""
        connections, lengthy, waiting_turns = self._connections, self._lengthy, self._turns.queue
        reading_ns, accepts = now_ns, False
        for fd, event in events:
            connection = connections.get(fd)
            if event == _IN and connection is not None and connection.stream.state is READING:  # nearly always
                if (connection.first_ns or connection.few) and not self._draining:
                    lengthy.join(connection, now_ns)
                else:
                    self._readable(connection, now_ns)
            elif connection is not None:
                self._turn(connection, event, now_ns)
            elif fd == self._listening.fd:
                accepts = True
            elif fd == self._waker.fd:  # else it was closed after epoll had said this
                self._waker.woken()
            if waiting_turns and not self._executor.waiting and time.monotonic_ns() - reading_ns > READING_NS:
                self._dispatch.dispatch(time.monotonic_ns())  # it has nothing left, and requests wait
                reading_ns = time.monotonic_ns()
        if accepts:  # last: a new one may have the number of one that was closed, of which these events tell
            self._accept(ACCEPTS_A_TURN, now_ns)

    def _end(self) -> None:
        """Nothing is read any more."""
        try:
            for connection in list(self._connections.values()):
                self._close(connection)
            self._listening.close()
            self._epoll.close()
        finally:
            self._over.set()

    def _serve_lengthy(self, alone: bool) -> None:
        """Reads some of those that take long, and has what came of it begun."""
        self._lengthy.serve(alone)
        if self._batch:
            self._lengthy.given_ns = now_ns = time.monotonic_ns()
            self._dispatch.dispatch(now_ns)

    def _timeout_s(self) -> float | None:
        """How long to sleep, if nothing happens; not at all where the thread that read the waking reads no more."""
        if self._attention or (self._stopping and not self._draining):
            return 0.0
        if self._turns.queue:
            pause_s = self._turns.admission.pause_s(self._executor.waiting)
            return min(pause_s, PAUSE_S) if self._lengthy.queue else pause_s
        if self._lengthy.queue:
            return self._lengthy.pause_s(time.monotonic_ns()) if self._turns.behind else 0.0
        idle_s = self._sweep_s if self._connections or not self._listening.accepting else None
        return PAUSE_S if self._turns.muted else LOOK_S if self._leaving else idle_s

    def _turn(self, connection: ServedConnection[Request], event: int, now_ns: int) -> None:
        """Does what epoll says a connection is ready for. Of one that its client has reset, nothing more is begun."""
        state = connection.stream.state
        if event & select.EPOLLERR or (event & select.EPOLLHUP and state is not LEAVING):
            self._break(connection)
        elif event & select.EPOLLHUP:  # its client has ended too: what is left is little
            self._leaving.drop(connection, now_ns)
        elif event & select.EPOLLIN:
            if state is READING:
                self._readable(connection, now_ns)
            elif not connection.stream.reads_on:
                self._leave_unread(connection, now_ns)
            else:
                self._read(connection, now_ns)
        if event & select.EPOLLOUT and connection.stream.state is not CLOSED:
            connection.flush()
            self._attend(connection, now_ns)

    def _leave_unread(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Something came on a connection that is not read now: notes when, and asks no more until it is read."""
        if connection.stream.state is LEAVING:
            (self._leaving.drop if self._draining else self._lengthy.join)(connection, now_ns)
            return
        connection.first_ns = connection.first_ns or now_ns
        connection.events &= ~select.EPOLLIN
        self._epoll.modify(connection.fd, connection.events)

    def _read_late(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads once, or drops what nobody will answer: the kernel may take long over what a peer sends on and on."""
        (self._leaving.drop if connection.stream.state is LEAVING else self._read)(connection, now_ns)

    def _read_once(self, connection: ServedConnection[Request], now_ns: int) -> bool:
        """Reads once; says whether anything came, be it the end."""
        if connection.refused_ns and self._turns.mutes(connection, now_ns):
            connection.first_ns = connection.first_ns or now_ns
            self._look_after(connection, now_ns)
            return False
        read_bytes = FEW_BYTES if connection.few else self._turns.read_bytes
        try:
            data = connection.bytes.receive(read_bytes)
        except BlockingIOError:
            connection.first_ns = 0
            if connection.bytes.unsent:
                self._look_after(connection, now_ns)
            return False
        except OSError:
            self._break(connection)
            return True
        if not data:
            by_client = not self._draining or connection.stream.state is not READING
            connection.end(by_client)
            self._look_after(connection, now_ns)
        else:
            if self._reads_clock:
                now_ns = time.monotonic_ns()  # when these very bytes were read, not all that were ready with them
            arrived_ns = connection.first_ns or now_ns  # it may have waited unread
            connection.first_ns = arrived_ns if len(data) == read_bytes else 0  # more may wait behind it
            request = connection.take(data, now_ns, arrived_ns)
            if request is not None:
                arrived_ns = now_ns if self._reads_clock else arrived_ns
                self._batch.append(partial(self._task, connection, request, arrived_ns))
            else:
                if arrived_ns != now_ns:
                    self._turns.read_late(connection, now_ns)
                self._look_after(connection, now_ns)
                if connection.first_ns and connection.stream.state is READING and not self._draining:
                    self._lengthy.join(connection, now_ns)
        return True

    def _attend(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Looks after a connection about which something has changed, and while stopping reads on what has arrived."""
        self._look_after(connection, now_ns)
        if self._draining and connection.stream.state is not CLOSED:  # a late worker may ask for one that was closed
            self._read_last(connection, now_ns)

    def _read_last(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads what had arrived when the drain began, as far as the pipeline's limit lets it; then the stream ends."""
        while connection.stream.state is READING and self._read(connection, now_ns):
            pass
        if connection.stream.state is LEAVING:
            self._leaving.drop(connection, now_ns)  # once: the peer may send on and on, of which epoll tells
        self._look_after(connection, now_ns)

    def _look_after(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Dispatches what the pipeline's limit lets through, then reads on, waits to write, or closes."""
        stream = connection.stream
        if stream.state is CLOSED:
            return
        turns = self._turns
        if turns.queue:
            turns.shed(connection, now_ns)
        for request, arrived_ns in (*stream.release(turns.share), *connection.ready(now_ns)):
            self._batch.append(partial(self._task, connection, request, arrived_ns))
        if words := stream.words():
            connection.reply(words)
        if stream.done:
            self._close(connection)
            return
        if stream.finished:
            self._leaving.begin(connection, now_ns)
        if not stream.queued and stream.releasable():
            turns.join(connection, max(0, self._executor.room - len(self._batch)), now_ns)
        stream.settle(now_ns)  # after a turn was asked for: what was refused there waits no more
        if connection.holds or stream.unsent or stream.held_bytes():
            self._held.note(connection)
        reads = stream.state is READING or stream.state is LEAVING or stream.reads_on
        events = connection.watched(reads)
        if stream.unsent or connection.bytes.unsent:
            events |= select.EPOLLOUT
        if events != connection.events and connection.events >= 0:
            connection.events = events
            self._epoll.modify(connection.fd, events)

    def _make_pay(self, connection: ServedConnection[Request]) -> None:
        """Cuts a connection that holds too much. Of requests that may be begun nobody says that they had no effect."""
        code = FaultCode.INTERNAL if connection.stream.owes else FaultCode.RESOURCE_EXHAUSTED
        connection.give_up(self._protocol.farewell(code, "the server holds too many bytes"))
        self._break(connection)

    def _break(self, connection: ServedConnection[Request]) -> None:
        """A connection that the client cut: closed as soon as no worker holds it."""
        connection.cut()
        if connection.stream.done:
            self._close(connection)
        elif connection.events >= 0:
            connection.events = -1
            self._epoll.unregister(connection.fd)

    def _accept(self, count: int, now_ns: int) -> None:
        """Takes up to so many of the connections that wait. At the limit the longest idle one yields, if any does."""
        limit = self._options.connections_max
        for accepted, peer in self._listening.accepted(count):
            if len(self._connections) >= limit:
                yields = self._yielding.longest_idle(self._connections.values(), now_ns)
                if yields is None:
                    detail = f"{limit} connections are open, the limit"
                    refuse_connection(accepted, self._protocol.farewell(FaultCode.RESOURCE_EXHAUSTED, detail))
                    continue
                self._leaving.dismiss(yields)
            self._open(accepted, peer, now_ns)

    def _open(self, accepted: socket.socket, peer: Address, now_ns: int) -> None:
        session = self._sessions() if self._sessions is not None else None
        pipeline_max, protocol = self._options.pipeline_max, self._protocol
        stream = ServedStream(session or protocol.decoder(), protocol.objection, pipeline_max, now_ns, session)
        connection = ServedConnection(self._carrier(accepted, peer), stream, session)
        self._connections[connection.fd] = connection
        self._epoll.register(connection.fd, select.EPOLLIN)
        connection.events = select.EPOLLIN

    def _close(self, connection: ServedConnection[Request]) -> None:
        del self._connections[connection.fd]
        self._leaving.forget(connection)
        self._lengthy.forget(connection)
        self._held.forget(connection)
        if connection.events >= 0:  # closing alone would not, while a process forked just now still has it open
            self._epoll.unregister(connection.fd)
            connection.events = -1
        connection.close()
        if not self._draining:
            self._listening.accept(True)

    def _sweep(self, now_ns: int) -> None:
        """Closes the connections whose time is up."""
        self._next_sweep_ns = now_ns + int(self._sweep_s * 1e9)
        idle_ns, read_ns = int(self._options.idle_s * 1e9), int(self._read_s * 1e9)
        for connection in list(self._connections.values()):
            match connection.stream.overdue(now_ns, read_ns if connection.bytes.opening else idle_ns, read_ns):
                case Overdue.REPLY:
                    self._break(connection)
                case Overdue.REQUEST:
                    detail = f"a request was not whole within {self._read_s:g} s"
                    connection.reply(self._protocol.farewell(FaultCode.DEADLINE_EXCEEDED, detail))
                    self._look_after(connection, now_ns)
                case Overdue.IDLE:
                    self._leaving.dismiss(connection)
        if not self._draining:
            self._listening.accept(True)

    def _drain(self, now_ns: int) -> None:
        """The last sweep: takes what clients have already sent, then closes every connection that owes no reply."""
        self._accept(BACKLOG + 1, now_ns)
        self._draining = True
        self._lengthy.clear()
        self._readable = self._read_last
        self._listening.close()
        for connection in list(self._connections.values()):
            if connection.stream.state is CLOSED:
                continue  # for what another one holds
            arrived, speaks = connection.bytes.keep_to_arrived(), self._sessions is not None
            if arrived or speaks or not connection.stream.idle or connection.bytes.unacknowledged():
                self._read_last(connection, now_ns)
            else:
                self._leaving.dismiss(connection)
