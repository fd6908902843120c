"""Drain of a server on grpcio. A server calls ``drain`` before grpcio's ``stop``, and so loses no accepted call.

grpcio's ``stop`` cancels every call that grpcio has not given to a handler yet. ``stop`` also closes a connection right
after the last reply. If the client has sent bytes before this close, the kernel resets the connection, and the end of a
large reply is lost. If a connection does not answer, such as the connection of a port probe, ``stop`` waits for the
whole grace. So the server first calls ``drain``, and calls ``stop`` when no call is under way. The steps of ``drain``:

1. Close the listening socket, once grpcio has accepted the connections of the listen backlog. grpcio cannot close only
   the listening socket. So ``drain`` makes the listening socket's descriptor refer to another socket, which has no
   clients.
2. Serve calls until no call is under way and no byte is unread or unsent, for ``SERVING_S`` at most.
3. Then refuse further calls with a fault, and finish the calls under way. ``stop`` later closes idle connections.

The first step works only on Linux, where a process can list its own descriptors. On another system the listening socket
stays open until ``stop``.
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
"""Longest time, in seconds, for which the drain serves calls on accepted connections. The server answers 1,200
simultaneous calls in a third of this time.
"""

REFUSING_S = 0.5
"""Time in seconds. If clients still send calls after ``SERVING_S``, the drain refuses further calls for this time."""

QUIET_S = 0.05
"""Time in seconds. If for this time no call was under way, and no other thread ran, the server counts as drained. gRPC
core may need this time to make a call from bytes that gRPC core has read.
"""

RESTLESS_S = 0.5
"""Time in seconds. If no call was under way for this time, the server counts as drained, even if another thread of the
process runs or waits for a core. This time is longer than ``QUIET_S``, since the other thread may just be making a call
from received bytes.
"""

LAST_S = 0.1
"""Time in seconds for grpcio's ``stop`` after the drain. In this time ``stop`` ends connections in order. Then ``stop``
closes all remaining connections.
"""

_POLL_S = 0.005

_DESCRIPTORS, _THREADS = "/proc/self/fd", "/proc/self/task"

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)

_TCP = (socket.AF_INET, socket.AF_INET6)

_TCP_INFO_WAITING = 24
"""Offset in bytes, in a listening socket's TCP_INFO, of the number of connections that wait to be accepted (tcp(7),
``tcpi_unacked``).
"""


def drain(port: int, under_way: Callable[[], int], refuse: Callable[[], None], grace_s: float) -> bool:
    """Drains the server on a port by the steps in the module's docstring. Returns True if all steps ended within
    ``grace_s``. Blocks.

    ``under_way`` returns the number of accepted calls whose reply is not sent; refused calls do not count. ``refuse``
    makes the server refuse new calls; ``drain`` may call ``refuse`` twice. The steps need a free descriptor. If the
    process has none, ``drain`` refuses new calls at once, finishes the calls under way, and leaves the listening socket
    open.
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
    """Waits until no call has been under way for ``RESTLESS_S`` seconds, and then returns True. Returns False at the
    time ``until_s`` on ``time.monotonic``. Blocks. Opens no descriptor.
    """
    quiet_since_s = time.monotonic()
    while (now_s := time.monotonic()) < until_s:
        if under_way():
            quiet_since_s = now_s
        elif now_s - quiet_since_s >= RESTLESS_S:
            return True
        time.sleep(_POLL_S)
    return False


def _drained(port: int, under_way: Callable[[], int], refuse: Callable[[], None], grace_s: float) -> bool:
    """Takes the steps of ``drain``. Returns True if all steps ended within ``grace_s``. Raises OSError if the process
    has no free descriptor.
    """
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
    """Returns True if a connection waits in the port's listen backlog, and so grpcio has not accepted the connection
    yet.
    """
    return any(_listens(each) and _waiting(each) for _, each in _sockets(port))


def _any_bytes(port: int, queue: int) -> bool:
    """Returns True if any connection has unread bytes (``queue`` FIONREAD) or unacknowledged bytes (TIOCOUTQ)."""
    return any(not _listens(each) and _bytes(each, queue) for _, each in _sockets(port))


def _any_thread_runs() -> bool:
    """Returns True if another thread of this process runs, or waits for a core."""
    own = threading.get_native_id()
    tasks = os.listdir(_THREADS) if sys.platform == "linux" else ()
    return any(_state(task) == b"R" for task in tasks if int(task) != own)


def _state(task: str) -> bytes:
    """Returns the state of a thread as a letter of proc(5); empty if the thread has ended."""
    try:
        with open(f"{_THREADS}/{task}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1]
    except OSError as error:
        if error.errno in _NO_DESCRIPTOR:
            raise
        return b""  # the thread has ended


def _close_listeners(port: int) -> None:
    """Closes the listening sockets on a port, by the first step of the module."""
    for descriptor, each in _sockets(port):
        if _listens(each):
            with socket.socket(socket.AF_UNIX) as nobody_knows:
                nobody_knows.bind("")  # the kernel chooses a name, which no client knows
                nobody_knows.listen(1)  # so that gRPC core can accept from the socket without an error
                nobody_knows.setblocking(False)
                os.dup2(nobody_knows.fileno(), descriptor, inheritable=False)


def _sockets(port: int) -> Iterator[tuple[int, socket.socket]]:
    """Yields this process's TCP sockets with the local port ``port``, each with its descriptor. A yielded socket is a
    duplicate, which is closed at the next step.
    """
    for name in os.listdir(_DESCRIPTORS) if sys.platform == "linux" else ():
        found = _opened(int(name))
        if found is None:
            continue
        with found:
            if found.family in _TCP and found.type == socket.SOCK_STREAM and found.getsockname()[1] == port:
                yield int(name), found


def _opened(descriptor: int) -> socket.socket | None:
    """Duplicates the socket of a descriptor. Returns None if the descriptor is closed or has no socket."""
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
    """Returns the number of bytes in a queue of the socket. ``queue`` is FIONREAD or TIOCOUTQ."""
    try:
        return int.from_bytes(fcntl.ioctl(connection, queue, bytes(4)), sys.byteorder)
    except OSError:
        return 0  # a listening socket, which was just replaced
