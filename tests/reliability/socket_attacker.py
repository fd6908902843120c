"""A hostile client of the sockets transport, as a process: one attack on several connections, repeated when one is cut
off.

``python -m tests.reliability.socket_attacker HOST PORT ATTACK SECONDS [SEED]`` prints ``begun`` when the first
connections are open, and at the end the number of all connections. SIGTERM ends the process sooner. One attack sends
random bytes, drawn from the seed.
"""

import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from stock_service.rpc.transports import Address
from stock_service.rpc.wire.framing import FRAME_BYTES_MAX
from stock_service.trading.service import LOOKUP, TRADE
from stock_service.v1 import stock_pb2
from tests.conformance.raw_socket import frame
from tests.end_to_end.process import LOOKUP_ONE
from tests.reliability.serving import files_at_most

NICE = 5
"""Priority of the process. The process yields its core to the honest client, since the server is on trial and not the
client."""

TURN_S = 0.02
"""A connection that sends slowly sends a piece in each turn."""

WHOLE = frame(1, LOOKUP, LOOKUP_ONE)
TLS_HELLO = bytes.fromhex("160301020001000001fc0303") + bytes(32)
NAN = b"\x11" + struct.pack("<d", float("nan"))
"""Value in place of a quantity: a field of eight bytes instead of an integer."""


@dataclass(frozen=True, slots=True)
class Attack:
    """The bytes that each connection sends, and its behaviour."""

    pieces: Callable[[], Iterator[bytes]]
    connections: int = 8
    slow: bool = False
    """True for one piece in each turn; False for as many bytes as the kernel takes."""
    reads: bool = True
    half_closes: bool = False
    ends: str = "stays"
    """End of a connection that has sent all bytes: it ``closes`` or ``resets``, and a new connection follows.
    ``answered``: it resets after the first reply."""


def once(*pieces: bytes) -> Callable[[], Iterator[bytes]]:
    """Source of these bytes, once."""
    return lambda: iter(pieces)


def again(data: bytes) -> Callable[[], Iterator[bytes]]:
    """Source of these bytes, repeated for ever."""
    times = 1 + 65_536 // len(data)
    return lambda: iter(lambda: data * times, b"")


def bytewise(data: bytes) -> Callable[[], Iterator[bytes]]:
    """Source of these bytes, one byte a piece, for ever."""
    return lambda: (data[at % len(data)].to_bytes() for at in count())


_cuts = count(1)


def cut() -> Iterator[bytes]:
    """Source of a whole request and a part of a second request. The part is one byte longer each time."""
    yield WHOLE + WHOLE[: next(_cuts) % len(WHOLE)]


_over = threading.Event()

_seed = 0
_drawing = count(1)


def at_random() -> Iterator[bytes]:
    """Random bytes, different for each connection."""
    rng = random.Random(f"{_seed} {next(_drawing)}")
    return iter(lambda: rng.randbytes(4096), b"")


def lengths(number: int) -> Attack:
    """A frame's first four bytes, and some that follow."""
    return Attack(once(number.to_bytes(4) + bytes(64)))


def trade(name: str, quantity: int = 0) -> bytes:
    """A Trade's frame."""
    request = stock_pb2.TradeRequest(name=name, quantity=quantity, side=stock_pb2.SIDE_BUY)
    return frame(1, TRADE, request.SerializeToString())


