"""Callers of the peers' servers: one for each service, and the results of a load of many callers.

A caller is a context manager: it opens a connection of its own, and gives a function that makes a call and checks its
reply. The function raises ``Gone`` where the server's end was an orderly one: it closed between two replies, and not
within one. It raises AssertionError where a reply is wrong or not whole.
"""

import http.client
import json
import subprocess
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import count

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


Call = Callable[[], None]

Caller = Callable[[Server, int], AbstractContextManager[Call]]
"""Makes a caller of a server, from the caller's number."""


@contextmanager
def storing(server: Server, number: int) -> Iterator[Call]:
    """Stores an entity and reads it back, by turns."""
    stored = count()

    def request(method: str, body: dict[str, object] | None = None) -> tuple[int, dict[str, object]]:
        """A reply's status and its body. Raises Gone."""
        try:
            sent, fields = (None, {}) if body is None else (json.dumps(body), {"Content-Type": "application/json"})
            connection.request(method, f"/entities/{number}", sent, fields)
            reply = connection.getresponse()
        except (ConnectionError, http.client.RemoteDisconnected) as error:
            raise Gone from error
        said = reply.read()
        assert reply.headers["Content-Type"] == "application/json", said
        return reply.status, json.loads(said)

    def call() -> None:
        before = next(stored)
        entity = {"id": number, "description": "größer \n", "value": before + 0.5}
        assert request("PUT", entity) == (200, {"created": before == 0})
        assert request("GET") == (200, entity)

    with closing(http.client.HTTPConnection(*server.address, timeout=WAIT_S)) as connection:
        yield call


def of_grpc(
    calls: Callable[[grpc.Channel], Call], refusals: Collection[grpc.StatusCode] = (grpc.StatusCode.UNAVAILABLE,)
) -> Caller:
    """Makes the calls of a service that has grpcio stubs. ``refusals``: how a stopping server refuses a call."""

    @contextmanager
    def caller(server: Server, _: int) -> Iterator[Call]:
        def checked() -> None:
            try:
                call()
            except grpc.RpcError as error:
                if error.code() in refusals:
                    raise Gone from error
                raise

        with grpc.insecure_channel(server.at) as channel:
            call = calls(channel)
            yield checked

    return caller


@contextmanager
def looking_up(server: Server, _: int) -> Iterator[Call]:
    """Looks a stock up."""

    def call() -> None:
        try:
            reply = exchange.lookup("GameStart")
        except Unavailable as error:
            raise Gone from error
        assert (reply.status, reply.volume) == (Status.OK, 0)

    with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
        exchange = RemoteExchange(connection, WAIT_S)
        yield call


def sorting(channel: grpc.Channel) -> Call:
    """Calls of both methods of the sorting service."""
    stub = SortServiceStub(channel)

    def call() -> None:
        values = [5, -3, 1 << 40, 5]
        assert list(stub.MergeSort(MergeSortRequest(values=values), timeout=WAIT_S).values) == sorted(values)
        assert list(stub.QuickSort(QuickSortRequest(values=values), timeout=WAIT_S).values) == sorted(values)

    return call


def greeting(channel: grpc.Channel) -> Call:
    """The greeter's one method."""
    stub = GreeterStub(channel)

    def call() -> None:
        assert stub.SayHello(HelloRequest(name="Zoë"), timeout=WAIT_S).message == "Hello Zoë"

    return call


def trading(channel: grpc.Channel) -> Call:
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


CALLER: dict[str, Caller] = {
    "go-sort-grpc": of_grpc(sorting),
    "cpp-greeter": of_grpc(
        greeting,
        (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED),  # the latter to calls that no handler has yet
    ),
    "go-stock": of_grpc(trading),
    "rust-stock": of_grpc(trading),
    "c-stock": looking_up,
    "go-entity": storing,
    "rust-entity": storing,
    "rust-entity-debug": storing,
    WITHOUT_GIL: looking_up,
    PYTHON_EPOLL: looking_up,
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
        with CALLER[name](server, 1) as call:
            for _ in range(3):
                call()
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
def _load_of_callers(caller: Caller, server: Server) -> Iterator[None]:
    answered = [0] * CALLERS
    wrong: list[BaseException] = []

    def load(number: int) -> None:
        try:
            with caller(server, number) as call, suppress(Gone):
                while True:
                    call()
                    answered[number] += 1
        except BaseException as error:
            wrong.append(error)

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
