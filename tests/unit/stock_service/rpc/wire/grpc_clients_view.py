"""An honest gRPC client's view of its connection: it fails at each frame that HTTP/2 or gRPC forbids there."""

from collections import deque

from hpack import Decoder

from stock_service.rpc.wire import http2
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import Frame


class StreamView:
    """One call as its client sees it."""

    def __init__(self) -> None:
        self.ended_here = False
        """True where the client has sent the whole call."""
        self.reset_here = False
        """True where the client has given the call up."""
        self.begun = self.ended_there = False
        self.of_grpc = False
        self.status: int | None = None
        """Status that ended the call: gRPC's, or HTTP's for a call that is not gRPC."""
        self.reset: int | None = None
        """Why the server reset it."""
        self.got_bytes = 0
        """Bytes of DATA that came."""
        self.widened = 0
        """What the client has added to its window."""
        self.sent_bytes = self.granted = 0
        """Bytes of DATA that the client sent, and what the server has added to the window for these."""


class ClientsView:
    """All bytes from the server on one connection."""

    def __init__(self) -> None:
        self.streams: dict[int, StreamView] = {}
        self.window = self.initial_window = http2.WINDOW_DEFAULT
        """Bytes that the server may still send, in all, and on a new stream."""
        self.sent_bytes = self.granted = 0
        """Bytes of DATA that the client sent, and the bytes by which the server has widened the window for them."""
        self.pings: deque[bytes] = deque()
        """PINGs of the client without an answer."""
        self.asked: deque[bytes] = deque()
        """PINGs of the server without an answer."""
        self.settings = 0
        """Number of SETTINGS that are not acknowledged."""
        self.goaways: list[tuple[int, int]] = []
        """The last stream that the server takes, and the reason, for each GOAWAY."""
        self._decoder = Decoder()

    def room(self, stream: int) -> int:
        """Bytes that the server may send on a stream now, as far as that stream's own window goes."""
        view = self.streams[stream]
        return self.initial_window + view.widened - view.got_bytes

    def take(self, said: list[Frame]) -> None:
        """Take the server's new words."""
        for frame in said:
            assert len(frame.payload) <= http2.FRAME_BYTES_MAX
            if frame.stream:
                self._take_of_stream(frame, self.streams[frame.stream])
            else:
                self._take_of_connection(frame)

    def _take_of_connection(self, frame: Frame) -> None:
        match frame.kind, frame.flags:
            case http2.SETTINGS, http2.ACK:
                self.settings -= 1
                assert self.settings >= 0
                assert not frame.payload
            case http2.PING, http2.ACK:
                assert frame.payload == self.pings.popleft()
            case http2.PING, 0:
                self.asked.append(frame.payload)
            case http2.WINDOW_UPDATE, 0:
                self.granted += int.from_bytes(frame.payload)
                assert 0 < self.granted <= self.sent_bytes, "more window than was used"
            case http2.GOAWAY, 0:
                last, code, _ = http2.parse_goaway(frame.payload)
                assert not self.goaways or last <= self.goaways[-1][0]
                self.goaways.append((last, code))
            case _:
                raise AssertionError(f"{frame} on no stream")

    def _take_of_stream(self, frame: Frame, view: StreamView) -> None:
        assert view.reset is None, "a frame after RST_STREAM"
        assert not view.reset_here, "a frame of a call that its client has given up"
        assert not self.goaways or frame.stream <= self.goaways[-1][0], "a call that is said not to be taken"
        match frame.kind:
            case http2.HEADERS:
                self._take_headers(frame, view)
            case http2.DATA:
                assert view.begun
                assert not view.ended_there
                view.got_bytes += len(frame.payload)
                self.window -= len(frame.payload)
                assert not frame.payload or min(self.window, self.room(frame.stream)) >= 0, "past a window"
                view.ended_there = bool(frame.flags & http2.END_STREAM)
                assert not (view.ended_there and view.of_grpc), "no status"
            case http2.RST_STREAM:
                view.reset = int.from_bytes(frame.payload)
                assert not view.ended_there or view.reset == http2.ErrorCode.NO_ERROR, "a reply that is taken back"
            case http2.WINDOW_UPDATE:
                assert not view.ended_here, "a window of which nobody makes use"
                view.granted += int.from_bytes(frame.payload)
                assert 0 < view.granted <= view.sent_bytes, "more window than was used"
            case _:
                raise AssertionError(f"{frame} on a stream")

    def _take_headers(self, frame: Frame, view: StreamView) -> None:
        assert frame.flags & http2.END_HEADERS
        assert not view.ended_there
        fields = dict(self._decoder.decode(frame.payload, raw=True))
        assert (b":status" in fields) == (not view.begun), "not in order"
        if not view.begun:
            view.begun = True
            view.of_grpc = fields[b"content-type"] == b"application/grpc"
            view.status = None if view.of_grpc else int(fields[b":status"])
        if frame.flags & http2.END_STREAM:
            view.ended_there = True
            view.status = int(fields[b"grpc-status"])
        else:
            assert b"grpc-status" not in fields
