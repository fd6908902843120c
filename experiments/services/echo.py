"""A bare protobuf echo: the smallest service, which decodes and encodes as the stock service does.

The cost of the stock service above its transport is a difference: the stock service's processor time a request minus
the echo's processor time a request. ``echo_twice`` encodes and decodes its message once more. The difference of
``echo_twice`` and ``echo`` is protobuf's share of an echo.
"""

from experiments.v1 import echo_pb2
from stock_service.rpc.decoding import decoder
from stock_service.rpc.service import Method, Service

ECHO_SERVICE = echo_pb2.DESCRIPTOR.services_by_name["EchoService"].full_name
ECHO = f"/{ECHO_SERVICE}/Echo"


def echo() -> Service:
    """Replies with the text of the request."""

    def answer(request: echo_pb2.EchoRequest) -> echo_pb2.EchoResponse:
        return echo_pb2.EchoResponse(text=request.text)

    return Service(ECHO_SERVICE, {ECHO: Method(echo_pb2.EchoRequest, echo_pb2.EchoResponse, answer)})


def echo_twice() -> Service:
    """Replies with the text of the request, and makes, encodes and decodes one more message."""
    decode = decoder(echo_pb2.EchoRequest)

    def answer(request: echo_pb2.EchoRequest) -> echo_pb2.EchoResponse:
        again = decode(echo_pb2.EchoResponse(text=request.text).SerializeToString())
        return echo_pb2.EchoResponse(text=again.text)

    return Service(ECHO_SERVICE, {ECHO: Method(echo_pb2.EchoRequest, echo_pb2.EchoResponse, answer)})
