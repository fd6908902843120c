"""The greeter of the gRPC examples, with its original service name."""

from experiments.helloworld import greeter_pb2
from stock_service.rpc.service import Method, Service

GREETER = greeter_pb2.DESCRIPTOR.services_by_name["Greeter"].full_name
SAY_HELLO = f"/{GREETER}/SayHello"


def greeter() -> Service:
    """Greeter service: the reply to a request with the name NAME is ``Hello NAME``."""

    def say_hello(request: greeter_pb2.HelloRequest) -> greeter_pb2.HelloReply:
        return greeter_pb2.HelloReply(message=f"Hello {request.name}")

    return Service(GREETER, {SAY_HELLO: Method(greeter_pb2.HelloRequest, greeter_pb2.HelloReply, say_hello)})