ATTACKS: dict[str, Attack] = {
    "a header that comes byte by byte": Attack(bytewise(WHOLE), connections=256, slow=True),
    "a body that comes byte by byte": Attack(
        lambda: (part for parts in (iter([FRAME_BYTES_MAX.to_bytes(4)]), bytewise(b"x")()) for part in parts),
        connections=256,
        slow=True,
    ),
    "half a header, and silence": Attack(once(WHOLE[:6]), connections=256),
    "half a body, and silence": Attack(once(WHOLE[:-2]), connections=256),
    "replies that nobody reads": Attack(again(WHOLE), reads=False),
    "10,000 idle connections": Attack(once(), connections=10_000),
    "10,000 connections of one request": Attack(once(WHOLE), connections=10_000),
    "half-open, with nothing sent": Attack(once(), connections=256, half_closes=True),
    "half-open, in a request": Attack(once(WHOLE[:-2]), connections=256, half_closes=True),
    "half-open, and no reply read": Attack(once(WHOLE * 1000), reads=False, half_closes=True),
    "reset in a request": Attack(once(WHOLE[:-2]), ends="resets"),
    "reset before a reply": Attack(once(WHOLE * 500), reads=False, ends="resets"),
    "reset in a reply": Attack(once(WHOLE * 500), ends="answered"),
    "closed at every byte": Attack(cut, ends="closes"),
    "reset at every byte": Attack(cut, ends="resets"),
    "connected and closed": Attack(once(), ends="closes"),
    "connected and reset": Attack(once(), ends="resets"),
    "length 0": lengths(0),
    "length 1": lengths(1),
    "the longest frame": Attack(again(frame(1, LOOKUP, bytes(FRAME_BYTES_MAX - 9 - len(LOOKUP)))), connections=2),
    "the longest length and one": lengths(FRAME_BYTES_MAX + 1),
    "length 2^31": lengths(2**31),
    "length 2^32 - 1": lengths(2**32 - 1),
    "a method longer than its frame": Attack(once((9).to_bytes(4) + bytes.fromhex("00000001 00000000 ff"))),
    "bytes at random": Attack(at_random),
    "HTTP": Attack(again(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")),
    "HTTP/2": Attack(again(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    "TLS": Attack(again(TLS_HELLO)),
    "a method that is no UTF-8": Attack(again(frame(1, "/x", b"").replace(b"/x", b"\xff\xfe"))),
    "names of 64 KiB": Attack(again(trade("x" * 65_536))),
    "a quantity that is NaN": Attack(again(frame(1, TRADE, b"\x0a\x06FishCo" + NAN))),
    "requests without pause": Attack(again(WHOLE), connections=16),
}
"""The attacks. With "no file to be had", which is done to the server, these are 33."""


class _Attacker:
    """One connection."""

    def __init__(self, address: Address, attack: Attack) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        if not attack.reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(address)
        self._attack = attack
        self._pieces = attack.pieces()
        self._unsent = b""
        self._sent = 0
        self.done = False

    def push(self) -> bool:
        """Sends a piece. True if the connection goes on."""
        try:
            if not self._unsent:
                piece = next(self._pieces, None)
                self.done = piece is None
                self._unsent = piece or b""
            count = self.socket.send(self._unsent) if self._unsent else 0
            self._sent, self._unsent = self._sent + count, self._unsent[count:]
            if self.done and self._attack.half_closes:
                self.socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass  # the server reads no more of it now
        except OSError:
            return False
        return not self.done or self._attack.ends in ("stays", "answered")

    def take(self) -> bool:
        """Reads the bytes that are there. True while the connection goes on."""
        try:
            return bool(self.socket.recv(1 << 16)) and self._attack.ends != "answered"
        except BlockingIOError:
            return True
        except OSError:
            return False

    def leave(self) -> int:
        """Closes the connection, as the attack says. Gives the number of bytes that the kernel took."""
        if self._attack.ends in ("resets", "answered"):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        return self._sent


def attack(address: Address, chosen: Attack, duration_s: float) -> tuple[int, int]:
    """Attacks for this time, and prints a line at the begin. Gives the number of connections, and the bytes that the
    kernel took."""
    until_s = time.monotonic() + duration_s
    poll, attackers, opened, sent = select.epoll(), dict[int, _Attacker](), 0, 0
    begun = False
    reading, pause = select.EPOLLIN if chosen.reads else 0, threading.Event()
    while (now_s := time.monotonic()) < until_s and not _over.is_set():
        for _ in range(min(64, chosen.connections - len(attackers))):
            attacker = _Attacker(address, chosen)
            attackers[attacker.socket.fileno()] = attacker
            poll.register(attacker.socket, reading | select.EPOLLOUT)
            opened += 1
        if not begun:
            begun = True
            print("begun", flush=True)
        for descriptor, events in poll.poll(TURN_S, 1024):
            attacker = attackers[descriptor]
            goes_on = not events & select.EPOLLERR
            if goes_on and events & (select.EPOLLIN | select.EPOLLHUP):
                goes_on = bool(reading) and attacker.take()
            if goes_on and events & select.EPOLLOUT:
                goes_on = attacker.push()
            if not goes_on:
                poll.unregister(descriptor)
                sent += attackers.pop(descriptor).leave()
            elif attacker.done:
                poll.modify(descriptor, reading)
        if chosen.slow:
            pause.wait(max(0.0, now_s + TURN_S - time.monotonic()))
    poll.close()
    sent += sum(attacker.leave() for attacker in attackers.values())
    return opened, sent


if __name__ == "__main__":
    host, port, name, seconds, *seeds = sys.argv[1:]
    _seed = int(seeds[0]) if seeds else 0
    signal.signal(signal.SIGTERM, lambda *_: _over.set())
    os.nice(NICE)
    files_at_most(20_000)
    print(attack((host, int(port)), ATTACKS[name], float(seconds))[0])
