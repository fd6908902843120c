"""Trades at a constant rate beside another load: a thread of this process, which sleeps between them.

Our own client and ``load.c`` wait awake for the next moment of a schedule. So they would take half of the core from the
load that they stand beside. Here the sleep is the kernel's (``select``), good to some 60 µs. A late trade is sent at
once, and none is left out. Nothing is timed: what the trades cost others is the question.
"""

import select
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from experiments.measure.load_programs import TIMEOUT_MS
from experiments.measure.programs import kept_to
from stock_service.rpc.transports import Address
from stock_service.rpc.wire.framing import FrameDecoder, ReplyFrame, encode_request, reply_decoder
from stock_service.trading.service import TRADE

CONNECTIONS = 8
"""On which trades are sent by turns, whether or not those before are answered."""

END_S = 1.0
"""How long the last replies may take."""

_READ_BYTES = 1 << 16
_CONNECT_S = 10.0


class Trades:
    """They are sent while ``with`` lasts. ``faults`` may be asked afterwards."""

    def __init__(self, address: Address, payload: bytes, rate_hz: float, cpus: tuple[int, ...] | None) -> None:
        """``cpus``: the cores of who sends; None: any. Raises OSError where nobody listens."""
        self._payload, self._gap_s, self._cpus = payload, 1 / rate_hz, cpus
        self._decoders: dict[socket.socket, FrameDecoder[ReplyFrame]] = {}
        try:
            for _ in range(CONNECTIONS):
                connection = socket.create_connection(address, _CONNECT_S)
                self._decoders[connection] = reply_decoder()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            self._close()
            raise
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trades")
        self.sent = self.answered = 0
        """How many; of those that were answered, none was refused."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        self._close()

    def faults(self) -> int:
        """How many were refused, or not answered."""
        return self.sent - self.answered

    def _run(self) -> None:
        connections = list(self._decoders)
        with kept_to(self._cpus):
            due_s = time.monotonic()
            while not self._ended.is_set():
                if not self._receive(max(0.0, due_s - time.monotonic())):
                    return
                if due_s <= time.monotonic():
                    self._send(connections[self.sent % CONNECTIONS])
                    due_s += self._gap_s
            until_s = time.monotonic() + END_S
            while self.faults() and time.monotonic() < until_s and self._receive(END_S):
                pass

    def _send(self, connection: socket.socket) -> None:
        self.sent += 1
        with suppress(ConnectionError):  # which the next receive says
            connection.sendall(encode_request(self.sent, TIMEOUT_MS, TRADE.encode(), self._payload))

    def _receive(self, wait_s: float) -> bool:
        """Takes the replies that come within this time; whether the server is there."""
        readable, _, _ = select.select(list(self._decoders), [], [], wait_s)
        for connection in readable:
            try:
                data = connection.recv(_READ_BYTES)
            except ConnectionError:
                data = b""
            if not data:  # what it owes is a fault
                return False
            self.answered += sum(not reply.code for reply in self._decoders[connection].feed(data))
        return True

    def _close(self) -> None:
        for connection in self._decoders:
            connection.close()
