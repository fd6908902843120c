"""Taking a listener over from the server before: what is asked, what is refused, and what a refusal leaves."""

import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from stat import S_IMODE
from threading import Event

import pytest

from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.handing_over import HandOver, Offered, take_over
from stock_service.rpc.server_core.options import PassedListener

WAIT_S = 10.0

SERVES = "--transport sockets"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """The one of the server that runs."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def offering(tmp_path: Path) -> Iterator[socket.socket]:
    """A server's end that the test plays itself."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as unix:
        unix.bind(str(tmp_path / "run"))
        unix.listen(1)
        yield unix


def none() -> socket.socket:
    """For who must not listen by itself."""
    raise AssertionError


def taking(path: Path, play: Callable[[], None]) -> HandOver:
    """What is taken over from a server that plays its part."""
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(take_over, path, SERVES, 1.0, none)
        play()
        return taken.result(WAIT_S)


@pytest.mark.parametrize("stale", [True, False])
def test_the_first_listens_by_itself(stale: bool, listener: socket.socket, tmp_path: Path) -> None:
    """Where nobody is, though a server that was killed has left its socket."""
    if stale:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as unix:
            unix.bind(str(tmp_path / "run"))
    assert take_over(tmp_path / "run", SERVES, 1.0, lambda: listener).listener.socket is listener
    assert os.listdir(tmp_path) == ["run"] * stale


def test_the_next_has_the_port_once_the_last_has_ended(
    offering: socket.socket, listener: socket.socket, tmp_path: Path
) -> None:
    """It returns at the end of the connection, and accepts what came before."""
    said: list[bytes] = []

    def play() -> None:
        heir, _ = offering.accept()
        with heir:
            socket.send_fds(heir, [f"5 {SERVES}".encode()], [listener.fileno()])
            said.append(heir.recv(10))

    with socket.create_connection(listener.getsockname()) as client:
        with taking(tmp_path / "run", play).listener.socket as taken:
            accepted, peer = taken.accept()
            accepted.close()
            assert (said, peer) == ([b"!"], client.getsockname())


@pytest.mark.parametrize(
    ("message", "allowed", "go"),
    [
        ("5 --transport grpc", "it has --transport grpc, not --transport sockets", b""),
        ("0.01 --transport sockets", "a server that ends; this one has not within 0.01 s", b"!"),
        ("", "a server that does not end just now", b""),
    ],
)
def test_what_cannot_be_taken_is_refused(
    message: str, allowed: str, go: bytes, offering: socket.socket, listener: socket.socket, tmp_path: Path
) -> None:
    """A server with other options is not told to end; one that does not end, or is gone, is not waited for."""
    said: list[bytes] = []

    def play() -> None:
        heir, _ = offering.accept()
        with heir:
            heir.settimeout(WAIT_S)
            if message:
                socket.send_fds(heir, [message.encode()], [listener.fileno()])
                said.append(heir.recv(10))
                heir.recv(10)

    with pytest.raises(UsageError, match=allowed):
        taking(tmp_path / "run", play)
    assert said in ([go], [])


def test_a_path_that_is_something_else_stays(tmp_path: Path) -> None:
    """A file is neither replaced nor taken for a server; nor is there a name in a folder that is not there."""
    (tmp_path / "run").write_text("mine")
    for path, allowed in ((tmp_path / "run", "it is no socket"), (tmp_path / "no" / "run", "No such file")):
        with pytest.raises(UsageError, match=allowed):
            take_over(path, SERVES, 1.0, none)
    assert (tmp_path / "run").read_text() == "mine"


def test_an_offer_is_the_owners_and_outlasts_who_does_not_take_it(listener: socket.socket, tmp_path: Path) -> None:
    """One who leaves changes nothing. One who takes it stops the server, and hears its end from its process alone."""
    path, stop, passed = tmp_path / "run", Event(), PassedListener(listener)
    with Offered(HandOver(path, SERVES, 5.0, passed), stop.set):
        assert S_IMODE(path.stat().st_mode) == 0o600
        for go in (b"", b"!"):
            assert not stop.is_set()
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as heir:
                heir.settimeout(WAIT_S)
                heir.connect(str(path))
                message, (descriptor,), _, _ = socket.recv_fds(heir, 1000, 1)
                os.close(descriptor)
                assert message.decode() == f"5 {SERVES}"
                if go:
                    heir.send(go)
                    assert stop.wait(WAIT_S)
                    assert passed.passed_on
                    heir.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        heir.recv(1)
    assert path.exists(), "it is the next server's to replace"
