"""Every peer's server, as a process: it keeps the process contract, and answers right. ``make peers`` builds them."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.peers import PEERS, WITHOUT_GIL, Absent, Need, Peer, missing, server_command
from tests.conformance.running import until
from tests.end_to_end.process import ROOT, WAIT_S, Server
from tests.interop.conftest import leave_out
from tests.interop.peer_callers import check_answers, under_load

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def command(name: str) -> tuple[str, ...]:
    """The command of a peer's server. Without a build the test is skipped, or fails if nothing may be skipped.

    That does not hold of a free-threaded Python: no package that could be installed has one.
    """
    try:
        return server_command(name)
    except Absent as absent:
        if name == WITHOUT_GIL:
            pytest.skip(str(absent))
        leave_out(str(absent))


STARTED = [name for name, peer in PEERS.items() if peer.start]


@pytest.fixture(params=STARTED)
def peer(request: pytest.FixtureRequest) -> str:
    """Each peer's name; it is built."""
    name = str(request.param)
    command(name)
    return name


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a peer's server with some options; kills it after the test if it still runs."""
    started: list[Server] = []

    def start(name: str, *options: str) -> Server:
        started.append(Server(command(name), *options, program=()))
        return started[-1]

    yield start
    for server in started:
        server.__exit__(None, None, None)


def listens(server: Server) -> bool:
    """Tell whether anybody takes a connection at a server's address."""
    with socket.socket() as probe:
        return probe.connect_ex(server.address) == 0


def refused(name: str, *options: str) -> str:
    """The one line with which a peer's server refuses its options, with exit 2 and without a ready line."""
    done = subprocess.run([*command(name), *options], capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = done.stderr.splitlines()
    return line


def test_right_answers(peer: str, serve: Serve) -> None:
    """The ready line has the address, and requests get right replies, though a second server on the port was tried:
    that one ends with a line. A client that stays keeps it from nothing: a signal ends it with exit 0, and not a word
    more on standard output."""
    server = serve(peer)
    assert server.ready == f"ready 127.0.0.1:{server.address[1]}"
    assert refused(peer, "--port", str(server.address[1]))
    check_answers(peer, server)
    with socket.create_connection(server.address, WAIT_S):
        ended = server.stopped(signal.SIGINT)
    assert (ended.code, ended.stdout) == (0, ""), ended.stderr


def test_a_signal_under_load(peer: str, serve: Serve) -> None:
    """Accepted requests are answered whole and right; exit 0; the port is free afterwards."""
    server = serve(peer)
    with under_load(peer, server):
        ended = server.stopped(signal.SIGTERM)
    assert (ended.code, ended.stdout) == (0, ""), ended.stderr
    assert not listens(server)


OPTIONS = ("--no-such 1", "--port 65536", "--port x", "--grace-s -1", "--host 192.0.2.1")

ONE_OF_EACH = {(PEERS[name].language, PEERS[name].serves, name == WITHOUT_GIL): name for name in STARTED}
"""Peers, one for each language: peers of one language and service read their options with the same code."""


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ONE_OF_EACH.values())
def test_a_bad_option(name: str, options: str) -> None:
    """Exit 2, one line that names the option, and no ready line."""
    assert options.split()[0].removeprefix("--") in refused(name, *options.split())


HEAD = b"PUT /entities/5 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 39\r\n\r\n"
HALF = HEAD + b'{"id":5,"descrip'
REST = b'tion":"half","value":1}'
ENTITY_PEERS = [name for name, peer in PEERS.items() if peer.serves == "entity"]


@contextmanager
def half_request(server: Server) -> Iterator[socket.socket]:
    """A connection with half a request that the server has read: the kernel has no bytes left for it."""
    with socket.create_connection(server.address, WAIT_S) as client:
        client.sendall(HALF)
        ours, theirs = (f":{port:04X}" for port in (client.getsockname()[1], server.address[1]))

        def is_read() -> bool:
            rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
            return any(
                row[1].endswith(theirs) and row[2].endswith(ours) and row[4].endswith(":00000000") for row in rows
            )

        until(is_read, "the half request is read")
        yield client


@pytest.mark.parametrize("name", ENTITY_PEERS)
def test_what_waits_for_a_worker_is_finished(name: str, serve: Serve) -> None:
    """Behind one worker: the half request that it reads when the signal comes, and two connections in the queue."""
    server = serve(name, "--workers", "1")
    with (
        half_request(server) as half,
        socket.create_connection(server.address, WAIT_S) as one,
        socket.create_connection(server.address, WAIT_S) as other,
    ):
        for waiting in (one, other):
            waiting.sendall(b"GET /entities/5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.signal(signal.SIGTERM)
        half.sendall(REST)
        for connection, body in ((half, b'{"created":true}'), (one, b'"half"'), (other, b'"half"')):
            reply = connection.makefile("rb").read()
            assert reply.startswith(b"HTTP/1.1 200 ")
            assert body in reply
        assert server.ended().code == 0


@pytest.mark.parametrize("name", ENTITY_PEERS)
def test_a_request_that_does_not_come(name: str, serve: Serve) -> None:
    """The grace period ends it: exit 1, with one line on why."""
    server = serve(name, "--grace-s", "0.2")
    with half_request(server):
        ended = server.stopped()
    assert ended.code == 1
    assert "--grace-s" in ended.stderr


@pytest.mark.parametrize("name", ENTITY_PEERS)
def test_a_second_signal(name: str, serve: Serve) -> None:
    """A second signal ends the server at once with exit code 1, with requests under way."""
    server = serve(name, "--grace-s", "60")
    with half_request(server):
        server.signal(signal.SIGTERM)
        until(lambda: not listens(server), "no more connections")
        server.signal(signal.SIGTERM)
        assert server.ended().code == 1


def test_the_generated_go_code_is_up_to_date(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Generating anew changes nothing."""
    tool("protoc-gen-go-grpc")
    make = ["make", "-s", "-o", f"{sys.prefix}/.synced", "generate-go", f"VENV={sys.prefix}", f"OUT={tmp_path}"]
    subprocess.run(make, cwd=ROOT, check=True, capture_output=True)
    for folder in ("experiments/peers/go/sortpb", "experiments/peers/go/stockpb"):
        made = {file.name: file.read_bytes() for file in (tmp_path / folder).iterdir()}
        assert made == {file.name: file.read_bytes() for file in (ROOT / folder).iterdir()}


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent tool is named, with the way to get it, and so is a tool that hangs. A present tool is not named."""
    there = Need("Python", (sys.executable, "--version"), "")
    absent = Need("Fortran 3000", ("fortran-3000", "--version"), "apt-get install it")
    hung = Need("Cobol", ("sleep", "60"), "wait")
    planted = Peer("go", "nothing", "none", (there, absent, hung), ("true",), ("planted",))
    monkeypatch.setattr("experiments.peers.PEERS", {"planted": planted})
    monkeypatch.setattr("experiments.peers._PROBE_S", 1.0)
    named = ["Fortran 3000 is missing: apt-get install it", "Cobol is missing: wait"]
    assert missing("planted") == [f"{each}, then run make peers" for each in named]
    with pytest.raises(Absent, match=r"planted is not built .*Fortran 3000"):
        server_command("planted")
