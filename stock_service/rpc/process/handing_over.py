"""A server whose port and store go to the next one, so that a restart fails no request: ``--hand-over PATH``.

The server that runs offers its listener on a Unix socket at PATH. The next one is started with the same command:

1. It checks its options and files, and connects to PATH. Nobody there: it is the first, and listens by itself.
2. The one that runs sends what it serves, how long it takes to end, and its listener (SCM_RIGHTS in unix(7)).
3. The next one compares, and answers with a byte. Where it ends before that, nothing has changed.
4. The one that runs accepts no more, finishes what it accepted, closes its store, and ends. Its process's end closes
   the connection, which tells the next one that the store is free.
5. The next one opens the store, serves, and puts a socket of its own at PATH.

Both processes have the same listener, so the port is never closed. The kernel completes connections meanwhile, and
holds them until the next one accepts. With SO_REUSEPORT each would have a listener of its own, and what is in the old
one's queue would be reset when it closes.

Only the owner of the process can connect to PATH (mode 0600). Left out: several processes, and stocks in memory.
"""

import logging
import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from stock_service.rpc.errors import UsageError
from stock_service.rpc.server_core.options import PassedListener

_log = logging.getLogger(__name__)

_OPTION = "--hand-over"

_ANSWER_S = 5.0
"""How long either side waits for the other's message: nobody computes anything for it."""

_MESSAGE_BYTES_MAX = 16384
"""Of the one message: a path is 4096 bytes at most."""

_GO = b"!"


@dataclass(frozen=True, slots=True)
class HandOver:
    """What a server needs to hand itself over."""

    path: Path
    serves: str
    """What this server serves, and where: the next one must serve the same."""
    end_s: float
    """How long this server takes to end, at most."""
    listener: PassedListener


def take_over(path: Path, serves: str, end_s: float, listen: Callable[[], socket.socket]) -> HandOver:
    """The listener of the server at ``path``, once that server has ended; or one from ``listen`` where there is none.

    Blocks until then. Raises UsageError, before which the other server goes on unless it is too slow to end; and what
    ``listen`` raises.
    """
    _bound(path)[0].close()  # so that a bad path is known before anything has changed
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_ANSWER_S)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return HandOver(path, serves, end_s, PassedListener(listen()))
        except OSError as error:
            raise UsageError(_OPTION, str(path), f"the socket of a server that runs ({error})") from error
        listener = _asked(connection, path, serves)
    return HandOver(path, serves, end_s, PassedListener(listener))


def _asked(connection: socket.socket, path: Path, serves: str) -> socket.socket:
    """Has the other server end, and waits for that; its listener. Raises UsageError."""
    try:
        message, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES_MAX, 1)
    except OSError as error:
        raise UsageError(_OPTION, str(path), f"the socket of a server that answers ({error})") from error
    if not descriptors:
        raise UsageError(_OPTION, str(path), "the socket of a server that does not end just now: try again")
    listener = socket.socket(fileno=descriptors[0])
    try:
        end_s, _, theirs = message.decode().partition(" ")
        if theirs != serves:
            raise UsageError(_OPTION, str(path), f"the same options as the server there; it has {theirs}, not {serves}")
        with suppress(OSError):  # it has ended just now, which the next call says
            connection.send(_GO)
        _wait_for_end(connection, path, float(end_s))
    except BaseException:
        listener.close()
        raise
    return listener


def _wait_for_end(connection: socket.socket, path: Path, end_s: float) -> None:
    """Blocks until the other process is gone. Raises UsageError after ``end_s``."""
    connection.settimeout(end_s)
    try:
        connection.recv(1)
    except TimeoutError as error:
        allowed = f"the socket of a server that ends; this one has not within {end_s:g} s"
        raise UsageError(_OPTION, str(path), allowed) from error
    except OSError:
        pass  # reset: it is gone as well


class Offered:
    """The offer of a server that serves, for ``with``. Its thread lasts until the process ``leave``s."""

    def __init__(self, hand_over: HandOver, stop: Callable[[], object]) -> None:
        """``stop`` is called once the next server has the listener. Raises UsageError for a path that cannot be had."""
        self._hand_over = hand_over
        self._stop = stop
        self._listener, bound = _bound(hand_over.path, keep=True)
        self._listener.listen(1)
        os.rename(bound, hand_over.path)

    def __enter__(self) -> Self:
        threading.Thread(target=self._offer, name="hand-over").start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._hand_over.listener.passed_on:
            with suppress(FileNotFoundError):
                os.unlink(self._hand_over.path)

    def _offer(self) -> None:
        """Until somebody takes the listener."""
        said = f"{self._hand_over.end_s:g} {self._hand_over.serves}".encode()
        with self._listener:
            while self._asked(said):
                pass

    def _asked(self, said: bytes) -> bool:
        """One who asks; whether the listener is still to be had."""
        passed = self._hand_over.listener
        heir, _ = self._listener.accept()
        with heir:
            heir.settimeout(_ANSWER_S)
            try:
                socket.send_fds(heir, [said], [passed.socket.fileno()])
                if heir.recv(len(_GO)) != _GO:
                    return True
            except OSError as error:
                _log.warning("a server that was to take over did not: %s", error)
                return True
            passed.passed_on = True
            self._stop()
            heir.detach()  # its descriptor stays open until the process ends, whatever is collected before
            return False


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
