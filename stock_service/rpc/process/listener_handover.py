"""A server whose port and store go to the next one, so that a restart fails no request: ``--hand-over PATH``.

The server that runs, the old one, offers its listener on a Unix socket at PATH. The new one is started with the same
command. Nobody at PATH: it is the first, and listens by itself. Else, message by message:

    step  who   does                                                      where the new one fails here, the old one
    1     new   has checked its options and files, and connects           knows nothing of it
    2     old   sends what it serves, how long it takes to end,           waits ``answer_s`` at most, and serves on
                and its listener (SCM_RIGHTS in unix(7))
    3     new   compares, and sends ``!``                                 the same
    4     old   has changes wait, closes the store, sends ``store``       has the new one's end, takes the store back
    5     new   opens the store, accepts, prints its ready line, and      waits ``answer_s`` at most, then as in 4
                sends ``serves``
    6     old   refuses changes, accepts no more, finishes what it        ends all the same
                accepted, and ends: its process's end closes the
                connection
    7     new   has changes written, and puts a socket of its own at      has ended
                PATH

To fail is to be killed, to end, to say something else, or to say nothing. Up to step 5 the old one serves as ever, but
for changes in steps 4 and 5. These wait. They are done where it takes the store back, and else refused, with no effect.

A new one that hangs in step 5 may have the store open. So the old one kills it, and opens the store once its process
has ended. It reads the store anew. The new one's changes wait until step 7: so no Lookup of the old one is out of date.
Where the old one ends or is killed from step 3 on, the new one goes on as if it had been told to.

Both processes have the same listener, so the port is never closed. With SO_REUSEPORT each would have a listener of its
own, and what is in the old one's queue would be reset when it closes.

Only the owner of the process can connect to PATH (mode 0600). Left out: several processes, and stocks in memory.
"""

import logging
import os
import select
import signal
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stock_service.rpc.errors import UsageError
from stock_service.rpc.server_core.options import PassedListener

_log = logging.getLogger(__name__)

_OPTION = "--hand-over"

ANSWER_S = 10.0
"""How long either side waits for the other's message: what a large store takes to be read, and more."""

_KILLED_S = 5.0
"""How long a process that was killed may take to be gone."""

_AGAIN_S = 1.0
"""After an accept that failed, the next is tried so many seconds later."""

_MESSAGE_BYTES_MAX = 16384
"""Of the first message: a path is 4096 bytes at most."""

_TAKE, _STORE, _SERVES = b"!", b"store", b"serves"

_CREDENTIALS = struct.Struct("3i")
"""SO_PEERCRED: the process, its user and its group."""


class Store(Protocol):
    """What goes from one server to the next beside the listener."""

    def hold(self) -> bool:
        """Has changes wait from now on; whether none is being written any more."""

    def go_on(self) -> None:
        """Has changes written again."""

    def lend(self) -> bool:
        """Closes the file, so that another process may open it; changes wait. False: it is too slow for that."""

    def take_back(self) -> None:
        """Opens the file as the other process, which has ended, left it; changes go on."""

    def give_away(self) -> None:
        """Refuses the changes that wait, and later ones: they are for the other process."""


@dataclass(slots=True)
class HandOver:
    """What a server has from the one before, and needs to hand itself over."""

    path: Path
    serves: str
    """What this server serves, and where: the next one must serve the same."""
    end_s: float
    """How long this server takes to end, at most."""
    answer_s: float
    """How long the next one may take for each of its messages."""
    listener: PassedListener
    old: socket.socket | None = None
    """The connection to the server before this one, open until this process ends; None: there was none."""
    store: Store | None = None
    old_end_s: float = 0.0
    """How long the server before may take to end, by its own word."""

    def has(self, store: Store) -> None:
        """This server has opened the store; the server before may still take it back."""
        self.store = store
        if self.old is not None:
            store.hold()

    def conclude(self) -> None:
        """This server accepts: the one before shall end. Blocks until it has, for ``old_end_s`` at most."""
        assert self.old is not None
        try:
            self.old.send(_SERVES)
            self.old.settimeout(self.old_end_s)
            self.old.recv(1)
        except TimeoutError:
            _log.warning("the server before has no store any more, and has not ended within %g s", self.old_end_s)
        except OSError:
            pass  # it has ended before it was told to
        assert self.store is not None
        self.store.go_on()


