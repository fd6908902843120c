"""Meaning of a request's header block for a gRPC server: the request's method, time limit and metadata, or its refusal.

``header_blocks.py`` calls ``part`` once for each new field, and then ``Heads.head`` once for each new block, with the
parts of the block's fields. If a block breaks the rules of HTTP/2 (RFC 9113, 8.2 and 8.3), the head's ``malformed``
describes the fault, and the session resets the stream. If a block is no gRPC call, the server refuses the request with
an HTTP status. If the server does not support a call, the server refuses the call with a gRPC status. Sources: gRPC's
``PROTOCOL-HTTP2.md`` and ``compression.md``.
"""

import binascii
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from stock_service.rpc.call import Metadata
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.security import AUTHORIZATION, UNREADABLE, Shown, shown_in

TIMEOUT_MS_MAX = 99_999_999 * 3_600_000
"""Largest time limit that ``grpc-timeout`` can state, in milliseconds: 99,999,999 hours."""

PATH_SHOWN_MAX = 200
"""Largest number of bytes of an unknown method's name that an error text shows."""

_UNIT_NS = {b"H": 3_600 * 10**9, b"M": 60 * 10**9, b"S": 10**9, b"m": 10**6, b"u": 10**3, b"n": 1}

_TIMEOUT_WRONG = "grpc-timeout: allowed: up to eight digits and one of H, M, S, m, u, n"

_CONTENT_TYPE = re.compile(rb"application/grpc(\+proto)?[ \t]*(;.*)?", re.IGNORECASE)

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")

_REQUIRED = (b":method", b":scheme", b":path")
_PSEUDO = frozenset((*_REQUIRED, b":authority"))
_OF_ONE_HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_AUTHORIZATION = AUTHORIZATION.encode()
_NOT_METADATA = frozenset(
    (
        _AUTHORIZATION,  # a head may be remembered, but its token may not
        b"te",
        b"content-type",
        b"content-length",
        b"grpc-timeout",
        b"grpc-encoding",
        b"grpc-accept-encoding",
        b"grpc-message-type",
    )
)
_MALFORMED, _BEGINNING, _OWN, _METADATA, _BINARY, _WRONG = range(6)

Part = tuple[int, bytes, bytes, Metadata]
"""A decoded header field: its role (a number from ``_MALFORMED`` to ``_WRONG``), its name, its value or the text of its
fault, and its metadata.
"""


class Kind(IntEnum):
    """Kind of a method, by the number of messages of the client and the number of replies."""

    UNARY = 0
    """One message, one reply."""
    STREAMED_REPLY = 1
    """One message, and replies until the client cancels or the server stops. Such a call is a watch."""
    STREAMED = 2
    """Any number of messages, each with its replies, until the client ends the call."""
    REPLIES = 3
    """One message, and a finite number of replies."""


class Refusal(NamedTuple):
    """Refusal of a request: an HTTP status, or a gRPC status if the HTTP status is 200."""

    http_status: int
    code: FaultCode
    detail: str


class Head(NamedTuple):
    """Decoded header block of a request."""

    path: bytes = b""
    kind: Kind = Kind.UNARY
    timeout_ms: int = 0
    """Time limit in milliseconds; 0 for a request without a time limit."""
    metadata: Metadata = ()
    gzipped: bool = False
    """True if the client compresses messages with gzip (``grpc-encoding``)."""
    takes_gzip: bool = False
    """True if the client accepts replies in gzip (``grpc-accept-encoding``)."""
    content_bytes: int = -1
    """Value of ``content-length``; -1 for a head without this field."""
    refusal: Refusal | None = None
    malformed: str = ""
    """Text that says how the block breaks HTTP/2's rules; empty for a valid block."""
    shown: Shown = None
    """Credential that the request shows."""
    trails: bool = False
    """True if the block has no pseudo-header field, and so may be trailers."""
    usual: bool = False
    """True for a valid head of a unary call: the session must then check only the message and its length."""


