"""The server core over TLS: records that split and stall, handshakes that never end, ends, and new certificates."""

import gc
import logging
import random
import re
import socket
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Self, TypeVar

import pytest

from stock_service.rpc.errors import Unavailable
from stock_service.rpc.process.credentials import make
from stock_service.rpc.server_core.connection import arrived_bytes, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.server_core.tls import FailedHandshakes, TlsStream
from stock_service.rpc.transports import sockets
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.framing import ReplyFrame, RequestFrame
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import ECHO, WAIT_S, Probe, core_server, until
from tests.tls import credentials, server_tls, trusting

T = TypeVar("T")


class SplitSocket(socket.socket):
    """An accepted socket: each call moves up to ``most`` bytes, and every fourth call none."""

    rng: random.Random
    most: int

    @classmethod
    def of(cls, accepted: socket.socket, rng: random.Random, most: int) -> Self:
        """Takes an accepted socket's descriptor."""
        split = cls(fileno=accepted.detach())
        split.setblocking(False)
        split.rng, split.most = rng, most
        return split

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receives a few bytes. Stalls only where epoll will report more."""
        if arrived_bytes(self) and self._stalls():
            raise BlockingIOError
        return super().recv(min(size, self.rng.randint(1, self.most)), flags)

    def send(self, data: object, flags: int = 0) -> int:
        """Sends the first few bytes."""
        assert isinstance(data, bytes | bytearray)
        if self._stalls():
            raise BlockingIOError
        return super().send(data[: self.rng.randint(1, self.most)], flags)

    def _stalls(self) -> bool:
        return self.rng.random() < 0.25


def tls_server(
    options: ServeOptions,
    read_timeout_s: float = 10.0,
    split: tuple[random.Random, int] | None = None,
    buffered_bytes_max: int = ReadOptions().buffered_bytes_max,
) -> AbstractContextManager[RequestServer[RequestFrame]]:
    """An echo server with two workers; ``split``: over sockets that move this number of bytes at most."""
    methods, tls = methods_of(Probe().service), options.tls
    assert tls is not None

    def carrier(accepted: socket.socket, peer: Address) -> TlsStream:
        assert split is not None
        return TlsStream(SplitSocket.of(accepted, *split), peer, tls, FailedHandshakes())

    own, protocol = ReadOptions(read_timeout_s, 0, buffered_bytes_max), Frames(methods, options.frame_bytes_max)
    return core_server(methods, protocol, options, own, None if split is None else carrier, workers=2)


def secured(**limits: int | float) -> ServeOptions:
    """A server with TLS that asks for no certificate."""
    return ServeOptions(requests_max=1002, tls=server_tls(credentials()), **limits)  # type: ignore[arg-type]


class Tls:
    """A client's TLS in memory, so that a test cuts its records. As far as ``RawSocket`` goes it is a socket."""

    def __init__(self, raw: socket.socket, host: str) -> None:
        self.raw = raw
        self.settimeout, self.close = raw.settimeout, raw.close
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = trusting(credentials()).context()
        assert context is not None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._done(self._tls.do_handshake)
        self.sendall(b"")

    def record(self, data: bytes) -> bytes:
        """Bytes that carry these, encrypted."""
        self._tls.write(data)
        return self._outgoing.read()

    def sendall(self, data: bytes) -> None:
        """Sends all of it."""
        self.raw.sendall(self.record(data))

    def recv(self, size: int) -> bytes:
        """The next bytes; none once the server has ended."""
        try:
            return self._done(lambda: self._tls.read(size))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _done(self, step: Callable[[], T]) -> T:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.raw.sendall(self._outgoing.read())
                if data := self.raw.recv(65536):
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()


