"""Hand-over of a server's port and store to the next server, so that no request fails at a restart: ``--hand-over
PATH``.

The old server runs, and offers its listening socket on a Unix socket at PATH. An operator starts the new server with
the same command. If no server is at PATH, the new server is the first server, and opens its port itself. Otherwise the
steps are:

    step  server  action                                                  if the new server fails, the old server
    1     new     checks its options and files, and connects              does not notice
    2     old     sends its address and store, its longest time to end,   waits ``answer_s`` at most, continues to serve
                  and its listening socket (SCM_RIGHTS in unix(7))
    3     new     compares address and store, and sends ``!``             waits ``answer_s`` at most, continues to serve
    4     old     makes changes wait, closes the store, sends ``store``   kills the new server, takes the store back
    5     new     opens the store, accepts, prints its ready line, and    waits ``answer_s`` at most, then as in step 4
                  sends ``serves``
    6     old     refuses changes, stops accepting, finishes accepted     ends
                  requests, and ends: the end of its process closes
                  the connection
    7     new     begins to write changes, and puts a socket of its       has ended
                  own at PATH

A server fails if the server is killed, ends, sends a wrong message, or sends no message. Up to step 5 the old server
answers requests, but in steps 4 and 5 requests that change a stock wait. If the old server takes the store back, the
old server makes these changes. If the new server takes over, the old server refuses these changes, and they have no
effect.

If the new server hangs in step 5, the new server may have the store open. So the old server kills the new server, waits
for the end of its process, and then opens and reads the store again. The new server makes no change before step 7. So
the old server's answers to Lookups are never out of date. If the old server ends or is killed in step 3 or later, the
new server continues as if the expected message had come.

Both processes have the same listening socket, so the port is never closed. SO_REUSEPORT would not be enough: each
process would have its own listening socket, and the close of the old socket would reset the connections in its listen
backlog.

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
"""Default of ``answer_s``: seconds for which a server waits for a message of the other server. Reading a large store
takes less time. But in step 3 the new server waits longer for the message ``store``: for ``old_end_s``.
"""

_KILLED_S = 5.0
"""Longest time, in seconds, that the old server waits for the end of a killed new server."""

_AGAIN_S = 1.0
"""Pause, in seconds, after which the old server again tries to accept the connection of a new server."""

_MESSAGE_BYTES_MAX = 16384
"""Largest size of a message, in bytes. The first message contains a path, which has at most 4096 bytes."""

_TAKE, _STORE, _SERVES = b"!", b"store", b"serves"

_CREDENTIALS = struct.Struct("3i")
"""Value of the socket option SO_PEERCRED: ids of the peer's process, of its user and of its group."""


class Store(Protocol):
    """A store that one server hands over to the next server, together with the listening socket. The server writes
    changes of stocks to the store.
    """

    def hold(self) -> bool:
        """Makes changes wait from now on. Returns True once no write is under way. Returns False if a write takes too
        long.
        """

    def go_on(self) -> None:
        """Ends ``hold``: the store writes the waiting changes, and writes later changes at once."""

    def lend(self) -> bool:
        """Makes changes wait, and closes the store's file. Then another process may open the file. If a write takes too
        long, lets changes continue, and returns False.
        """

    def take_back(self) -> None:
        """Ends ``lend``: opens the file again, and writes the waiting changes and all later changes. The process that
        had the file must have ended.
        """

    def give_away(self) -> None:
        """Refuses the waiting and later changes, because the next server has taken over the store."""


