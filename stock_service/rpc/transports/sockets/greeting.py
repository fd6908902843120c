"""The hello of the sockets protocol: a request by which a client says who it is, for the connection's whole life.

It is a request of the method ``hello/1``, whose payload is the token; the number is the version. Its reply is empty, or
the fault UNAUTHENTICATED, after which the connection goes on as nobody's. Requests behind a hello are its caller's, and
need not wait for its reply. A second hello replaces the first. A server that knows no callers says yes to each.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.security import TOKEN_BYTES_MAX, UNREADABLE, Right, Shown, digest
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.transports.sockets.frames import HELLO, Frames
from stock_service.rpc.wire.framing import FrameDecoder, FramingError, RequestFrame

RIGHTS = {HELLO: Right.TRADER}
"""A hello is answered where its token is a caller's."""


class GreetedFrame(NamedTuple):
    """A request off the wire, and what its connection has shown."""

    frame: RequestFrame
    shown: Shown


class GreetedDecoder:
    """Cuts a connection's bytes into requests, and keeps the last hello's token, by its digest. One thread's."""

    __slots__ = ("_decoder", "_shown")

    ended = False
    """No frame says that it is the last one."""

    def __init__(self, decoder: FrameDecoder[RequestFrame]) -> None:
        self._decoder = decoder
        self._shown: Shown = None

    @property
    def pending_bytes(self) -> int:
        """Bytes held of a frame that is not whole yet."""
        return self._decoder.pending_bytes

    def take_interim(self) -> bytes:
        """Nothing, ever."""
        return b""

    def feed(self, data: bytes) -> list[GreetedFrame]:
        """See ``FrameDecoder.feed``."""
        try:
            return self._greeted(self._decoder.feed(data))
        except FramingError as error:
            error.frames = self._greeted(error.frames)
            raise

    def _greeted(self, frames: Sequence[RequestFrame]) -> list[GreetedFrame]:
        greeted: list[GreetedFrame] = []
        for frame in frames:
            if frame.method == HELLO:
                token = frame.payload
                self._shown = digest(token) if 0 < len(token) <= TOKEN_BYTES_MAX else UNREADABLE
            greeted.append(GreetedFrame(frame, self._shown))
        return greeted


class GreetedFrames:
    """See ``server_core.guarding.Guardable``: ``Frames`` whose connections show tokens."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.farewell = frames.farewell
        self.objection = frames.objection

    def decoder(self) -> GreetedDecoder:
        """What cuts a new connection's bytes into requests."""
        return GreetedDecoder(self._frames.decoder())

    def asked(self, request: GreetedFrame) -> tuple[bytes, Shown]:
        """The method that a request names, and what its connection has shown."""
        return request.frame.method, request.shown

    def answer(self, request: GreetedFrame, arrived_ns: int, peer: Address) -> bytes:
        """The reply's frame to a request's."""
        return self._frames.answer(request.frame, arrived_ns, peer)

    def path(self, request: GreetedFrame) -> bytes | None:
        """The method that a request names; None for a hello."""
        return self._frames.path(request.frame)

    def refusal(self, request: GreetedFrame, code: FaultCode, detail: str) -> bytes:
        """The frame of a fault."""
        return self._frames.refusal(request.frame, code, detail)

    def timeout_ms(self, request: GreetedFrame) -> int:
        """How long the client waits, in milliseconds; 0: it does not say."""
        return request.frame.timeout_ms
