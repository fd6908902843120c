"""A bare protobuf echo: the least a service can do, decoding and encoding as the stock service does.

What the stock service costs above its transport is its CPU time per request against this one's.
"""

from experiments.v1 import echo_pb2
from stock_service.rpc.service import Method, Service

ECHO_SERVICE = echo_pb2.DESCRIPTOR.services_by_name["EchoService"].full_name
ECHO = f"/{ECHO_SERVICE}/Echo"


def echo() -> Service:
    """Gives back the text that it is given."""

    def answer(request: echo_pb2.EchoRequest) -> echo_pb2.EchoResponse:
        return echo_pb2.EchoResponse(text=request.text)

    return Service(ECHO_SERVICE, {ECHO: Method(echo_pb2.EchoRequest, echo_pb2.EchoResponse, answer)})
