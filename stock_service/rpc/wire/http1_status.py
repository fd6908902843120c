"""HTTP's statuses and our faults, both ways, and the bytes of requests and responses that carry them. No I/O.

A response that is a fault names its code in the field ``Fault``, since some faults share a status. UNIMPLEMENTED (no
method has the path) and NOT_FOUND are both 404. A client goes by the name, and by the status where there is none.
"""

from stock_service.rpc.errors import (
    FAULTS,
    DeadlineExceeded,
    Fault,
    FaultCode,
    InternalFault,
    InvalidRequest,
    Overloaded,
    PermissionDenied,
    Unauthenticated,
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
"""The status that says each fault."""

_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    417: b"Expectation Failed",
    421: b"Misdirected Request",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    501: b"Not Implemented",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
}

_FAULTS: dict[int, type[Fault]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: PermissionDenied,
    404: UnknownMethod,
    405: UnknownMethod,
    408: DeadlineExceeded,
    413: InvalidRequest,
    415: InvalidRequest,
    417: InvalidRequest,
    421: PermissionDenied,
    429: Overloaded,
    431: InvalidRequest,
    501: UnknownMethod,
    502: Unavailable,
    503: Unavailable,
    504: DeadlineExceeded,
    505: InvalidRequest,
}
"""What a status means that names no fault; any other is INTERNAL."""

_NAMED = {code.name.encode(): FAULTS[code] for code in FaultCode}


def encode_request(authority: bytes, path: bytes, timeout_ms: int, payload: bytes, extra: bytes = b"") -> bytes:
    """A method's request, its message in protobuf. ``extra``: further fields, each with its line's end."""
    return b"POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: %s\r\nTimeout-Ms: %d\r\nContent-Length: %d\r\n\r\n%s" % (
        path,
        authority,
        extra,
        PROTOBUF,
        timeout_ms,
        len(payload),
        payload,
    )


def encode_route_request(
    authority: bytes, verb: bytes, path: bytes, timeout_ms: int, payload: bytes, extra: bytes = b""
) -> bytes:
    """A route's request, its message in JSON, where it has one. ``extra`` as in ``encode_request``."""
    body = b"Content-Type: %s\r\nContent-Length: %d\r\n" % (JSON, len(payload)) if payload or verb == b"POST" else b""
    body = extra + body
    return b"%s %s HTTP/1.1\r\nHost: %s\r\nTimeout-Ms: %d\r\n%s\r\n%s" % (
        verb,
        path,
        authority,
        timeout_ms,
        body,
        payload,
    )


def encode_response(status: int, kind: bytes, payload: bytes, extra: bytes = b"") -> bytes:
    """A response. ``extra``: further fields, each with its line's end."""
    return b"HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        _REASONS[status],
        extra,
        kind,
        len(payload),
        payload,
    )


def fault_of(status: int, name: bytes, detail: bytes) -> Fault:
    """What a response that is no answer says."""
    fault = _NAMED.get(name) or _FAULTS.get(status, InternalFault)
    text = detail.decode(errors="replace") or f"HTTP status {status}"
    return fault(text if name in _NAMED else f"HTTP status {status}: {text[:300]}")
