"""Context of one call, as grpcio's handlers have it, and the frames of the call's end."""

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Never
from urllib.parse import quote

import grpc

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server.connections import OpenCalls
from stock_service.rpc.server_core.options import Address, Peer, certificate_of
from stock_service.rpc.wire.grpc_calls import GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_replies import begun, broken_off, ended, fault_reply, messages, usual_reply
from stock_service.rpc.wire.grpc_replies import metadata_fields as fields_of
from stock_service.rpc.wire.header_blocks import Field

FOREVER_S = 2.0**63
"""Time that remains to a call without a deadline: grpcio has this number, too, and no None."""

_GZIP_BITS = 31
"""zlib's ``wbits`` for gzip with the largest window."""

_MAPPED = "::ffff:"
"""Beginning of an IPv4 address in IPv6's form."""


class Metadatum(NamedTuple):
    """One pair of metadata."""

    key: str
    value: str | bytes


class CallEnded(grpc.RpcError):
    """Raised to a handler that would go on with a call that has ended."""


def kept(compression: object) -> bool:
    """True where replies are to be compressed. Raises ValueError for a compression that is not kept."""
    if compression not in (None, grpc.Compression.NoCompression, grpc.Compression.Gzip):
        raise ValueError(f"compression: got {getattr(compression, 'name', compression)}, allowed: NoCompression, Gzip")
    return compression is grpc.Compression.Gzip


