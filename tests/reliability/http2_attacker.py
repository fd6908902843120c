"""A hostile client of a gRPC server, as a process: one attack on several connections, repeated when a connection is cut
off. ``python -m tests.reliability.http2_attacker HOST PORT ATTACK SECONDS`` prints ``begun``, and then the
number of its connections.
"""

import gzip
import random
import sys
from collections.abc import Callable, Iterator
from itertools import count

from stock_service.rpc.wire import http2
from stock_service.rpc.wire.grpc_replies import PREFIX
from stock_service.trading.service import LOOKUP, TRADE
from tests.end_to_end.process import TRADE_ONE
from tests.reliability.socket_attacker import Attack as Hostile
from tests.reliability.socket_attacker import again, attack, once
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, call, data, head, message
from tests.unit.stock_service.rpc.wire.http2_floods import floods

CONNECTIONS = 4
"""Number of connections at a time; attacks in ``MANY`` have a different number."""

PIECE = 65_536
"""Least number of bytes that are made at a time."""

MESSAGE_BYTES_MAX = 1 << 20
"""Longest message that a server takes by default."""

PATH = LOOKUP.encode()
REFLECTION = b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
STREAMS = range(1, 129, 2)
"""As many streams as a connection may have open."""

HALF_MESSAGE = data(1, message(bytes(1 << 20))[:5], ends=False) + data(1, bytes(16_000), ends=False) * 65
QUESTION = message(b"\x3a\x00")
"""Question of a reflection for the names of all services."""

SHUT = http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0))

Attack = Callable[[], Iterator[bytes]]
"""Bytes that a connection sends. Afterwards the connection stays open."""


def _flood(frames: Callable[[int], bytes]) -> Attack:
    def attack() -> Iterator[bytes]:
        yield HELLO
        numbers, piece = count(), b""
        while True:
            piece += frames(next(numbers))
            if len(piece) >= PIECE:
                yield piece
                piece = b""

    return attack


def _continuation() -> Iterator[bytes]:
    yield HELLO + http2.frame(http2.HEADERS, 0, 1, b"")
    while True:
        yield http2.frame(http2.CONTINUATION, 0, 1, b"\0\1a\1b") * (PIECE // 14)


def _oversized() -> Iterator[bytes]:
    yield HELLO
    for stream in count(1, 2):
        size = MESSAGE_BYTES_MAX + 1 if stream % 4 == 1 else 2**32 - 1
        begin = data(stream, PREFIX.pack(0, size) + bytes(16_000), ends=False)
        yield head(stream, PATH) + begin + data(stream, bytes(16_000), ends=False) * 64 + data(stream, b"")


def _cancelled() -> Iterator[bytes]:
    rng = random.Random(f"cancelled {next(_CANCELLED)}")
    paths = ((PATH, message(b"")), (TRADE.encode(), message(TRADE_ONE)), (REFLECTION, QUESTION * 20))
    half, cancelled = dict[int, bytes](), http2.ErrorCode.CANCEL
    yield HELLO
    for stream in count(1, 2):
        path, body = rng.choice(paths)
        at = rng.randrange(len(body) + 1)
        piece, half[stream] = head(stream, path) + data(stream, body[:at], ends=False), body[at:]
        while half and rng.random() < 0.5:
            chosen = rng.choice(list(half))
            rest, dice = half.pop(chosen), rng.random()
            piece += data(chosen, rest) if dice < 0.7 else b""
            piece += http2.rst_stream(chosen, cancelled) if dice > 0.2 else b""  # after the message, or in it
        cut = rng.randrange(len(piece))
        yield from (each for each in (piece[:cut], piece[cut:]) if each)


_CANCELLED = count()


def _zipped() -> Iterator[bytes]:
    body = message(gzip.compress(bytes(MESSAGE_BYTES_MAX)), 1)
    yield HELLO + call(1, b"", PATH)  # so that it is known for a client that asks for something
    for stream in count(3, 2):
        yield head(stream, PATH, grpc_encoding="gzip") + data(stream, body)


MANY = {
    "HEADERS alone": 64,
    "half messages": 128,
    "held replies": 64,
    "1 MiB in gzip": 32,
    "talks that are not read": 64,
}

ATTACKS: dict[str, Attack] = {
    "no attack": once(HELLO),
    **{name: _flood(frames) for name, frames in floods(PATH).items()},
    "continuation": _continuation,
    "HEADERS alone": once(HELLO + b"".join(head(stream, PATH) for stream in STREAMS)),
    "half messages": once(HELLO + head(1, PATH) + HALF_MESSAGE),
    "oversized messages": _oversized,
    "cancellation at random": _cancelled,
    "sizes of a header table": _flood(lambda number: http2.headers(2 * number + 1, b"\x20" * 16_000, True)),
    "held replies": once(SHUT + b"".join(call(stream, b"", PATH) for stream in STREAMS)),
    "1 MiB in gzip": _zipped,
    "talks that are not read": once(
        SHUT + b"".join(head(stream, REFLECTION) + data(stream, QUESTION * 60, ends=False) for stream in STREAMS)
    ),
    "another protocol": again(b"GET / HTTP/1.1\r\n\r\n"),
}


if __name__ == "__main__":
    host, port, name, seconds = sys.argv[1:]
    print(attack((host, int(port)), Hostile(ATTACKS[name], MANY.get(name, CONNECTIONS)), float(seconds))[0])