def take_over(path: Path, serves: str, end_s: float, answer_s: float, listen: Callable[[], socket.socket]) -> HandOver:
    """The listener of the server at ``path``, once that server has let its store go; or one from ``listen`` where there
    is none.

    Blocks until then. Raises UsageError, where the other server serves on; and what ``listen`` raises.
    """
    _bound(path)[0].close()  # so that a bad path is known before anything has changed
    with ExitStack() as failed:  # closes what was opened, where nothing is taken over
        connection = failed.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        connection.settimeout(answer_s)
        try:
            connection.connect(str(path))
            message, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES_MAX, 1)
        except (FileNotFoundError, ConnectionRefusedError):
            return HandOver(path, serves, end_s, answer_s, PassedListener(listen()))
        except OSError as error:
            raise UsageError(_OPTION, str(path), f"the socket of a server that runs and answers ({error})") from error
        if not descriptors:
            raise UsageError(_OPTION, str(path), "the socket of a server that does not end just now: try again")
        listener = failed.enter_context(socket.socket(fileno=descriptors[0]))
        old_end_s, _, theirs = message.decode().partition(" ")
        if theirs != serves:
            raise UsageError(_OPTION, str(path), f"the same options as the server there; it has {theirs}, not {serves}")
        connection.settimeout(float(old_end_s))
        try:
            connection.send(_TAKE)
            connection.recv(len(_STORE))
        except TimeoutError as error:
            allowed = f"the socket of a server that lets its store go; this one has not within {old_end_s} s"
            raise UsageError(_OPTION, str(path), allowed) from error
        except ConnectionError:
            pass  # it has ended just now, which is as good
        failed.pop_all()
    os.dup(connection.fileno())  # its other end hears this process's end, whatever is collected before
    return HandOver(path, serves, end_s, answer_s, PassedListener(listener), connection, old_end_s=float(old_end_s))


@contextmanager
def offered(hand_over: HandOver, stop: Callable[[], object]) -> Iterator[None]:
    """The offer of a server that serves. Its thread lasts until the process ``leave``s.

    ``stop`` is called once the next server serves. Raises UsageError for a path that cannot be had.
    """
    listener, bound = _bound(hand_over.path, keep=True)
    listener.listen(1)
    os.rename(bound, hand_over.path)
    threading.Thread(target=_offer, args=(listener, hand_over, stop), name="hand-over").start()
    try:
        yield
    finally:
        if not hand_over.listener.passed_on:
            with suppress(FileNotFoundError):
                os.unlink(hand_over.path)


def _offer(listener: socket.socket, hand_over: HandOver, stop: Callable[[], object]) -> None:
    """The thread's life: until another server serves."""
    with listener:
        while True:
            try:
                heir, _ = listener.accept()
            except OSError as error:  # the process can open no more files
                _log.warning("a next server could not be heard: %s", error)
                time.sleep(_AGAIN_S)
                continue
            with heir:
                if _handed_over(hand_over, heir):
                    hand_over.listener.passed_on = True
                    stop()
                    heir.detach()  # its descriptor stays open until the process ends, whatever is collected before
                    return


def _handed_over(hand_over: HandOver, heir: socket.socket) -> bool:
    """Steps 2 to 5 with one who asks; whether it serves. Else all is as before."""
    store = hand_over.store
    assert store is not None
    heir.settimeout(hand_over.answer_s)
    pid, _, _ = _CREDENTIALS.unpack(heir.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    process, lent = -1, False
    try:
        process = os.pidfd_open(pid)
        said = f"{hand_over.end_s:g} {hand_over.serves}".encode()
        socket.send_fds(heir, [said], [hand_over.listener.socket.fileno()])
        _hear(heir, _TAKE)
        lent = store.lend()
        if not lent:
            raise OSError("cannot have the store, whose disk is too slow")
        heir.send(_STORE)
        _hear(heir, _SERVES)
    except OSError as error:
        if lent:
            _end(process)
            store.take_back()
        _log.warning("the next server, process %d: %s; this one serves on", pid, error)
        return False
    finally:
        if process >= 0:
            os.close(process)
    store.give_away()
    return True


def _hear(heir: socket.socket, word: bytes) -> None:
    """Waits for the next server's word. Raises OSError where it does not come."""
    try:
        said = heir.recv(_MESSAGE_BYTES_MAX)
    except TimeoutError as error:
        raise TimeoutError(f"it said nothing within {heir.gettimeout():g} s, where {word!r} was due") from error
    if said != word:
        raise ConnectionError(
            f"it said {said!r}, not {word!r}" if said else "it ended before it was ready, and its own error says why"
        )


def _end(process: int) -> None:
    """Ends a process, and waits until it is gone and has no file open. Nobody else writes the store then."""
    with suppress(OSError):  # it has gone; or it is another user's, and keeps the store from this one by its lock
        signal.pidfd_send_signal(process, signal.SIGKILL)
    gone = select.poll()
    gone.register(process, select.POLLIN)
    gone.poll(_KILLED_S * 1000)


def _bound(path: Path, keep: bool = False) -> tuple[socket.socket, Path]:
    """A socket beside ``path``, for the owner alone, and where; with ``keep`` it stays there. Raises UsageError."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        if path.exists() and not stat.S_ISSOCK(path.stat().st_mode):
            raise FileExistsError("it is no socket")
        os.fchmod(unix.fileno(), 0o600)  # before it has a name, so that nobody else ever reaches it
        unix.bind(str(beside))
        if not keep:
            os.unlink(beside)
    except (OSError, ValueError) as error:
        unix.close()
        raise UsageError(_OPTION, str(path), f"a place for a Unix socket ({error})") from error
    return unix, beside
