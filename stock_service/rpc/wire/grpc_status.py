"""Conversion of a gRPC call's outcome to a fault (``errors.py``), for clients.

Every client uses ``status_fault``. The functions for header blocks, resets and GOAWAY are for clients without grpcio.

Sources: gRPC's ``PROTOCOL-HTTP2.md``, ``http-grpc-status-mapping.md`` and ``statuscodes.md``. A gRPC status without a
fault of its own becomes an InternalFault that names the status.
"""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from stock_service.rpc.errors import (
    FAULTS,
    DeadlineExceeded,
    Fault,
    FaultCode,
    InternalFault,
    Overloaded,
    Unavailable,
    UnknownMethod,
    short,
)
from stock_service.rpc.wire.header_blocks import Field
from stock_service.rpc.wire.http2 import ErrorCode, error_name

_OTHER_STATUSES = {
    2: "UNKNOWN",
    6: "ALREADY_EXISTS",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    11: "OUT_OF_RANGE",
    15: "DATA_LOSS",
}
"""gRPC's names of the statuses that have no fault in ``errors.py``, by number."""

_CANCELLED, _UNKNOWN = 1, 2

_TOLD = frozenset((b":status", b"content-type", b"grpc-status", b"grpc-message"))

_HTTP_FAULTS: dict[int, type[Fault]] = {
    404: UnknownMethod,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
"""Faults by HTTP status, for any status but 200. A status that is not in this table becomes an InternalFault."""

_RESET_FAULTS: dict[int, type[Fault]] = {
    ErrorCode.REFUSED_STREAM: Unavailable,
    ErrorCode.CANCEL: Unavailable,  # a stopping server cancels its calls
    ErrorCode.ENHANCE_YOUR_CALM: Overloaded,
}
"""Faults of calls that RST_STREAM ended, by the frame's error code. A code that is not in this table becomes an
InternalFault.
"""


class Block(NamedTuple):
    """Decoded header block, with the values that a gRPC client needs."""

    http_status: int
    """HTTP status; 0 for a block without an HTTP status, such as trailers; -1 for a value that is no number."""
    is_grpc: bool
    """True if the block has gRPC's content type."""
    grpc_status: int
    """gRPC status; -1 for a block without a gRPC status."""
    detail: str

    @property
    def begins(self) -> bool:
        """True if a response message may follow."""
        return self.http_status == 200 and self.is_grpc

    @property
    def is_interim(self) -> bool:
        """True for an HTTP status 1xx: the final headers of the reply follow later."""
        return 100 <= self.http_status < 200

    def fault(self, peer: str) -> Fault | None:
        """Returns the fault of a call that ends with this block; None for the status OK. ``peer`` names the server."""
        if self.grpc_status >= 0:
            return status_fault(self.grpc_status, self.detail, peer) if self.grpc_status else None
        if self.http_status not in (0, 200):
            return _HTTP_FAULTS.get(self.http_status, InternalFault)(f"HTTP status {self.http_status} from {peer}")
        if self.http_status and not self.is_grpc:
            return InternalFault(f"{peer} replied, but not with gRPC")
        return InternalFault(f"{peer} ended the call without a grpc-status")


def part(name: bytes, value: bytes) -> Field:
    """Returns the name and the value of a field if ``parse`` needs the field, otherwise two empty strings."""
    return (name, value) if name in _TOLD else (b"", b"")


def parse(fields: Sequence[Field]) -> Block:
    """Makes a Block from the results of ``part`` for all fields of a header block."""
    values = dict(fields)
    status, code = values.get(b":status", b"0"), values.get(b"grpc-status")
    return Block(
        http_status=int(status) if status.isdigit() and len(status) <= 3 else -1,
        is_grpc=values.get(b"content-type", b"").startswith(b"application/grpc"),
        grpc_status=-1 if code is None else int(code) if code.isdigit() and len(code) <= 2 else _UNKNOWN,
        detail=unquote_to_bytes(values.get(b"grpc-message", b"")).decode(errors="replace"),
    )


def status_fault(code: int, detail: str, peer: str) -> Fault:
    """Makes the fault of a gRPC status that is not OK, for any client. ``peer`` names the server."""
    if code == _CANCELLED:  # sent by a server that stopped before it began the call; our client cannot be the cause
        return Unavailable(f"call to {peer} cancelled by the server, which is stopping")
    if code == FaultCode.UNAVAILABLE:
        return Unavailable(f"connection to {peer}: {detail}")
    if code == FaultCode.DEADLINE_EXCEEDED:
        return DeadlineExceeded(f"no reply from {peer} in time")
    if code in FAULTS:
        return FAULTS[code](detail)
    return InternalFault(f"{_OTHER_STATUSES.get(code, f'status {code}')}: {detail}")


def reset_fault(code: int, peer: str) -> Fault:
    """Makes the fault of a call that the server ended with RST_STREAM. ``code`` is the frame's error code."""
    return _RESET_FAULTS.get(code, InternalFault)(f"call to {peer} reset by the server: {error_name(code)}")


def goaway_fault(code: int, detail: bytes, peer: str) -> Fault:
    """Makes the fault of a call that the server will not begin, because the server has sent GOAWAY."""
    why = "is stopping" if code == ErrorCode.NO_ERROR else f"said {error_name(code)}"
    said = f": {short(detail.decode(errors='replace'))}" if detail else ""
    return Unavailable(f"call to {peer} not taken up by the server, which {why}{said}")
