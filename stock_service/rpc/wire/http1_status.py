"""Conversion between HTTP's statuses and faults (``errors.py``), and encoding of requests and responses. No I/O.

A response with a fault has the fault's code in the header field ``Fault``. The status is not enough: UNIMPLEMENTED (no
method has the path) and NOT_FOUND are both 404. A client makes the fault from the field ``Fault`` or, if the field is
missing, from the status.
"""

from http import HTTPStatus

from stock_service.rpc.errors import (
    FAULTS,
    DeadlineExceeded,
    Fault,
    FaultCode,
    InternalFault,
    InvalidRequest,
    PermissionDenied,
    Unavailable,
    UnknownMethod,
)

PROTOBUF = b"application/protobuf"
JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"

STATUSES = {
    FaultCode.INVALID_ARGUMENT: 400,
    FaultCode.DEADLINE_EXCEEDED: 504,
    FaultCode.NOT_FOUND: 404,
    FaultCode.PERMISSION_DENIED: 403,
    FaultCode.RESOURCE_EXHAUSTED: 429,
    FaultCode.UNIMPLEMENTED: 404,
    FaultCode.INTERNAL: 500,
    FaultCode.UNAVAILABLE: 503,
    FaultCode.UNAUTHENTICATED: 401,
}
"""HTTP status that a server sends for each fault."""

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}

_FAULTS: dict[int, type[Fault]] = {
    **{status: FAULTS[code] for code, status in STATUSES.items()},
    **dict.fromkeys((413, 415, 417, 431, 505), InvalidRequest),
    **dict.fromkeys((405, 501), UnknownMethod),
    408: DeadlineExceeded,
    421: PermissionDenied,
    502: Unavailable,
}
"""Fault that a client makes from the status of a response without the field ``Fault``. Any other status becomes an
InternalFault.
"""

_NAMED = {code.name.encode(): FAULTS[code] for code in FaultCode}


def encode_request(verb: bytes, path: bytes, kind: bytes, payload: bytes, fields: bytes) -> bytes:
    """Encodes a request. ``kind`` is the content type of the payload. ``fields`` has further header fields, each
    followed by CRLF.
    """
    body = b"Content-Type: %s\r\nContent-Length: %d\r\n" % (kind, len(payload)) if payload or verb == b"POST" else b""
    return b"%s %s HTTP/1.1\r\n%s%s\r\n%s" % (verb, path, fields, body, payload)


def encode_response(status: int, kind: bytes, payload: bytes, extra: bytes = b"") -> bytes:
    """Encodes a response. ``kind`` is the content type. ``extra`` has further header fields, each followed by CRLF."""
    return b"HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        _REASONS[status],
        extra,
        kind,
        len(payload),
        payload,
    )


def fault_of(status: int, name: bytes, detail: bytes) -> Fault:
    """Makes the fault of a response whose status is not 200. ``name`` is the value of the field ``Fault``, or empty."""
    fault = _NAMED.get(name) or _FAULTS.get(status, InternalFault)
    text = detail.decode(errors="replace") or f"HTTP status {status}"
    return fault(text if name in _NAMED else f"HTTP status {status}: {text[:300]}")
