"""A server outside this project: grpcio's server, with a greeter that two .proto files of the tests declare."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection

from clients.load.plan import calls
from stock_service.rpc.transports import Address

NAMES = """
syntax = "proto3";
package tests.names;
message Name { string first = 1; string last = 2; }
"""

GREETER = """
syntax = "proto3";
package tests.hello;
import "names.proto";
message HelloRequest { tests.names.Name name = 1; int32 times = 2; }
message HelloReply { string message = 1; }
service Greeter {
  rpc SayHello (HelloRequest) returns (HelloReply);
  rpc SayHellos (HelloRequest) returns (stream HelloReply);
}
"""


def write_protos(folder: Path) -> Path:
    """Writes both files. Gives the one that declares the service."""
    (folder / "names.proto").write_text(NAMES)
    (folder / "greeter.proto").write_text(GREETER)
    return folder / "greeter.proto"


def _pool() -> DescriptorPool:
    """The two files' declarations."""
    with TemporaryDirectory() as folder:
        return calls._pool(calls._compiled(write_protos(Path(folder))))


@contextmanager
def greeter(
    reflected: bool = True, reply: bytes | None = None, metadata: tuple[tuple[str, str], ...] = ()
) -> Iterator[Address]:
    """A greeter's address; ``reply`` is its answer instead of a greeting. It refuses calls without ``metadata``."""
    pool = _pool()
    request_type = GetMessageClass(pool.FindMessageTypeByName("tests.hello.HelloRequest"))
    reply_type = GetMessageClass(pool.FindMessageTypeByName("tests.hello.HelloReply"))

    def say_hello(asked: bytes, context: grpc.ServicerContext) -> bytes:
        if not {*metadata} <= {*context.invocation_metadata()}:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "metadata is missing")
        request = request_type.FromString(asked)
        text = f"Hello, {request.name.first} {request.name.last}!"  # type: ignore[attr-defined]
        return reply_type(message=text).SerializeToString() if reply is None else reply

    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        hello: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(say_hello)
        handlers = grpc.method_handlers_generic_handler("tests.hello.Greeter", {"SayHello": hello})
        server.add_generic_rpc_handlers((handlers,))
        if reflected:
            names = ("tests.hello.Greeter", reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server, pool)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield ("127.0.0.1", port)
        finally:
            server.stop(None).wait()
