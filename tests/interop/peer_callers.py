"""Callers of the peers' servers: one for each service, and the results of a load of many callers.

A caller makes one call after another on a connection of its own and checks every reply. ``Gone`` says that the
server's end was an orderly one: it closed between two replies, and not within one.
"""

import http.client
import json
import subprocess
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import grpc
import psutil

from clients.remote_exchange import RemoteExchange
from experiments.design.setting import setting
from experiments.helloworld.greeter_pb2 import HelloRequest
from experiments.helloworld.greeter_pb2_grpc import GreeterStub
from experiments.peers import PYTHON_EPOLL, WITHOUT_GIL, client_command
from experiments.v1.sort_pb2 import MergeSortRequest, QuickSortRequest
from experiments.v1.sort_pb2_grpc import SortServiceStub
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import load
from stock_service.trading.model import Status
from stock_service.v1.stock_pb2 import (
    SIDE_BUY,
    STATUS_OK,
    LookupRequest,
    TradeRequest,
    UpdateRequest,
)
from stock_service.v1.stock_pb2_grpc import StockServiceStub
from tests.conformance.running import until
from tests.end_to_end.process import WAIT_S, Server

CALLERS = 4


class Gone(Exception):
    """The server has closed the connection between two replies."""


class Caller(Protocol):
    """Calls a server."""

    def call(self) -> None:
        """Makes a call and checks its reply. Raises Gone; AssertionError where the reply is wrong or not whole."""

    def close(self) -> None:
        """Closes the connection."""


class EntityCaller:
    """Stores an entity and reads it back, by turns."""

    def __init__(self, server: Server, number: int) -> None:
        self._connection = http.client.HTTPConnection(*server.address, timeout=WAIT_S)
        self._path, self._id, self._stored = f"/entities/{number}", number, 0

    def request(self, method: str, body: dict[str, object] | None = None) -> tuple[int, dict[str, object]]:
        """A reply's status and its body. Raises Gone."""
        try:
            sent, fields = (None, {}) if body is None else (json.dumps(body), {"Content-Type": "application/json"})
            self._connection.request(method, self._path, sent, fields)
            reply = self._connection.getresponse()
        except (ConnectionError, http.client.RemoteDisconnected) as error:
            raise Gone from error
        said = reply.read()
        assert reply.headers["Content-Type"] == "application/json", said
        return reply.status, json.loads(said)

    def call(self) -> None:
        """See ``Caller``."""
        entity = {"id": self._id, "description": "größer \n", "value": self._stored + 0.5}
        assert self.request("PUT", entity) == (200, {"created": self._stored == 0})
        self._stored += 1
        assert self.request("GET") == (200, entity)

    def close(self) -> None:
        """See ``Caller``."""
        self._connection.close()


class GrpcCaller:
    """Makes the calls of a service that has grpcio stubs. ``refusals``: how a stopping server refuses a call."""

    def __init__(
        self,
        server: Server,
        calls: Callable[[grpc.Channel], Callable[[], None]],
        refusals: Collection[grpc.StatusCode] = (grpc.StatusCode.UNAVAILABLE,),
    ) -> None:
        self._refusals = refusals
        self._channel = grpc.insecure_channel(server.at)
        self._call = calls(self._channel)

    def call(self) -> None:
        """See ``Caller``."""
        try:
            self._call()
        except grpc.RpcError as error:
            if error.code() in self._refusals:
                raise Gone from error
            raise

    def close(self) -> None:
        """See ``Caller``."""
        self._channel.close()


class StockCaller:
    """Looks a stock up."""

    def __init__(self, server: Server, _: int) -> None:
        self._connection = load("sockets").connect(server.address, WAIT_S)
        self._exchange = RemoteExchange(self._connection, WAIT_S)

    def call(self) -> None:
        """See ``Caller``."""
        try:
            reply = self._exchange.lookup("GameStart")
        except Unavailable as error:
            raise Gone from error
        assert (reply.status, reply.volume) == (Status.OK, 0)

    def close(self) -> None:
        """See ``Caller``."""
        self._connection.close()


def sorting(channel: grpc.Channel) -> Callable[[], None]:
    """Calls of both methods of the sorting service."""
    stub = SortServiceStub(channel)

    def call() -> None:
        values = [5, -3, 1 << 40, 5]
        assert list(stub.MergeSort(MergeSortRequest(values=values), timeout=WAIT_S).values) == sorted(values)
        assert list(stub.QuickSort(QuickSortRequest(values=values), timeout=WAIT_S).values) == sorted(values)

    return call


def greeting(channel: grpc.Channel) -> Callable[[], None]:
    """The greeter's one method."""
    stub = GreeterStub(channel)

    def call() -> None:
        assert stub.SayHello(HelloRequest(name="Zoë"), timeout=WAIT_S).message == "Hello Zoë"

    return call


