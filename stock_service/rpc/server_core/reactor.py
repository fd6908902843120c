"""The reactor: a server in which one thread reads every connection, and each request is a task of the executor.

The reading thread sleeps in epoll, and cuts received bytes into requests by the protocol. The executor decides which
thread runs a request, and which thread is the reading thread. The thread that ran a request sends the reply at once. So
the replies to pipelined requests may come in another order than the requests. With a ``pipeline_max`` of 1 the order is
the same.

Only the reading thread accepts, reads, registers and closes connections. So while a thread uses a descriptor, no other
thread can close the descriptor. A thread that runs a request only sends the reply, with the connection's lock. Any
other work is asked of the reading thread (``_ask``). ``wire/served_stream.py`` decides the next steps of a connection.
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
from stock_service.rpc.server_core.admission import READING_NS, Ahead, DelayTarget
from stock_service.rpc.server_core.closing import Connections
from stock_service.rpc.server_core.connection import ByteStream, PlainStream, Serve, ServedConnection, task
from stock_service.rpc.server_core.group_commit import polling_behind, serving_again
from stock_service.rpc.server_core.listening import ACCEPTS_A_TURN, BACKLOG, Listening, refuse_connection
from stock_service.rpc.server_core.low_priority_reads import PAUSE_S, LowPriorityReads
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import CountedRefusals, Methods, Request, WireProtocol, stamping
from stock_service.rpc.server_core.queue import REFUSED_NS, Dispatch, Turns, WaitSamples
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.wire.served_stream import CLOSED, ENDING, LEAVING, READING, ServedStream, Session

_IN = select.EPOLLIN

_EVENTS_MAX = 256
"""Largest number of events that one call of epoll returns. The server handles these events before it accepts or stops.
"""


class _Ending:
    """State of a stop. ``stop`` writes ``asked`` and ``abandoned``, and the reading thread writes the other fields."""

    def __init__(self) -> None:
        self.asked = False  # True: ``stop`` was called
        self.draining = False  # True: the drain has begun
        self.abandoned = False  # True: the grace is over, and the server gives up the requests that have not ended
        self.over = Event()  # set when the reading has ended


class RequestServer(Generic[Request]):
    """Server of any protocol (``transports.Server``)."""

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
        """``sessions`` makes the decoders of a protocol that also sends bytes of its own. If ``sessions`` is None,
        ``protocol.decoder`` makes the decoders. ``carrier`` makes the byte stream of an accepted connection; if
        ``carrier`` is None, ``options`` decide between TCP and TLS.
        """
        self._options = options
        self._serve = _serving(methods, protocol, self._ask, options.timeline)
        metrics = options.metrics
        self._protocol = protocol if metrics is None else CountedRefusals(protocol, metrics)
        self._opened = _opening(self._protocol, carrier or _carrier(options), sessions, options.pipeline_max)
        self._queue = Dispatch(
            self._protocol,
            executor,
            Turns(self._protocol, DelayTarget(own.delay_target_ms), Ahead(executor.workers, executor.limit)),
            self._attend,
            self._ask,
            methods.flush if options.timeline is None else None,  # with a timeline a request keeps its thread
            None if metrics is None else WaitSamples(self._serve, metrics),
        )
        self._listening = Listening(options, select.epoll)
        self.address: Address = self._listening.address
        """Address on which the server listens, with the real port, never 0."""
        self._low_priority: LowPriorityReads[Request] = LowPriorityReads(self._read_late, self._look_after)
        self._connections = Connections(self._listening, self._protocol, options, own, self._low_priority.forget)
        self._attention: deque[ServedConnection[Request]] = deque()  # connections of ``_ask``, from any thread
        self._ending = _Ending()
        self._reader = executor.reader(self._run, self._end)
        self._reader.start()

    def stop(self, grace_s: float) -> bool:
        """Drains and ends the server. Blocks. Returns True if all requests ended within ``grace_s`` seconds."""
        ending = self._ending
        self._connections.lingering.stop(grace_s)
        ending.asked = True
        self._listening.waker.wake()
        until_s = time.monotonic() + grace_s
        in_time = ending.over.wait(grace_s)
        if not in_time:
            ending.abandoned = True
            self._listening.waker.wake()
            ending.over.wait()
        self._reader.join(max(0.0, until_s - time.monotonic()))
        return in_time

    # ---- any thread

    def renew(self) -> None:
        """Makes the server answer each watching call (health's Watch) once more. Never blocks. Thread-safe."""
        self._connections.renewed = True
        self._listening.waker.wake()

    def _ask(self, connection: ServedConnection[Request]) -> None:
        """Makes the reading thread call ``_attend`` for a connection soon. Never blocks. Thread-safe."""
        self._attention.append(connection)
        self._listening.waker.wake()

    # ---- the reading thread

    def _run(self) -> None:
        """Main function of the reading thread. Ends when the drain has closed all connections, or after the grace."""
        connections, ending, queue, low_priority = self._connections, self._ending, self._queue, self._low_priority
        batch, turns, waiting_turns = queue.batch, queue.turns, queue.turns.queue
        shares_commits = queue.flush is not None
        poll = polling_behind(self._listening.epoll.poll) if shares_commits else self._listening.epoll.poll
        while not (ending.abandoned or (ending.draining and not connections.by_fd)):
            events = poll(self._timeout_s(), _EVENTS_MAX)
            now_ns = time.monotonic_ns()
            self._turn_to(events, now_ns)
            if len(batch) > 1 and not turns.behind:  # adds the next requests of clients that have just got replies
                self._turn_to(poll(0, _EVENTS_MAX), time.monotonic_ns())
            if waiting_turns:
                now_ns = time.monotonic_ns()  # again, since reading took some time
            while self._attention:
                self._attend(self._attention.popleft(), now_ns)
            if connections.renewed or now_ns >= connections.next_sweep_ns:
                connections.sweep(now_ns, self._look_after)
            if connections.lingering.half_closed:
                connections.lingering.look(now_ns)
            if ending.asked and not ending.draining:
                self._drain(now_ns)
            if batch or waiting_turns:
                queue.dispatch(now_ns)
            if low_priority.queue:
                low_priority.serve(bool(events) or queue.executor.under_way > 0)
                if batch:
                    queue.dispatch(time.monotonic_ns())

    def _turn_to(self, events: list[tuple[int, int]], now_ns: int) -> None:
        """Handles events of epoll: reads connections, accepts connections, and clears a wake-up."""
        connections, queue, low_priority = self._connections.by_fd, self._queue, self._low_priority
        reading_ns, accepts, waiting_turns = now_ns, False, queue.turns.queue
        for fd, event in events:
            connection = connections.get(fd)
            if event == _IN and connection is not None and connection.stream.state is READING:  # nearly always
                if self._ending.draining:
                    self._read_last(connection, now_ns)
                elif connection.first_ns or connection.few or connection.refused_ns:
                    low_priority.join(connection, now_ns)
                else:
                    self._read(connection, now_ns)
            elif connection is not None:
                self._turn(connection, event, now_ns)
            elif fd == self._listening.fd:
                accepts = True
            elif fd == self._listening.waker.fd:  # any other descriptor was closed after its event
                self._listening.waker.woken()
            if waiting_turns and queue.keeps_up and time.monotonic_ns() - reading_ns > READING_NS:
                queue.dispatch(time.monotonic_ns())  # the executor keeps up, and requests wait
                reading_ns = time.monotonic_ns()
        if accepts:  # after all events: a new connection may get the number of a descriptor that was just closed
            self._accept(ACCEPTS_A_TURN, now_ns)

    def _end(self) -> None:
        """Closes all connections and the listening socket, after the reading has ended."""
        try:
            for connection in list(self._connections.by_fd.values()):
                self._connections.close(connection)
            self._listening.end()
        finally:
            self._ending.over.set()

    def _timeout_s(self) -> float | None:
        """Returns the longest sleep in epoll in seconds; None for no limit; 0 if work waits for this thread."""
        turns, low_priority = self._queue.turns, self._low_priority
        if self._attention or self._connections.renewed or (self._ending.asked and not self._ending.draining):
            return 0.0
        if turns.queue:
            pause_s = turns.ahead.pause_s(self._queue.executor.under_way)
            return min(pause_s, PAUSE_S) if low_priority.queue else pause_s
        if low_priority.queue:
            return PAUSE_S if self._queue.executor.under_way else 0.0
        if self._connections.lingering.half_closed:
            return max(0.0, (self._connections.lingering.next_look_ns - time.monotonic_ns()) / 1e9)
        return self._connections.sweep_s if self._connections.by_fd or not self._listening.accepting else None

    def _turn(self, connection: ServedConnection[Request], event: int, now_ns: int) -> None:
        """Handles an event of a connection: a reset, received bytes, or free space in the send buffer."""
        state = connection.stream.state
        if connection.events < 0:  # the connection was cut after this event
            return
        if event & select.EPOLLERR or (event & select.EPOLLHUP and state is not LEAVING):
            self._connections.cut(connection)
        elif event & select.EPOLLHUP:  # both ends are closed: few bytes are left to drop
            self._connections.lingering.drop(connection, now_ns)
        elif event & select.EPOLLIN:
            if state is READING:
                (self._read_last if self._ending.draining else self._read)(connection, now_ns)
            elif not connection.stream.reads_on:
                self._leave_unread(connection, now_ns)
            else:
                self._read(connection, now_ns)
        if event & select.EPOLLOUT and connection.stream.state is not CLOSED:
            connection.flush()
            self._attend(connection, now_ns)

    def _leave_unread(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Notes the arrival of bytes on a connection that the server does not read now. Then epoll no longer reports
        these bytes. If the connection is LEAVING, drops the bytes, now or at low priority.
        """
        if connection.stream.state is LEAVING:
            if self._ending.draining:
                self._connections.lingering.drop(connection, now_ns)
            else:
                self._low_priority.join(connection, now_ns)
            return
        connection.first_ns = connection.first_ns or now_ns
        connection.events &= ~select.EPOLLIN
        self._listening.epoll.modify(connection.fd, connection.events)

    def _read_late(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads a connection once at low priority. If the connection is LEAVING, drops its bytes."""
        if connection.stream.state is LEAVING:
            self._connections.lingering.drop(connection, now_ns)
        else:
            self._read(connection, now_ns)

    def _read(self, connection: ServedConnection[Request], now_ns: int) -> bool:
        """Reads a connection once. Then adds a request to the batch, or looks after the connection. Returns False if
        nothing came, and True after bytes, the client's end or an error.
        """
        turns = self._queue.turns
        if connection.refused_ns and now_ns - connection.refused_ns > REFUSED_NS:
            connection.refused_ns = 0
        read_bytes = connection.few or turns.read_bytes
        try:
            data = connection.bytes.receive(read_bytes)
        except BlockingIOError:
            connection.first_ns = 0
            if connection.bytes.unsent:
                self._look_after(connection, now_ns)
            if connection.stream.state is not CLOSED:
                self._connections.buffered.note(connection)  # TLS holds bytes of a handshake, or of half a record
            return False
        except OSError:
            self._connections.cut(connection)
            return True
        if not data:
            by_client = not self._ending.draining or connection.stream.state is not READING
            connection.end(by_client)
            self._look_after(connection, now_ns)
        else:
            reads_clock = self._options.timeline is not None
            if reads_clock:
                now_ns = time.monotonic_ns()  # the time of this read, not of the first read after the poll
            arrived_ns = connection.first_ns or now_ns  # the bytes may have waited unread
            connection.first_ns = arrived_ns if len(data) == read_bytes else 0  # after a full read, more bytes may wait
            request = connection.take(data, now_ns, arrived_ns)
            if request is not None:
                arrived_ns = now_ns if reads_clock else arrived_ns
                self._queue.batch.append(partial(self._serve, connection, request, arrived_ns))
            else:
                if arrived_ns != now_ns:
                    turns.read_late(connection, now_ns)
                self._look_after(connection, now_ns)
                if connection.first_ns and connection.stream.state is READING and not self._ending.draining:
                    self._low_priority.join(connection, now_ns)
        if (connection.holds or connection.bytes.barren) and connection.stream.state is not CLOSED:
            self._connections.buffered.note(connection)
        return True

    def _attend(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Looks after a connection that has changed. During the drain, also reads the bytes that have arrived."""
        self._look_after(connection, now_ns)
        if self._ending.draining and connection.stream.state is not CLOSED:  # CLOSED: a late ``_ask``
            self._read_last(connection, now_ns)

    def _read_last(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads the bytes that had arrived when the drain began, until the connection has ``pipeline_max`` requests.
        After the last of these bytes, ends the stream.
        """
        while connection.stream.state is READING and self._read(connection, now_ns):
            pass
        if connection.stream.state is LEAVING:
            self._connections.lingering.drop(connection, now_ns)  # only once, since the client may send for ever
        self._look_after(connection, now_ns)

    def _look_after(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Takes the next steps of a connection. Dispatches the requests that ``pipeline_max`` allows. Sends the
        connection's last bytes, or closes the connection, or sets the events that epoll watches.
        """
        stream = connection.stream
        if stream.state is CLOSED:
            return
        queue, turns = self._queue, self._queue.turns
        if turns.queue:
            turns.shed(connection, now_ns)
        for request, arrived_ns in (*stream.release(turns.share), *connection.ready(now_ns)):
            queue.batch.append(partial(self._serve, connection, request, arrived_ns))
        if not stream.queued and stream.releasable():  # before the check for the end: ``join`` may refuse requests
            turns.join(connection, max(0, queue.executor.limit - queue.executor.under_way - len(queue.batch)), now_ns)
        if words := stream.words():
            connection.reply(words)
        if stream.done:
            self._connections.close(connection)
            return
        if stream.finished:
            self._connections.lingering.begin(connection, now_ns)
        stream.settle(now_ns)  # after ``join``, which may have refused waiting requests
        if connection.holds or stream.unsent or stream.held_bytes():
            self._connections.buffered.note(connection)
        reads = stream.state is READING or stream.state is LEAVING or stream.reads_on
        events = connection.watched(reads)
        if stream.unsent or connection.bytes.unsent:
            events |= select.EPOLLOUT
        if events != connection.events and connection.events >= 0:
            connection.events = events
            self._listening.epoll.modify(connection.fd, events)

    def _accept(self, count: int, now_ns: int) -> None:
        """Accepts up to ``count`` connections of the listen backlog. Refuses a connection over the limit."""
        for accepted, peer in self._listening.accepted(count):
            if self._connections.room(now_ns):
                accepted.setblocking(False)
                self._connections.add(self._opened(accepted, peer, now_ns))
            else:
                detail = f"{self._options.connections_max} connections are open, the limit"
                refuse_connection(accepted, self._protocol.farewell(FaultCode.RESOURCE_EXHAUSTED, detail))

    def _drain(self, now_ns: int) -> None:
        """Begins the drain: accepts the connections of the listen backlog, closes the listening socket, and reads the
        requests that have arrived. Closes idle connections.
        """
        self._accept(BACKLOG + 1, now_ns)
        self._ending.draining = True
        self._low_priority.clear()
        self._listening.close()
        for connection in list(self._connections.by_fd.values()):
            state = connection.stream.state
            if state is CLOSED or (connection.retired and state is ENDING):
                continue  # closed by this loop, to free bytes; or old and ending: all later bytes are read
            arrived, speaks = connection.bytes.keep_to_arrived(), connection.speaks
            if arrived or speaks or not connection.stream.idle or connection.bytes.unacknowledged():
                self._read_last(connection, now_ns)
            else:
                self._connections.lingering.dismiss(connection)


def _serving(
    methods: Methods,
    protocol: WireProtocol[Request],
    ask: Callable[[ServedConnection[Request]], None],
    timeline: Timeline | None,
) -> Serve[Request]:
    """Makes the function that answers one request and sends the reply, as a task of the executor. If the server has a
    timeline, a request keeps its thread while it waits for the disk, since this thread records the request's times.
    """
    if timeline is not None:
        return task(stamping(timeline, methods, protocol), ask, timeline.end)
    serve = task(protocol.answer, ask)
    return serve if methods.flush is None else serving_again(serve)


def _carrier(options: ServeOptions) -> Callable[[socket.socket, Address], ByteStream]:
    """Returns the function that makes the byte stream of a connection: with TLS if ``options`` have TLS."""
    if options.tls is None:
        return PlainStream
    from stock_service.rpc.server_core.tls import tls_streams  # imported only by a server with TLS

    return tls_streams(options.tls)


def _opening(
    protocol: WireProtocol[Request],
    carrier: Callable[[socket.socket, Address], ByteStream],
    sessions: Callable[[], Session[Request]] | None,
    pipeline_max: int,
) -> Callable[[socket.socket, Address, int], ServedConnection[Request]]:
    """Returns the function that makes a ``ServedConnection`` of an accepted socket."""

    def opened(accepted: socket.socket, peer: Address, now_ns: int) -> ServedConnection[Request]:
        session = None if sessions is None else sessions()
        stream = ServedStream(session or protocol.decoder(), protocol.objection, pipeline_max, now_ns, session)
        return ServedConnection(carrier(accepted, peer), stream, session)

    return opened
