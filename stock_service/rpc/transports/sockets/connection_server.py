"""The socket server with connection dispatch: a connection is one task of the executor, and has a thread until the
connection closes.

One thread accepts connections, and gives each connection to the executor. The connection's thread reads a request,
answers the request, sends the reply, and then reads the next request. So the replies to pipelined requests come in the
order of the requests. If there are more connections than threads, some connections wait unanswered in the executor's
queue until another connection closes. This wait is a property of the dispatch model, and is the reason to measure the
model.

A request's ``timeout_ms`` counts from the time when the thread last found no bytes to read on the connection. If the
connection had to wait for a thread, ``timeout_ms`` counts from the arrival of the connection's last bytes. If a
request's time limit is over, no handler begins the request. Connection dispatch has no delay target and no turns
(``server_core/queue.py``). While a connection waits for a thread, the server sends nothing to its client. If the queue
is full, the server refuses a new connection at once.

Reads and writes block in the kernel, with the kernel's timeouts (SO_RCVTIMEO, SO_SNDTIMEO). So waiting takes no
processor time.
"""

import select
import socket
import time
from collections.abc import Sequence
from functools import partial
from threading import Condition, Event, Thread
from typing import Generic

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.server_core.closing import LINGER_S, LOOK_S, Lingering
from stock_service.rpc.server_core.connection import DROP_BYTES, arrived_bytes, last_arrival_ns, unacknowledged_bytes
from stock_service.rpc.server_core.listening import BACKLOG, READ_BYTES, Listening, refuse_connection
from stock_service.rpc.server_core.protocol import Answering, Methods, Request, WireProtocol, stamping
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.served_stream import RequestDecoder
from stock_service.rpc.wire.timeval import timeval

_TCP_ESTABLISHED, _TCP_FIN_WAIT1, _TCP_FIN_WAIT2 = 1, 4, 5
"""States of a connection whose peer has not ended its sending (Linux: include/net/tcp_states.h)."""

_UNREAD_LOOK_NS = 1_000_000
"""Shortest time, in nanoseconds, between two looks. At a look the thread asks the kernel for unread bytes. So the
precision of a request's arrival time is 1 ms, the unit of ``timeout_ms``.
"""

_RECEIVE_BYTES = 262144
"""Size of the kernel's receive buffer, in bytes; see ``listening.RECEIVE_BYTES``. While a thread waits until its client
reads replies, the thread reads no requests. A client that sends many requests before it reads replies needs a large
buffer.
"""

_READS_LATE_BYTES = 4096
"""Number of unacknowledged bytes. If the number is larger, the client counts as late in reading. Otherwise the kernel's
send buffer has room for a goodbye.
"""

_ACCEPT_PAUSE_S = 0.1
"""Pause in seconds. If the process has no free descriptor, the server tries to accept again after this pause."""


