"""A service in protobuf terms: a function of messages becomes a function of bytes."""

import asyncio

import pytest

from stock_service.rpc.call import Call
from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.service import Method
from stock_service.v1.stock_pb2 import LookupRequest, UpdateRequest


def shorten(request: LookupRequest) -> UpdateRequest:
    """A name's first letter. Raises ZeroDivisionError for none."""
    return UpdateRequest(name=request.name[:1], price_cents=1 // len(request.name))


def whose(request: LookupRequest, call: Call) -> UpdateRequest:
    """The caller's name."""
    return UpdateRequest(name=f"{request.name} of {call.peer}")


def test_any_function_of_messages_is_a_method() -> None:
    """The method decodes, calls and encodes; a fault of the function comes out as it is."""
    answer = Method(LookupRequest, UpdateRequest, shorten).answer()
    assert UpdateRequest.FromString(answer(LookupRequest(name="X").SerializeToString())).name == "X"
    with pytest.raises(ZeroDivisionError):
        answer(b"")


def test_every_method_answers_a_call() -> None:
    """Every method answers a call, so that transports need not ask its kind. A function that wants the call gets it
    after the request. Undecodable bytes are the same fault."""
    for method, name in (
        (Method(LookupRequest, UpdateRequest, shorten), "X"),
        (Method(LookupRequest, UpdateRequest, whose, wants_call=True), "X of a:1"),
    ):
        answer = method.answer_call()
        assert UpdateRequest.FromString(answer(Call(LookupRequest(name="X").SerializeToString(), "a:1"))).name == name
        with pytest.raises(InvalidRequest, match="2 bytes that are no stock_service"):
            answer(Call(b"\xff\xff"))


def test_a_function_for_an_event_loop_is_awaited() -> None:
    """The method decodes as any other does, and is given the call where the method wants it."""

    async def shortened(request: LookupRequest) -> UpdateRequest:
        return shorten(request)

    async def who(request: LookupRequest, call: Call) -> UpdateRequest:
        return whose(request, call)

    plain = Method(LookupRequest, UpdateRequest, shorten, on_loop=shortened).answer_on_loop()
    wanting = Method(LookupRequest, UpdateRequest, whose, wants_call=True, on_loop=who).answer_on_loop()

    async def names() -> list[str]:
        call = Call(LookupRequest(name="XY").SerializeToString(), "a:1")
        return [UpdateRequest.FromString(await answer(call)).name for answer in (plain, wanting)]

    assert asyncio.run(names()) == ["X", "XY of a:1"]
    with pytest.raises(InvalidRequest, match="2 bytes that are no stock_service"):
        asyncio.run(plain(Call(b"\xff\xff")))  # type: ignore[arg-type]  # a coroutine
