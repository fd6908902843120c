"""A bare protobuf echo: the least a service can do, decoding and encoding as the stock service does.

What the stock service costs above its transport is its CPU time per request against this one's. ``echo_twice`` encodes
and decodes its message once more: what that costs is protobuf's share of an echo.
"""

from experiments.v1 import echo_pb2
from stock_service.rpc.decoding import decoder
from stock_service.rpc.service import Method, Service

ECHO_SERVICE = echo_pb2.DESCRIPTOR.services_by_name["EchoService"].full_name
ECHO = f"/{ECHO_SERVICE}/Echo"


def echo() -> Service:
    """Gives back the text that it is given."""

    def answer(request: echo_pb2.EchoRequest) -> echo_pb2.EchoResponse:
        return echo_pb2.EchoResponse(text=request.text)

    return Service(ECHO_SERVICE, {ECHO: Method(echo_pb2.EchoRequest, echo_pb2.EchoResponse, answer)})


def echo_twice() -> Service:
    """The same, by way of one message that is made, encoded and decoded besides, as the reply and the request are."""
    decode = decoder(echo_pb2.EchoRequest)

    def answer(request: echo_pb2.EchoRequest) -> echo_pb2.EchoResponse:
        again = decode(echo_pb2.EchoResponse(text=request.text).SerializeToString())
        return echo_pb2.EchoResponse(text=again.text)

    return Service(ECHO_SERVICE, {ECHO: Method(echo_pb2.EchoRequest, echo_pb2.EchoResponse, answer)})