class ConnectionServer(Generic[Request]):
    """Implementation of ``transports.Server`` with connection dispatch; see the module."""

    def __init__(
        self,
        methods: Methods,
        protocol: WireProtocol[Request],
        executor: Executor,
        options: ServeOptions,
        read_timeout_s: float,
    ) -> None:
        self._frames = protocol
        self._answer: Answering[Request] = protocol.answer
        if options.timeline is not None:
            self._answer = stamping(options.timeline, methods, protocol)
        self._executor = executor
        self._options = options
        self._read_timeout_s = read_timeout_s
        self._listening = Listening(options, select.epoll, _RECEIVE_BYTES)
        self.address: Address = self._listening.address
        self._changed = Condition()  # guards _open, and the close of each socket in _open; notified at each removal
        self._open: set[socket.socket] = set()
        self._stopping = Event()
        self._abandoned = Event()
        self._leave_by_ns = 0  # when stopping: time limit for clients that have all their replies, and do not close
        self._thread = Thread(target=self._accept, name="sockets-acceptor")
        self._thread.start()

    def stop(self, grace_s: float) -> bool:
        """Stops the server, as ``transports.Server.stop`` describes."""
        deadline_s = time.monotonic() + grace_s
        self._leave_by_ns = self._leave_by_ns or time.monotonic_ns() + int(min(grace_s / 2, LINGER_S) * 1e9)
        if not self._stopping.is_set():
            self._stopping.set()
            self._listening.waker.wake()
            self._thread.join()
        with self._changed:
            self._shut(socket.SHUT_RD)  # each thread reads the bytes that have arrived, and then the end of the stream
            while self._open and (left_s := deadline_s - time.monotonic()) > 0:
                self._changed.wait(left_s)
            in_time = not self._open
            self._abandoned.set()
            self._shut(socket.SHUT_RDWR)
        return in_time

    def _shut(self, how: int) -> None:
        """Shuts down every open connection. The caller must hold ``_changed``: while the caller holds this lock, no
        thread closes a connection.
        """
        for connection in self._open:
            try:
                connection.shutdown(how)
            except OSError:
                pass  # the client has closed the connection already

    def _accept(self) -> None:
        """Main function of the accepting thread. At a stop, accepts the connections in the listen backlog before the
        end.
        """
        listening = self._listening
        while True:
            listening.epoll.poll(None if listening.accepting else _ACCEPT_PAUSE_S)
            listening.accept(True)
            stopping = self._stopping.is_set()
            for accepted, peer in listening.accepted(BACKLOG):
                self._admit(accepted, peer)
            if stopping:
                listening.end()
                return

    def _admit(self, accepted: socket.socket, peer: Address) -> None:
        """Gives a connection to the executor. Refuses the connection if the executor or the server is full."""
        limit = self._options.connections_max
        with self._changed:
            full = len(self._open) >= limit
            if not full:
                self._open.add(accepted)
        if full:
            detail = f"{limit} connections are open, the limit"
            refuse_connection(accepted, self._frames.farewell(FaultCode.RESOURCE_EXHAUSTED, detail))
            return
        try:
            self._executor.execute(partial(self._serve, accepted, peer))
        except Fault as fault:
            with self._changed:
                self._open.discard(accepted)
                refuse_connection(accepted, self._frames.farewell(fault.code, fault.detail))

    def _serve(self, connection: socket.socket, peer: Address) -> None:
        """Task of a connection: serves the connection until its end, and closes the connection."""
        try:
            unread = _Unread(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval(self._read_timeout_s))
            if self._answer_all(connection, peer, self._frames.decoder(), unread):
                self._leave(connection)
        except OSError:
            pass  # the client has gone, or took no bytes within read_timeout_s: no fault can reach it
        finally:
            with self._changed:
                self._open.discard(connection)
                connection.close()
                self._changed.notify_all()

    def _answer_all(
        self, connection: socket.socket, peer: Address, decoder: RequestDecoder[Request], unread: "_Unread"
    ) -> bool:
        """Reads requests, answers them and sends the replies. Raises OSError.

        Returns when the client ends its sending, breaks the protocol or exceeds a time limit, or when the server stops.
        Returns True if the client may still send, or has not yet received all replies.
        """
        send, timeline, answer, farewell = (
            connection.sendall,
            self._options.timeline,
            self._answer,
            self._frames.farewell,
        )
        _set_read_timeout(connection, self._options.idle_timeout_s)
        late = f"a request was not whole within {self._read_timeout_s:g} s"
        left = -1  # when stopping: number of bytes that had arrived at the stop, and are not read yet
        partial_since_s = 0.0  # time since which a request is unfinished; 0 without an unfinished request
        while True:
            try:
                data = connection.recv(READ_BYTES)
            except BlockingIOError:  # EAGAIN, by which the kernel reports a timeout
                if partial_since_s:
                    connection.sendall(farewell(FaultCode.DEADLINE_EXCEEDED, late))
                else:
                    self._say_goodbye(connection)
                return bool(partial_since_s)
            if not data:
                if self._stopping.is_set():
                    self._say_goodbye(connection)
                return self._stopping.is_set() and unacknowledged_bytes(connection) > 0
            arrived_ns = unread.read(len(data) < READ_BYTES)
            fault = ""
            try:
                frames: Sequence[Request] = decoder.feed(data)
            except FramingError as error:
                frames, fault = error.frames, str(error)
            for frame in frames:
                reply = answer(frame, arrived_ns, peer)
                unread.look()  # before the client gets the reply, and sends the next request
                send(reply)
                if timeline is not None:
                    timeline.end()
            if fault:
                connection.sendall(farewell(FaultCode.INVALID_ARGUMENT, fault))
                return True
            if self._stopping.is_set():
                left = arrived_bytes(connection) if left < 0 else left - len(data)
                if left <= 0:
                    self._say_goodbye(connection)
                    return True
            if decoder.pending_bytes:
                now_s = time.monotonic()
                if frames or not partial_since_s:
                    partial_since_s = now_s
                left_s = partial_since_s + self._read_timeout_s - now_s
                if left_s <= 0:
                    connection.sendall(farewell(FaultCode.DEADLINE_EXCEEDED, late))
                    return True
                _set_read_timeout(connection, left_s)
            elif partial_since_s:
                partial_since_s = 0.0
                _set_read_timeout(connection, self._options.idle_timeout_s)

    def _say_goodbye(self, connection: socket.socket) -> None:
        """Sends a goodbye. The goodbye tells the client that the server does not begin the unanswered requests. Raises
        OSError.

        If the client is late in reading, and sending could block, sends nothing.
        """
        if unacknowledged_bytes(connection) <= _READS_LATE_BYTES:
            connection.sendall(self._frames.goodbye())

    def _leave(self, connection: socket.socket) -> None:
        """Half-closes the connection, and drops the client's bytes until the connection may be closed (``closing.py``).
        Raises OSError.

        At a server's stop the connection is not half-closed. The reason: ``stop`` has already shut the connection for
        reading, and Linux resets a connection that is shut in both directions when the next byte comes.
        """
        connection.setblocking(False)
        if not self._stopping.is_set():
            connection.shutdown(socket.SHUT_WR)
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        lingering = Lingering(now_ns := time.monotonic_ns(), now_ns)
        while not self._abandoned.is_set():
            ready = bool(poll.poll(LOOK_S * 1000))
            now_ns = time.monotonic_ns()
            if ready:
                try:
                    more = connection.recv(DROP_BYTES)
                except BlockingIOError:
                    more = b""
                if more:
                    lingering.heard_ns = now_ns
                elif not self._stopping.is_set() or _has_ended(connection):
                    return
                else:
                    self._abandoned.wait(LOOK_S)  # poll does not sleep, since the connection is shut for reading
            late = self._stopping.is_set() and now_ns > self._leave_by_ns
            given_up = not self._stopping.is_set() and now_ns - lingering.since_ns > self._read_timeout_s * 1e9
            if given_up or ((late or lingering.may_end(now_ns)) and not unacknowledged_bytes(connection)):
                return


