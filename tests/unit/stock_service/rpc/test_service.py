"""A service in protobuf terms: a function of messages becomes a function of bytes."""

import pytest

from stock_service.rpc.service import method
from stock_service.v1.stock_pb2 import LookupRequest, UpdateRequest


def test_any_function_of_messages_is_a_method() -> None:
    """``method`` decodes, calls and encodes; what the function raises comes out as it is."""

    def shorten(request: LookupRequest) -> UpdateRequest:
        return UpdateRequest(name=request.name[:1], price_cents=1 // len(request.name))

    answer = method(LookupRequest, shorten)
    assert UpdateRequest.FromString(answer(LookupRequest(name="X").SerializeToString())).name == "X"
    with pytest.raises(ZeroDivisionError):
        answer(b"")
