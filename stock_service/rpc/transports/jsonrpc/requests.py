"""Requests of JSON-RPC as the server core has them answered: a text to a text."""

import binascii
from base64 import b64decode, b64encode
from typing import Any

import msgspec

from stock_service.rpc.errors import FaultCode, InvalidRequest, short
from stock_service.rpc.message_json import from_json, to_json
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import OK, Methods, failure
from stock_service.rpc.service import Method, Service
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.json_stream import JsonDecoder


class JsonRequest(msgspec.Struct):
    """A request off the wire. What else the object has is not looked at."""

    method: str
    params: list[msgspec.Raw]
    id: int | str | None = None
    timeout_ms: int = 0


_decode = msgspec.json.Decoder(JsonRequest).decode


class JsonRpc:
    """See ``server_core.protocol.WireProtocol``. A request is an object's text."""

    def __init__(self, service: Service, methods: Methods, frame_bytes_max: int) -> None:
        self._answered = methods.answered
        self._message_bytes_max = frame_bytes_max
        self._text_bytes_max = frame_bytes_max * 4 // 3 + 512
        self._methods: dict[str, tuple[bytes, Method[Any, Any]]] = {}
        for path, method in service.methods.items():
            owner, _, name = path[1:].rpartition("/")
            for called in (f"{owner.rpartition('.')[2]}.{name}", f"{owner}.{name}"):
                self._methods[called] = path.encode(), method

    def decoder(self) -> JsonDecoder:
        """What cuts a new connection's bytes into requests."""
        return JsonDecoder(self._text_bytes_max)

    def answer(self, request: bytes, arrived_ns: int, peer: Address) -> bytes:
        """The reply's text to a request's."""
        id: int | str | None = None  # noqa: A001  # JSON-RPC's word
        try:
            asked = _parsed(request)
            id = asked.id  # noqa: A001
            code, reply = self._answer(asked, arrived_ns, peer)
        except BaseException as error:
            code, reply = failure(b"a request of JSON-RPC", error)
        if code == OK:
            return b'{"id":%s,"result":%s,"error":null}\n' % (msgspec.json.encode(id), reply)
        return _error(id, FaultCode(code), reply.decode(errors="replace"))

    def path(self, request: bytes) -> bytes:
        """The method that a request names."""
        try:
            found = self._methods.get(_parsed(request).method)
        except InvalidRequest:
            return b""
        return found[0] if found else b""

    def refusal(self, request: bytes, code: FaultCode, detail: str) -> bytes:
        """The reply that is a fault."""
        try:
            return _error(_parsed(request).id, code, detail)
        except InvalidRequest as fault:
            return _error(None, fault.code, fault.detail)

    def timeout_ms(self, request: bytes) -> int:
        """How long the client waits, in milliseconds; 0: it does not say, or the request is none."""
        try:
            return max(0, _parsed(request).timeout_ms)
        except InvalidRequest:
            return 0

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """The connection's last words: an error of no request."""
        return _error(None, code, detail)

    def goodbye(self) -> bytes:
        """See ``WireProtocol``: nothing, which its clients would not expect."""
        return b""

    def objection(self, error: FramingError) -> bytes:
        """The same about bytes that are no object."""
        return _error(None, FaultCode.INVALID_ARGUMENT, str(error))

    def _answer(self, asked: JsonRequest, arrived_ns: int, peer: Address) -> tuple[int, bytes]:
        """The code, and the message's JSON or the fault's detail. Raises a fault."""
        path, method = self._methods.get(asked.method, (asked.method.encode(), None))
        if asked.id is None or not 0 <= asked.timeout_ms < 2**32:
            raise InvalidRequest("a request needs an id, and a timeout_ms from 0 to 4294967295 if any")
        if len(asked.params) != 1:
            raise InvalidRequest(f"params: got {len(asked.params)} values, allowed: one message")
        parameter = bytes(asked.params[0])
        as_text = parameter[:1] == b'"'
        if as_text:
            payload = _bytes_of(parameter)
            if len(payload) > self._message_bytes_max:
                raise InvalidRequest(f"a message of {len(payload)} bytes, allowed: {self._message_bytes_max}")
        elif method is None:
            payload = b""
        else:
            payload = from_json(method.request_type, parameter).SerializeToString()
        code, reply = self._answered(path, payload, asked.timeout_ms, arrived_ns, peer)
        if code != OK or method is None:
            return code, reply
        return OK, b'"%s"' % b64encode(reply) if as_text else to_json(method.response_type.FromString(reply))


def _parsed(text: bytes) -> JsonRequest:
    """Raises InvalidRequest for what is no request."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"{len(text)} bytes that are no request: {short(str(error))}") from error


def _bytes_of(text: bytes) -> bytes:
    """A message that came as text."""
    try:
        return b64decode(msgspec.json.decode(text, type=str), validate=True)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, binascii.Error) as error:
        raise InvalidRequest("params: got a text that is no base64") from error


def _error(id: int | str | None, code: FaultCode, detail: str) -> bytes:  # noqa: A002
    words = msgspec.json.encode(f"{code.name}: {detail}")
    return b'{"id":%s,"result":null,"error":%s}\n' % (msgspec.json.encode(id), words)
