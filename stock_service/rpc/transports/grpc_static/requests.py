"""Calls of gRPC as the server core has them answered: the service's methods, health, and reflection."""

import time
import zlib
from dataclasses import replace

from stock_service.rpc.errors import FaultCode, InternalFault, Overloaded
from stock_service.rpc.security import Right, Shown
from stock_service.rpc.server_core.answering import OK, Methods, failure
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.transports.grpc_static.health import CHECK, WATCH, Health
from stock_service.rpc.transports.grpc_static.reflection import REFLECTION, Reflection
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.grpc_calls import END, GZIPPED, LATER, GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_replies import begun, broken_off, ended, fault_reply, messages, usual_reply
from stock_service.rpc.wire.grpc_session import GrpcSession, SessionError

_GZIP_BITS = 31
"""zlib's word for gzip with the largest window."""


RIGHTS = {CHECK: Right.ANYONE, WATCH: Right.ANYONE, **dict.fromkeys(REFLECTION, Right.TRADER)}
"""Health says that the server serves, and nothing else. Whoever may call the methods may see what they are."""


class GrpcRequests:
    """See ``server_core.protocol.WireProtocol``. Its sessions speak by themselves."""

    def __init__(self, service_name: str, methods: Methods, message_bytes_max: int, streams_max: int) -> None:
        health, reflection = Health(service_name), Reflection(service_name)
        answering = replace(methods, plain={**methods.plain, CHECK: health.check})
        self._answered = answering.answered
        self._kept = {WATCH: health.watch, **dict.fromkeys(REFLECTION, reflection.answer)}
        self._kinds = dict.fromkeys((*answering.plain, *answering.calling), Kind.UNARY)
        self._kinds |= {WATCH: Kind.STREAMED_REPLY, **dict.fromkeys(REFLECTION, Kind.STREAMED)}
        self._message_bytes_max = message_bytes_max
        self._streams_max = streams_max

    def decoder(self) -> GrpcSession:
        """What cuts a new connection's bytes into calls."""
        return GrpcSession(self._kinds, self._message_bytes_max, self._streams_max, time.monotonic_ns)

    def answer(self, request: GrpcRequest, arrived_ns: int, peer: Address) -> bytes:
        """The reply's frames to a call's message; none to a call that was given up."""
        head, stream, message, carries, calls = request
        if stream not in calls:
            return b""
        if carries or head.kind:
            return self._answer_unusual(request, arrived_ns, peer)
        code, reply = self._answered(head.path, message, head.timeout_ms, arrived_ns, peer, head.metadata)
        if code == OK:
            return usual_reply(stream, reply)
        return fault_reply(stream, code, reply.decode(errors="replace"))

    def asked(self, request: GrpcRequest) -> tuple[bytes, Shown]:
        """The method that a call names, and the token that it shows."""
        head = request[0]
        return head.path, head.shown

    def path(self, request: GrpcRequest) -> bytes | None:
        """The method that a call names."""
        path = request[0].path
        return None if path == CHECK or path in self._kept else path

    def timeout_ms(self, request: GrpcRequest) -> int:
        """What it says its client waits."""
        return request[0].timeout_ms

    def refusal(self, request: GrpcRequest, code: FaultCode, detail: str) -> bytes:
        """The reply that is a fault."""
        _, stream, _, carries, _ = request
        return broken_off(stream, code, detail) if carries & LATER else fault_reply(stream, code, detail)

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """GOAWAY: to a client that was turned away, or one that is too slow.

        The first is sent no SETTINGS: a client of grpcio that had seen them would connect again at once, and for ever.
        """
        last = 0 if code is FaultCode.RESOURCE_EXHAUSTED else http2.STREAM_MAX
        return http2.goaway(last, http2.ErrorCode.ENHANCE_YOUR_CALM, detail)

    def objection(self, error: FramingError) -> bytes:
        """GOAWAY with what broke the connection."""
        assert isinstance(error, SessionError)
        return error.goaway

    def _answer_unusual(self, request: GrpcRequest, arrived_ns: int, peer: Address) -> bytes:
        """The reply to a message that is compressed, or one of a call that is kept."""
        head, stream, message, carries, _ = request
        try:
            if carries & GZIPPED:
                message = self._unzipped(message)
            if head.kind:
                return self._answer_kept(request, message)
        except BaseException as error:
            code, reply = failure(head.path, error)
            detail = reply.decode(errors="replace")
            return broken_off(stream, code, detail) if carries & LATER else fault_reply(stream, code, detail)
        code, reply = self._answered(head.path, message, head.timeout_ms, arrived_ns, peer, head.metadata)
        if code != OK:
            return fault_reply(stream, code, reply.decode(errors="replace"))
        if not head.takes_gzip:
            return usual_reply(stream, reply)
        return begun(stream, True) + messages(stream, zlib.compress(reply, wbits=_GZIP_BITS), True) + ended(stream)

    def _answer_kept(self, request: GrpcRequest, message: bytes) -> bytes:
        """The frames that answer one message of a kept call, or its end."""
        head, stream, _, carries, _ = request
        replies = self._kept[head.path](message, bool(carries & END))
        frames = b"" if carries & LATER else begun(stream)
        for reply in replies:
            frames += messages(stream, reply)
        return frames + ended(stream) if carries & END else frames

    def _unzipped(self, message: bytes) -> bytes:
        """What a message was before it was compressed. Raises a Fault."""
        unzip = zlib.decompressobj(_GZIP_BITS)
        try:
            plain = unzip.decompress(message, self._message_bytes_max + 1)
        except zlib.error as error:
            raise InternalFault("a message that is said to be gzip, and is not") from error
        if len(plain) > self._message_bytes_max:
            raise Overloaded(f"a message of over {self._message_bytes_max} bytes, which is the most allowed")
        if not unzip.eof:
            raise InternalFault("a message that is half of gzip")
        return plain
