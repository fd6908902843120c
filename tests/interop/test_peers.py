"""Load programs of others load our servers, and read what our own load client reads, within seconds: ghz, h2load and
the project's program on grpc-go on gRPC; on sockets the project's programs in Go and C, compiled here.

Readings are compared, not judged. ``python -m experiments selfcheck`` judges speeds, on a machine that does nothing
else.
"""

import json
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import cache

import psutil
import pytest

from experiments.design.factors import HEADERS
from experiments.measure.load_programs import (
    SOURCES,
    Ask,
    LoadProgram,
    load_programs,
)
from experiments.measure.programs import ProgramFailed
from experiments.peers import Absent
from experiments.selfcheck.clients import PAYLOAD
from experiments.selfcheck.load import load_cores, null_server, stock_server
from stock_service.rpc.transports import Address
from stock_service.trading.service import LOOKUP
from tests.covering import pairs
from tests.interop.conftest import leave_out

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
"""The first run on a machine compiles Go's own library."""

UNASKED_S = 0.5
"""Time without a request after which the window of 0.1 s is over."""

SPEAKS = {"ghz": "grpc", "h2load": "grpc", "grpc-go": "grpc", "go": "sockets", "c": "sockets"}
SERVERS = {"stock": stock_server, "null": null_server}

Peers = Mapping[str, LoadProgram | Absent]


def ask(address: Address, connections: int = 1, duration_s: float = 0.1, warm_up_s: float = 0.0) -> Ask:
    """Lookups."""
    return Ask(address, LOOKUP, PAYLOAD, connections, duration_s, warm_up_s, load_cores())


@pytest.fixture(scope="module")
def built() -> Iterator[Peers]:
    """All of them."""
    with load_programs(tuple(SPEAKS)) as programs:
        yield programs


@pytest.fixture
def peer(built: Peers) -> Callable[[str], LoadProgram]:
    """Gives one of them by its name. Where it is absent the test is skipped, or fails if nothing may be skipped."""

    def find(name: str) -> LoadProgram:
        found = built[name]
        if isinstance(found, Absent):
            leave_out(str(found))
        return found

    return find


@pytest.fixture(scope="module")
def serving() -> Iterator[Callable[[str, str], Address]]:
    """Gives the address of a server by its name and its transport; each is started once for all tests."""
    with ExitStack() as running:

        @cache
        def address(server: str, transport: str) -> Address:
            return running.enter_context(SERVERS[server](transport))[1]

        yield address


@pytest.mark.parametrize(("name", "connections", "server"), pairs(SPEAKS, (1, 5), SERVERS))
def test_a_closed_loop(
    name: str,
    connections: int,
    server: str,
    peer: Callable[[str], LoadProgram],
    serving: Callable[[str, str], Address],
) -> None:
    """Every request is answered by the stock service and by the null server, on one connection and on several. On a
    very busy machine, 0.3 s pass without a reply, so that a second load is longer."""
    for duration_s in (0.3, 3.0):
        reading = peer(name).load(ask(serving(server, SPEAKS[name]), connections, duration_s, warm_up_s=0.1))
        if reading.requests > connections:
            break
    assert reading.requests > connections
    assert reading.errors == 0
    assert (reading.times is None) == (name == "go")
    assert reading.times is None or reading.times.count == reading.requests
    assert 0 < reading.p50_us <= reading.p99_us
    assert reading.throughput_hz * reading.p50_us / 1e6 < 3 * connections, "more than Little's law allows"


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("transport", ["grpc", "grpc_static"])
def test_calls_that_differ_are_answered(
    transport: str, headers: str, peer: Callable[[str], LoadProgram], serving: Callable[[str, str], Address]
) -> None:
    """Both of our servers answer calls that differ, several at once on each connection. The largest metadata may be
    refused as too much."""
    asked = replace(ask(serving("stock", transport), 2, duration_s=0.3), in_flight=8, headers=headers)
    reading = peer("grpc-go").load(asked)
    assert reading.requests + reading.errors > 16
    assert reading.errors == 0 or headers == "15360B"
    assert (reading.all_requests or 0) >= reading.requests
    assert 0 < (reading.cpu_share or 0) < 3


