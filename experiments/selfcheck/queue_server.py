"""A queueing server with known service times: a seed gives the service time of every request.

    python -m experiments.selfcheck.queue_server --servers 4 --mean-s 0.002 --seed 1 --log FILE

The process has one thread, which speaks the sockets protocol. The servers of the queue are simulated, so no handler
runs. When the thread reads a request, the thread computes the request's departure: ``max(arrival, time when a server is
free) + S_k``. The arrival is the moment when the request's bytes were read. ``S_k`` is the k-th value of
``service_times_ns``. The reply is sent when the clock reaches the departure. The thread wakes some time before the
departure, so an imprecise sleep does no harm.

With ``--queues`` the process has several queues, each with ``--servers`` servers. A seeded random number chooses the
queue of each request. If a Poisson process is divided at random, the parts are independent Poisson processes. So one
run measures several independent queues.

The log is written at the end, with six numbers for every request (``Log``), in order of arrival. With ``--spin`` the
thread never sleeps, and should have a core of its own. Otherwise the thread sleeps until shortly before a departure.
With ``--real-time`` no program with normal priority delays the thread when it wakes (``clients/load/run/priority.py``).

Left out: stalls, since the check ``stalls`` stops a server with signals; limits on connections and queues, since only
the checks load this server. If the log would have over ``LOG_MAX`` requests, the process ends with an error.
"""

import gc
import heapq
import random
import select
import signal
import socket
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clients.load.run.priority import take_real_time
from stock_service.rpc.process.command_line import Parser, integer, seconds
from stock_service.rpc.wire.framing import FrameDecoder, FramingError, RequestFrame, encode_reply, request_decoder
from stock_service.trading.model import Status
from stock_service.v1 import stock_pb2

PROGRAM = "python -m experiments.selfcheck.queue_server"

READ_BYTES = 65536

SPIN_NS = 150_000
"""Time in nanoseconds before each departure. The server does not sleep in this time, since a sleep may end 0.1 ms late.
"""

GRACE_S = 5.0
"""Longest time in seconds for which the server waits, after SIGTERM, for the remaining departures."""

LOG_MAX = 1 << 22
"""Largest number of requests in a log. Such a log has 200 MB."""

_COLUMNS = 6

_AT_A_TIME = 4096

_REPLY = stock_pb2.LookupResponse(status=stock_pb2.Status.ValueType(Status.OK), price_cents=1).SerializeToString()


def service_times_ns(mean_s: float, seed: int) -> Iterator[int]:
    """Yields service times without end, in order of arrival: exponentially distributed, in whole nanoseconds."""
    rng = np.random.default_rng(seed)
    while True:
        yield from np.rint(rng.exponential(mean_s * 1e9, _AT_A_TIME)).astype(np.int64).tolist()


@dataclass(frozen=True, slots=True)
class Log:
    """Log of a queue server: columns with a value for every request, in order of arrival.

    Times are readings of ``time.perf_counter_ns``.
    """

    connection: NDArray[np.int64]
    """Number of the connection, from 0, in the order of acceptance."""
    call: NDArray[np.int64]
    """Number by which the client identifies the request."""
    queue: NDArray[np.int64]
    arrival_ns: NDArray[np.int64]
    departure_ns: NDArray[np.int64]
    """Time at which the reply was due."""
    sent_ns: NDArray[np.int64]
    """Time at which the reply was sent."""


