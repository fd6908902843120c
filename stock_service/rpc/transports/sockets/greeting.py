"""The hello of the sockets protocol: a request by which a client shows its token, for all later requests of the
connection.

A hello is a request of the method ``hello/1``, whose payload is the token; the number is the version. The reply is
empty, or the fault UNAUTHENTICATED; after this fault the connection continues without a caller. Requests after a hello
belong to the hello's caller, and need not wait for the reply. A second hello replaces the first. A server without
callers accepts each hello.
"""

from stock_service.rpc.security import TOKEN_BYTES_MAX, UNREADABLE, Access, Asked, Right, Shown, digest
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.transports.sockets.frames import HELLO, Frames
from stock_service.rpc.wire.framing import FrameDecoder, RequestFrame, cut_request, request_decoder

RIGHTS = {HELLO: Right.TRADER}
"""Right that a hello needs: the token must be the token of a caller."""


class UnjudgedFrame(RequestFrame):
    """A request whose right is not checked yet."""

    shown: Shown
    """Credential that the request's connection has shown."""


class Greeting:
    """Credential that a connection has shown: the digest of the last hello's token. For one thread."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._shown: Shown = None

    def cut(self, data: bytes, start: int, stop: int) -> RequestFrame:
        """See ``framing.cut_request``. Returns an ``UnjudgedFrame``, unless the same method and credential were granted
        before.
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
    """See ``server_core.guarding.Guardable``: frames on connections that show tokens."""

    def __init__(self, methods: Methods, frame_bytes_max: int, access: Access) -> None:
        super().__init__(methods, frame_bytes_max)
        self._access = access

    def decoder(self) -> FrameDecoder[RequestFrame]:
        """Decoder of a new connection, which cuts its bytes into requests."""
        return request_decoder(self._frame_bytes_max, Greeting(self._access).cut)

    def asked(self, request: RequestFrame) -> Asked | None:
        """Path of the method that a request names, and the credential that the connection has shown. None for a request
        that was granted when it was read.
        """
        return (request.method, request.shown) if isinstance(request, UnjudgedFrame) else None
