"""Steps that grpcio's ``stop`` leaves out, so that a server on grpcio stops without losing accepted calls.

grpcio's ``stop`` cancels every call that grpcio has not given to a handler yet, and closes a connection right after the
last reply. If the client has sent bytes meanwhile, the kernel resets the connection, and the rest of a large reply is
lost. Also, for connections that do not answer, such as a port probe's, ``stop`` waits until the grace ends. So the
function ``drain`` calls ``stop`` only when no call is under way:

1. The listener is closed, once the connections that wait in the kernel have been taken. grpcio cannot close the
   listener alone, so a socket without clients takes the listener's descriptor.
2. Calls are served until none is under way, and no byte is unread or unsent; for ``SERVING_S`` at most.
3. Then further calls are refused with a fault, and calls under way are finished. Idle connections are closed last.

This works only on Linux, where a process can look up its descriptors. On other systems the listener stays until grpcio
closes the listener.
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
"""Longest time for which calls on known connections are still served: a burst of 1,200 takes a third of it."""

REFUSING_S = 0.5
"""Time for which the drain waits, after ``SERVING_S``, for clients that continue to send after a refusal."""

QUIET_S = 0.05
"""Time without a call under way after which the server counts as drained: gRPC core needs this time to make a call from
read bytes.
"""

RESTLESS_S = 0.5
"""The same limit while another thread runs or waits for a core: the other thread may be about to make a call."""

LAST_S = 0.1
"""Time that grpcio's own ``stop`` has, after the drain, to end connections in order. Then ``stop`` closes all remaining
connections.
"""

_POLL_S = 0.005

_DESCRIPTORS, _THREADS = "/proc/self/fd", "/proc/self/task"

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)

_TCP = (socket.AF_INET, socket.AF_INET6)

_TCP_INFO_WAITING = 24
"""Offset, in a listening socket's TCP_INFO, of the number of connections that wait to be accepted (tcp(7),
``tcpi_unacked``).
"""


def drain(port: int, under_way: Callable[[], int], refuse: Callable[[], None], grace_s: float) -> bool:
    """Drains the server on a port by the steps of the module's docstring. Returns True if all steps ended within
    ``grace_s``. Blocks.

    ``under_way`` counts the accepted calls whose reply is not sent, without refused calls. ``refuse`` makes the server
    refuse new calls; it may be called twice. If the process has no free descriptor for these steps, new calls are
    refused at once, calls under way are finished, and the listener stays.
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
    """True if no call was under way for ``RESTLESS_S``, before the time ``until_s``. Blocks; opens no descriptor."""
    quiet_since_s = time.monotonic()
    while (now_s := time.monotonic()) < until_s:
        if under_way():
            quiet_since_s = now_s
        elif now_s - quiet_since_s >= RESTLESS_S:
            return True
        time.sleep(_POLL_S)
    return False


def _drained(port: int, under_way: Callable[[], int], refuse: Callable[[], None], grace_s: float) -> bool:
    """Drains as ``drain`` does; raises OSError if no descriptor is left."""
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
    """True if a connection waits to be accepted."""
    return any(_listens(each) and _waiting(each) for _, each in _sockets(port))


def _any_bytes(port: int, queue: int) -> bool:
    """True if a connection has unread bytes (FIONREAD), or bytes that the client's kernel lacks yet (TIOCOUTQ)."""
    return any(not _listens(each) and _bytes(each, queue) for _, each in _sockets(port))


def _any_thread_runs() -> bool:
    """True if another thread of this process runs, or waits for a core."""
    own = threading.get_native_id()
    tasks = os.listdir(_THREADS) if sys.platform == "linux" else ()
    return any(_state(task) == b"R" for task in tasks if int(task) != own)


def _state(task: str) -> bytes:
    """State of a thread as a letter of proc(5); empty if the thread has ended."""
    try:
        with open(f"{_THREADS}/{task}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1]
    except OSError as error:
        if error.errno in _NO_DESCRIPTOR:
            raise
        return b""  # the thread has ended


def _close_listeners(port: int) -> None:
    """Closes the listeners on a port. gRPC core keeps the descriptors, which now refer to a socket without clients."""
    for descriptor, each in _sockets(port):
        if _listens(each):
            with socket.socket(socket.AF_UNIX) as nobody_knows:
                nobody_knows.bind("")  # a name that the kernel chooses
                nobody_knows.listen(1)  # so that accepting from it is no error
                nobody_knows.setblocking(False)
                os.dup2(nobody_knows.fileno(), descriptor, inheritable=False)


def _sockets(port: int) -> Iterator[tuple[int, socket.socket]]:
    """This process's TCP sockets on its own port ``port``, each with the descriptor under which it was found."""
    for name in os.listdir(_DESCRIPTORS) if sys.platform == "linux" else ():
        found = _opened(int(name))
        if found is None:
            continue
        with found:
            if found.family in _TCP and found.type == socket.SOCK_STREAM and found.getsockname()[1] == port:
                yield int(name), found


def _opened(descriptor: int) -> socket.socket | None:
    """The socket of a descriptor, under a new descriptor; None if the descriptor is no socket's, or closed."""
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
    """Number of bytes in a queue of the socket. ``queue`` is FIONREAD or TIOCOUTQ."""
    try:
        return int.from_bytes(fcntl.ioctl(connection, queue, bytes(4)), sys.byteorder)
    except OSError:
        return 0  # the socket listened until a moment ago
