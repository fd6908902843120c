"""The client and a server's last words on a connection, whenever they come."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from stock_service.rpc.errors import NotBegun, Unavailable
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.transports.sockets import connect
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.framing import encode_reply

GOODBYE = Frames(Methods({}, {}), 1000).goodbye()
WAIT_S = 5.0


def served(listener: socket.socket, *said: bytes) -> None:
    """Accepts connections in sequence. On each it reads a request, sends these bytes, and closes."""
    for words in said:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(words)


def test_a_goodbye_behind_a_reply_is_heeded() -> None:
    """After a goodbye behind a reply the next request has a new connection. On the old one its fate would be
    unknown."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        done = threads.submit(served, listener, encode_reply(1, 0, b"one") + GOODBYE, encode_reply(1, 0, b"two"))
        client = connect(listener.getsockname(), WAIT_S)
        assert [client.call("/a.B/C", b"", WAIT_S) for _ in range(2)] == [b"one", b"two"]
        client.close()
        done.result(WAIT_S)


def test_a_request_that_meets_a_goodbye_was_not_begun() -> None:
    """A request that meets a goodbye was not begun. One that meets the bare end of the connection may have been."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        done = threads.submit(served, listener, GOODBYE, b"")
        client = connect(listener.getsockname(), WAIT_S)
        with pytest.raises(NotBegun):
            client.call("/a.B/C", b"", WAIT_S)
        with pytest.raises(Unavailable) as lost:
            client.call("/a.B/C", b"", WAIT_S)
        assert type(lost.value) is Unavailable
        client.close()
        done.result(WAIT_S)
