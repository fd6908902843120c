"""Listening: the listening socket, the epoll in which the reading thread sleeps, and the eventfd that wakes
the thread."""

import errno
import logging
import os
import select
import socket
from collections.abc import Callable, Iterator
from threading import Lock

from stock_service.rpc.option_types import family_of
from stock_service.rpc.server_core.options import Address, ServeOptions

_log = logging.getLogger(__name__)

BACKLOG = 1024
"""Listen backlog: number of completed connections that wait in the kernel until the server accepts them. The kernel's
limit net.core.somaxconn may be smaller.
"""

READ_BYTES = 16384
"""Largest number of bytes of one read (recv) of a connection, while the server is not overloaded."""

FEW_BYTES = 4096
"""Largest number of bytes of one recv while requests wait, or after a refusal. So many bytes hold a full pipeline of
small requests. Decoding and refusing these requests takes no longer than answering a few.
"""

FEWEST_BYTES, UNFOLDED_NS = 1024, 1_000_000
"""``FEWEST_BYTES`` is the largest number of bytes of one recv from a client whose messages are slow to decompress: the
bytes of one recv take over ``UNFOLDED_NS`` nanoseconds. If each message decompresses to 1 MiB, the server then reads
about one message at a time.
"""

RECEIVE_BYTES = 32768
"""Size of the kernel's receive buffer of a connection, in bytes (SO_RCVBUF, which the kernel doubles). A full buffer
holds some hundred small requests. The size is larger than ``READ_BYTES``, so bytes may remain after a read of
``READ_BYTES``.
"""

ACCEPTS_A_TURN = 16
"""Largest number of connections that the server accepts before it reads the open connections again. Accepting 16
connections takes a millisecond.
"""

_REFUSED_READS = 4
"""Largest number of reads from a client whose connection the server refuses. The client may send faster than the server
reads.
"""


def listen(options: ServeOptions, receive_bytes: int = RECEIVE_BYTES) -> socket.socket:
    """Opens a listening socket, which the caller must close. ``receive_bytes`` is the size of the kernel's receive
    buffer of each accepted connection. Raises OSError if the socket cannot be opened.
    """
    if options.listener is not None:
        return options.listener.socket.dup()
    address, family = (options.host, options.port), family_of(options.host)
    listener = socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=options.shares_port)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)  # accepted sockets inherit the size
    return listener


class Waker:
    """An eventfd, by which any thread wakes the thread that sleeps in an epoll or a selector.

    The code that made the waker must close the waker, once no thread sleeps in the epoll or selector.
    """

    def __init__(self) -> None:
        self._lock = Lock()  # guards fd
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Descriptor that the epoll or selector must watch; -1 after ``close``."""

    def wake(self) -> None:
        """Wakes the sleeping thread. Thread-safe. Does nothing after ``close``."""
        with self._lock:
            if self.fd >= 0:  # an abandoned task may end after the server
                os.eventfd_write(self.fd, 1)

    def woken(self) -> None:
        """Clears the eventfd. The woken thread must call ``woken``; otherwise its next sleep ends at once."""
        os.eventfd_read(self.fd)

    def close(self) -> None:
        """Closes the eventfd. May be called again."""
        with self._lock:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1


class Listening:
    """A listening socket and a waker, both in one epoll, in which the reading thread sleeps. Only the reading thread
    uses this object; other threads may use only ``waker``.
    """

    def __init__(
        self, options: ServeOptions, epoll: Callable[[], select.epoll], receive_bytes: int = RECEIVE_BYTES
    ) -> None:
        """``epoll`` makes the epoll, after the socket was opened. Raises OSError if the socket cannot be opened."""
        self._listener = listen(options, receive_bytes)
        self._passed = options.listener
        self._listener.setblocking(False)
        host, port = self._listener.getsockname()[:2]
        self.address: Address = (host, port)
        self.fd = self._listener.fileno()
        self.accepting = True
        """True while the server accepts connections. False after ``close``. Also False after the process had no room
        for a connection, until ``accept(True)``.
        """
        self.epoll = epoll()
        self.epoll.register(self.fd, select.EPOLLIN)
        self.waker = Waker()
        self.epoll.register(self.waker.fd, select.EPOLLIN)

    def accepted(self, count: int) -> Iterator[tuple[socket.socket, Address]]:
        """Accepts up to ``count`` connections of the listen backlog, as blocking sockets. Accepts no connection if this
        process has handed the listening socket over to the next server's process.
        """
        if not self.accepting or (self._passed is not None and self._passed.passed_on):
            return
        for _ in range(count):
            try:
                accepted, peer = self._listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    _log.warning("no room for another connection: %s", error.strerror)
                    self.accept(False)
                elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                    _log.warning("a connection could not be accepted: %s", error.strerror)
                return
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield accepted, peer[:2]

    def accept(self, accepting: bool) -> None:
        """Starts or stops accepting connections. Does nothing after ``close``."""
        if accepting != self.accepting and self._listener.fileno() >= 0:
            self.accepting = accepting
            self.epoll.modify(self.fd, select.EPOLLIN if accepting else 0)

    def close(self) -> None:
        """Closes the listening socket. May be called again."""
        self.accepting = False
        if self._listener.fileno() >= 0:
            self.epoll.unregister(self.fd)  # a close does not unregister a socket that another process has open
            self._listener.close()

    def end(self) -> None:
        """Closes the listening socket, the epoll and the waker. No thread may sleep in the epoll. May be
        called again."""
        self.close()
        self.waker.close()
        self.epoll.close()


def refuse_connection(connection: socket.socket, words: bytes) -> None:
    """Sends ``words`` (the reason of the refusal), if possible without waiting, and closes the connection.

    Reads the client's bytes before the close, since a close with unread bytes could destroy the reason on its way.
    """
    try:
        connection.setblocking(False)
        connection.send(words)
        connection.shutdown(socket.SHUT_WR)
        for _ in range(_REFUSED_READS):
            if not connection.recv(READ_BYTES):
                break
    except OSError:
        pass  # the client has gone, or reads nothing: the reason cannot reach it
    finally:
        connection.close()
