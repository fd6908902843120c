"""The *hello* of the sockets protocol: a request that shows a client's token, for all later requests of the connection.

A hello is a request of the method ``hello/1``, where 1 is a version. The payload of this request is the token. The
reply is empty, or is the fault UNAUTHENTICATED. After this fault the connection stays open without a caller. The
token's owner is the caller of all later requests. The client may send such requests before the reply to the hello has
come. A second hello replaces the first hello. A server without access control accepts every hello.
"""

from stock_service.rpc.security import TOKEN_BYTES_MAX, UNREADABLE, Access, Asked, Right, Shown, digest
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.transports.sockets.frames import HELLO, Frames
from stock_service.rpc.wire.framing import FrameDecoder, RequestFrame, cut_request, request_decoder

RIGHTS = {HELLO: Right.TRADER}
"""Right that a hello needs. Every caller in the access list has the right TRADER."""


class UnjudgedFrame(RequestFrame):
    """A request whose access right is not checked yet."""

    shown: Shown
    """Credential that the client had last shown on the connection when the request came."""


class Greeting:
    """Credential of one connection: the digest of the last hello's token. Not thread-safe."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._shown: Shown = None

    def cut(self, data: bytes, start: int, stop: int) -> RequestFrame:
        """Decodes one request frame, like ``framing.cut_request``. If the request is a hello, keeps its token. Returns
        a ``RequestFrame`` if the access check has granted this method to this credential before, otherwise an
        ``UnjudgedFrame``.
        """
        frame = cut_request(data, start, stop)
        method = frame[2]
        if method == HELLO:
            token = frame.payload
            self._shown = digest(token) if 0 < len(token) <= TOKEN_BYTES_MAX else UNREADABLE
        if (method, self._shown) in self._access.granted:
            return frame
        unjudged = UnjudgedFrame(*frame)
        unjudged.shown = self._shown
        return unjudged


class GreetedFrames(Frames):
    """Implementation of ``server_core.guarding.Guardable``: the sockets protocol with access control."""

    def __init__(self, methods: Methods, frame_bytes_max: int, access: Access) -> None:
        super().__init__(methods, frame_bytes_max)
        self._access = access

    def decoder(self) -> FrameDecoder[RequestFrame]:
        """Makes the decoder that cuts a new connection's bytes into requests, and knows the connection's token."""
        return request_decoder(self._frame_bytes_max, Greeting(self._access).cut)

    def asked(self, request: RequestFrame) -> Asked | None:
        """Returns the method's path and the connection's credential, for an access check. Returns None for a request
        that needs no further check.
        """
        return (request.method, request.shown) if isinstance(request, UnjudgedFrame) else None
