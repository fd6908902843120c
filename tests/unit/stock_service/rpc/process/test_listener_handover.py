"""The hand-over of a listener from the last server: requests, refusals, and the state after a refusal."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from stat import S_IMODE
from threading import Event

import pytest

from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.listener_handover import HandOver, offered, take_over
from stock_service.rpc.server_core.options import PassedListener
from tests.conformance.running import until

WAIT_S = 10.0

BARELY_S = 0.01

SERVES = "--transport sockets"

HEIR = """
import os, socket, sys, time
path, how = sys.argv[1:]
old = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
old.connect(path)
socket.recv_fds(old, 16384, 1)
old.send(b"!")
assert old.recv(10) == b"store"
if how == "ends":
    os._exit(3)
if how == "lies":
    old.send(b"?")
time.sleep(3600)
"""
"""The next server's process, which has the store, and then fails."""


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


class Store:
    """A store that notes its calls."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.slow = False
        self.gone: Callable[[], bool] = lambda: True

    def hold(self) -> bool:
        self.told.append("hold")
        return True

    def go_on(self) -> None:
        self.told.append("go_on")

    def lend(self) -> bool:
        self.told.append("lend")
        return not self.slow

    def take_back(self) -> None:
        self.told.append("take_back of one that is gone" if self.gone() else "take_back")

    def give_away(self) -> None:
        self.told.append("give_away")


def offer(folder: Path, listener: socket.socket, store: Store, answer_s: float = WAIT_S) -> HandOver:
    """The offer of a server to its successor."""
    return HandOver(folder / "run", SERVES, 5.0, answer_s, PassedListener(listener), store=store)


@contextmanager
def heir_of(folder: Path) -> Iterator[socket.socket]:
    """The end of a next server, which the test plays itself."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as heir:
        heir.settimeout(WAIT_S)
        heir.connect(str(folder / "run"))
        yield heir


def told(heir: socket.socket) -> str:
    """The first message, whose listener is closed."""
    message, (descriptor,), _, _ = socket.recv_fds(heir, 1000, 1)
    os.close(descriptor)
    return message.decode()


def finish(folder: Path) -> None:
    """A whole hand-over, so that the thread of the offer ends."""
    with heir_of(folder) as heir:
        assert told(heir)
        heir.send(b"!")
        assert heir.recv(10) == b"store"
        heir.send(b"serves")


def none() -> socket.socket:
    """A function for a caller that must not listen by itself."""
    raise AssertionError


def taking(path: Path, play: Callable[[], None]) -> HandOver:
    """The things taken over from a server that plays its part."""
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(take_over, path, SERVES, 1.0, WAIT_S, none)
        play()
        return taken.result(WAIT_S)


@pytest.mark.parametrize("stale", [True, False])
def test_the_first_listens_by_itself(stale: bool, listener: socket.socket, tmp_path: Path) -> None:
    """The first server listens by itself, though a killed server has left its socket."""
    if stale:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as unix:
            unix.bind(str(tmp_path / "run"))
    assert take_over(tmp_path / "run", SERVES, 1.0, WAIT_S, lambda: listener).listener.socket is listener
    assert os.listdir(tmp_path) == ["run"] * stale


@pytest.mark.parametrize("ends", [False, True])
def test_the_next_has_the_port_once_the_last_has_let_its_store_go(
    ends: bool, offering: socket.socket, listener: socket.socket, tmp_path: Path
) -> None:
    """The next server accepts what came before. A server that ends has let its store go as well."""
    said: list[bytes] = []

    def play() -> None:
        heir, _ = offering.accept()
        with heir:
            socket.send_fds(heir, [f"5 {SERVES}".encode()], [listener.fileno()])
            said.append(heir.recv(10))
            if not ends:
                heir.send(b"store")

    with socket.create_connection(listener.getsockname()) as client:
        taken = taking(tmp_path / "run", play)
        assert taken.old is not None
        with taken.old, taken.listener.socket as listening:
            accepted, peer = listening.accept()
            accepted.close()
            assert (said, peer) == ([b"!"], client.getsockname())


@pytest.mark.parametrize("ends", [False, True])
def test_changes_wait_until_the_last_server_has_ended(ends: bool, listener: socket.socket, tmp_path: Path) -> None:
    """The last server is told that this one serves, unless it has ended; it is waited for as long as it said."""
    store = Store()
    old, own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with old, own:
        hand_over = HandOver(tmp_path / "run", SERVES, 5.0, WAIT_S, PassedListener(listener), own, old_end_s=BARELY_S)
        hand_over.has(store)
        assert store.told == ["hold"]
        if ends:
            old.close()
        hand_over.conclude()
        assert store.told == ["hold", "go_on"]
        assert ends or old.recv(10) == b"serves"


