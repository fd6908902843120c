"""Random frames to a gRPC server's connections, without I/O: no frame breaks the server, or makes it hold more than its
limits. ``fuzz`` tries a number of frames; ``check`` gives a row of the table of promises.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.grpc_calls import LATER, GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_session import GrpcSession, SessionError
from stock_service.rpc.wire.header_blocks import encode_block
from tests.reliability.rows import Row
from tests.unit.stock_service.rpc.wire.streams import frames_of

FRAMES = 1_000_000
"""Number of frames in the minutes version."""

MESSAGE_BYTES_MAX, STREAMS_MAX = 40_000, 5

_PATHS = {b"/a.B/Unary": Kind.UNARY, b"/a.B/Watch": Kind.STREAMED_REPLY, b"/a.B/Talk": Kind.STREAMED}


@dataclass(slots=True)
class Fuzzed:
    """A count of the steps that were done."""

    frames: int = 0
    sessions: int = 0
    broken: int = 0
    """Sessions that ended with GOAWAY."""
    answered: int = 0


def check(minutes: bool = True, seed: int = 0) -> list[Row]:
    """Tries the promise for 70 s, or for 2 s. Raises the error that a frame caused, with the seed in its notes."""
    done = fuzz(FRAMES if minutes else FRAMES // 50, seed)
    goal = f"{FRAMES:,} frames, no crash, no hang"
    return [Row("HTTP/2 frames at random", goal, f"{done.frames:,}", done.frames >= FRAMES or not minutes)]


def fuzz(frames: int, seed: int) -> Fuzzed:
    """Sessions with this number of frames in all."""
    done = Fuzzed()
    while done.frames < frames:
        number = done.sessions
        try:
            _Session(random.Random(f"{seed} {number}"), done).run()
        except BaseException as error:
            error.add_note(f"seed {seed}, session {number}")
            raise
        done.sessions += 1
    return done


class _Session:
    """One connection, and its state as seen from outside."""

    def __init__(self, rng: random.Random, done: Fuzzed) -> None:
        self._rng = rng
        self._done = done
        self._now_ns = 0
        self._session = GrpcSession(_PATHS, MESSAGE_BYTES_MAX, STREAMS_MAX, lambda: self._now_ns)
        self._stream = -1
        self._requests: list[GrpcRequest] = []
        self._ended: set[int] = set()  # by the session
        self._whole: set[int] = set()  # by the client
        self._makers: list[tuple[Callable[[], bytes], int]] = [
            (self._call, 30),
            (self._head, 10),
            (self._data, 15),
            (self._window, 10),
            (self._settings, 5),
            (self._reset, 5),
            (self._any, 1),
            (lambda: http2.frame(http2.PING, rng.choice((0, 1)), 0, rng.randbytes(8)), 5),
            (lambda: http2.goaway(rng.randrange(9), http2.ErrorCode.NO_ERROR), 1),
            (lambda: rng.randbytes(rng.randrange(1, 30)) if rng.random() < 0.1 else b"", 1),
        ]

    def run(self) -> None:
        """Feeds frames to the connection until the connection breaks, or the number of frames is reached."""
        rng = self._rng
        makers, weights = [maker for maker, _ in self._makers], [weight for _, weight in self._makers]
        pending = http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, rng.choice((0, 5, 1000, 65_535))))
        drains_at = rng.randrange(300)
        for turn in range(rng.randrange(1, 300)):
            self._now_ns += rng.randrange(2_000_000)
            pending += rng.choices(makers, weights)[0]()
            self._done.frames += 1
            cut = rng.randrange(len(pending) + 1) if rng.random() < 0.4 else len(pending)
            if not self._feed(pending[:cut]):
                self._done.broken += 1
                return
            pending = pending[cut:]
            if turn == drains_at:
                self._session.drain()
            self._answer()
        self._session.lose()
        assert not self._session.held_bytes
        self._answer()

    def _feed(self, data: bytes) -> bool:
        """Feeds bytes. True if the connection goes on."""
        goes_on = True
        try:
            self._requests += self._session.feed(data)
        except FramingError as error:
            self._requests += error.frames
            self._look(cast(SessionError, error).goaway)
            goes_on = False
        self._requests += self._session.take_ready()
        self._look(self._session.take_outgoing())
        assert self._session.pending_bytes <= 20_000 + STREAMS_MAX * (MESSAGE_BYTES_MAX + 20_000)
        assert self._session.held_bytes <= 2 * STREAMS_MAX * (MESSAGE_BYTES_MAX + 5)
        assert len(self._requests) <= 2_000
        return goes_on

    def _answer(self) -> None:
        """Answers some of the requests, in any order."""
        rng = self._rng
        while self._requests and rng.random() < 0.7:
            request = self._requests.pop(rng.randrange(len(self._requests)))
            head, stream, _, carries, calls, _ = request
            open_still = stream in calls
            payload = bytes(rng.choice((0, 1, 100, 20_000, MESSAGE_BYTES_MAX)))
            if rng.random() < 0.1:
                reply = grpc_replies.broken_off(stream, 13, "a fault")
            elif head.kind is Kind.UNARY:
                reply = grpc_replies.usual_reply(stream, payload)
            else:
                reply = b"" if carries & LATER else grpc_replies.begun(stream)
                reply += grpc_replies.ended(stream) if carries & 2 else grpc_replies.messages(stream, payload)
            allowed = self._session.admit(request, reply)
            assert open_still or not allowed
            self._done.answered += 1
            self._look(allowed)
            self._look(self._session.take_outgoing())
            self._requests += self._session.take_ready()

    def _look(self, said: bytes) -> None:
        """Checks the output: only whole frames, and after a stream's end only a reset."""
        for kind, flags, stream, payload in frames_of(said):
            assert len(payload) <= http2.FRAME_BYTES_MAX
            assert kind not in (http2.DATA, http2.HEADERS) or stream not in self._ended, "a frame after the end"
            if kind == http2.RST_STREAM or (kind in (http2.DATA, http2.HEADERS) and flags & http2.END_STREAM):
                self._ended.add(stream)

    # ---- frames

    def _some_stream(self) -> int:
        rng = self._rng
        if rng.random() < 0.99:
            return max(1, self._stream - 2 * rng.randrange(4))
        return rng.choice((0, 2, self._stream + 2, http2.STREAM_MAX))

    def _block(self) -> bytes:
        rng = self._rng
        fields = [
            (b":method", rng.choice((b"POST",) * 9 + (b"GET",))),
            (b":scheme", b"http"),
            (b":path", rng.choice(tuple(_PATHS))),
            (b"content-type", rng.choice((b"application/grpc",) * 9 + (b"text/html",))),
        ]
        if rng.random() < 0.2:
            fields.append((b"grpc-timeout", rng.choice((b"1S", b"0n", b"99999999H", b"x"))))
        if rng.random() < 0.2:
            fields.append((rng.choice((b"a-bin", b"b", b"Upper", b"te", b"content-length")), rng.randbytes(3)))
        if rng.random() < 0.1:
            fields.append((b"grpc-encoding", rng.choice((b"gzip", b"zstd"))))
        block = encode_block(fields)
        return rng.randbytes(len(block)) if rng.random() < 0.001 else block

    def _message(self) -> bytes:
        rng = self._rng
        size = rng.choice((0, 1, 100, 16_000, 20_000))
        said = size if rng.random() < 0.95 else rng.choice((size + 1, 2**32 - 1))
        return grpc_replies.PREFIX.pack(rng.choice((0,) * 20 + (1, 2)), said) + bytes(size)

    def _head(self) -> bytes:
        rng = self._rng
        if rng.random() < 0.99:
            self._stream += 2
        stream, block, ends = max(1, self._stream), self._block(), rng.random() < 0.1
        if ends:
            self._whole.add(stream)
        if rng.random() < 0.8:
            return http2.headers(stream, block, ends)
        at = rng.randrange(1, len(block))
        first = http2.frame(http2.HEADERS, http2.END_STREAM if ends else 0, stream, block[:at])
        return first + http2.frame(http2.CONTINUATION, http2.END_HEADERS, stream, block[at:])

    def _call(self) -> bytes:
        self._stream += 2
        self._whole.add(self._stream)
        return http2.headers(self._stream, self._block(), False) + self._body(self._stream, self._message(), True)

    def _body(self, stream: int, body: bytes, ends: bool) -> bytes:
        size = self._rng.choice((1000, 16_000))
        pieces = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
        flags = [0] * (len(pieces) - 1) + [http2.END_STREAM if ends else 0]
        return b"".join(http2.frame(http2.DATA, flag, stream, piece) for flag, piece in zip(flags, pieces, strict=True))

    def _data(self) -> bytes:
        stream, rng = self._some_stream(), self._rng
        if stream in self._whole and rng.random() < 0.98:  # DATA there breaks the connection
            return b""
        if rng.random() < 0.3:
            return http2.frame(http2.DATA, http2.PADDED, stream, bytes([rng.randrange(4)]) + bytes(rng.randrange(6)))
        ends = rng.random() < 0.5
        if ends:
            self._whole.add(stream)
        return self._body(stream, self._message()[: rng.randrange(9, 20_000)], ends)

    def _window(self) -> bytes:
        rng = self._rng
        count = http2.WINDOW_MAX if rng.random() < 0.01 else rng.choice((1, 1000, 50_000))
        return http2.window_update(rng.choice((0, self._some_stream())), count)

    def _settings(self) -> bytes:
        rng = self._rng
        setting = rng.choice((1, 3, 4, 5, 6, 99) if rng.random() < 0.1 else (1, 3, 4, 6, 99))
        return http2.settings((setting, rng.choice((0, 1, 16_384, 65_535))))

    def _reset(self) -> bytes:
        return http2.rst_stream(self._some_stream(), http2.ErrorCode.CANCEL)

    def _any(self) -> bytes:
        rng = self._rng
        return http2.frame(rng.randrange(12), rng.randrange(256), self._some_stream(), rng.randbytes(rng.randrange(12)))
