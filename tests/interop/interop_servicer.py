"""``grpc.testing.TestService`` as a servicer for ``grpc.server``, and for ours: all of its methods that clients try."""

import threading
from collections.abc import Iterator
from typing import Any

import grpc

from tests.interop.interop_service import INITIAL, NAME, SERVER_ID, TRAILING, messages


def interop_handler() -> grpc.GenericRpcHandler:
    """Its handlers; they have no state."""
    types: dict[str, Any] = messages()
    simple, streamed = types["SimpleResponse"], types["StreamingOutputCallResponse"]

    def payload(size: int) -> Any:
        return types["Payload"](body=bytes(size))

    def unary(request: Any, context: grpc.ServicerContext) -> Any:
        _echo(context)
        _as_asked(request, context)
        server_id = SERVER_ID if request.fill_server_id else ""
        return simple(payload=payload(request.response_size), server_id=server_id)

    def replies(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        _as_asked(request, context)
        for parameters in request.response_parameters:
            threading.Event().wait(parameters.interval_us / 1e6)
            yield streamed(payload=payload(parameters.size))

    def requests(asked: Iterator[Any], _: grpc.ServicerContext) -> Any:
        size = sum(len(each.payload.body) for each in asked)
        return types["StreamingInputCallResponse"](aggregated_payload_size=size)

    def talk(asked: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        _echo(context)
        for each in asked:
            yield from replies(each, context)

    made = {
        "EmptyCall": (grpc.unary_unary_rpc_method_handler, lambda *_: types["Empty"](), "Empty"),
        "UnaryCall": (grpc.unary_unary_rpc_method_handler, unary, "SimpleRequest"),
        "StreamingOutputCall": (grpc.unary_stream_rpc_method_handler, replies, "StreamingOutputCallRequest"),
        "StreamingInputCall": (grpc.stream_unary_rpc_method_handler, requests, "StreamingInputCallRequest"),
        "FullDuplexCall": (grpc.stream_stream_rpc_method_handler, talk, "StreamingOutputCallRequest"),
    }
    handlers: dict[str, Any] = {
        name: kind(behaviour, types[request].FromString, lambda reply: reply.SerializeToString())
        for name, (kind, behaviour, request) in made.items()
    }
    return grpc.method_handlers_generic_handler(NAME, handlers)


def _echo(context: grpc.ServicerContext) -> None:
    """Sends back the metadata that the client asks to have sent back."""
    told = context.invocation_metadata()
    context.send_initial_metadata(tuple((name, value) for name, value in told if name == INITIAL))
    context.set_trailing_metadata(tuple((name, value) for name, value in told if name == TRAILING))


def _as_asked(request: Any, context: grpc.ServicerContext) -> None:
    """Ends the call with the status that a request asks for, if it does."""
    status = request.response_status
    if status.code:
        context.abort(next(code for code in grpc.StatusCode if code.value[0] == status.code), status.message)
