"""Listening: the socket, the epoll that the reading thread sleeps in, and the eventfd that wakes it."""

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
"""The listen backlog: number of completed connections that the kernel holds until they are accepted. The kernel's own
limit is net.core.somaxconn.
"""

READ_BYTES = 16384
"""Largest number of bytes of one recv."""

FEW_BYTES = 4096
"""Largest number of bytes of one recv while requests wait, or have just been refused: a full pipeline of small
requests. Cutting and refusing these requests takes no longer than answering a few requests.
"""

FEWEST_BYTES, UNFOLDED_NS = 1024, 1_000_000
"""Largest number of bytes of one recv from a client whose gzip takes long to decompress. Decompression takes long if it
takes more than the second number for one read. If messages decompress to 1 MiB, the server then reads about one message
at a time.
"""

RECEIVE_BYTES = 32768
"""Number of bytes that the kernel holds of a connection that is not read (SO_RCVBUF, which the kernel doubles). This
bounds the unread requests, to some hundred small requests. The number is larger than one read. So a full read shows
that more bytes may wait.
"""

ACCEPTS_A_TURN = 16
"""Number of connections accepted before the open connections are read again. Accepting this number takes a
millisecond.
"""

_REFUSED_READS = 4
"""Largest number of reads from a client whose connection is refused: the client may send faster than the server
reads.
"""


def listen(options: ServeOptions, receive_bytes: int = RECEIVE_BYTES) -> socket.socket:
    """A listening socket, which the caller closes; see ``RECEIVE_BYTES``. Raises OSError if it cannot be opened."""
    if options.listener is not None:
        return options.listener.socket.dup()
    address, family = (options.host, options.port), family_of(options.host)
    listener = socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=options.shares_port)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)  # accepted sockets inherit it
    return listener


class Waker:
    """An eventfd by which any thread wakes the thread that sleeps in an epoll or a selector.

    Its maker closes it, once no thread sleeps there any more.
    """

    def __init__(self) -> None:
        self._lock = Lock()  # guards fd
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """The descriptor that epoll is to watch; -1: closed."""

    def wake(self) -> None:
        """Wakes the sleeping thread. Any thread may call this. After ``close`` it does nothing."""
        with self._lock:
            if self.fd >= 0:  # a task that was given up may end after the server
                os.eventfd_write(self.fd, 1)

    def woken(self) -> None:
        """Clears the eventfd, after the thread has woken."""
        os.eventfd_read(self.fd)

    def close(self) -> None:
        """Frees the descriptor. May be repeated."""
        with self._lock:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1


class Listening:
    """A listener and a waker in an epoll; the reading thread's."""

    def __init__(
        self, options: ServeOptions, epoll: Callable[[], select.epoll], receive_bytes: int = RECEIVE_BYTES
    ) -> None:
        """``epoll`` makes the epoll, once the address is open. Raises OSError if the address cannot be opened."""
        self._listener = listen(options, receive_bytes)
        self._passed = options.listener
        self._listener.setblocking(False)
        host, port = self._listener.getsockname()[:2]
        self.address: Address = (host, port)
        self.fd = self._listener.fileno()
        self.accepting = True
        """True while connections are accepted. False while the process can open no further connection, until a
        connection is closed.
        """
        self.epoll = epoll()
        self.epoll.register(self.fd, select.EPOLLIN)
        self.waker = Waker()
        self.epoll.register(self.waker.fd, select.EPOLLIN)

    def accepted(self, count: int) -> Iterator[tuple[socket.socket, Address]]:
        """Up to ``count`` of the waiting connections, unless the next server has the listener. The sockets are
        blocking.
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
        """Starts or stops accepting connections. Does nothing once closed."""
        if accepting != self.accepting and self._listener.fileno() >= 0:
            self.accepting = accepting
            self.epoll.modify(self.fd, select.EPOLLIN if accepting else 0)

    def close(self) -> None:
        """Stops accepting for good. May be repeated."""
        self.accepting = False
        if self._listener.fileno() >= 0:
            self.epoll.unregister(self.fd)  # closing alone does not suffice while another process has it open
            self._listener.close()

    def end(self) -> None:
        """Frees the epoll and the waker, once no thread sleeps there any more. May be repeated."""
        self.close()
        self.waker.close()
        self.epoll.close()


def refuse_connection(connection: socket.socket, words: bytes) -> None:
    """Tells a client the reason of its refusal, as far as possible without waiting, and closes the connection.

    Reads the client's bytes before closing: a close with unread bytes would destroy the reason on its way.
    """
    try:
        connection.setblocking(False)
        connection.send(words)
        connection.shutdown(socket.SHUT_WR)
        for _ in range(_REFUSED_READS):
            if not connection.recv(READ_BYTES):
                break
    except OSError:
        pass  # the client has gone, or reads nothing: it cannot be told
    finally:
        connection.close()
