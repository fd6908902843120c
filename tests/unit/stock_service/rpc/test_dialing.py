"""A client's connection over TLS whose socket does not block."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from stock_service.rpc.dialing import TlsSocket, dial
from stock_service.rpc.errors import Unavailable
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
    context.sslsocket_class = TlsSocket
    client = context.wrap_socket(near, server_hostname="localhost", do_handshake_on_connect=False)
    assert isinstance(client, TlsSocket)
    far.settimeout(WAIT_S)
    server = TlsStream(far, ("", 1), server_tls(credentials()), FailedHandshakes())
    with ThreadPoolExecutor(1) as pool:
        shaken = pool.submit(client.do_handshake)
        while server.opening:
            taken(server)
        shaken.result(WAIT_S)
    far.setblocking(False)
    client.setblocking(False)
    yield client, server
    client.close()
    server.close()


def taken(end: TlsSocket | TlsStream) -> bytes:
    """The values that are there."""
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
    """A record at a time. None is taken before it is asked for: nothing would tell of one. Then nothing, or the end."""
    client, server = ends
    for _ in range(20):
        assert server.send(b"a" * 50) == 50
    for _ in range(20):
        assert client.recv(65536) == b"a" * 50
        assert not client.pending()
    with pytest.raises(BlockingIOError):
        client.recv(65536)
    server.half_close()
    assert client.recv(65536) == b""


def test_a_server_without_tls_is_named_as_such() -> None:
    """A server without TLS is named so in plain words, and not in OpenSSL's."""

    def answer() -> None:
        with listener.accept()[0] as far:
            far.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            far.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        with pytest.raises(Unavailable, match="the server spoke no TLS"):
            dial(listener.getsockname(), WAIT_S, trusting(credentials()).context())
        answered.result(WAIT_S)


def test_a_send_that_does_not_wait_leaves_the_timeout(ends: Ends) -> None:
    """A send that does not wait leaves the timeout, as on a plain socket: bytes without room in the kernel are refused
    at once."""
    client, _ = ends
    client.settimeout(WAIT_S)
    with pytest.raises(BlockingIOError):
        client.send(bytes(1 << 20), socket.MSG_DONTWAIT)
    assert client.gettimeout() == WAIT_S