def trading(channel: grpc.Channel) -> Callable[[], None]:
    """Calls of the three methods of the stock service, while other callers change the same stock."""
    stub = StockServiceStub(channel)

    def call() -> None:
        traded = stub.Trade(TradeRequest(name="FishCo", quantity=1, side=SIDE_BUY), timeout=WAIT_S)
        seen = stub.Lookup(LookupRequest(name="FishCo"), timeout=WAIT_S)
        updated = stub.Update(UpdateRequest(name="FishCo", price_cents=4250), timeout=WAIT_S)
        assert traded.status == seen.status == updated.status == STATUS_OK
        assert seen.price_cents == 4250
        assert seen.volume >= traded.volume > 0
        assert updated.sequence > traded.sequence > 0

    return call


CALLER: dict[str, Callable[[Server, int], Caller]] = {
    "go-sort-grpc": lambda server, _: GrpcCaller(server, sorting),
    "cpp-greeter": lambda server, _: GrpcCaller(
        server,
        greeting,
        (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED),  # the latter to calls that no handler has yet
    ),
    "go-stock": lambda server, _: GrpcCaller(server, trading),
    "rust-stock": lambda server, _: GrpcCaller(server, trading),
    "c-stock": StockCaller,
    "go-entity": EntityCaller,
    "rust-entity": EntityCaller,
    "rust-entity-debug": EntityCaller,
    WITHOUT_GIL: StockCaller,
    PYTHON_EPOLL: StockCaller,
}
"""Callers by the peer's name. Other peers are called by their own client."""

LEVELS = dict(setting(mix="quick", size=5000).levels)
"""Levels of the factors that a client's command needs."""

_ECHO = ("--size", "5000", "--timeout-s", "1")

CLIENT_OPTIONS: dict[str, Sequence[str]] = {
    "go-sort-net-rpc": (),
    "c-berkeley": _ECHO,
    "c-zeromq": _ECHO,
    "c-nanomsg": _ECHO,
    "c-nng": _ECHO,
    "python-berkeley": _ECHO,
    "python-zeromq": _ECHO,
    "python-nng": _ECHO,
}
"""Callers for the peers with a client of their own, which checks every reply."""


def check_answers(name: str, server: Server) -> None:
    """A few calls have the right replies."""
    if name in CALLER:
        caller = CALLER[name](server, 1)
        try:
            for _ in range(3):
                caller.call()
        finally:
            caller.close()
    else:
        lines = run_client(name, server, 20).stdout.splitlines()
        assert len(lines) == 21, "connecting, and twenty calls"
        assert all(json.loads(line)["ns"] > 0 for line in lines)


def run_client(name: str, server: Server, count: int) -> subprocess.CompletedProcess[str]:
    """A peer's own client, to its end, which must be a good one."""
    command = [*client_command(name, server.at, count, LEVELS), *CLIENT_OPTIONS[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    return done


@contextmanager
def under_load(name: str, server: Server) -> Iterator[None]:
    """Within it the server is under load. It must stop the server; afterwards every caller has ended in good order."""
    with _load_of_callers(CALLER[name], server) if name in CALLER else _load_of_client(name, server):
        yield


@contextmanager
def _load_of_callers(connect: Callable[[Server, int], Caller], server: Server) -> Iterator[None]:
    answered = [0] * CALLERS
    wrong: list[BaseException] = []

    def load(number: int) -> None:
        caller = connect(server, number)
        try:
            while True:
                caller.call()
                answered[number] += 1
        except Gone:
            pass
        except BaseException as error:
            wrong.append(error)
        finally:
            caller.close()

    threads = [threading.Thread(target=load, args=(number,), name=f"caller-{number}") for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: bool(wrong) or all(count > 10 for count in answered), "every caller is answered")
        yield
    finally:
        server.__exit__(None, None, None)  # which nothing else does where the test failed
        for thread in threads:
            thread.join()
    assert not wrong, wrong


@contextmanager
def _load_of_client(name: str, server: Server) -> Iterator[None]:
    command = [*client_command(name, server.at, 1_000_000, LEVELS), *CLIENT_OPTIONS[name]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as client:
        try:
            before_s = sum(psutil.Process(server.pid).cpu_times()[:2])
            until(lambda: sum(psutil.Process(server.pid).cpu_times()[:2]) > before_s + 0.05, "the server works")
            yield
            assert client.stderr is not None
            assert client.wait(WAIT_S) == 1, "the server's end ends the client"
            (line,) = client.stderr.read().splitlines()
            assert "not sorted" not in line
            assert "not what was sent" not in line
        finally:
            client.kill()