@pytest.mark.parametrize(
    ("message", "allowed", "go"),
    [
        ("5 --transport grpc", "it has --transport grpc, not --transport sockets", b""),
        ("0.01 --transport sockets", "a server that lets its store go; this one has not within 0.01 s", b"!"),
        ("", "a server that does not end just now", b""),
    ],
)
def test_what_cannot_be_taken_is_refused(
    message: str, allowed: str, go: bytes, offering: socket.socket, listener: socket.socket, tmp_path: Path
) -> None:
    """A server with other options is not told to end. One that does not end, or is gone, is not waited for."""
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
    """A file at the path is neither replaced nor taken for a server. A name in a missing folder is refused."""
    (tmp_path / "run").write_text("mine")
    for path, allowed in ((tmp_path / "run", "it is no socket"), (tmp_path / "no" / "run", "No such file")):
        with pytest.raises(UsageError, match=allowed):
            take_over(path, SERVES, 1.0, WAIT_S, none)
    assert (tmp_path / "run").read_text() == "mine"


def test_an_offer_is_the_owners_and_outlasts_who_does_not_take_it(
    listener: socket.socket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A successor that leaves, or sends other bytes, changes nothing. One that serves stops the server, and learns its
    end from its process alone."""
    store, stop = Store(), Event()
    path, hand_over = tmp_path / "run", offer(tmp_path, listener, store)
    with offered(hand_over, stop.set):
        assert S_IMODE(path.stat().st_mode) == 0o600
        for words in ((b"",), (b"?",), (b"!", b"serves")):
            with heir_of(tmp_path) as heir:
                assert (told(heir), store.told, stop.is_set()) == (f"5 {SERVES}", [], False)
                heir.send(words[0])
                if len(words) > 1:
                    assert heir.recv(10) == b"store"
                    heir.send(words[1])
                    assert stop.wait(WAIT_S)
                    assert (store.told, hand_over.listener.passed_on) == (["lend", "give_away"], True)
                    heir.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        heir.recv(1)
    assert path.exists(), "it is the next server's to replace"
    said = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert said == [
        "it ended before it was ready, and its own error says why; this one serves on",
        "it said b'?', not b'!'; this one serves on",
    ]


@pytest.mark.parametrize(
    ("how", "why"),
    [("ends", "it ended before it was ready"), ("stays", "it said nothing within 0.2 s"), ("lies", "it said b'?'")],
)
def test_a_store_is_taken_back_once_the_process_that_had_it_is_gone(
    how: str, why: str, listener: socket.socket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However it fails: then the store is this server's again, and the offer stands."""
    store, stop = Store(), Event()
    with offered(offer(tmp_path, listener, store, 0.2 if how == "stays" else WAIT_S), stop.set):
        heir = subprocess.Popen([sys.executable, "-ISc", HEIR, str(tmp_path / "run"), how])
        store.gone = lambda: Path(f"/proc/{heir.pid}/stat").read_text().split()[2] == "Z"
        until(lambda: bool(caplog.records), "the server says that it serves on")
        assert (store.told, stop.is_set()) == (["lend", "take_back of one that is gone"], False)
        assert heir.wait(WAIT_S) == (3 if how == "ends" else -SIGKILL)
        assert f"process {heir.pid}: {why}" in caplog.text
        finish(tmp_path)
        assert stop.wait(WAIT_S)


def test_a_store_that_is_too_slow_to_let_go_is_kept(
    listener: socket.socket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next server gets no word, and is not killed."""
    store, stop = Store(), Event()
    store.slow = True
    with offered(offer(tmp_path, listener, store), stop.set):
        with heir_of(tmp_path) as heir:
            assert told(heir)
            heir.send(b"!")
            assert heir.recv(10) == b""
        assert (store.told, stop.is_set()) == (["lend"], False)
        store.slow = False
        finish(tmp_path)
        assert stop.wait(WAIT_S)
    assert "whose disk is too slow" in caplog.text


def test_the_last_server_is_waited_for_by_its_own_word(listener: socket.socket, tmp_path: Path) -> None:
    """Though the next one has a shorter grace: changes go on once the last has ended."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    store = Store()
    over = HandOver(tmp_path / "run", SERVES, 0.01, WAIT_S, PassedListener(listener), ours, store, old_end_s=WAIT_S)
    with ours, ThreadPoolExecutor(1) as thread:
        concluded = thread.submit(over.conclude)
        assert theirs.recv(100) == b"serves"
        with pytest.raises(TimeoutError):
            concluded.result(0.1)
        assert store.told == []
        theirs.close()
        concluded.result(WAIT_S)
    assert store.told == ["go_on"]


def test_a_next_server_that_may_not_be_killed_leaves_the_store_to_be_taken_back(
    listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A next server of root may not be killed by an ordinary user's server: the store's lock then tells who has the
    store."""

    def denied(_process: int, _signal: int) -> None:
        raise PermissionError("not permitted")

    monkeypatch.setattr("signal.pidfd_send_signal", denied)
    monkeypatch.setattr("stock_service.rpc.process.listener_handover._KILLED_S", 0.01)
    store = Store()
    with offered(offer(tmp_path, listener, store), lambda: None):
        with heir_of(tmp_path) as heir:
            assert told(heir)
            heir.send(b"!")
            assert heir.recv(100)
        until(lambda: store.told[-1:] == ["take_back of one that is gone"], "it has its store again")
        finish(tmp_path)
