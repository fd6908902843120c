"""gRPC for the server core (``server_core.protocol.WireProtocol``): answers calls of the service's methods, and of the
health service's Watch.
"""

import time
import zlib
from collections.abc import Sequence

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.call import Call, ReplyMetadata
from stock_service.rpc.errors import DeadlineExceeded, Fault, FaultCode, InternalFault, Overloaded
from stock_service.rpc.health import CHECK, WATCH, Health
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.security import Asked
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import OK, Methods, failure
from stock_service.rpc.service import Method, Service, StreamAnswer
from stock_service.rpc.waiting import here
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.grpc_calls import END, GZIPPED, LATER, MORE, GrpcRequest, unfolds_bytes
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_replies import (
    begun,
    broken_off,
    ended,
    fault_reply,
    messages,
    metadata_fields,
    usual_reply,
)
from stock_service.rpc.wire.grpc_session import GrpcSession, SessionError

_GZIP_BITS = 31
"""zlib's ``wbits`` for gzip with the largest window."""

_CHECK, _WATCH = CHECK.encode(), WATCH.encode()


class GrpcRequests:
    """Implementation of ``server_core.protocol.WireProtocol`` for gRPC. Its decoders are sessions, which also send
    frames of their own. Thread-safe.
    """

    def __init__(self, service: Service, methods: Methods, message_bytes_max: int, streams_max: int) -> None:
        self._answered, self._plain = methods.answered, methods.plain
        self._health = service.health or Health(service.name)
        self._watch = Method(HealthCheckRequest, HealthCheckResponse, self._health.watched).answer()
        self._kinds = {_WATCH: Kind.STREAMED_REPLY, **dict.fromkeys((*methods.plain, *methods.calling), Kind.UNARY)}
        self._streams: dict[bytes, StreamAnswer] = {}
        self._meters = dict(methods.meters)
        for path, method in service.streams.items():
            self._streams[path.encode()] = method.answer_stream()
            self._kinds[path.encode()] = Kind.STREAMED if method.talks else Kind.REPLIES
            if method.meter is not None:
                self._meters[path.encode()] = method.meter
        self._message_bytes_max = message_bytes_max
        self._streams_max = streams_max

    def decoder(self) -> GrpcSession:
        """Makes the session that cuts a new connection's bytes into requests. A request is one message of a call."""
        return GrpcSession(self._kinds, self._message_bytes_max, self._streams_max, time.monotonic_ns)

    def answer(self, request: GrpcRequest, arrived_ns: int, peer: Address) -> bytes:
        """Calls a request's method, and returns the frames of the reply. If the call is over, returns no bytes."""
        head, stream, message, carries, calls, _ = request
        if stream not in calls:
            return b""
        method = self._plain.get(head.path)
        if carries or head.kind or method is None:
            return self._answer_unusual(request, arrived_ns, peer)
        timeout_ms = head.timeout_ms
        try:
            if timeout_ms and time.monotonic_ns() - arrived_ns > timeout_ms * 1_000_000:
                raise self._missed(head.path, timeout_ms)
            return usual_reply(stream, method(message))
        except BaseException as error:  # also SystemExit, since every request must get a reply
            code, reply = failure(head.path, error)
            return fault_reply(stream, code, reply.decode(errors="replace"))

    def asked(self, request: GrpcRequest) -> Asked:
        """Returns the path of a request's method, and the credential that the call shows."""
        head = request[0]
        return head.path, head.shown

    def path(self, request: GrpcRequest) -> bytes | None:
        """Returns the path of a request's method. None for a health check, and for a method that streams."""
        path = request[0].path
        return None if path == _CHECK or request[0].kind else path

    def timeout_ms(self, request: GrpcRequest) -> int:
        """Returns a call's time limit in milliseconds; 0 for no time limit."""
        return request[0].timeout_ms

    def refusal(self, request: GrpcRequest, code: FaultCode, detail: str) -> bytes:
        """Encodes the reply that refuses a call with a fault. But for a watch that has already had an answer, returns
        the next answer: sending the status takes no more time than a refusal.
        """
        head, stream, _, carries, *_ = request
        if head.path == _WATCH and carries & LATER and not carries & GZIPPED:
            return self.answer(request, 0, ("", 0))
        return broken_off(stream, code, detail) if carries & LATER else fault_reply(stream, code, detail)

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """Encodes the GOAWAY frame of a connection that the server refuses, or closes because the client is too slow.

        If the connection is refused, no SETTINGS frame comes before the GOAWAY. After SETTINGS, grpcio's client would
        connect again at once, and would repeat this for ever.
        """
        last = 0 if code is FaultCode.RESOURCE_EXHAUSTED else http2.STREAM_MAX
        return http2.goaway(last, http2.ErrorCode.ENHANCE_YOUR_CALM, detail)

    def goodbye(self) -> bytes:
        """Returns no bytes, since the session sends GOAWAY."""
        return b""

    def objection(self, error: FramingError) -> bytes:
        """Returns the GOAWAY frame with the error that ends the connection."""
        assert isinstance(error, SessionError)
        return error.goaway

    def _answer_unusual(self, request: GrpcRequest, arrived_ns: int, peer: Address) -> bytes:
        """Answers a request of an unusual kind: a compressed message, a message of a kept call (``grpc_session.py``),
        or a request for a method that takes a ``Call``.
        """
        head, stream, message, carries, _, progress = request
        said = ReplyMetadata()
        try:
            if carries & GZIPPED:
                message = self._unzipped(message)
            if progress is not None:
                said = progress.said = progress.said or said
                return self._answer_kept(request, message, arrived_ns, peer)
            code, reply = self._answered(head.path, message, head.timeout_ms, arrived_ns, peer, head.metadata, said)
        except BaseException as error:
            code, reply = failure(head.path, error)
        try:
            initial, trailing = metadata_fields(said.initial), metadata_fields(said.trailing)
        except BaseException as error:  # metadata that cannot be sent is a bug of the method
            initial, trailing = [], []
            code, reply = failure(head.path, error)
        if code != OK:
            detail = reply.decode(errors="replace")
            if carries & LATER:
                return broken_off(stream, code, detail, trailing)
            if initial:
                return begun(stream, False, initial) + broken_off(stream, code, detail, trailing)
            return fault_reply(stream, code, detail, trailing)
        gzipped = bool(carries & GZIPPED) and head.takes_gzip
        if not (gzipped or initial or trailing):
            return usual_reply(stream, reply)
        if gzipped:
            reply = zlib.compress(reply, wbits=_GZIP_BITS)
        return begun(stream, gzipped, initial) + messages(stream, reply, gzipped) + ended(stream, trailing)

    def _answer_kept(self, request: GrpcRequest, message: bytes, arrived_ns: int, peer: Address) -> bytes:
        """Answers one message of a kept call, or the end of the call. Returns the frames. Raises a Fault."""
        head, stream, _, carries, _, progress = request
        assert progress is not None
        assert progress.said is not None
        progress.began_ns = progress.began_ns or arrived_ns
        replies: Sequence[bytes] = ()
        if head.path == _WATCH:
            if carries & END:  # a watch has this flag only when the server stops
                self._health.stop()
            said = self._watch(message)
            replies = [said] if said != progress.told else []
            progress.told = said
        elif not carries & END:
            replies = self._next_reply(request, message, peer)
        frames = b"" if carries & LATER else begun(stream, False, metadata_fields(progress.said.initial))
        for reply in replies:
            frames += messages(stream, reply)
        last = carries & END or (head.kind is Kind.REPLIES and progress.replies is None)
        return frames + ended(stream, metadata_fields(progress.said.trailing)) if last else frames

    def _next_reply(self, request: GrpcRequest, message: bytes, peer: Address) -> Sequence[bytes]:
        """Returns the next encoded reply of a method with several replies, as a sequence of one element. Returns an
        empty sequence after the last reply. Raises a Fault.
        """
        head, _, _, carries, _, progress = request
        assert progress is not None
        deadline_ns = progress.began_ns + head.timeout_ms * 1_000_000 if head.timeout_ms else None
        if deadline_ns is not None and time.monotonic_ns() > deadline_ns:
            if not carries & MORE:
                raise self._missed(head.path, head.timeout_ms)
            progress.replies = None  # closes the generator of the replies
            raise DeadlineExceeded(f"not ended within {head.timeout_ms} ms")
        if not carries & MORE:
            call = Call(message, shown_address(peer), deadline_ns, head.metadata, progress.said)
            progress.replies = self._streams[head.path](call)
        assert progress.replies is not None
        here.wait = None  # a generator cannot resume after it has raised Waiting, so it blocks instead
        reply = next(progress.replies, None)
        if reply is not None:
            return [reply]
        progress.replies = None
        return []

    def _missed(self, path: bytes, timeout_ms: int) -> Fault:
        """Makes the fault of a request that was not begun within its time limit. Counts the request in the method's
        meter.
        """
        if path in self._meters:
            self._meters[path].missed()
        return DeadlineExceeded(f"not begun within {timeout_ms} ms")

    def _unzipped(self, message: bytes) -> bytes:
        """Decompresses a gzip message. The result has at most the size that the message states. Raises a Fault."""
        unzip, size = zlib.decompressobj(_GZIP_BITS), unfolds_bytes(message)
        if size > self._message_bytes_max:
            raise Overloaded(f"a message of over {self._message_bytes_max} bytes, which is the most allowed")
        try:
            plain = unzip.decompress(message, size + 1)
        except zlib.error as error:
            raise InternalFault("a message that is said to be gzip, and is not") from error
        if not unzip.eof:
            raise InternalFault("a message that is half of gzip")
        return plain
