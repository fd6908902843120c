"""What both dispatch models of the socket server share: listening, and a request's frame to its reply's."""

import fcntl
import logging
import socket
import sys
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stock_service.rpc.call import Call
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.service import Answer, CallAnswer, Service
from stock_service.rpc.timeline import NO_METHOD, Timeline
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.wire.framing import RequestFrame, encode_reply

_log = logging.getLogger(__name__)

BACKLOG = 1024
"""Connections that the kernel completes and holds until they are accepted; it caps this at net.core.somaxconn."""

READ_BYTES = 65536
"""Bytes asked for in one recv."""


@dataclass(frozen=True, slots=True)
class Methods:
    """A service's methods by the bytes that name them on the wire: those of a request alone, and those of a call."""

    plain: Mapping[bytes, Answer]
    calling: Mapping[bytes, CallAnswer]


Answering = Callable[[Methods, RequestFrame, int, Address], bytes]
"""``answer``, or what ``stamping`` makes of it."""


def methods_of(service: Service) -> Methods:
    """A service's methods as they are answered."""
    methods = {path.encode(): method for path, method in service.methods.items()}
    return Methods(
        {name: method.answer() for name, method in methods.items() if not method.wants_call},
        {name: method.answer_call() for name, method in methods.items() if method.wants_call},
    )


def listen(options: ServeOptions) -> socket.socket:
    """A listening, blocking socket. Raises OSError where the address cannot be had."""
    return socket.create_server((options.host, options.port), backlog=BACKLOG)


def arrived_bytes(connection: socket.socket) -> int:
    """How many bytes the kernel holds of what the client has sent."""
    return int.from_bytes(fcntl.ioctl(connection, termios.FIONREAD, bytes(4)), sys.byteorder)


def answer(methods: Methods, frame: RequestFrame, arrived_ns: int, peer: Address) -> bytes:
    """The reply's frame to a request's, a fault where it has no outcome; never raises.

    ``arrived_ns`` is when the request was read, on ``time.monotonic_ns``: a handler does not start once the client has
    given up. ``peer`` is whom it was read from.
    """
    call, timeout_ms, name, payload = frame
    try:
        if timeout_ms and time.monotonic_ns() - arrived_ns > timeout_ms * 1_000_000:
            return refusal(call, FaultCode.DEADLINE_EXCEEDED, f"not begun within {timeout_ms} ms")
        method = methods.plain.get(name)
        if method is not None:
            return encode_reply(call, 0, method(payload))
        calling = methods.calling.get(name)
        if calling is None:
            return refusal(call, FaultCode.UNIMPLEMENTED, f"no method {name.decode(errors='backslashreplace')!r}")
        deadline_ns = arrived_ns + timeout_ms * 1_000_000 if timeout_ms else None
        return encode_reply(call, 0, calling(Call(payload, f"{peer[0]}:{peer[1]}", deadline_ns)))
    except Fault as fault:
        return refusal(call, fault.code, fault.detail)
    except BaseException:  # SystemExit too: every request gets its reply
        _log.exception("the handler of %r raised", name)
        return refusal(call, FaultCode.INTERNAL, "the handler failed; the server's log says why")


def stamping(timeline: Timeline, methods: Methods) -> Answering:
    """``answer``, noting in a timeline that the thread begins with a request and that its reply is there.

    ``arrived_ns`` is what is noted as accepted: ``time.monotonic_ns`` is the timeline's clock, too. That the reply was
    given away is for the caller to note.
    """
    local = timeline.local
    numbers = {name: timeline.method_number(name.decode()) for name in (*methods.plain, *methods.calling)}

    def answer_stamped(methods: Methods, frame: RequestFrame, arrived_ns: int, peer: Address) -> bytes:
        stamper = local.stamper
        stamper.begin(arrived_ns)
        reply = answer(methods, frame, arrived_ns, peer)
        stamper.handled(numbers.get(frame.method, NO_METHOD))
        return reply

    return answer_stamped


def refusal(call: int, code: FaultCode, detail: str) -> bytes:
    """The frame of a fault; ``call`` 0 is a fault of the whole connection."""
    return encode_reply(call, code, detail.encode())


def refuse_connection(connection: socket.socket, code: FaultCode, detail: str) -> None:
    """Tells a client why it is not served, as far as that takes no waiting, and closes."""
    try:
        connection.setblocking(False)
        connection.send(refusal(0, code, detail))
    except OSError:
        pass  # it has gone, or reads nothing: either way there is nobody to tell
    finally:
        connection.close()
