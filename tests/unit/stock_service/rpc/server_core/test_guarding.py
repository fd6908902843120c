"""A guarded protocol: a request that has begun to wait is not judged again."""

from pathlib import Path

from stock_service.rpc.security import Access, digest
from stock_service.rpc.server_core.answering import methods_of
from stock_service.rpc.server_core.guarding import guarded
from stock_service.rpc.server_core.options import NOBODY
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.transports.sockets.greeting import GreetedFrame, GreetedFrames
from stock_service.rpc.waiting import Wait, here
from stock_service.rpc.wire.framing import RequestFrame, reply_decoder
from stock_service.trading.service import LOOKUP, stock_service
from tests.conformance.transports import fresh_exchange

TOKEN = b"a-token-of-a-trader"


def test_what_was_begun_is_not_refused_where_its_token_is_withdrawn_meanwhile(tmp_path: Path) -> None:
    """Its trade is on the disk: a refusal would say that it had no effect. One that has not begun is refused."""
    file = tmp_path / "access.toml"
    file.write_text(f'[[callers]]\nname = "a"\nright = "trader"\ntoken_sha256 = "{digest(TOKEN).hex()}"\n')
    access, service = Access(file), stock_service(fresh_exchange())
    protocol = guarded(GreetedFrames(Frames(methods_of(service), 1000)), access, service)
    request = GreetedFrame(RequestFrame(1, 0, LOOKUP.encode(), b""), digest(TOKEN))
    wait = Wait(lambda _: None)

    def code() -> int:
        here.wait = wait
        try:
            (reply,) = reply_decoder().feed(protocol.answer(request, 0, NOBODY))
        finally:
            here.wait = None
        return reply.code

    assert code() == 0
    file.write_text(file.read_text().replace(digest(TOKEN).hex(), digest(b"another").hex()))
    access.reload()
    assert code() == 16
    wait.on = "the disk"
    assert code() == 0
