"""A stream over TLS by itself, with the bytes of its other end written by hand."""

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from stock_service.rpc.server_core.options import certificate_of
from stock_service.rpc.server_core.tls import FailedHandshakes, TlsStream
from stock_service.rpc.tls import ServerTls
from tests.tls import credentials, server_tls, trusting


class Pair:
    """A stream, and the client's end of it."""

    def __init__(self, tls: ServerTls, secrets: Path = Path(os.devnull)) -> None:
        """``secrets``: a file for the client's."""
        self.secrets = secrets
        ours, self.far = socket.socketpair()
        ours.setblocking(False)
        self.far.setblocking(False)
        self.stream = TlsStream(ours, ("127.0.0.1", 1), tls, FailedHandshakes())
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = trusting(credentials()).context()
        assert context is not None
        context.keylog_filename = str(secrets)
        self.client = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    def shake_hands(self) -> None:
        """Exchanges bytes until both ends have finished the handshake."""
        while self.stream.opening:
            with suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.far.sendall(self._outgoing.read())
            with suppress(BlockingIOError):
                self.stream.receive(65536)
            with suppress(BlockingIOError):
                self._incoming.write(self.far.recv(65536))

    def record(self, data: bytes) -> bytes:
        """The record that the client would send for some bytes."""
        self.client.write(data)
        return self._outgoing.read()

    def taken_outgoing(self) -> bytes:
        """The client's other words."""
        return self._outgoing.read()

    def taken(self) -> bytes:
        """The bytes that the client has got by now."""
        found = b""
        with suppress(BlockingIOError):
            while True:
                self._incoming.write(self.far.recv(65536))
        with suppress(ssl.SSLWantReadError):
            while True:
                found += self.client.read(65536)
        return found


class KeyChanges:
    """The client's records of TLS 1.3, written out from its secret (RFC 8446, 7): Python changes no keys."""

    def __init__(self, pair: Pair) -> None:
        suite = pair.client.cipher()
        assert suite is not None
        assert suite[0] == "TLS_AES_256_GCM_SHA384"
        secrets = {line.split()[0]: line.split()[2] for line in pair.secrets.read_text().splitlines() if line[0] != "#"}
        self._secret = bytes.fromhex(secrets["CLIENT_TRAFFIC_SECRET_0"])
        self._number = 0

    def next(self) -> bytes:
        """A change of keys that asks the server for one."""
        record = self.record(b"\x18\x00\x00\x01\x01", kind=22)
        self._secret, self._number = self._expanded(b"traffic upd", 48), 0
        return record

    def record(self, data: bytes, kind: int = 23) -> bytes:
        """Data, or a message of TLS."""
        key, start = self._expanded(b"key", 32), self._expanded(b"iv", 12)
        nonce = (int.from_bytes(start, "big") ^ self._number).to_bytes(12, "big")
        self._number += 1
        head = b"\x17\x03\x03" + (len(data) + 17).to_bytes(2, "big")
        return head + AESGCM(key).encrypt(nonce, data + bytes([kind]), head)

    def _expanded(self, label: bytes, length: int) -> bytes:
        label = b"tls13 " + label
        info = length.to_bytes(2, "big") + bytes([len(label)]) + label + b"\x00"
        return HKDFExpand(SHA384(), length, info).derive(self._secret)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A stream after its handshake, and its other end."""
    made = Pair(server_tls(credentials()), tmp_path / "secrets")
    made.shake_hands()
    yield made
    made.stream.close()
    made.far.close()


def test_several_records_come_at_once(pair: Pair) -> None:
    """All records of a read come at once, since epoll would not report the rest. Half a record gives nothing yet."""
    records = b"".join(pair.record(b"a" * 100) for _ in range(50)) + pair.record(b"b")
    pair.far.sendall(records[:-1])
    assert pair.stream.receive(65536) == b"a" * 5_000
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
    """A peer without a certificate has its own address and no name."""
    assert (pair.stream.peer, certificate_of(pair.stream.peer)) == (("127.0.0.1", 1), "")
    assert certificate_of(("127.0.0.1", 1)) == ""


def test_failed_handshakes_are_counted_in_one_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    """Clients that fail them cannot fill the log."""
    now_ns = 0
    failed = FailedHandshakes(lambda: now_ns)
    for _ in range(1000):
        failed.note(("::1", 5), "WRONG_VERSION_NUMBER")
    now_ns = 1_000_000_000
    failed.note(("::1", 5), "bad\nline")
    assert [record.getMessage() for record in caplog.records] == [
        "no TLS with [::1]:5: the client spoke no TLS (WRONG_VERSION_NUMBER)",
        "no TLS with [::1]:5: bad\\nline; 999 others since the line before",
    ]


def test_after_its_farewell_nothing_of_a_peer_is_read(pair: Pair) -> None:
    """After a peer's farewell nothing is read: OpenSSL would keep all later bytes for ever. To the core the peer has
    ended."""
    last = pair.record(b"last")
    with suppress(ssl.SSLError):
        pair.client.unwrap()
    pair.far.sendall(last + pair.taken_outgoing())
    assert pair.stream.receive(65536) == b"last"
    pair.far.sendall(b"x" * 1000)
    assert [pair.stream.receive(65536) for _ in range(3)] == [b""] * 3
    assert pair.stream.drop() == 1000


@pytest.mark.parametrize("with_data", [False, True])
def test_who_changes_keys_again_and_again_is_cut(pair: Pair, with_data: bool) -> None:
    """A peer that changes keys again and again is cut, also one that takes no answer: each change takes a thousand
    times the work of its bytes."""
    changes = KeyChanges(pair)
    pair.stream._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    cut = False
    for _ in range(40):
        pair.far.sendall(b"".join(changes.next() for _ in range(100)) + (changes.record(b"x") if with_data else b""))
        try:
            pair.stream.receive(65536)
        except BlockingIOError:
            continue
        except OSError:
            cut = True
            break
    assert cut
    assert len(pair.stream._unsent) < 100_000


def test_a_few_changes_of_keys_are_nothing_strange(pair: Pair) -> None:
    """A few changes of keys, as honest peers make them, are no fault: bytes are read, and replies come."""
    changes = KeyChanges(pair)
    for _ in range(3):
        pair.far.sendall(changes.next() + changes.record(b"data"))
        assert pair.stream.receive(65536) == b"data"
    assert pair.stream.send(b"reply") == 5


HUGE_HELLO = b"\x16\x03\x01\x00\x04\x01\x01\xff\xf8"
"""The first nine bytes of a message of 131,064."""


@pytest.mark.parametrize(
    "first", [HUGE_HELLO, b"\x16\x03\x01\x00\x01\x01\x16\x03\x01", b"\x16\x03\x01\x00\x40\x0b\x00\x00\x3c"]
)
def test_a_first_message_that_is_no_hello_takes_no_memory(first: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A huge one, one whose length comes in pieces, another message: refused before OpenSSL makes room for it."""
    made = Pair(server_tls(credentials()))
    for byte in first[:-1]:
        made.far.sendall(bytes([byte]))
        with pytest.raises(BlockingIOError):
            made.stream.receive(65536)
    made.far.sendall(first[-1:])
    with pytest.raises(ConnectionAbortedError):
        made.stream.receive(65536)
    assert not made.stream._incoming.pending
    assert "its first message is none, or far too long" in caplog.text
    made.stream.close()
    made.far.close()
