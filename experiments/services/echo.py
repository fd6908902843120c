"""Echo services: a service decodes a protobuf message, and replies with the message's text.

An echo needs the same transport and the same protobuf work as the stock service, but no stocks. So the processor time
of a Lookup minus the processor time of an echo is the cost of the stock service itself. ``echo_twice`` encodes and
decodes one more message. The additional processor time is the cost of protobuf in an echo.
"""

from experiments.v1 import echo_pb2
from stock_service.rpc.decoding import decoder
from stock_service.rpc.service import Method, Service

ECHO_SERVICE = echo_pb2.DESCRIPTOR.services_by_name["EchoService"].full_name
ECHO = f"/{ECHO_SERVICE}/Echo"


def echo() -> Service:
    """Echo service: the reply has the text of the request."""

    def answer(request: echo_pb2.EchoRequest) -> echo_pb2.EchoResponse:
        return echo_pb2.EchoResponse(text=request.text)

    return Service(ECHO_SERVICE, {ECHO: Method(echo_pb2.EchoRequest, echo_pb2.EchoResponse, answer)})


def echo_twice() -> Service:
    """Echo service with more protobuf work. Before each reply, the service encodes and decodes one further message."""
    decode = decoder(echo_pb2.EchoRequest)

    def answer(request: echo_pb2.EchoRequest) -> echo_pb2.EchoResponse:
        again = decode(echo_pb2.EchoResponse(text=request.text).SerializeToString())
        return echo_pb2.EchoResponse(text=again.text)

    return Service(ECHO_SERVICE, {ECHO: Method(echo_pb2.EchoRequest, echo_pb2.EchoResponse, answer)})
