"""Listening, and what the kernel is asked about a connection."""

import fcntl
import socket
import sys
import termios

from stock_service.rpc.server_core.options import ServeOptions

BACKLOG = 1024
"""Connections that the kernel completes and holds until they are accepted; it caps this at net.core.somaxconn."""

READ_BYTES = 65536
"""Bytes asked for in one recv."""


def listen(options: ServeOptions) -> socket.socket:
    """A listening, blocking socket. Raises OSError where the address cannot be had."""
    return socket.create_server((options.host, options.port), backlog=BACKLOG, reuse_port=options.shares_port)


def arrived_bytes(connection: socket.socket) -> int:
    """How many bytes the kernel holds of what the client has sent."""
    return int.from_bytes(fcntl.ioctl(connection, termios.FIONREAD, bytes(4)), sys.byteorder)


def refuse_connection(connection: socket.socket, words: bytes) -> None:
    """Tells a client why it is not served, as far as that takes no waiting, and closes."""
    try:
        connection.setblocking(False)
        connection.send(words)
    except OSError:
        pass  # it has gone, or reads nothing: either way there is nobody to tell
    finally:
        connection.close()