class RawTls(RawSocket):
    """The raw client, over TLS."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.tls = Tls(self.socket, address[0])
        self.socket = self.tls  # type: ignore[assignment]  # as far as this client goes


@pytest.mark.parametrize("most", [7, 400, 20_000])
def test_every_request_gets_its_reply(rng: random.Random, most: int) -> None:
    """However the bytes of handshake and records come and leave, of one byte and of several records."""
    payloads = [bytes([call]) * rng.randint(0, most * 5) for call in range(1, 31)]
    with tls_server(secured(), split=(rng, most)) as server, RawTls(server.address) as client:
        client.send(b"".join(frame(call, payload=payload) for call, payload in enumerate(payloads, start=1)))
        replies = [client.reply() for _ in payloads]
        expected = [ReplyFrame(call, 0, payload) for call, payload in enumerate(payloads, start=1)]
        assert sorted(filter(None, replies)) == expected
        assert client.echo()


def test_who_is_closed_is_told_so() -> None:
    """An idle client gets one goodbye, and then its connection is closed."""
    with tls_server(secured(idle_timeout_s=0.1)) as server, RawTls(server.address) as idle:
        assert idle.rest() == []
        assert idle.goodbyes == 1


@pytest.mark.parametrize("most", [50, 1 << 20])
def test_a_stop_answers_what_had_arrived(rng: random.Random, most: int) -> None:
    """A stop answers all bytes that the server's kernel had, even if they are not decrypted yet and reads give half a
    record. Then the client gets a goodbye."""
    with tls_server(secured(pipeline_max=8), split=(rng, most)) as server, RawTls(server.address) as client:
        client.send(b"".join(frame(call) for call in range(1, 101)))
        until(lambda: not unacknowledged_bytes(client.tls.raw), "the server's kernel has it")
        assert server.stop(WAIT_S)
        assert sorted(reply.call for reply in client.rest()) == list(range(1, 101))
        assert client.goodbyes == 1


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00", b"\x16"], ids=["nothing", "half a hello", "a byte"])
def test_a_handshake_has_its_time(said: bytes) -> None:
    """A handshake that does not end within ``read_timeout_s`` is closed, and others are served meanwhile."""
    with tls_server(secured(), read_timeout_s=0.1) as server, RawSocket(server.address) as slow:
        slow.send(said)
        with RawTls(server.address) as other:
            assert other.echo()
        assert slow.socket.recv(100) == b""


def test_half_hellos_are_in_the_budget() -> None:
    """Of many half hellos, those that were silent longest are closed. Active and new clients are served."""
    hello = hello_of(credentials())
    with (
        tls_server(secured(frame_bytes_max=250_000), buffered_bytes_max=1_000_000) as server,
        RawTls(server.address) as early,
    ):
        assert early.echo()
        slow = [RawSocket(server.address) for _ in range(60)]
        try:
            for client in slow:
                client.send(hello[:-1])
                assert early.echo(), "by now it is held"
            assert 10 < len(server._connections.by_fd) < 25
            assert [ended(client) for client in (slow[0], slow[30])] == [True, True]
            with RawTls(server.address) as late:
                assert late.echo()
            slow[-1].send(hello[-1:])
            assert slow[-1].socket.recv(1) == b"\x16", "its handshake goes on"
        finally:
            for client in slow:
                client.socket.close()
        until(lambda: len(server._connections.by_fd) == 1, "the others are gone")
        assert server._connections.buffered._total == 0


def test_half_a_record_behind_a_whole_one_is_in_the_budget() -> None:
    """Half a record behind a whole one counts too: both come in one segment, and OpenSSL has made room for the half."""
    with tls_server(secured(frame_bytes_max=250_000)) as server, RawTls(server.address) as client:
        assert client.echo()
        assert server._connections.buffered._total == 0
        tls = client.tls
        whole = tls.record(frame(1))
        large = tls.record(frame(2, payload=bytes(16_000)))
        for begun in (6, 3_000):
            tls.raw.sendall(whole + large[:begun])
            assert client.reply() == ReplyFrame(1, 0, b"")
            until(lambda: server._connections.buffered._total > 30_000, "it is held")
            whole = tls.record(frame(1))
            tls.raw.sendall(large[begun:])
            assert client.reply() == ReplyFrame(2, 0, bytes(16_000))
            assert server._connections.buffered._total == 0
            large = tls.record(frame(2, payload=bytes(16_000)))


def test_who_has_only_shaken_hands_holds_nothing() -> None:
    """A connection after its handshake does not count. Else some 1,800 idle connections would fill the budget."""
    with tls_server(secured()) as server, RawTls(server.address), RawTls(server.address) as other:
        assert other.echo()
        until(lambda: not any(each.bytes.opening for each in server._connections.by_fd.values()), "hands are shaken")
        assert other.echo(), "by now it is noted"
        assert server._connections.buffered._total == 0


def test_what_is_closed_is_free_at_once() -> None:
    """No collection is needed: what OpenSSL keeps of each is far more than the collector knows of."""
    with tls_server(secured()) as server, RawTls(server.address) as other:
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                with RawTls(server.address) as client:
                    assert client.echo()
            until(lambda: len(server._connections.by_fd) == 1, "they are closed")
            assert other.echo()
            assert sum(type(each) is TlsStream for each in gc.get_objects()) < 4
        finally:
            gc.enable()


def hello_of(folder: Path) -> bytes:
    """A client's first message."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = trusting(folder).context()
    assert context is not None
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def ended(client: RawSocket) -> bool:
    """Tell whether the server has closed the connection; it says nothing of TLS before that."""
    try:
        return not client.socket.recv(100)
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("said", [frame(1), b"GET / HTTP/1.1\r\n\r\n", bytes(100)], ids=["a frame", "http", "zeros"])
def test_who_speaks_no_tls_is_closed_at_once(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Clients without TLS are closed with one line in the log for all. It has nothing of their bytes."""
    with caplog.at_level(logging.WARNING), tls_server(secured()) as server:
        for _ in range(20):
            with RawSocket(server.address) as client:
                client.send(said)
                with suppress(ConnectionResetError):
                    while client.socket.recv(100):  # at most an alert of TLS
                        pass
        with RawTls(server.address) as other:
            assert other.echo()
    lines = [record.getMessage() for record in caplog.records]
    assert 1 <= len(lines) <= 2
    assert re.match(r"no TLS with 127\.0\.0\.1:\d+: the client spoke no TLS \(\w+\)", lines[0])
    assert "GET" not in lines[0]


def test_a_new_certificate_is_for_new_connections(tmp_path: Path) -> None:
    """Open connections go on; a client that trusts the old authority alone is closed out, and one of the new in."""
    tls, other = server_tls(credentials()), tmp_path / "other"
    make(other)
    with tls_server(ServeOptions(requests_max=1002, tls=tls)) as server:
        with closing(sockets.connect(server.address, WAIT_S, trusting(credentials()))) as old:
            tls.files = server_tls(other).files
            tls.reload()
            for _ in range(3):
                assert old.call(ECHO, b"x", WAIT_S) == b"x"
            with closing(sockets.connect(server.address, WAIT_S, trusting(other))) as new:
                assert new.call(ECHO, b"y", WAIT_S) == b"y"
            with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
                sockets.connect(server.address, WAIT_S, trusting(credentials()))


def test_who_has_ended_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """A client that ends within a handshake or after it, by an end or a reset, is forgotten. A port's probe is not
    logged."""
    with caplog.at_level(logging.WARNING), tls_server(secured()) as server:
        leave: tuple[Callable[[RawSocket], None], ...] = (RawSocket.reset, lambda client: client.socket.close())
        for end in leave:
            client = RawSocket(server.address)
            end(client)
            client = RawSocket(server.address)
            client.send(b"\x16\x03\x01\x02\x00")
            end(client)
        client = RawTls(server.address)
        assert client.echo()
        client.socket.close()
        until(lambda: not server._connections.by_fd, "the server has forgotten them")
    assert not caplog.records