class Context(grpc.ServicerContext):
    """See ``grpc.ServicerContext``. For the thread of its handler; any thread may ask, cancel and add callbacks."""

    def __init__(self, request: GrpcRequest, arrived_ns: int, peer: Address, compresses: bool) -> None:
        self._head, self.stream, _, _, calls, _ = request
        assert isinstance(calls, OpenCalls)
        self._calls, self._peer = calls, peer
        timeout_ms = self._head.timeout_ms
        self._deadline_ns = arrived_ns + timeout_ms * 1_000_000 if timeout_ms else 0
        self._compresses, self._next_plain = compresses, False
        self._begun = self._pushed = False  # True: the first headers have left; a reply has
        self._kept: list[bytes] = []  # replies that leave with the end
        self._code: Any = None
        self._details: bytes | None = None
        self._trailing: Any = None
        self.aborted = False
        """True once the handler has asked for its end."""

    # ---- the call

    def is_active(self) -> bool:
        """True until the call has ended, by its client, by its deadline or by its reply."""
        return self._calls.has(self.stream) and not self.late

    @property
    def late(self) -> bool:
        """True once the client has given up."""
        return bool(self._deadline_ns) and time.monotonic_ns() > self._deadline_ns

    def time_remaining(self) -> float:
        """Seconds until the client gives up; very many where it never does."""
        if not self._deadline_ns:
            return FOREVER_S
        return max(0.0, (self._deadline_ns - time.monotonic_ns()) / 1e9)

    def cancel(self) -> bool:
        """Ends the call with CANCELLED."""
        if self._calls.connection is not None:
            self._calls.connection.cancel(self.stream)
        return True

    def add_callback(self, callback: Callable[[], None]) -> bool:
        """Has a short function called at the call's end; returns False where it has ended."""
        connection = self._calls.connection
        return connection is not None and connection.listen(self.stream, callback)

    # ---- the caller

    def invocation_metadata(self) -> tuple[Metadatum, ...]:
        """Metadata of the call, in the order in which it came."""
        return tuple(map(Metadatum._make, self._head.metadata))

    def peer(self) -> str:
        """Address of the client, as gRPC writes it."""
        host, port = self._peer[0].removeprefix(_MAPPED), self._peer[1]
        return f"ipv6:{quote(f'[{host}]', safe=':')}:{port}" if ":" in host else f"ipv4:{host}:{port}"

    def peer_identities(self) -> Iterable[bytes] | None:
        """The common name of the client's certificate; None where it showed none."""
        return [certificate_of(self._peer).encode()] if certificate_of(self._peer) else None

    def peer_identity_key(self) -> str | None:
        """Name of what ``peer_identities`` gives in ``auth_context``."""
        return "x509_common_name" if certificate_of(self._peer) else None

    def auth_context(self) -> Mapping[str, Any]:
        """What is known of the connection's safety."""
        if not isinstance(self._peer, Peer):
            return {"transport_security_type": [b"insecure"], "security_level": [b"TSI_SECURITY_NONE"]}
        known = {"transport_security_type": [b"ssl"], "security_level": [b"TSI_PRIVACY_AND_INTEGRITY"]}
        named = certificate_of(self._peer)
        return {**known, "x509_common_name": [named.encode()]} if named else known

    # ---- the reply

    def set_compression(self, compression: grpc.Compression) -> None:
        """Has the replies compressed, or not, from now on."""
        self._compresses = kept(compression)

    def disable_next_message_compression(self) -> None:
        """Leaves the next reply as it is."""
        self._next_plain = True

    def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Sends metadata before the first reply, at once."""
        if not self.is_active():
            raise CallEnded
        if self._begun:
            raise ValueError("Initial metadata no longer allowed!")
        frames = begun(self.stream, self._gzips(), fields(initial_metadata))
        self._begun = True
        if self._calls.connection is not None:
            self._calls.connection.speak(self.stream, frames)

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Sets the metadata behind the last reply."""
        self._trailing = trailing_metadata

    def trailing_metadata(self) -> Any:
        """The metadata behind the last reply, as it was set; None before."""
        return self._trailing

    def set_code(self, code: grpc.StatusCode) -> None:
        """Sets the status of the call."""
        self._code = code

    def code(self) -> Any:
        """The status as it was set; None before."""
        return self._code

    def set_details(self, details: str) -> None:
        """Sets the text of the status."""
        self._details = _encoded(details)

    def details(self) -> Any:
        """The text of the status in UTF-8, as grpcio gives it; None before it is set."""
        return self._details

    def abort(self, code: grpc.StatusCode, details: str) -> Never:
        """Ends the call with a status other than OK, by an exception."""
        if code is grpc.StatusCode.OK:
            code, details = grpc.StatusCode.UNKNOWN, ""
        self._code, self._details, self.aborted = code, _encoded(details), True
        raise Exception

    def abort_with_status(self, status: grpc.Status) -> Never:
        """The same, with the status' metadata."""
        self._trailing = status.trailing_metadata
        self.abort(status.code, status.details)

    # ---- frames, for the server

    def answered(self, reply: bytes) -> bytes:
        """Frames of the one reply and the end."""
        if self._code is not None and _number(self._code):
            return self.ended()
        if not (self._begun or self._compresses or self._trailing):
            return usual_reply(self.stream, reply)
        return self.said(reply) + self.ended()

    def said(self, reply: bytes) -> bytes:
        """Frames of one reply, with the first headers where they have not left."""
        gzipped, frames = self._gzips(), b""
        if not self._begun:
            frames, self._begun = begun(self.stream, gzipped), True
        if gzipped and not self._next_plain:
            frames += messages(self.stream, zlib.compress(reply, wbits=_GZIP_BITS), True)
        else:
            frames += messages(self.stream, reply)
        self._next_plain = False
        return frames

    def push(self, reply: bytes) -> bool:
        """Sends one of several replies, and blocks until it has left; returns False where the call has ended."""
        frames, connection = self.said(reply), self._calls.connection
        if self._head.kind is Kind.UNARY:  # an interceptor's handler, of another kind than the method
            self._kept.append(frames)
            return self.is_active()
        first, self._pushed = not self._pushed, True
        return connection is not None and connection.push(self.stream, frames, first)

    def grant(self, size: int) -> None:
        """Lets the client send so many bytes more."""
        if self._calls.connection is not None:
            self._calls.connection.grant(self.stream, size)

    def waited(self, wait: Callable[[], Any]) -> Any:
        """Waits for the client."""
        connection = self._calls.connection
        return wait() if connection is None else connection.waited(wait)

    def broken(self, code: grpc.StatusCode, detail: str) -> bytes:
        """Frames of the end, whatever the handler has set."""
        self._code = self._details = self._trailing = None
        return self.ended(code, detail)

    def ended(self, code: object = grpc.StatusCode.OK, detail: str = "") -> bytes:
        """Frames of the end, with the status that the handler has set; where it has set none, with this one."""
        number = _number(code if self._code is None else self._code)
        text = detail if self._details is None else self._details.decode(errors="replace")
        trailing, said = fields(self._trailing), b"".join(self._kept)
        if number and not self._begun:
            return fault_reply(self.stream, number, text, trailing)
        if number:
            return said + broken_off(self.stream, number, text, trailing)
        return said + (b"" if self._begun else begun(self.stream)) + ended(self.stream, trailing)

    def _gzips(self) -> bool:
        return self._compresses and self._head.takes_gzip


def fields(metadata: Any) -> list[Field]:
    """Metadata as header fields. Raises ValueError for a name or value that is not allowed."""
    pairs = ((name, value, isinstance(value, bytes) and not name.endswith("-bin")) for name, value in metadata or ())
    return fields_of([(name, value.decode("latin-1") if encoded else value) for name, value, encoded in pairs])


def _number(code: object) -> int:
    """Number of a status; that of UNKNOWN for what is none."""
    if isinstance(code, FaultCode):
        return int(code)
    return int((code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN).value[0])


def _encoded(details: str | bytes) -> bytes:
    return details if isinstance(details, bytes) else details.encode()
