"""A guarded protocol: the checked requests, the moment of the check, and that it is not repeated."""

from pathlib import Path

import pytest

from stock_service.rpc.security import Access, digest
from stock_service.rpc.server_core.guarding import guarded
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.transports.sockets.frames import HELLO
from stock_service.rpc.transports.sockets.greeting import RIGHTS, GreetedFrames, UnjudgedFrame
from stock_service.rpc.waiting import Wait, here
from stock_service.rpc.wire.framing import RequestFrame, encode_request, reply_decoder
from stock_service.rpc.wire.served_stream import RequestDecoder
from stock_service.trading.service import LOOKUP, UPDATE, stock_service
from tests.conformance.transports import fresh_exchange

TOKEN = b"a-token-of-a-trader"

HELLO_FRAME = encode_request(1, 0, HELLO, TOKEN)
LOOKUP_FRAME = encode_request(2, 0, LOOKUP.encode(), b"")


@pytest.fixture
def access(tmp_path: Path) -> Access:
    """A trader by token."""
    file = tmp_path / "access.toml"
    file.write_text(f'[[callers]]\nname = "a"\nright = "trader"\ntoken_sha256 = "{digest(TOKEN).hex()}"\n')
    return Access(file)


def test_what_was_begun_is_not_refused_where_its_token_is_withdrawn_meanwhile(access: Access, tmp_path: Path) -> None:
    """A begun request is not refused when its token is withdrawn: its trade is on the disk. One that has not begun is
    refused."""
    service = stock_service(fresh_exchange())
    protocol = guarded(GreetedFrames(methods_of(service), 1000, access), access, service)
    (_, request) = protocol.decoder().feed(HELLO_FRAME + LOOKUP_FRAME)
    wait = Wait(lambda _: None)

    def code() -> int:
        here.wait = wait
        try:
            (reply,) = reply_decoder().feed(protocol.answer(request, 0, ("127.0.0.1", 1)))
        finally:
            here.wait = None
        return reply.code

    assert code() == 0
    file = tmp_path / "access.toml"
    file.write_text(file.read_text().replace(digest(TOKEN).hex(), digest(b"another").hex()))
    access.reload()
    assert code() == 16
    wait.on = "the disk"
    assert code() == 0


def test_a_connections_requests_are_judged_until_the_same_was_granted(access: Access) -> None:
    """A connection's requests are checked until its token is granted the method, and again after the callers are read
    anew. Other connections are checked by their own tokens."""
    service = stock_service(fresh_exchange())
    protocol = guarded(GreetedFrames(methods_of(service), 1000, access), access, service, RIGHTS)
    known, nobody = protocol.decoder(), protocol.decoder()

    def asked(decoder: RequestDecoder[RequestFrame], frame: bytes) -> tuple[bool, int]:
        """Tell whether a request is still to be judged, and the code of its reply."""
        (request,) = decoder.feed(frame)
        (reply,) = reply_decoder().feed(protocol.answer(request, 0, ("127.0.0.1", 1)))
        return isinstance(request, UnjudgedFrame), reply.code

    assert [asked(known, frame) for frame in (HELLO_FRAME, LOOKUP_FRAME, LOOKUP_FRAME)] == [
        (True, 0),
        (True, 0),
        (False, 0),
    ]
    assert [asked(nobody, LOOKUP_FRAME) for _ in range(2)] == [(True, 16), (True, 16)]
    assert asked(known, encode_request(3, 0, UPDATE.encode(), b"")) == (True, 7)
    access.reload()
    assert asked(known, LOOKUP_FRAME) == (True, 0)
    assert asked(known, LOOKUP_FRAME) == (False, 0)
    assert asked(known, encode_request(4, 0, HELLO, b"of-nobody-that-is-known")) == (True, 16)
    assert asked(known, LOOKUP_FRAME) == (True, 16)
