"""Services of plain bytes, for tests of transports: a request may have any bytes."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from google.protobuf.message import Message

from stock_service.rpc.call import Call
from stock_service.rpc.service import Method, Service


class _Bytes(bytes):
    """Bytes in place of a message: decoding and encoding do not change the bytes."""

    DESCRIPTOR = type("Descriptor", (), {"full_name": "bytes", "fields": ()})

    FromString = bytes

    def SerializeToString(self) -> bytes:  # noqa: N802  # protobuf's name
        return bytes(self)


_MESSAGE = cast(type[Message], _Bytes)


def raw(function: Callable[[bytes], bytes]) -> Method[Any, Any]:
    """A method that takes the bytes of a request, and gives the bytes of the reply."""
    return Method(_MESSAGE, _MESSAGE, lambda payload: cast(Message, _Bytes(function(cast(bytes, payload)))))


def raw_call(function: Callable[[Call], bytes]) -> Method[Any, Any]:
    """A method that is given the call."""
    return Method(_MESSAGE, _MESSAGE, lambda _, call: cast(Message, _Bytes(function(call))), wants_call=True)


def raw_service(name: str, methods: Mapping[str, Callable[[bytes], bytes]]) -> Service:
    """A service of such methods."""
    return Service(name, {path: raw(function) for path, function in methods.items()})


def answered(service: Service, path: str, payload: bytes) -> bytes:
    """The answer of a service to a request, without a transport."""
    return service.methods[path].answer_call()(Call(payload))