@dataclass(slots=True)
class HandOver:
    """State of two hand-overs: from the previous server to this server, and from this server to the next server."""

    path: Path
    serves: str
    """Text with the transport, address and store of this server. The next server must have the same text."""
    end_s: float
    """Longest time that this server takes to end, in seconds."""
    answer_s: float
    """Longest time, in seconds, that this server waits for each message of the next server."""
    listener: PassedListener
    old: socket.socket | None = None
    """Connection to the previous server, open until this process ends; None for a server without a previous server."""
    store: Store | None = None
    old_end_s: float = 0.0
    """Longest time, in seconds, that the previous server takes to end, as the previous server has stated."""

    def has(self, store: Store) -> None:
        """Notes that this server has opened the store. While the previous server may take the store back, makes changes
        wait.
        """
        self.store = store
        if self.old is not None:
            store.hold()

    def conclude(self) -> None:
        """Tells the previous server that this server serves. Then waits until the previous server has ended, for
        ``old_end_s`` at most. Then lets the store write changes. Blocks.
        """
        assert self.old is not None
        try:
            self.old.send(_SERVES)
            self.old.settimeout(self.old_end_s)
            self.old.recv(1)
        except TimeoutError:
            _log.warning("the server before has no store any more, and has not ended within %g s", self.old_end_s)
        except OSError:
            pass  # the previous server has ended already
        assert self.store is not None
        self.store.go_on()


def take_over(path: Path, serves: str, end_s: float, answer_s: float, listen: Callable[[], socket.socket]) -> HandOver:
    """Takes over the listening socket of the old server at ``path``, once the old server has closed its store. If no
    server is at ``path``, calls ``listen`` for a listening socket.

    Blocks. Raises UsageError; the old server then continues to serve. Also raises the exceptions of ``listen``.
    """
    _bound(path)[0].close()  # raises for a bad path before anything has changed
    with ExitStack() as failed:  # closes the opened sockets after a failure
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
            pass  # the old server has just ended, and so has closed its store
        failed.pop_all()
    os.dup(connection.fileno())  # keeps the connection open until this process ends, even without the socket object
    return HandOver(path, serves, end_s, answer_s, PassedListener(listener), connection, old_end_s=float(old_end_s))


@contextmanager
def offered(hand_over: HandOver, stop: Callable[[], object]) -> Iterator[None]:
    """Offers a hand-over to the next server, on a thread that runs until the process calls ``leave``.

    The thread calls ``stop`` once the next server serves. Raises OSError, and UsageError for a path that cannot be
    used.
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
    """Main function of the thread: offers the hand-over to new servers, until a new server serves."""
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
                    heir.detach()  # keeps the connection open until this process ends
                    return


def _handed_over(hand_over: HandOver, heir: socket.socket) -> bool:
    """Takes the old server's part in the steps 2 to 5 of the module's table. ``heir`` is the connection to the new
    server.

    Returns True if the new server serves. Returns False if the new server has failed, and this server continues to
    serve.
    """
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
    """Waits for the message ``word`` of the next server, on the connection ``heir``. Raises OSError if another message
    comes, or if no message comes in time.
    """
    try:
        said = heir.recv(_MESSAGE_BYTES_MAX)
    except TimeoutError as error:
        raise TimeoutError(f"it said nothing within {heir.gettimeout():g} s, where {word!r} was due") from error
    if said != word:
        raise ConnectionError(
            f"it said {said!r}, not {word!r}" if said else "it ended before it was ready, and its own error says why"
        )


def _end(process: int) -> None:
    """Kills a process, given by its pidfd, and waits until the process is gone and has no open file. Then the process
    cannot write to the store any more.
    """
    with suppress(OSError):  # the process has ended; or it belongs to another user, and may keep its lock of the store
        signal.pidfd_send_signal(process, signal.SIGKILL)
    gone = select.poll()
    gone.register(process, select.POLLIN)
    gone.poll(_KILLED_S * 1000)


def _bound(path: Path, keep: bool = False) -> tuple[socket.socket, Path]:
    """Binds a Unix socket to a temporary path beside ``path``; only the owner can connect. Returns the socket and the
    temporary path, which is removed at once unless ``keep`` is True. Raises UsageError if ``path`` cannot be used.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        if path.exists() and not stat.S_ISSOCK(path.stat().st_mode):
            raise FileExistsError("it is no socket")
        os.fchmod(unix.fileno(), 0o600)  # before ``bind``, so that no other user can connect at any time
        unix.bind(str(beside))
        if not keep:
            os.unlink(beside)
    except (OSError, ValueError) as error:
        unix.close()
        raise UsageError(_OPTION, str(path), f"a place for a Unix socket ({error})") from error
    return unix, beside
