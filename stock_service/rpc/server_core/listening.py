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
"""Connections that the kernel completes and holds until they are accepted; it caps this at net.core.somaxconn."""

READ_BYTES = 16384
"""Bytes asked for in one recv."""

FEW_BYTES = 4096
"""The same while requests wait, or have just been refused: a pipeline's length of small ones. To cut and refuse these
takes no longer than a few requests of others."""

FEWEST_BYTES, UNFOLDED_NS = 1024, 1_000_000
"""The same once one such read was so much to unfold from gzip: about a message at a time, if it unfolds to 1 MiB."""

RECEIVE_BYTES = 32768
"""What the kernel holds of a connection that is not read (SO_RCVBUF, of which it makes twice as much). So what waits
there is bounded, to some hundred small requests. It is more than one read takes: a full read says that more waits."""

ACCEPTS_A_TURN = 16
"""Connections accepted before the others are read again: with what opening them takes, that is a millisecond."""

_REFUSED_READS = 4
"""How often a client that is turned away is read, at most: it may send faster than that."""


def listen(options: ServeOptions, receive_bytes: int = RECEIVE_BYTES) -> socket.socket:
    """A listening socket, which its taker closes; see ``RECEIVE_BYTES``. Raises OSError where it cannot be had."""
    if options.listener is not None:
        return options.listener.socket.dup()
    address, family = (options.host, options.port), family_of(options.host)
    listener = socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=options.shares_port)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)  # what is accepted has it from here
    return listener


class Waker:
    """An eventfd by which any thread wakes the one that sleeps in an epoll or a selector.

    Whoever made it closes it, once nobody sleeps any more.
    """

    def __init__(self) -> None:
        self._lock = Lock()  # guards fd
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """What epoll is to watch; -1: closed."""

    def wake(self) -> None:
        """Wakes the sleeping thread. Any thread; once closed it does nothing."""
        with self._lock:
            if self.fd >= 0:  # a task that was given up may end after the server has
                os.eventfd_write(self.fd, 1)

    def woken(self) -> None:
        """The thread is awake: what was said until now is heard."""
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
        """``epoll`` makes it, once the address is had. Raises OSError where it cannot be."""
        self._listener = listen(options, receive_bytes)
        self._passed = options.listener
        self._listener.setblocking(False)
        host, port = self._listener.getsockname()[:2]
        self.address: Address = (host, port)
        self.fd = self._listener.fileno()
        self.accepting = True
        """Whether connections are accepted; not where the process can have no more, until one of its own is closed."""
        self.epoll = epoll()
        self.epoll.register(self.fd, select.EPOLLIN)
        self.waker = Waker()
        self.epoll.register(self.waker.fd, select.EPOLLIN)

    def accepted(self, count: int) -> Iterator[tuple[socket.socket, Address]]:
        """Up to so many of the connections that wait, unless those are the next server's. Their sockets block."""
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
        """Has connections accepted from now on, or not. Once closed, it does nothing."""
        if accepting != self.accepting and self._listener.fileno() >= 0:
            self.accepting = accepting
            self.epoll.modify(self.fd, select.EPOLLIN if accepting else 0)

    def close(self) -> None:
        """Accepts no more, ever. May be repeated."""
        self.accepting = False
        if self._listener.fileno() >= 0:
            self.epoll.unregister(self.fd)  # closing alone would not, while another process has it open
            self._listener.close()

    def end(self) -> None:
        """Frees the epoll and the waker, once nobody sleeps there any more. May be repeated."""
        self.close()
        self.waker.close()
        self.epoll.close()


def refuse_connection(connection: socket.socket, words: bytes) -> None:
    """Tells a client why it is not served, as far as that takes no waiting, and closes.

    What has come of it is read first: to close with bytes unread would destroy the words on their way.
    """
    try:
        connection.setblocking(False)
        connection.send(words)
        connection.shutdown(socket.SHUT_WR)
        for _ in range(_REFUSED_READS):
            if not connection.recv(READ_BYTES):
                break
    except OSError:
        pass  # it has gone, or reads nothing: either way there is nobody to tell
    finally:
        connection.close()