def read_log(file: Path) -> Log:
    """Reads the log of a server. Raises OSError or ValueError."""
    table = np.fromfile(file, dtype=np.int64).reshape(-1, _COLUMNS)
    return Log(*(np.ascontiguousarray(column) for column in table.T))


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line. The help of the program explains each option."""

    servers: int = 1
    queues: int = 1
    mean_s: float = 0.002
    seed: int = 1
    spin: bool = False
    real_time: bool = False
    log: Path | None = None


@dataclass(slots=True)
class Client:
    """One connection of a client, with the bytes that were read and are not used yet."""

    number: int
    socket: socket.socket
    decoder: FrameDecoder[RequestFrame] = field(default_factory=request_decoder)


class QueueServer:
    """Queue server, which listens as soon as the object exists. Not thread-safe: one thread calls ``serve``, and only
    once."""

    def __init__(self, options: Options) -> None:
        """Listens on a free port of loopback. Raises OSError."""
        self._options = options
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        self._stopping, self._stop = socket.socketpair()
        self._stop.setblocking(False)
        self._epoll = select.epoll()
        for watched in (self._listener, self._stopping):
            self._epoll.register(watched.fileno(), select.EPOLLIN)
        self._clients: dict[int, Client] = {}
        self._accepted = 0
        self._services = service_times_ns(options.mean_s, options.seed)
        self._coin = random.Random(f"{options.seed}/queue")
        # for each queue, a heap of the times when the queue's servers are free
        self._free_ns = [[0] * options.servers for _ in range(options.queues)]
        self._to_come: list[tuple[int, int, Client, bytes]] = []  # a heap: departure, request's number, client, reply
        self._log = array("q")
        self._number = 0

    @property
    def port(self) -> int:
        """Port on which the server listens."""
        return int(self._listener.getsockname()[1])

    @property
    def stop_descriptor(self) -> int:
        """Descriptor whose first written byte ends ``serve``. A signal handler or any thread may write the byte."""
        return self._stop.fileno()

    def serve(self) -> None:
        """Serves until a byte was written into ``stop_descriptor``. Then sends the remaining replies, and writes the
        log. Blocks. Raises OSError."""
        clock_ns, to_come, clients = time.perf_counter_ns, self._to_come, self._clients
        listener, stopping = self._listener.fileno(), self._stopping.fileno()
        until_ns = 0
        while True:
            while to_come and to_come[0][0] <= clock_ns():
                self._depart()
            if until_ns and (not to_come or clock_ns() >= until_ns):
                break
            for descriptor, _ in self._events():
                client = clients.get(descriptor)
                if client is not None:
                    self._read(client)
                elif descriptor == listener:
                    self._accept()
                elif descriptor == stopping:
                    self._epoll.unregister(stopping)
                    until_ns = clock_ns() + int(GRACE_S * 1e9)
        if self._options.log is not None:
            with self._options.log.open("wb") as file:
                self._log.tofile(file)

    def close(self) -> None:
        """Closes all sockets. May be called again."""
        for client in list(self._clients.values()):
            self._drop(client)
        for closing in (self._listener, self._stopping, self._stop, self._epoll):
            closing.close()

    def _events(self) -> list[tuple[int, int]]:
        """Events of the sockets. Without ``--spin``, waits for an event, but at most until shortly before the next
        departure."""
        if not self._options.spin:
            if not self._to_come:
                return self._epoll.poll()
            left_ns = self._to_come[0][0] - time.perf_counter_ns() - SPIN_NS
            if left_ns > 0:
                select.select([self._epoll], [], [], left_ns / 1e9)  # epoll's own timeout is in whole milliseconds
        return self._epoll.poll(0)

    def _read(self, client: Client) -> None:
        """Reads the bytes that have arrived, and computes the departure of each request in them."""
        try:
            data = client.socket.recv(READ_BYTES)
            arrival_ns = time.perf_counter_ns()
            requests = client.decoder.feed(data) if data else []
        except BlockingIOError:
            return
        except (OSError, FramingError):
            data = b""
        if not data:
            self._drop(client)
            return
        for request in requests:
            queue = int(self._coin.random() * self._options.queues)
            free_ns = self._free_ns[queue]
            departure_ns = max(arrival_ns, free_ns[0]) + next(self._services)
            heapq.heapreplace(free_ns, departure_ns)
            heapq.heappush(self._to_come, (departure_ns, self._number, client, encode_reply(request.call, 0, _REPLY)))
            self._number += 1
            if self._options.log is not None:
                if self._number > LOG_MAX:
                    raise OSError(f"over {LOG_MAX} requests, the most that a log holds")
                self._log.extend((client.number, request.call, queue, arrival_ns, departure_ns, 0))

    def _depart(self) -> None:
        """Sends the reply whose departure is the earliest."""
        _, number, client, reply = heapq.heappop(self._to_come)
        if self._log:  # before the send: this thread may lose its core in the send, after the client has the reply
            self._log[number * _COLUMNS + _COLUMNS - 1] = time.perf_counter_ns()
        if client.socket.fileno() >= 0:
            try:
                client.socket.send(reply)
            except OSError:  # the client has closed its connection, or does not read
                self._drop(client)

    def _accept(self) -> None:
        """Accepts the next pending connection, if the connection is still there."""
        with suppress(BlockingIOError):
            accepted, _ = self._listener.accept()
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setblocking(False)
            self._clients[accepted.fileno()] = Client(self._accepted, accepted)
            self._accepted += 1
            self._epoll.register(accepted.fileno(), select.EPOLLIN)

    def _drop(self, client: Client) -> None:
        """Closes a connection. May be called again."""
        if client.socket.fileno() >= 0:
            del self._clients[client.socket.fileno()]
            client.socket.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code. Blocks."""
    parser = Parser(PROGRAM, "Answers Lookups after service times that are known beforehand.")
    add = parser.add_argument
    add("--servers", type=integer(1, 64), default=1, help="servers of each queue")
    add("--queues", type=integer(1, 256), default=1, help="number of queues; a seeded random choice for each request")
    add("--mean-s", type=seconds(0, 10), default=0.002, help="mean service time, in seconds")
    add("--seed", type=integer(0, 2**31 - 1), default=1, help="seed of the service times and of the chosen queues")
    waiting = (
        parser.add_mutually_exclusive_group()
    )  # with both options the thread would never leave its core to another program
    waiting.add_argument("--spin", action="store_true", help="never sleep, and keep a core busy")
    waiting.add_argument("--real-time", action="store_true", help="run before all programs of normal priority")
    add("--log", type=Path, metavar="FILE", help="file for the times of all requests, written at the end")
    options = Options(**vars(parser.parse_args(arguments)))
    if options.real_time:
        take_real_time()
    server = QueueServer(options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the interpreter's byte on the wakeup descriptor ends ``serve``
    signal.set_wakeup_fd(server.stop_descriptor)
    gc.disable()  # a collection would delay departures, and this program makes no cycles
    print(f"ready 127.0.0.1:{server.port}", flush=True)
    try:
        server.serve()
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
