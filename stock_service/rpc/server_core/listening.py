"""Listening, and turning a connection away."""

import socket

from stock_service.rpc.server_core.options import ServeOptions

BACKLOG = 1024
"""Connections that the kernel completes and holds until they are accepted; it caps this at net.core.somaxconn."""

READ_BYTES = 65536
"""Bytes asked for in one recv."""

_REFUSED_READS = 4
"""How often a client that is turned away is read, at most: it may send faster than that."""


def listen(options: ServeOptions) -> socket.socket:
    """A listening, blocking socket. Raises OSError where the address cannot be had."""
    return socket.create_server((options.host, options.port), backlog=BACKLOG, reuse_port=options.shares_port)


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
