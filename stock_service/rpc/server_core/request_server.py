"""The server that dispatches requests: one thread reads every connection, each request is a task.

The reading thread sleeps in epoll, has the protocol cut what arrives into requests and gives each to the executor; the
thread that ran a request sends its reply itself. Replies to pipelined requests leave in the order in which they are
ready; with a ``pipeline_max`` of 1, in the order of their requests.

Who may touch what: only the reading thread accepts, reads, registers and closes, so that no descriptor can be closed,
and its number reused, under another thread's hands. A worker only sends, under the connection's lock. It asks the
reading thread where more is to be done: the client does not take its replies, or the connection can now be read on or
closed. What is to be done is decided in ``wire/served_stream.py``.
"""

import errno
import logging
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock, Thread
from typing import Generic

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.server_core.answering import Methods, stamping
from stock_service.rpc.server_core.byte_stream import PlainStream
from stock_service.rpc.server_core.leaving import LINGER_S, LOOK_S, Leaving
from stock_service.rpc.server_core.listening import READ_BYTES, listen, refuse_connection
from stock_service.rpc.server_core.options import Address, ServeOptions
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.server_core.served_connection import ServedConnection
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.wire.served_stream import CLOSED, LEAVING, READING, Overdue, ServedStream

_log = logging.getLogger(__name__)

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
        read_s: float,
    ) -> None:
        """``read_s``: a request that has begun to arrive must be whole, and a reply be taken, within this."""
        self._protocol = protocol
        self._answer = protocol.answer
        self._executor = executor
        self._task: Callable[[ServedConnection[Request], Request, int], None] = self._serve
        self._take: Callable[[ServedConnection[Request], bytes, int], None] = self._cut
        if options.timeline is not None:
            self._task, self._take = self._stamped_task(options.timeline, methods), self._cut_now
        self._batch: list[partial[None]] = []
        self._options = options
        self._read_s = read_s
        self._sweep_s = max(0.05, min(options.idle_s, read_s) / 4)
        self._next_sweep_ns = 0
        self._listener = listen(options)
        self._listener.setblocking(False)
        host, port = self._listener.getsockname()[:2]
        self.address: Address = (host, port)
        self._listener_fd = self._listener.fileno()
        self._accepting = True
        self._wake_lock = Lock()  # guards _wake_fd
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._listener_fd, select.EPOLLIN)
        self._epoll.register(self._wake_fd, select.EPOLLIN)
        self._connections: dict[int, ServedConnection[Request]] = {}
        self._attention: deque[ServedConnection[Request]] = deque()  # appended to by any thread
        self._leaving: dict[ServedConnection[Request], Leaving] = {}
        self._leave_by_ns = 0  # when stopping: who has everything is waited for no longer
        self._stopping = False
        self._draining = False
        self._abandon = False
        self._thread = Thread(target=self._run, name="server-reader")
        self._thread.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``."""
        if not self._stopping:
            self._leave_by_ns = time.monotonic_ns() + int(min(grace_s / 2, LINGER_S) * 1e9)
        self._stopping = True
        self._wake()
        self._thread.join(grace_s)
        in_time = not self._thread.is_alive()
        if not in_time:
            self._abandon = True
            self._wake()
            self._thread.join()
        with self._wake_lock:
            if self._wake_fd >= 0:
                os.close(self._wake_fd)
                self._wake_fd = -1
        return in_time

    # ---- any thread

    def _serve(self, connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        """One task: answers a request and sends the reply."""
        if connection.reply(self._answer(request, arrived_ns, connection.peer)):
            self._attention.append(connection)
            self._wake()

    def _stamped_task(
        self, timeline: Timeline, methods: Methods
    ) -> Callable[[ServedConnection[Request], Request, int], None]:
        """``_serve``, noting in a timeline when the request was where."""
        local, answer_stamped = timeline.local, stamping(timeline, methods, self._protocol)

        def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
            ask = connection.reply(answer_stamped(request, arrived_ns, connection.peer))
            local.stamper.end()
            if ask:
                self._attention.append(connection)
                self._wake()

        return serve

    def _wake(self) -> None:
        with self._wake_lock:
            if self._wake_fd >= 0:  # a task that was given up may end after the server has
                os.eventfd_write(self._wake_fd, 1)

    # ---- the reading thread

    def _run(self) -> None:
        try:
            while not (self._abandon or (self._draining and not self._connections)):
                events = self._epoll.poll(self._timeout_s(), _EVENTS_MAX)
                now_ns = time.monotonic_ns()
                for fd, event in events:
                    connection = self._connections.get(fd)
                    if connection is not None:
                        self._turn(connection, event, now_ns)
                    elif fd == self._listener_fd:
                        self._accept(now_ns)
                    else:
                        os.eventfd_read(self._wake_fd)
                while self._attention:
                    self._attend(self._attention.popleft(), now_ns)
                if now_ns >= self._next_sweep_ns:
                    self._sweep(now_ns)
                if self._leaving:
                    self._look_at_leaving(now_ns)
                if self._stopping and not self._draining:
                    self._drain(now_ns)
                if self._batch:
                    self._execute_batch()
        finally:
            for connection in list(self._connections.values()):
                self._close(connection)
            self._listener.close()
            self._epoll.close()

    def _timeout_s(self) -> float | None:
        """How long to sleep, if nothing happens."""
        if self._leaving:
            return LOOK_S
        return self._sweep_s if self._connections or not self._accepting else None

    def _turn(self, connection: ServedConnection[Request], event: int, now_ns: int) -> None:
        """Does what epoll says a connection is ready for."""
        if event & select.EPOLLIN:
            if self._draining:
                self._read_last(connection, now_ns)
            else:
                self._read(connection, now_ns)
        elif event & (select.EPOLLHUP | select.EPOLLERR):
            self._break(connection)
        if event & select.EPOLLOUT and connection.stream.state is not CLOSED:
            connection.flush()
            self._attend(connection, now_ns)

    def _read(self, connection: ServedConnection[Request], now_ns: int) -> bool:
        """Reads once; says whether anything came, be it the end."""
        if connection.stream.state is LEAVING:
            return self._drop(connection, now_ns)
        try:
            data = connection.bytes.receive(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            self._break(connection)
            return True
        if data:
            self._take(connection, data, now_ns)
        else:
            connection.stream.end(by_client=not self._draining)
            self._look_after(connection, now_ns)
        return True

    def _cut_now(self, connection: ServedConnection[Request], data: bytes, _: int) -> None:
        """``_cut``, with the time at which these very bytes were read, not all that were ready with them."""
        self._cut(connection, data, time.monotonic_ns())

    def _cut(self, connection: ServedConnection[Request], data: bytes, now_ns: int) -> None:
        """Dispatches the requests in what was read."""
        request = connection.stream.take(data, now_ns)
        if request is not None:
            self._batch.append(partial(self._task, connection, request, now_ns))
        else:
            self._look_after(connection, now_ns)

    def _execute_batch(self) -> None:
        """Has the executor answer what was read, and refuses what it has no room for."""
        batch, self._batch = self._batch, []
        try:
            accepted = self._executor.execute_all(batch)
            code, detail = FaultCode.RESOURCE_EXHAUSTED, "too many requests are waiting"
        except Fault as fault:
            accepted, code, detail = 0, fault.code, fault.detail
        for task in batch[accepted:]:
            connection, request, _ = task.args
            if connection.reply(self._protocol.refusal(request, code, detail)):
                self._attention.append(connection)
                self._wake()

    def _attend(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Looks after a connection about which something has changed, and while stopping reads on what has arrived."""
        self._look_after(connection, now_ns)
        if self._draining and connection.stream.state is not CLOSED:  # a late worker may ask for one that was closed
            self._read_last(connection, now_ns)

    def _read_last(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads what had arrived when the drain began, as far as the pipeline's limit lets it; then the stream ends."""
        while connection.stream.state in (READING, LEAVING) and self._read(connection, now_ns):
            pass
        self._look_after(connection, now_ns)

    def _look_after(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Dispatches what the pipeline's limit lets through, then reads on, waits to write, or closes."""
        stream = connection.stream
        if stream.state is CLOSED:
            return
        for request, arrived_ns in stream.release():
            self._batch.append(partial(self._task, connection, request, arrived_ns))
        words = stream.words()
        if words:
            connection.reply(words)
        if stream.done:
            self._close(connection)
            return
        if stream.finished:
            self._leave(connection, now_ns)
        stream.settle(now_ns)
        events = select.EPOLLIN if stream.state is READING or stream.state is LEAVING else 0
        if stream.unsent:
            events |= select.EPOLLOUT
        if events != connection.events and connection.events >= 0:
            connection.events = events
            self._epoll.modify(connection.fd, events)

    def _leave(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Half-closes a connection on which all is said, and drops what comes; see ``leaving.py``."""
        connection.stream.leave()
        self._leaving[connection] = Leaving(now_ns, now_ns)
        try:
            connection.bytes.half_close()
        except OSError:
            pass  # the client has gone, which epoll will say

    def _drop(self, connection: ServedConnection[Request], now_ns: int) -> bool:
        """Reads what nobody will answer; closes where the client has ended. Says whether there was anything."""
        try:
            more = connection.bytes.drop()
        except BlockingIOError:
            return False
        except OSError:
            more = 0  # it is gone: there is nothing to lose
        if more:
            self._leaving[connection].heard_ns = now_ns
        else:
            self._close(connection)
        return True

    def _look_at_leaving(self, now_ns: int) -> None:
        """Closes those that have everything, and have been quiet or have lingered; and those that take nothing."""
        late = self._draining and now_ns > self._leave_by_ns
        for connection, leaving in list(self._leaving.items()):
            given_up = not self._draining and now_ns - leaving.since_ns > self._read_s * 1e9
            if given_up or ((late or leaving.may_end(now_ns)) and not connection.bytes.unacknowledged()):
                self._close(connection)

    def _break(self, connection: ServedConnection[Request]) -> None:
        """A connection that the client cut: closed as soon as no worker holds it."""
        connection.stream.cut()
        if connection.stream.done:
            self._close(connection)
        elif connection.events >= 0:
            connection.events = -1
            self._epoll.unregister(connection.fd)

    def _accept(self, now_ns: int) -> None:
        """Takes every connection that waits, or turns it away."""
        while self._accepting:
            try:
                accepted, peer = self._listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    _log.warning("no room for another connection: %s; accepting again when one closes", error.strerror)
                    self._set_accepting(False)
                elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                    _log.warning("a connection could not be accepted: %s", error.strerror)
                return
            if len(self._connections) >= self._options.connections_max:
                limit = self._options.connections_max
                detail = f"{limit} connections are open, the limit"
                refuse_connection(accepted, self._protocol.farewell(FaultCode.RESOURCE_EXHAUSTED, detail))
                continue
            self._open(accepted, peer, now_ns)

    def _open(self, accepted: socket.socket, peer: Address, now_ns: int) -> None:
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = self._protocol
        stream = ServedStream(protocol.decoder(), protocol.objection, self._options.pipeline_max, now_ns)
        connection = ServedConnection(PlainStream(accepted), peer, stream)
        self._connections[connection.fd] = connection
        connection.events = select.EPOLLIN
        self._epoll.register(connection.fd, select.EPOLLIN)

    def _set_accepting(self, accepting: bool) -> None:
        if accepting != self._accepting:
            self._accepting = accepting
            self._epoll.modify(self._listener_fd, select.EPOLLIN if accepting else 0)

    def _close(self, connection: ServedConnection[Request]) -> None:
        del self._connections[connection.fd]
        self._leaving.pop(connection, None)
        if connection.events >= 0:  # closing alone would not, while a process forked just now still has it open
            self._epoll.unregister(connection.fd)
        connection.close()
        if not self._draining:
            self._set_accepting(True)

    def _sweep(self, now_ns: int) -> None:
        """Closes the connections whose time is up."""
        self._next_sweep_ns = now_ns + int(self._sweep_s * 1e9)
        idle_ns, read_ns = int(self._options.idle_s * 1e9), int(self._read_s * 1e9)
        for connection in list(self._connections.values()):
            match connection.stream.overdue(now_ns, idle_ns, read_ns):
                case Overdue.REPLY:
                    self._break(connection)
                case Overdue.REQUEST:
                    detail = f"a request was not whole within {self._read_s:g} s"
                    connection.reply(self._protocol.farewell(FaultCode.DEADLINE_EXCEEDED, detail))
                    self._look_after(connection, now_ns)
                case Overdue.IDLE:
                    self._close(connection)
        if not self._draining:
            self._set_accepting(True)

    def _drain(self, now_ns: int) -> None:
        """The last sweep: takes what clients have already sent, then closes every connection that owes no reply."""
        self._accept(now_ns)
        self._draining, self._accepting = True, False
        self._listener.close()
        for connection in list(self._connections.values()):
            if connection.bytes.keep_to_arrived() or not connection.stream.idle or connection.bytes.unacknowledged():
                self._read_last(connection, now_ns)
            else:
                self._close(connection)
