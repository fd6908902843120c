"""Codec of the sockets protocol for clients (``codec.Codec``): bytes in, bytes out, no I/O.

``prepare`` encodes a request once for many calls, without the call number. Nearly every read brings exactly one whole
reply. ``feed`` decodes such a read without ``FrameDecoder``. The codec does not tell the server about an abandoned
call, since the server knows the time limit of the request. If the server sends a fault of the whole connection, every
open call ends with this fault.
"""

from struct import Struct

from stock_service.rpc.errors import Fault, FaultCode, InternalFault, InvalidRequest, NotBegun, Unavailable, coded
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.transports.sockets.frames import HELLO
from stock_service.rpc.wire.codec import Prepared, Reply
from stock_service.rpc.wire.framing import (
    CALL_MAX,
    METHOD_BYTES_MAX,
    FramingError,
    ReplyFrame,
    encode_request,
    reply_decoder,
)

CALLS_MAX = 4096
"""Largest number of unanswered calls on one connection, including abandoned calls. By default a server of this project
takes 64 requests of a connection at a time.
"""

_CALL = Struct("!I")
_REPLY = Struct("!IIB")


class SocketCodec:
    """Implementation of ``codec.Codec`` for the sockets protocol."""

    def __init__(self, address: tuple[str, int], token: str = "") -> None:
        """Puts ``token`` into ``hello``. The codec does not wait for the reply to the hello. If the server refuses the
        token, the server also refuses every later request that needs a right.
        """
        self.preceded = False
        self._peer = f"connection to {shown_address(address)}"
        self._call = 0
        self._open: set[int] = set()
        self._given_up: set[int] = set()  # abandoned calls, whose replies may still come
        self.hello = b""
        if token:
            self.hello = encode_request(CALL_MAX, 0, HELLO, token.encode())
            self._given_up.add(CALL_MAX)
        self._lost: Fault | None = None
        self._decoder = reply_decoder()

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request, as the bytes before and after the call number; see ``codec.Codec``."""
        method = path.encode()
        if len(method) > METHOD_BYTES_MAX:
            raise InvalidRequest(f"a method's name of {len(method)} bytes, allowed: {METHOD_BYTES_MAX}")
        frame = encode_request(0, max(1, round(timeout_s * 1000)), method, payload)
        return frame[:4], frame[8:]

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call; returns the call's number and the bytes to send. See ``codec.Codec``."""
        head, tail = prepared
        self._call = call = self._call % CALL_MAX + 1
        self._open.add(call)
        return call, head + _CALL.pack(call) + tail

    def feed(self, data: bytes) -> list[Reply]:
        """Takes received bytes, and returns the replies that the bytes complete; see ``codec.Codec``."""
        if not self._decoder.pending_bytes and len(data) >= _REPLY.size:
            length, call, code = _REPLY.unpack_from(data)
            if length + 4 == len(data) and not code and call in self._open:
                self._open.remove(call)
                return [(call, data[_REPLY.size :])]
        self.preceded = True
        if self._lost is not None:
            raise Unavailable(self._lost.detail)
        broken: Fault | None = None
        try:
            frames = self._decoder.feed(data)
        except FramingError as error:
            frames = list(error.frames)
            broken = Unavailable(f"{self._peer} lost: the server sent what is no reply: {error}")
        done: list[Reply] = []
        for frame in frames:
            wrong = self._take(frame, done)
            if wrong is not None:
                return self._end(wrong, done)
        return done if broken is None else self._end(broken, done)

    def take_outgoing(self) -> bytes:
        """Returns no bytes: the protocol has no bytes besides requests and replies."""
        return b""

    def room(self) -> bool:
        """Returns True if another call may be started, up to ``CALLS_MAX`` unanswered calls."""
        return len(self._open) + len(self._given_up) < CALLS_MAX and self._lost is None

    def abandon(self, call: int) -> bytes:
        """Gives up a call; returns no bytes. The codec drops a late reply to this call."""
        if call in self._open:
            self._open.remove(call)
            self._given_up.add(call)
        return b""

    def _take(self, frame: ReplyFrame, done: list[Reply]) -> Fault | None:
        """Takes one reply, and appends the reply to ``done`` if its call is open. Returns a fault if the connection is
        over: the reply is a fault of the whole connection, or belongs to no call. Otherwise returns None.
        """
        call, detail = frame.call, frame.payload.decode(errors="replace") if frame.code else ""
        if call in self._open:
            self._open.remove(call)
            done.append((call, coded(frame.code, detail) if frame.code else frame.payload))
            return None
        if call in self._given_up:
            self._given_up.remove(call)
            return None
        if frame.code and not call:
            detail = f"{self._peer}: {detail}"
            return NotBegun(detail) if frame.code == FaultCode.UNAVAILABLE else coded(frame.code, detail)
        wrong = InternalFault("the server sent a reply to no request")
        if done and not self._open:  # replaces the last reply: without an open call, nobody else would see the fault
            done[-1] = (done[-1][0], wrong)
        return wrong

    def _end(self, fault: Fault, done: list[Reply]) -> list[Reply]:
        """Ends every open call with the fault, since the connection cannot be used again. Returns ``done`` with these
        calls. Raises Unavailable if ``done`` stays empty.
        """
        self._lost = fault
        done += [(call, fault) for call in self._open]
        self._open.clear()
        if not done:
            raise Unavailable(fault.detail)
        return done