class _Unread:
    """Earliest time at which the unread bytes of a connection may have arrived, on ``time.monotonic_ns``. Only the
    connection's thread uses the object.
    """

    def __init__(self, connection: socket.socket) -> None:
        """``connection`` may have waited for a thread, and may have unread bytes. Raises OSError if the client has
        left.
        """
        self._connection = connection
        self._waits = arrived_bytes(connection) > 0
        self._empty_ns = last_arrival_ns(connection) if self._waits else time.monotonic_ns()

    def look(self) -> None:
        """Asks the kernel whether there are unread bytes, at most once in ``_UNREAD_LOOK_NS``. Call this after each
        request, before the reply is sent.
        """
        if not self._waits and (now_ns := time.monotonic_ns()) - self._empty_ns > _UNREAD_LOOK_NS:
            if arrived_bytes(self._connection):
                self._waits = True
            else:
                self._empty_ns = now_ns

    def read(self, whole: bool) -> int:
        """Notes a read. Returns the earliest time at which the read bytes may have arrived. ``whole`` is True if the
        read left no bytes unread.
        """
        now_ns = time.monotonic_ns()
        arrived_ns = self._empty_ns if self._waits else now_ns
        self._empty_ns, self._waits = (now_ns, False) if whole else (arrived_ns, True)
        return arrived_ns


def _has_ended(connection: socket.socket) -> bool:
    """Returns True if the client has ended its sending. This function is for a connection that is shut for reading,
    where ``recv`` cannot show the client's end.
    """
    state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state not in (_TCP_ESTABLISHED, _TCP_FIN_WAIT1, _TCP_FIN_WAIT2)


def _set_read_timeout(connection: socket.socket, timeout_s: float) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval(timeout_s))
