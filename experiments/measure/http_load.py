"""The load client for HTTP/1.1 in C, ``experiments/peers/c/http_load.c``: its options, and its report.

The client makes a connection for each request, or keeps its connections. It ends after a number of requests, or after
a time. It times a request as ``ab`` does: from before the connect until the server has closed.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from experiments.measure.programs import ProgramFailed, Running, running
from stock_service.rpc.transports import Address

EXTRA_S = 60.0
"""Seconds that the program may take beyond its load; and seconds for each 10,000 requests, where it counts requests."""


@dataclass(frozen=True, slots=True)
class HttpAsk:
    """A closed loop. ``requests`` or ``seconds`` is over 0, and not both."""

    address: Address
    request: str
    """Such as ``GET /entities/5``. The C file says how ``{id}`` and ``{turn}`` are filled in: here, in ``body`` and in
    ``expect``."""
    body: str = ""
    connections: int = 1
    kept: bool = False
    """True where connections are kept."""
    requests: int = 0
    warm_up: int = 0
    """Requests of the warm-up, which do not count."""
    seconds: float = 0.0
    warm_up_seconds: float = 0.0
    first_id: int = 0
    per_id: int | None = None
    """Number of requests with the same key; None: all requests have one key."""
    expect: str | None = None
    """Body that every reply must have; None: the body of the first reply."""
    cpus: tuple[int, ...] | None = None

    @property
    def timeout_s(self) -> float:
        """Longest time for the whole run."""
        counted = (1 + (self.requests + self.warm_up) / 10_000) * EXTRA_S
        return self.seconds + self.warm_up_seconds + EXTRA_S if self.seconds else counted


@dataclass(frozen=True, slots=True)
class HttpSeen:
    """Values of the requests that count. Times are means. All values are 0 where no request was answered."""

    requests: int
    """Requests that got the right reply."""
    errors: int
    """Errors of all requests, those of the warm-up too."""
    all_requests: int
    """Answered requests, those of the warm-up too."""
    total_s: float
    """From the beginning of the first request to the end of the last one."""
    throughput_hz: float
    response_us: float
    connect_us: float
    received_bytes: int
    sent_bytes: int
    cpu_s: float
    """Processor time of the client …"""
    elapsed_s: float
    """… within this time."""
    began_ns: int
    ended_ns: int
    """Moment on ``CLOCK_MONOTONIC``, which ``time.monotonic_ns()`` reads on Linux."""
    reply: str
    """Body of the first reply, in hexadecimal."""

    @property
    def first_reply(self) -> bytes:
        """Body of the first reply. Without ``expect`` all other replies had the same body."""
        return bytes.fromhex(self.reply)

    @property
    def cpu_share(self) -> float:
        """Share of a core that the client took."""
        return self.cpu_s / self.elapsed_s if self.elapsed_s else 0.0


@dataclass(frozen=True, slots=True)
class HttpLoad:
    """The program, once it is built."""

    program: Path

    def run(self, ask: HttpAsk, times: Path | None = None) -> HttpSeen:
        """Runs it to its end; ``times`` gets every counted time. Blocks. Raises ProgramFailed."""
        with self.running(ask, times) as running:
            return self.seen(running, ask)

    def running(self, ask: HttpAsk, times: Path | None = None) -> AbstractContextManager[Running]:
        """The program while it runs; it is killed where the block ends before it, as by Ctrl-C. Raises
        ProgramFailed."""
        return running(self._command(ask) + (["--times", str(times)] if times else []), ask.cpus)

    def seen(self, program: Running, ask: HttpAsk) -> HttpSeen:
        """Values that the running program reports at its end. Blocks. Raises ProgramFailed."""
        said = program.said(ask.timeout_s)
        try:
            return msgspec.json.decode(said, type=HttpSeen)
        except ValueError as error:
            raise ProgramFailed(self._command(ask), f"{said[:80]!r}, which is no report", "") from error

    def _command(self, ask: HttpAsk) -> list[str]:
        return [str(self.program), *_words(ask)]


def _words(ask: HttpAsk) -> Sequence[str]:
    words = ["--address", f"{ask.address[0]}:{ask.address[1]}", "--request", ask.request, "--body", ask.body]
    words += ["--connections", str(ask.connections), "--first-id", str(ask.first_id)]
    words += ["--keep"] if ask.kept else []
    if ask.requests:
        words += ["--requests", str(ask.requests), "--warm-up", str(ask.warm_up)]
    else:
        words += ["--seconds", f"{ask.seconds:g}", "--warm-up-seconds", f"{ask.warm_up_seconds:g}"]
    words += [] if ask.per_id is None else ["--per-id", str(ask.per_id)]
    return [*words, *([] if ask.expect is None else ["--expect", ask.expect])]
