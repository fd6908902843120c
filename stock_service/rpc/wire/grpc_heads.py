"""What a request's header block means to a gRPC server: its method, its time limit, its metadata, or why it is refused.

``Heads.parse`` is called once for each new block (``header_blocks.py``). A block that HTTP/2 calls malformed (RFC 9113,
8.2 and 8.3) is ``malformed``, and its stream is reset. One that is no call of gRPC is refused with a status of HTTP.
One that asks for what this server does not have is refused with a status of gRPC. Sources: ``PROTOCOL-HTTP2.md``,
``compression.md``.
"""

import binascii
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from stock_service.rpc.call import Metadata
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.security import AUTHORIZATION, Shown, shown_in
from stock_service.rpc.wire.header_blocks import Field

TIMEOUT_MS_MAX = 99_999_999 * 3_600_000
"""The longest that ``grpc-timeout`` can say: eight digits of hours."""

PATH_SHOWN_MAX = 200
"""Bytes of an unknown method's name that are said again, at most."""

_TIMEOUT = re.compile(rb"(\d{1,8})([HMSmun])")
_UNIT_NS = {b"H": 3_600 * 10**9, b"M": 60 * 10**9, b"S": 10**9, b"m": 10**6, b"u": 10**3, b"n": 1}

_CONTENT_TYPE = re.compile(rb"application/grpc(\+proto)?[ \t]*(;.*)?", re.IGNORECASE)

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE_NEVER = re.compile(rb"[\x00\r\n]|^[ \t]|[ \t]$")

_REQUIRED = (b":method", b":scheme", b":path")
_PSEUDO = frozenset((*_REQUIRED, b":authority"))
_OF_ONE_HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_AUTHORIZATION = AUTHORIZATION.encode()
_NOT_METADATA = frozenset(
    (
        _AUTHORIZATION,  # a head may be kept, and its token may not
        b"te",
        b"content-type",
        b"content-length",
        b"grpc-timeout",
        b"grpc-encoding",
        b"grpc-accept-encoding",
        b"grpc-message-type",
    )
)


class Kind(IntEnum):
    """What a method's requests and replies are."""

    UNARY = 0
    """One message, one reply."""
    STREAMED_REPLY = 1
    """One message, whose reply goes on until the server stops."""
    STREAMED = 2
    """Messages, each with replies, until the client ends."""
    REPLIES = 3
    """One message, whose replies come to an end."""


class Refusal(NamedTuple):
    """Why a request is not answered: a status of HTTP, or, with HTTP's 200, one of gRPC."""

    http_status: int
    code: FaultCode
    detail: str


class Head(NamedTuple):
    """A request's header block."""

    path: bytes = b""
    kind: Kind = Kind.UNARY
    timeout_ms: int = 0
    """0: none."""
    metadata: Metadata = ()
    gzipped: bool = False
    """Whether messages that say that they are compressed are so by gzip."""
    takes_gzip: bool = False
    """Whether a reply may be."""
    content_bytes: int = -1
    """What its content is said to be long; -1: it is not said."""
    refusal: Refusal | None = None
    malformed: str = ""
    """What is wrong with it as HTTP/2; empty: nothing."""
    shown: Shown = None
    """The token that it shows, by its digest."""
    trails: bool = False
    """Whether it is none of a request, and may follow a message."""

    @property
    def usual(self) -> bool:
        """Whether nothing about it needs a closer look: then its message is all there is to know, and its length."""
        return self.kind is Kind.UNARY and self.refusal is None and not self.malformed


