"""JSON-RPC as the lean client speaks it, and as a server that does nothing: one connection's bytes, without I/O.

A message is sent as an object where protobuf's pool knows the method's types: once their generated module is imported.
Else, or where JSON cannot say it, it is sent as text in base64. What is given up is not told to the server.
"""

import re
from base64 import b64decode, b64encode
from typing import NamedTuple

import msgspec
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from stock_service.rpc.errors import FAULTS, Fault, FaultCode, InternalFault, InvalidRequest, Unavailable
from stock_service.rpc.message_json import from_json, to_json
from stock_service.rpc.wire.codec import Prepared, Reply
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.json_stream import JsonDecoder

CALLS_MAX = 4096
"""Calls not answered on one connection, at most, those given up included."""

REPLY_BYTES_MAX = 1 << 31
"""Bytes of a reply's text, at most."""

_CODE = re.compile(r"([A-Z_]+): (.*)", re.DOTALL)


class _Reply(msgspec.Struct):
    id: int | None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: object = None


_decode = msgspec.json.Decoder(_Reply).decode


class _Kinds(NamedTuple):
    """The messages of a method."""

    request: type[Message]
    response: type[Message]


_known: dict[str, _Kinds] = {}  # by path; what is not known yet may be later


def _kinds(path: str) -> _Kinds | None:
    """A method's messages; None where protobuf's pool has no such method."""
    if path not in _known:
        service, _, name = path[1:].rpartition("/")
        try:
            method = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        except KeyError:
            return None
        of = message_factory.GetMessageClass
        _known[path] = _Kinds(of(method.input_type), of(method.output_type))
    return _known[path]


class JsonRpcCodec:
    """See ``codec.Codec``."""

    __slots__ = ("_call", "_decoder", "_given_up", "_lost", "_open", "_timeout_ms", "hello", "preceded")

    def __init__(self, timeout_s: float) -> None:
        self.hello = b""
        self.preceded = False
        self._timeout_ms = max(1, round(timeout_s * 1000))
        self._call = 0
        self._open: dict[int, str] = {}  # the path of each call under way
        self._given_up: set[int] = set()  # a late reply may still come
        self._lost: Fault | None = None
        self._decoder = JsonDecoder(REPLY_BYTES_MAX)

    def prepare(self, path: str, payload: bytes) -> Prepared:
        """See ``codec.Codec``: the text before its call's number and after it, and the path."""
        service, _, name = path[1:].rpartition("/")
        called = msgspec.json.encode(f"{service.rpartition('.')[2]}.{name}")
        head = b'{"method":%s,"params":[%s],"timeout_ms":%d,"id":' % (called, _text(path, payload), self._timeout_ms)
        return head, b"}\n", path.encode()

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """See ``codec.Codec``."""
        head, tail, path = prepared
        self._call = call = self._call + 1
        self._open[call] = path.decode()
        return call, b"%s%d%s" % (head, call, tail)

    def feed(self, data: bytes) -> list[Reply]:
        """See ``codec.Codec``."""
        if self._lost is not None:
            raise Unavailable(self._lost.detail)
        broken: Fault | None = None
        try:
            texts = self._decoder.feed(data)
        except FramingError as error:
            texts, broken = error.frames, Unavailable(f"the server sent what is no reply: {error}")
        if len(texts) != 1:
            self.preceded = True
        done: list[Reply] = []
        for text in texts:
            wrong = self._take(text, done)
            if wrong is not None:
                return self._end(wrong, done)
        return done if broken is None else self._end(broken, done)

    def take_outgoing(self) -> bytes:
        """See ``codec.Codec``: nothing, ever."""
        return b""

    def room(self) -> bool:
        """See ``codec.Codec``."""
        return len(self._open) + len(self._given_up) < CALLS_MAX and self._lost is None

    def abandon(self, call: int) -> bytes:
        """See ``codec.Codec``."""
        if self._open.pop(call, None) is not None:
            self._given_up.add(call)
        return b""

    def _take(self, text: bytes, done: list[Reply]) -> Fault | None:
        """One reply; gives what it says of the whole connection, if anything."""
        try:
            reply = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Unavailable(f"the server sent what is no reply: {error}")
        path = self._open.pop(reply.id, None) if reply.id is not None else None
        if path is not None and reply.id is not None:
            done.append((reply.id, _message(path, bytes(reply.result)) if reply.error is None else _fault(reply.error)))
            return None
        if reply.id in self._given_up:
            self._given_up.discard(reply.id or 0)
            return None
        if reply.id is None and reply.error is not None:
            return _fault(reply.error)
        return InternalFault("the server sent a reply to no request")

    def _end(self, fault: Fault, done: list[Reply]) -> list[Reply]:
        """Gives the connection up: every call under way ends with the fault. Raises Unavailable if none has ended."""
        self._lost = fault
        done += [(call, fault) for call in self._open]
        self._open.clear()
        if not done:
            raise Unavailable(fault.detail)
        return done


def _text(path: str, payload: bytes) -> bytes:
    """A request as JSON."""
    kinds = _kinds(path)
    if kinds is not None:
        try:
            message = kinds.request.FromString(payload)
            if message.SerializeToString() == payload:  # else it has what this version does not know
                return to_json(message)
        except (DecodeError, InternalFault):
            pass  # no such message, or with a number that JSON has not: the server is to say so
    return b'"%s"' % b64encode(payload)


def _message(path: str, result: bytes) -> bytes | Fault:
    """A result as the message's bytes."""
    try:
        if result[:1] == b'"':
            return b64decode(msgspec.json.decode(result, type=str), validate=True)
        kinds = _kinds(path)
        assert kinds is not None, "an object was sent"
        return from_json(kinds.response, result).SerializeToString()
    except (InvalidRequest, msgspec.DecodeError, ValueError) as error:
        return InternalFault(f"the server sent what is no response: {error}")


def _fault(error: object) -> Fault:
    """What an error says; one without a code's name is INTERNAL."""
    found = _CODE.fullmatch(error) if isinstance(error, str) else None
    if found is None or found[1] not in FaultCode.__members__:
        return InternalFault(f"the server says: {error}")
    return FAULTS[FaultCode[found[1]]](found[2])


class JsonRpcNull:
    """See ``codec.NullAnswers``. A request must end with its id, as ours and Go's do."""

    __slots__ = ("_decoder", "_tail", "hello")

    def __init__(self, reply: bytes) -> None:
        self.hello = b""
        self._tail = b',"result":"%s","error":null}\n' % b64encode(reply)
        self._decoder = JsonDecoder(REPLY_BYTES_MAX)

    def feed(self, data: bytes) -> bytes | None:
        """See ``codec.NullAnswers``: answers every request that is whole."""
        try:
            texts = self._decoder.feed(data)
        except FramingError:
            return None
        return b"".join(b'{"id":' + text[text.rfind(b":") + 1 : -1] + self._tail for text in texts)
