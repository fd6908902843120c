"""A client's connection over TLS whose socket does not block."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from stock_service.rpc.dialing import TlsSocket
from stock_service.rpc.server_core.tls import FailedHandshakes, TlsStream
from tests.conformance.running import WAIT_S
from tests.tls import credentials, server_tls, trusting

Ends = tuple[TlsSocket, TlsStream]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A client's and the server's, their hands shaken."""
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    context = trusting(credentials()).context()
    assert context is not None
    client = TlsSocket(near, context, "localhost")
    far.settimeout(WAIT_S)
    server = TlsStream(far, ("", 1), server_tls(credentials()), FailedHandshakes())
    with ThreadPoolExecutor(1) as pool:
        shaken = pool.submit(client.handshake, time.monotonic() + WAIT_S)
        while server.opening:
            taken(server)
        shaken.result(WAIT_S)
    far.setblocking(False)
    client.setblocking(False)
    yield client, server
    client.close()
    server.close()


def taken(end: TlsSocket | TlsStream) -> bytes:
    """What there is."""
    try:
        return end.recv(65536) if isinstance(end, TlsSocket) else end.receive(65536)
    except BlockingIOError:
        return b""


def test_what_the_kernel_does_not_take_is_sent_once(ends: Ends) -> None:
    """The caller gives again what counts as not sent, with more behind it."""
    client, server = ends
    data = bytes(range(256)) * 1000
    sent, held_back, found = 0, 0, b""
    while sent < len(data):
        try:
            sent += client.send(data[sent : sent + 50_000])
        except BlockingIOError:
            held_back += 1
            found += taken(server)
    for _ in range(100):  # some of them take half a record
        found += taken(server)
    assert held_back
    assert found == data


def test_all_that_was_taken_is_given(ends: Ends) -> None:
    """Many records at once, since nothing would tell of those behind the first; then nothing, or the end."""
    client, server = ends
    for _ in range(20):
        assert server.send(b"a" * 50) == 50
    assert client.recv(65536) == b"a" * 1000
    with pytest.raises(BlockingIOError):
        client.recv(65536)
    server.half_close()
    assert client.recv(65536) == b""


def test_a_server_without_tls_is_named_as_such() -> None:
    """In plain words, and not in OpenSSL's."""
    near, far = socket.socketpair()
    context = trusting(credentials()).context()
    assert context is not None
    far.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with far, closing(TlsSocket(near, context, "localhost")) as client:
        with pytest.raises(ConnectionAbortedError, match="the server spoke no TLS"):
            client.handshake(time.monotonic() + WAIT_S)