def test_grpc_go_ends_at_a_signal_with_what_it_measured(
    peer: Callable[[str], LoadProgram], serving: Callable[[str, str], Address]
) -> None:
    """grpc-go's program ends at a signal with exit code 130 and its result. A wrong option ends it with 2, and one
    line."""
    client, (host, port) = peer("grpc-go"), serving("stock", "grpc")
    command = [str(client.program), "-address", f"{host}:{port}"]
    counted = [*command, "-warm-up", "0s", "-duration", "1m"]
    with subprocess.Popen(counted, stdout=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 20
        while psutil.Process(running.pid).cpu_times().user < 0.1:  # it has sent for a while
            assert time.monotonic() < until
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=20)
    report = json.loads(said)
    assert running.returncode == 130
    assert report["calls"] > 0
    assert 0 < report["seconds"] < 60
    done = subprocess.run([*command, "-rate", "-1"], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "grpc_load: allowed: -rate of 0, or 0.1 to 1000000\n"


@pytest.mark.parametrize("name", ["go", "grpc-go", "c"])
def test_nobody_there(name: str, peer: Callable[[str], LoadProgram]) -> None:
    """Without a server there is no reading."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    with pytest.raises(ProgramFailed, match="exit code 1"):
        peer(name).load(ask(address, duration_s=0.1))


@contextmanager
def beside(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """The address of a listener that a thread serves, until that ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), name="odd-server")
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            thread.join()


def one_reply(reply: Callable[[int], bytes]) -> AbstractContextManager[Address]:
    """A server on sockets that sends what ``reply`` makes of the first request's call number, and closes."""

    def serve(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with accepted:
            head = accepted.recv(13, socket.MSG_WAITALL)
            length, call = struct.unpack_from("!II", head)
            accepted.recv(length + 4 - len(head), socket.MSG_WAITALL)
            accepted.sendall(reply(call))
            accepted.shutdown(socket.SHUT_WR)
            while accepted.recv(65536):
                pass

    return beside(serve)


@pytest.mark.parametrize(
    "reply",
    [
        lambda call: struct.pack("!IIB", 6, call + 1, 0) + b"x",
        lambda call: struct.pack("!IIB", 2, call, 0),
        lambda call: struct.pack("!IIB", 2**31, call, 0),
        lambda call: struct.pack("!IIB", 6, call, 0),
        lambda _: b"",
    ],
    ids=["other call", "too short", "too long", "cut off", "closed"],
)
@pytest.mark.parametrize("name", ["go", "c"])
def test_a_wrong_reply(name: str, reply: Callable[[int], bytes], peer: Callable[[str], LoadProgram]) -> None:
    """A reply to no request, bytes that are no frame, and an early end each end the client with a message."""
    with one_reply(reply) as address, pytest.raises(ProgramFailed, match="exit code 1"):
        peer(name).load(ask(address, duration_s=1))


@pytest.mark.parametrize("name", ["go", "c"])
def test_faults_are_errors(
    name: str, peer: Callable[[str], LoadProgram], serving: Callable[[str, str], Address]
) -> None:
    """A reply with a code is counted as an error and is in no time: here, of a method that the server does not have."""
    client = peer(name)
    wrong, (host, port) = LOOKUP + "Not", serving("stock", "sockets")
    if name == "go":
        options = ["-address", f"{host}:{port}", "-method", wrong, "-warm-up", "0s", "-duration", "50ms"]
    else:
        options = [host, str(port), wrong, "", "0", "1", "0", "0.05", "0"]
    done = subprocess.run([client.program, *options], capture_output=True, text=True, check=False, timeout=30)
    said = done.stdout + done.stderr
    assert '"requests":0' in said.replace(" ", "")
    assert '"errors":0' not in said.replace(" ", "")


def unfair() -> AbstractContextManager[Address]:
    """A server on sockets that always answers the first of two connections, and the second once the first has ended."""

    def answered(accepted: socket.socket) -> bool:
        data = accepted.recv(65536)
        if data:
            accepted.sendall(struct.pack("!IIB", 5, *struct.unpack_from("!I", data, 4), 0))
        return bool(data)

    def serve(listener: socket.socket) -> None:
        with listener.accept()[0] as first, listener.accept()[0] as other:
            first.settimeout(UNASKED_S)
            try:
                while answered(first):
                    pass
            except TimeoutError:  # the window is over
                answered(other)
            other.recv(1)

    return beside(serve)


def test_the_c_client_says_who_was_served_least(peer: Callable[[str], LoadProgram]) -> None:
    """One connection got one reply, and the other one all the rest."""
    with unfair() as (host, port):
        options = [host, str(port), LOOKUP, PAYLOAD.hex(), "5000", "2", "0", "1", "0"]
        done = subprocess.run([peer("c").program, *options], capture_output=True, text=True, check=True, timeout=30)
    report = json.loads(done.stdout)
    assert report["requests"] > 2
    assert (report["served_least"], report["served_most"]) == (1, report["requests"] - 1)


def test_the_c_client_is_compiled_without_a_warning() -> None:
    """The compiler gives no warning, with all its warnings on."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler as cc")
    warnings = ["-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]
    subprocess.run([compiler, *warnings, str(SOURCES / "c" / "load.c")], check=True, timeout=60)
