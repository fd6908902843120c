"""``grpc.testing.TestService``, as gRPC's interoperability tests want it answered: its unary and its streaming methods.

Source: ``doc/interop-test-descriptions.md`` of gRPC. Left out: ``StreamingInputCall``, whose one reply follows from all
requests together, and reports of load (ORCA).
"""

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from grpc_tools import protoc

from stock_service.rpc.call import Call
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.service import Method, Service, StreamMethod

NAME = "grpc.testing.TestService"
SERVER_ID = "the only one"
"""Reply to a client that asks which server answers."""

_PROTO = Path(__file__).with_name("grpc_testing.proto")
_INITIAL, _TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"


class _Asked(Fault):
    """The status that a client asks for."""

    def __init__(self, status: Any) -> None:
        super().__init__(status.message)
        self.code = cast(FaultCode, status.code)  # such as UNKNOWN, which none of our own faults has


def _messages() -> dict[str, type[Message]]:
    """The messages of ``grpc_testing.proto``, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        assert protoc.main(["", f"-I{_PROTO.parent}", f"--descriptor_set_out={out}", _PROTO.name]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    found = pool.FindFileByName(_PROTO.name).message_types_by_name
    return {name: message_factory.GetMessageClass(each) for name, each in found.items()}


def interop_service() -> Service:
    """The service; it has no state."""
    types: dict[str, Any] = _messages()

    def payload(size: int) -> Any:
        return types["Payload"](body=bytes(size))

    def unary(request: Any, call: Call) -> Any:
        _echo(call)
        if request.response_status.code:
            raise _Asked(request.response_status)
        server_id = SERVER_ID if request.fill_server_id else ""
        return types["SimpleResponse"](payload=payload(request.response_size), server_id=server_id)

    def several(request: Any, call: Call) -> Iterator[Any]:
        _echo(call)
        if request.response_status.code:
            raise _Asked(request.response_status)
        for parameters in request.response_parameters:
            threading.Event().wait(parameters.interval_us / 1e6)
            yield types["StreamingOutputCallResponse"](payload=payload(parameters.size))

    asked, answered = types["StreamingOutputCallRequest"], types["StreamingOutputCallResponse"]
    return Service(
        NAME,
        {
            f"/{NAME}/EmptyCall": Method(types["Empty"], types["Empty"], lambda _: types["Empty"]()),
            f"/{NAME}/UnaryCall": Method(types["SimpleRequest"], types["SimpleResponse"], unary, wants_call=True),
        },
        streams={
            f"/{NAME}/StreamingOutputCall": StreamMethod(asked, answered, several),
            f"/{NAME}/FullDuplexCall": StreamMethod(asked, answered, several, talks=True),
        },
    )


def _echo(call: Call) -> None:
    """Sends back the metadata that the client asks to have sent back; once a call, be its messages many."""
    assert call.reply is not None
    for name, value in call.metadata:
        if name == _INITIAL and not call.reply.initial:
            call.reply.initial.append((name, value))
        elif name == _TRAILING and not call.reply.trailing:
            call.reply.trailing.append((name, value))