class Heads:
    """Factory of one connection's heads. ``kinds`` has the kind of each method of the server, by the method's path.

    Calls of one client often differ only in their last metadata, such as the number of a trace. So the factory
    remembers the latest valid head of a unary call, without the metadata at the head's end. If the next block has the
    same parts and then only metadata, the factory copies the remembered head, and adds the new metadata.
    """

    def __init__(self, kinds: Mapping[bytes, Kind]) -> None:
        self._kinds = kinds
        self._begun: Sequence[Part] = []
        self._usual: Head | None = None

    def head(self, parts: Sequence[Part]) -> Head:
        """Makes the head of a block. ``parts`` are the results of ``part`` for the block's fields, in order."""
        begun, usual = len(self._begun), self._usual
        if usual is not None and parts[:begun] == self._begun:
            said = [*usual.metadata]
            for role, _, _, further in parts[begun:]:
                if role != _METADATA:
                    break
                said += further
            else:
                return Head._make((*usual[:3], tuple(said), *usual[4:]))
        head = self._head(parts)
        if head.usual:
            begun = max(place for place, (role, *_) in enumerate(parts, 1) if role != _METADATA)
            self._begun, behind = parts[:begun], sum(len(said) for *_, said in parts[begun:])
            self._usual = head._replace(metadata=head.metadata[: len(head.metadata) - behind])
        return head

    def _head(self, parts: Sequence[Part]) -> Head:
        values: dict[bytes, bytes] = {}
        metadata: list[tuple[str, str | bytes]] = []
        malformed, wrong, others = b"", b"", False
        for role, name, value, said in parts:
            if role == _BEGINNING:
                if others or name in values:
                    malformed = b"a pseudo-header field twice, or after another field"
                values[name] = value
                continue
            others = True
            if role == _METADATA:
                metadata += said
            elif role == _OWN:
                values[name] = UNREADABLE if name == _AUTHORIZATION and name in values else value
            elif role == _MALFORMED:
                malformed = value
            else:
                wrong = value
        path = values.get(b":path")
        if malformed or not path or b":method" not in values or b":scheme" not in values:
            trails = all(role > _BEGINNING for role, *_ in parts)
            return Head(
                malformed=malformed.decode() or "a pseudo-header field that is missing, or empty", trails=trails
            )
        length = values.get(b"content-length")
        content_bytes = -1 if length is None else int(length)
        kind = self._kinds.get(path)
        refusal = _refused(values)
        timeout_ms = _timeout_ms(values.get(b"grpc-timeout"))
        if refusal is None and kind is None:
            shown = path[:PATH_SHOWN_MAX].decode(errors="backslashreplace")
            refusal = Refusal(200, FaultCode.UNIMPLEMENTED, f"no method {shown!r}")
        elif refusal is None and (timeout_ms < 0 or wrong):
            refusal = Refusal(200, FaultCode.INTERNAL, wrong.decode() or _TIMEOUT_WRONG)
        if refusal is not None or kind is None:
            return Head(path, content_bytes=content_bytes, refusal=refusal)
        return Head(
            path,
            kind,
            timeout_ms,
            tuple(metadata),
            values.get(b"grpc-encoding") == b"gzip",
            bool(values.get(b"grpc-accept-encoding")),
            content_bytes,
            shown=values.get(_AUTHORIZATION),
            usual=kind is Kind.UNARY,
        )


def part(name: bytes, value: bytes) -> Part:
    """Returns the meaning of one header field, for ``Heads.head``. The meaning of a faulty field states the fault;
    ``part`` never raises.
    """
    role = _role(name)
    if value.strip(b" \t").translate(None, b"\0\r\n") != value:
        return _MALFORMED, name, b"a value with characters that none may have", ()
    if role == _METADATA:
        return role, name, b"", ((name.decode(), value.decode("ascii", "backslashreplace")),)
    if role == _BINARY:
        try:
            return _METADATA, name, b"", tuple([(name.decode(), _binary(piece)) for piece in value.split(b",")])
        except binascii.Error:
            return _WRONG, name, b"metadata: a name that ends in -bin, with a value that is not base64", ()
    if role == _MALFORMED:
        return role, name, b"a field that no request has", ()
    return _own(name, value) if role == _OWN else (role, name, value, ())


@lru_cache(256)
def _role(name: bytes) -> int:
    """Returns the role of all fields with the name ``name``."""
    if name in _PSEUDO:
        return _BEGINNING
    if name in _NOT_METADATA:
        return _OWN
    if name in _OF_ONE_HOP or not _NAME.fullmatch(name):
        return _MALFORMED
    return _BINARY if name.endswith(b"-bin") else _METADATA


def _own(name: bytes, value: bytes) -> Part:
    """Returns the meaning of a field that gRPC or HTTP defines. A token becomes its digest. A content type or list of
    encodings becomes one known value, or empty bytes.
    """
    if name == b"te" and value != b"trailers":
        return _MALFORMED, name, b"a field that belongs to one connection", ()
    if name == b"content-length" and not (value.isdigit() and len(value) < 19):
        return _MALFORMED, name, b"a length that is no number", ()
    if name == _AUTHORIZATION:
        value = shown_in((value.decode("latin-1"),)) or UNREADABLE
    elif name == b"grpc-accept-encoding":
        value = b"gzip" if b"gzip" in value.replace(b" ", b"").split(b",") else b""
    elif name == b"content-type":
        value = b"application/grpc" if _CONTENT_TYPE.fullmatch(value) else b""
    return _OWN, name, value, ()


def _refused(values: Mapping[bytes, bytes]) -> Refusal | None:
    """Returns the refusal of a request that is no gRPC call, or has an unknown encoding. None for any other request."""
    if values[b":method"] != b"POST":
        return Refusal(405, FaultCode.UNIMPLEMENTED, "gRPC takes POST")
    if not values.get(b"content-type"):
        return Refusal(415, FaultCode.UNIMPLEMENTED, "content-type: allowed: application/grpc")
    encoding = values.get(b"grpc-encoding", b"identity")
    if encoding not in (b"identity", b"gzip"):
        given = encoding.decode(errors="backslashreplace")[:40]
        return Refusal(200, FaultCode.UNIMPLEMENTED, f"grpc-encoding: got {given}, allowed: identity, gzip")
    return None


def _timeout_ms(value: bytes | None) -> int:
    """Decodes ``grpc-timeout`` to milliseconds, rounded up, at least 1. Returns 0 if ``value`` is None, and -1 for a
    value that is no time limit.
    """
    if value is None:
        return 0
    digits, unit_ns = value[:-1], _UNIT_NS.get(value[-1:])
    if unit_ns is None or len(digits) > 8 or not digits.isdigit():
        return -1
    return -(-int(digits) * unit_ns // 1_000_000) or 1


def _binary(value: bytes) -> bytes:
    """Decodes the base64 of binary metadata, with or without padding. Raises binascii.Error."""
    value = value.strip(b" ")
    return binascii.a2b_base64(value + b"=" * (-len(value) % 4), strict_mode=True)
