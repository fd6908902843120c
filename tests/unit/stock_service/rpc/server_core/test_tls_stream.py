"""A stream over TLS by itself: what it gives and takes while the other end is written out by hand."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress

import pytest

from stock_service.rpc.server_core.options import certificate_of
from stock_service.rpc.server_core.tls_stream import FailedHandshakes, TlsStream
from stock_service.rpc.tls import ServerTls
from tests.tls import credentials, server_tls, trusting


class Pair:
    """A stream, and the client's end of it."""

    def __init__(self, tls: ServerTls) -> None:
        ours, self.far = socket.socketpair()
        ours.setblocking(False)
        self.far.setblocking(False)
        self.stream = TlsStream(ours, ("127.0.0.1", 1), tls, FailedHandshakes())
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = trusting(credentials()).context()
        assert context is not None
        self.client = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    def shake_hands(self) -> None:
        """Until both ends are done."""
        while self.stream.opening:
            with suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.far.sendall(self._outgoing.read())
            with suppress(BlockingIOError):
                self.stream.receive(65536)
            with suppress(BlockingIOError):
                self._incoming.write(self.far.recv(65536))

    def record(self, data: bytes) -> bytes:
        """What the client would send for some bytes."""
        self.client.write(data)
        return self._outgoing.read()

    def taken(self) -> bytes:
        """What the client has got by now."""
        found = b""
        with suppress(BlockingIOError):
            while True:
                self._incoming.write(self.far.recv(65536))
        with suppress(ssl.SSLWantReadError):
            while True:
                found += self.client.read(65536)
        return found


@pytest.fixture
def pair() -> Iterator[Pair]:
    """One whose hands are shaken."""
    made = Pair(server_tls(credentials()))
    made.shake_hands()
    yield made
    made.stream.close()
    made.far.close()


def test_several_records_come_at_once(pair: Pair) -> None:
    """All that is there, since epoll would not tell of the rest; and half a record is nothing yet."""
    records = pair.record(b"a" * 40_000) + pair.record(b"b")
    pair.far.sendall(records[:-1])
    assert pair.stream.receive(65536) == b"a" * 40_000
    with pytest.raises(BlockingIOError):
        pair.stream.receive(65536)
    pair.far.sendall(records[-1:])
    assert pair.stream.receive(65536) == b"b"
    pair.far.shutdown(socket.SHUT_WR)
    assert pair.stream.receive(65536) == b""


def test_what_had_arrived_ends_in_half_a_record(pair: Pair) -> None:
    """Nothing will tell the reading thread that the rest never comes: the stream says so at once."""
    pair.far.sendall(pair.record(b"whole") + pair.record(b"half")[:-3])
    arrived = pair.stream.keep_to_arrived()
    assert arrived
    assert pair.stream.receive(arrived - 5) == b"whole"
    assert pair.stream.receive(65536) == b""
    pair.stream.read_on()
    with pytest.raises(BlockingIOError):
        pair.stream.receive(65536)


def test_what_the_kernel_does_not_take_is_sent_once(pair: Pair) -> None:
    """The core is told that it is unsent, and gives it again."""
    data = bytes(range(256)) * 8_000
    sent = pair.stream.send(data)
    assert 0 < sent < len(data)
    assert pair.stream.unsent
    with pytest.raises(BlockingIOError):
        pair.stream.send(data[sent:])
    taken = b""
    while sent < len(data):
        taken += pair.taken()
        with suppress(BlockingIOError):
            sent += pair.stream.send(data[sent:])
    taken += pair.taken()
    assert taken == data
    assert not pair.stream.unsent


def test_a_peer_without_a_certificate_is_nobody(pair: Pair) -> None:
    """Its address is its own all the same."""
    assert (pair.stream.peer, certificate_of(pair.stream.peer)) == (("127.0.0.1", 1), "")
    assert certificate_of(("127.0.0.1", 1)) == ""


def test_failed_handshakes_are_counted_in_one_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    """Who fails them cannot fill the log."""
    now_ns = 0
    failed = FailedHandshakes(lambda: now_ns)
    for _ in range(1000):
        failed.note(("::1", 5), "WRONG_VERSION_NUMBER")
    now_ns = 1_000_000_000
    failed.note(("::1", 5), "bad\nline")
    assert [record.getMessage() for record in caplog.records] == [
        "no TLS with [::1]:5: WRONG_VERSION_NUMBER",
        "no TLS with [::1]:5: bad\\nline; 999 others since the line before",
    ]