class Heads:
    """Parses blocks for a server, ``kinds`` being its methods'."""

    __slots__ = ("_kinds",)

    def __init__(self, kinds: Mapping[bytes, Kind]) -> None:
        self._kinds = kinds

    def parse(self, fields: Sequence[Field]) -> Head:
        """What a block's fields mean."""
        malformed = _malformed(fields)
        if malformed:
            begins = any(name.startswith(b":") for name, _ in fields)
            return Head(malformed=malformed, trails=not begins and not _malformed_fields(fields))
        values = dict(fields)
        path, length = values[b":path"], values.get(b"content-length")
        head = Head(path, self._kinds.get(path, Kind.UNARY), content_bytes=-1 if length is None else int(length))
        refusal = _refused(values)
        if refusal is None and path not in self._kinds:
            name = path[:PATH_SHOWN_MAX].decode(errors="backslashreplace")
            refusal = Refusal(200, FaultCode.UNIMPLEMENTED, f"no method {name!r}")
        if refusal is not None:
            return head._replace(kind=Kind.UNARY, refusal=refusal)
        try:
            return head._replace(
                timeout_ms=_timeout_ms(values.get(b"grpc-timeout")),
                metadata=_metadata(fields),
                shown=shown_in(value.decode("latin-1") for name, value in fields if name == _AUTHORIZATION),
                gzipped=values.get(b"grpc-encoding") == b"gzip",
                takes_gzip=b"gzip" in values.get(b"grpc-accept-encoding", b"").replace(b" ", b"").split(b","),
            )
        except ValueError as error:
            return head._replace(kind=Kind.UNARY, refusal=Refusal(200, FaultCode.INTERNAL, str(error)))


def _malformed(fields: Sequence[Field]) -> str:
    pseudo = [name for name, _ in fields if name.startswith(b":")]
    if [name for name, _ in fields[: len(pseudo)]] != pseudo:
        return "a pseudo-header field after another field"
    if not _PSEUDO.issuperset(pseudo):
        return "a pseudo-header field that no request has"
    if len(set(pseudo)) < len(pseudo) or not set(pseudo).issuperset(_REQUIRED):
        return "a pseudo-header field twice, or not at all"
    if not dict(fields)[b":path"]:
        return "an empty path"
    return _malformed_fields(fields[len(pseudo) :])


def _malformed_fields(fields: Sequence[Field]) -> str:
    for name, value in fields:
        if not _NAME.fullmatch(name) or _VALUE_NEVER.search(value):
            return "a field with characters that none may have"
        if name in _OF_ONE_HOP or (name == b"te" and value != b"trailers"):
            return "a field that belongs to one connection"
        if name == b"content-length" and not (value.isdigit() and len(value) < 19):
            return "a length that is no number"
    return ""


def _refused(values: Mapping[bytes, bytes]) -> Refusal | None:
    """Why these fields are no call, or none that can be read."""
    if values[b":method"] != b"POST":
        return Refusal(405, FaultCode.UNIMPLEMENTED, "gRPC takes POST")
    if not _CONTENT_TYPE.fullmatch(values.get(b"content-type", b"")):
        return Refusal(415, FaultCode.UNIMPLEMENTED, "content-type: allowed: application/grpc")
    encoding = values.get(b"grpc-encoding", b"identity")
    if encoding not in (b"identity", b"gzip"):
        given = encoding.decode(errors="backslashreplace")[:40]
        return Refusal(200, FaultCode.UNIMPLEMENTED, f"grpc-encoding: got {given}, allowed: identity, gzip")
    return None


def _timeout_ms(value: bytes | None) -> int:
    """A time limit, to the next millisecond, 1 at least; 0: none. Raises ValueError."""
    if value is None:
        return 0
    matched = _TIMEOUT.fullmatch(value)
    if matched is None:
        raise ValueError("grpc-timeout: allowed: up to eight digits and one of H, M, S, m, u, n")
    return max(1, -(-int(matched[1]) * _UNIT_NS[matched[2]] // 10**6))


def _metadata(fields: Sequence[Field]) -> Metadata:
    """What a client sent besides. Raises ValueError for a binary value that is not base64.

    A value is ASCII; whatever else it has is shown by its escapes.
    """
    found: list[tuple[str, str | bytes]] = []
    for name, value in fields:
        if name.startswith(b":") or name in _NOT_METADATA:
            continue
        if name.endswith(b"-bin"):
            found += [(name.decode(), _binary(piece)) for piece in value.split(b",")]
        else:
            found.append((name.decode(), value.decode("ascii", "backslashreplace")))
    return tuple(found)


def _binary(value: bytes) -> bytes:
    value = value.strip(b" ")
    try:
        return binascii.a2b_base64(value + b"=" * (-len(value) % 4), strict_mode=True)
    except binascii.Error as error:
        raise ValueError("metadata: a name that ends in -bin, with a value that is not base64") from error
