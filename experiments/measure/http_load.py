"""Runs the load client for HTTP/1.1 in C, ``experiments/peers/c/http_load.c``, and reads its report.

The client opens a new connection for each request, or keeps its connections. The client ends after a given number of
requests, or after a given time. If each request has a new connection, a request's time begins before the connect, and
ends when the server has closed the connection. ``ab`` measures the same time.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from experiments.measure import programs
from stock_service.rpc.transports import Address

EXTRA_S = 60.0
"""Time in seconds that the client may take in addition to its planned time. If the number of requests is given, the
client may take a further 60 s for each 10,000 requests."""


@dataclass(frozen=True, slots=True)
class HttpAsk:
    """Options of the client, which sends in a closed loop. The load ends after ``requests`` requests, or after
    ``seconds`` seconds. Exactly one of these two fields is over 0, and the other field is 0."""

    address: Address
    request: str
    """Method and route, such as ``GET /entities/5``. In ``request``, ``body`` and ``expect``, the client replaces
    ``{id}`` by the key, and ``{turn}`` by the number of the request for this key, from 0."""
    body: str = ""
    connections: int = 1
    kept: bool = False
    """True to keep connections. False for a new connection for each request."""
    requests: int = 0
    warm_up: int = 0
    """Number of requests of the warm-up. These requests do not count."""
    seconds: float = 0.0
    warm_up_seconds: float = 0.0
    first_id: int = 0
    per_id: int | None = None
    """Number of requests for each key. None: all requests have the same key."""
    expect: str | None = None
    """Body that every reply must have. With None, every reply must have the same body as the first reply."""
    cpus: tuple[int, ...] | None = None

    @property
    def timeout_s(self) -> float:
        """Longest time for the client's whole run, in seconds."""
        counted = (1 + (self.requests + self.warm_up) / 10_000) * EXTRA_S
        return self.seconds + self.warm_up_seconds + EXTRA_S if self.seconds else counted


@dataclass(frozen=True, slots=True)
class HttpSeen:
    """Report of the client. ``response_us`` and ``connect_us`` are means over the counted requests that got the right
    reply. Without such a request, both are 0."""

    requests: int
    """Number of counted requests that got the right reply."""
    errors: int
    """Number of errors, in the warm-up and after the warm-up."""
    all_requests: int
    """Number of requests that got the right reply, in the warm-up and after the warm-up."""
    total_s: float
    """Time from the start of the first counted request to the end of the last counted request."""
    throughput_hz: float
    response_us: float
    connect_us: float
    received_bytes: int
    sent_bytes: int
    cpu_s: float
    """Processor time of the client during ``elapsed_s``, in seconds."""
    elapsed_s: float
    began_ns: int
    ended_ns: int
    """End of the last counted request. ``began_ns`` is the start of the first counted request. Both times are readings
    of ``CLOCK_MONOTONIC``, as ``time.monotonic_ns()`` gives on Linux."""
    reply: str
    """Body of the first reply, in hexadecimal digits."""

    @property
    def first_reply(self) -> bytes:
        """Body of the first reply. Without ``expect``, all other replies have the same body."""
        return bytes.fromhex(self.reply)

    @property
    def cpu_share(self) -> float:
        """Share of one core that the client used: ``cpu_s`` divided by ``elapsed_s``."""
        return self.cpu_s / self.elapsed_s if self.elapsed_s else 0.0


def run(client: Path, ask: HttpAsk, times: Path | None = None) -> HttpSeen:
    """Runs the client to its end. Blocks. The client writes every counted time into the file ``times``. Raises
    ProgramFailed."""
    with running(client, ask, times) as started:
        return seen(started, ask)


def running(client: Path, ask: HttpAsk, times: Path | None = None) -> AbstractContextManager[programs.Program]:
    """Runs the client during a ``with`` block. The end of the block kills a client that still runs. Raises
    ProgramFailed if the client does not start."""
    return programs.running(_command(client, ask) + (["--times", str(times)] if times else []), ask.cpus)


def seen(started: programs.Program, ask: HttpAsk) -> HttpSeen:
    """Waits for the end of a running client, and gives the client's report. Blocks. Raises ProgramFailed."""
    return programs.reported(started.command, started.said(ask.timeout_s), HttpSeen)


def _command(client: Path, ask: HttpAsk) -> list[str]:
    words = [str(client), "--address", f"{ask.address[0]}:{ask.address[1]}", "--request", ask.request]
    words += ["--body", ask.body]
    words += ["--connections", str(ask.connections), "--first-id", str(ask.first_id)]
    words += ["--keep"] if ask.kept else []
    if ask.requests:
        words += ["--requests", str(ask.requests), "--warm-up", str(ask.warm_up)]
    else:
        words += ["--seconds", f"{ask.seconds:g}", "--warm-up-seconds", f"{ask.warm_up_seconds:g}"]
    words += [] if ask.per_id is None else ["--per-id", str(ask.per_id)]
    return [*words, *([] if ask.expect is None else ["--expect", ask.expect])]
