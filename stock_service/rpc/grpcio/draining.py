"""How a server on grpcio stops without losing what it accepted: by doing first what grpcio's ``stop`` leaves out.

grpcio's ``stop`` cancels every call that it has not handed over yet, and closes a connection right behind its last
reply. The kernel then resets a connection on which the client has sent anything meanwhile, and the rest of a large
reply is lost. And it waits until its grace ends for connections that do not answer, as those of a port probe. So
here nobody calls ``stop`` before nothing is under way:

1. The listener is closed, once the connections that wait in the kernel have been taken. grpcio cannot do that alone:
   its descriptor is given to a socket that nobody knows.
2. Calls are served until none is under way, and no byte is unread or unsent; for ``SERVING_S`` at most.
3. Then further calls are refused by name, and those under way are finished. Idle connections are closed after these.

Only on Linux, where a process can look up its descriptors. Elsewhere the listener stays until grpcio closes it.
"""

import errno
import fcntl
import math
import os
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator

SERVING_S = 1.0
"""How long calls are still served that come on known connections, at most: a burst of 1,200 takes a third of it."""

REFUSING_S = 0.5
"""How long the end waits, after that, for clients that send on though they are refused."""

QUIET_S = 0.05
"""How long nothing must be under way: what gRPC core takes from the bytes that it read to the call."""

RESTLESS_S = 0.5
"""The same where another thread runs all the time, or waits for a core: it may be one that brings a call."""

LAST_S = 0.1
"""How long grpcio's own ``stop`` has, after that, to take leave of its clients; then it closes what is left."""

_POLL_S = 0.005

_DESCRIPTORS, _THREADS = "/proc/self/fd", "/proc/self/task"

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)

_TCP = (socket.AF_INET, socket.AF_INET6)

_TCP_INFO_WAITING = 24
"""Where TCP_INFO says how many connections wait to be accepted, of a socket that listens (tcp(7), ``tcpi_unacked``)."""


def drain(port: int, under_way: Callable[[], int], refuse: Callable[[], None], grace_s: float) -> bool:
    """Does all that of the server on a port; says whether it came to its end within ``grace_s``. Blocks.

    ``under_way`` counts the calls that were accepted and whose reply is not sent, without those that are refused.
    ``refuse`` has new ones refused; it may be called twice. Where no descriptor is left to look with, calls are refused
    at once, those under way are finished, and the listener stays.
    """
    until_s = time.monotonic() + grace_s
    try:
        return _drained(port, under_way, refuse, grace_s)
    except OSError as error:
        if error.errno not in _NO_DESCRIPTOR:
            raise
    refuse()
    return _ended(under_way, until_s)


def _ended(under_way: Callable[[], int], until_s: float) -> bool:
    """Whether, before a moment, no call was under way for ``RESTLESS_S``. Blocks; opens nothing."""
    quiet_since_s = time.monotonic()
    while (now_s := time.monotonic()) < until_s:
        if under_way():
            quiet_since_s = now_s
        elif now_s - quiet_since_s >= RESTLESS_S:
            return True
        time.sleep(_POLL_S)
    return False


def _drained(port: int, under_way: Callable[[], int], refuse: Callable[[], None], grace_s: float) -> bool:
    """As ``drain``; raises OSError where no descriptor is left."""
    began_s = now_s = time.monotonic()
    quiet_since_s = asleep_since_s = now_s
    listening, refusing_since_s = True, math.inf
    while now_s - began_s < grace_s:
        if listening and (not _any_waits(port) or now_s - began_s > QUIET_S):
            _close_listeners(port)
            listening = False
            quiet_since_s = asleep_since_s = now_s
        if refusing_since_s == math.inf and now_s - began_s > min(SERVING_S, grace_s / 2):
            refuse()
            refusing_since_s = now_s
        busy = under_way() or _any_bytes(port, termios.TIOCOUTQ)
        if busy or _any_bytes(port, termios.FIONREAD):
            quiet_since_s = asleep_since_s = time.monotonic()
        elif _any_thread_runs():
            asleep_since_s = time.monotonic()
        if not busy and now_s - refusing_since_s >= REFUSING_S:
            return True
        if not listening and (now_s - asleep_since_s >= QUIET_S or now_s - quiet_since_s >= RESTLESS_S):
            return True
        time.sleep(_POLL_S)
        now_s = time.monotonic()
    return False


def _any_waits(port: int) -> bool:
    """Whether a connection waits to be accepted."""
    return any(_listens(each) and _waiting(each) for _, each in _sockets(port))


def _any_bytes(port: int, queue: int) -> bool:
    """Whether a connection has bytes that were not read, or (TIOCOUTQ) that the client's kernel does not have yet."""
    return any(not _listens(each) and _bytes(each, queue) for _, each in _sockets(port))


def _any_thread_runs() -> bool:
    """Whether another thread of this process runs, or would if there were a core for it."""
    own = threading.get_native_id()
    tasks = os.listdir(_THREADS) if sys.platform == "linux" else ()
    return any(_state(task) == b"R" for task in tasks if int(task) != own)


def _state(task: str) -> bytes:
    """A thread's state in one letter, as proc(5) says it."""
    try:
        with open(f"{_THREADS}/{task}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1]
    except OSError as error:
        if error.errno in _NO_DESCRIPTOR:
            raise
        return b""  # it has ended


def _close_listeners(port: int) -> None:
    """Closes what listens there: gRPC core keeps the descriptor, now of a socket that nobody can connect to."""
    for descriptor, each in _sockets(port):
        if _listens(each):
            with socket.socket(socket.AF_UNIX) as nobody_knows:
                nobody_knows.bind("")  # a name that the kernel chooses
                nobody_knows.listen(1)  # so that to accept from it is no error
                nobody_knows.setblocking(False)
                os.dup2(nobody_knows.fileno(), descriptor, inheritable=False)


def _sockets(port: int) -> Iterator[tuple[int, socket.socket]]:
    """This process's TCP sockets on a port of its own, each with the descriptor that it was found by."""
    for name in os.listdir(_DESCRIPTORS) if sys.platform == "linux" else ():
        found = _opened(int(name))
        if found is None:
            continue
        with found:
            if found.family in _TCP and found.type == socket.SOCK_STREAM and found.getsockname()[1] == port:
                yield int(name), found


def _opened(descriptor: int) -> socket.socket | None:
    """The socket that a descriptor stands for, under a descriptor of its own; None where that is none, or gone."""
    try:
        own = os.dup(descriptor)
    except OSError as error:
        if error.errno in _NO_DESCRIPTOR:
            raise
        return None
    try:
        return socket.socket(fileno=own)
    except OSError:
        os.close(own)
        return None


def _listens(found: socket.socket) -> bool:
    return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _waiting(listener: socket.socket) -> int:
    told = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_WAITING + 4)
    return int(struct.unpack_from("=I", told, _TCP_INFO_WAITING)[0])


def _bytes(connection: socket.socket, queue: int) -> int:
    """Bytes in one of a connection's queues."""
    try:
        return int.from_bytes(fcntl.ioctl(connection, queue, bytes(4)), sys.byteorder)
    except OSError:
        return 0  # it listened until a moment ago
