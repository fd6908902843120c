"""Promises tried with clients outside this project: grpc-go (``experiments/peers/go/grpc_load``) and grpcio.

The checks need a machine with two free cores. Server and load have a core each.

- Overload. A call computes for 0.5 ms, and its client gives up after 90 ms. The peak is the rate of 16 simultaneous
  calls on a second server, before and after each block. The second server is never overloaded. Lookups come at the
  highest rate that grpc-go sends in time. If this rate is under the peak, a share refers to the offered rate.
- Fairness. 500 calls a second on 16 connections stand beside 64 greedy connections with 64 calls each, which wait for
  ever. The fair share is a fifth of all answers, or all requested calls if these are fewer.
- Metadata of 15 KiB in each call. No call may be refused, and no connection cut.

grpcio's own server is tried for comparison; its rows have no goal. Without grpc-go its trials are skipped.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from shutil import which
from statistics import fmean, median
from types import MappingProxyType

import grpc

from experiments.measure.bench import CATALOG, bench
from experiments.measure.programs import Program, finished, running
from experiments.peers import BUILT, is_built
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.transports import Address
from stock_service.trading.service import LOOKUP
from tests.end_to_end.process import LOOKUP_ONE
from tests.reliability.honest import SUCCESS
from tests.reliability.rows import Row, absent
from tests.reliability.socket_attacker import NICE

GO_LOAD = "grpc-go's load"
SKIPPED = Row(absent(GO_LOAD), "every row", "skipped: make peers", passed=False)

OURS, GRPCIO = "grpc_static", "grpc"

COMPUTING = ("--cpu-ms", "0.5")
DEADLINE_S = 0.09
GOALS: Mapping[int, float] = MappingProxyType({2: 0.9, 5: 0.7, 10: 0.5})
"""Least share of the peak that is answered in time, by the multiple of capacity that is offered."""

LOOKUPS = 0.7

LATE_US_MAX = 20_000.0
"""Largest 99th percentile of a load's lateness. A later load tells nothing about a server."""

SLOWER, TRIES = 0.85, 8
"""Factor from a rate that the load does not keep to the next rate; and the number of rates that are tried."""

POLITE, POLITE_HZ, GREEDY, GREEDY_CALLS = 16, 500, 64, 64
SHARE = 0.9
"""Share of the fair share."""

METADATA_BYTES, CALLS = 15_360, 10_000

RUN_S_MAX = 2.0
"""Longest run of grpc-go for a number of calls. A first run with a single call tells little about the next run."""

EXTRA_S = 30.0
"""Time that a program may take beyond its load."""


@dataclass(frozen=True, slots=True)
class Report:
    """Counts of a load's calls in its window, by their ends."""

    good: int
    """Answered within their deadline."""
    seconds: float
    errors: Mapping[str, int] = field(default_factory=dict)
    """Failures by gRPC's code; ``late`` for calls that were answered late."""
    never_sent: int = 0
    late_us_p99: float = 0.0

    @property
    def made(self) -> int:
        """All due calls."""
        return self.good + sum(self.errors.values()) + self.never_sent

    @property
    def good_hz(self) -> float:
        """Answers a second."""
        return self.good / self.seconds

    @property
    def was_in_time(self) -> bool:
        """True if the load itself was in time. A call that was never sent had waited for the server's answers."""
        return self.late_us_p99 <= LATE_US_MAX


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Overload and fairness. Blocks for some seconds; with ``minutes`` for half a minute."""
    if not is_built("go-stock"):
        return [SKIPPED]
    block_s = 1.0 if minutes else 0.3
    rows = [*_computing(OURS, GOALS, 2 if minutes else 1, block_s), _lookups(2 if minutes else 1, block_s)]
    rows += _computing(GRPCIO, dict.fromkeys(GOALS), 1, block_s / 2)
    for transport, client, polite in (
        (OURS, "grpc-go", _polite_go),
        (OURS, "grpcio", politely),
        (GRPCIO, "grpc-go", _polite_go),
    ):
        what = f"{transport}: polite clients on {client}"
        rows += _fair(what, transport, polite, 2 * block_s, has_goal=transport == OURS)
    return rows


def check_metadata(minutes: bool, _seed: int = 0) -> list[Row]:
    """Long metadata. Blocks for some seconds; with ``minutes`` for half a minute."""
    return list(metadata_rows(CALLS if minutes else 500))


def metadata_rows(calls: int) -> Iterator[Row]:
    """Rows on long metadata in this number of calls from each client, 1 and 16 at a time. grpcio's own server gets a
    hundredth of the calls. It refuses nearly all calls, and grpc-go then makes five calls a second."""
    clients = {"grpcio": with_metadata}
    if is_built("go-stock"):
        clients["grpc-go"] = _go_with_metadata
    else:
        yield SKIPPED
    for transport, has_goal, count in ((OURS, True, calls), (GRPCIO, False, calls // 100)):
        with serving(transport) as address:
            for client, made in clients.items():
                for at_once in (1, 16):
                    what = f"{transport}: 15 KiB of metadata from {client}, {at_once} at a time"
                    yield metadata_row(what, made(address, count, at_once), count, has_goal)


def metadata_row(what: str, seen: Report, calls: int, has_goal: bool) -> Row:
    """Row on this number of calls. No call may fail."""
    failed = sum(seen.errors.values())
    kinds = "".join(f"; {count:,} {kind}" for kind, count in seen.errors.items())
    passed = not failed and seen.made >= calls
    row = Row(f"{what}: refused or cut", f"0 of {calls:,}", f"{failed:,} of {seen.made:,}{kinds}", passed)
    return row.if_promised(has_goal)


def overload_row(what: str, shares: Sequence[float], goal: float | None, of: str = "the peak") -> Row:
    """Row on the median share of some blocks."""
    share = median(shares)
    spread = "" if len(shares) == 1 else f"; {min(shares):.0%} to {max(shares):.0%} in {len(shares)} blocks"
    figure = f"{share:.0%}{spread}"
    at_least = goal or 0.0
    row = Row(f"{what}: answered in time", f"≥ {at_least:.0%} of {of}", figure, share >= at_least, share * 100)
    return row.if_promised(goal is not None)


def fair_rows(what: str, polite: Report, greedy_hz: float, has_goal: bool) -> list[Row]:
    """Rows on the polite clients: their share, and the number of their answered calls."""
    fair_hz = min(polite.made / polite.seconds, (greedy_hz + polite.good_hz) * POLITE / (POLITE + GREEDY))
    share, answered = polite.good_hz / fair_hz if fair_hz else 0.0, polite.good / max(1, polite.made)
    text = f"{answered:.2%} of {polite.made:,}"
    rows = [
        Row(f"{what}: share", f"≥ {SHARE:.0%} of the fair one", f"{share:.0%}", share >= SHARE),
        Row(f"{what}: answers in time", f"≥ {SUCCESS:.1%}", text, answered >= SUCCESS),
    ]
    return [row.if_promised(has_goal) for row in rows]


def _computing(
    transport: str, goals: Mapping[int, float | None] | Mapping[int, float], blocks: int, block_s: float
) -> Iterator[Row]:
    """Calls that compute, at multiples of the capacity."""
    with serving(transport, COMPUTING) as address, serving(transport, COMPUTING) as rested:
        peaks_hz = [_peak_hz(rested, 1)]
        for times, goal in goals.items():
            shares = []
            for _ in range(blocks):
                seen = _offered(address, times * peaks_hz[-1], block_s)
                peaks_hz.append(_peak_hz(rested, 1))
                shares.append(seen.good_hz / fmean(peaks_hz[-2:]))
            yield overload_row(f"{transport}: calls from grpc-go, {times} times its capacity", shares, goal)


def _lookups(blocks: int, block_s: float) -> Row:
    """Lookups, at the highest rate that grpc-go sends in time."""
    with serving(OURS) as address, serving(OURS) as rested:
        peaks_hz = [_peak_hz(rested, 8)]
        rate_hz, _ = in_time(partial(_offered, address, duration_s=block_s / 2), peaks_hz[0])
        shares = []
        for _ in range(blocks):
            rate_hz, seen = in_time(partial(_offered, address, duration_s=block_s), rate_hz)
            peaks_hz.append(_peak_hz(rested, 8))
            shares.append(seen.good_hz / min(rate_hz, fmean(peaks_hz[-2:])))
    what = f"{OURS}: all Lookups that grpc-go offers, {rate_hz:,.0f} a second, {rate_hz / fmean(peaks_hz):.1f} peaks"
    return overload_row(what, shares, LOOKUPS, "the peak, or of what is offered")


def in_time(offered: Callable[[float], Report], rate_hz: float) -> tuple[float, Report]:
    """The first rate that the load sends in time, from ``rate_hz`` down, and the report. After ``TRIES`` tries, the
    last rate."""
    for _ in range(TRIES - 1):
        seen = offered(rate_hz)
        if seen.was_in_time:
            return rate_hz, seen
        rate_hz *= SLOWER
    return rate_hz, offered(rate_hz)


def _fair(
    what: str, transport: str, load: Callable[[Address, float], Report], duration_s: float, has_goal: bool
) -> list[Row]:
    """Load of polite clients during a load of greedy clients."""
    with serving(transport) as address:
        greedy_s = duration_s + 1.5
        told = "-connections", str(GREEDY), "-in-flight", str(GREEDY_CALLS)
        words = _go_words(address, greedy_s, 0.0, *told, deadline_s=0.0)
        with running([which("nice") or "nice", "-n", str(NICE), *words], bench(CATALOG).load_cores) as greedily:
            polite = load(address, duration_s)
            greedy = go_report(greedily.said(greedy_s + EXTRA_S))
    return fair_rows(what, polite, greedy.good_hz, has_goal)


def _polite_go(address: Address, duration_s: float) -> Report:
    return _go(address, duration_s, 0.7, "-connections", str(POLITE), "-rate", str(POLITE_HZ))


def _go_with_metadata(address: Address, calls: int, at_once: int) -> Report:
    """This number of calls or more, in runs whose length is guessed from earlier ones."""
    total, run_s = Report(0, 0.0), calls / 5_000
    while total.made < calls:
        told = "-in-flight", str(at_once), "-metadata-bytes", str(METADATA_BYTES), "-metadata-new"
        seen = _go(address, run_s, 0.0, *told, deadline_s=0.0)
        errors = Counter(total.errors) + Counter(seen.errors)
        total = Report(total.good + seen.good, total.seconds + seen.seconds, errors)
        run_s = min(RUN_S_MAX, max(0.1, 1.05 * (calls - total.made) * total.seconds / max(1, total.made)))
    return total


@contextmanager
def serving(transport: str, options: Sequence[str] = ()) -> Iterator[Address]:
    """A stock server with its defaults on the core of servers, with its store in memory."""
    words = ("-m", "experiments.services", "serve", "stock", "--transport", transport, "--port", "0")
    command = [sys.executable, *words, "--store", "memory", *options]
    with Program(command, bench(CATALOG).server_cores) as program:
        yield program.ready()


def _peak_hz(address: Address, calls: int) -> float:
    return _go(address, 0.4, 0.1, "-connections", "16", "-in-flight", str(calls)).good_hz


def _offered(address: Address, rate_hz: float, duration_s: float) -> Report:
    return _go(address, duration_s, 0.3, "-connections", "32", "-rate", f"{rate_hz:.0f}")


def _go(address: Address, duration_s: float, warm_up_s: float, *words: str, deadline_s: float = DEADLINE_S) -> Report:
    """Lookups from grpc-go."""
    command = _go_words(address, duration_s, warm_up_s, *words, deadline_s=deadline_s)
    return go_report(finished(command, bench(CATALOG).load_cores, duration_s + EXTRA_S))


def _go_words(
    address: Address, duration_s: float, warm_up_s: float, *words: str, deadline_s: float = DEADLINE_S
) -> list[str]:
    command = [str(BUILT / "go" / "grpc_load"), "-address", shown_address(address)]
    command += ["-call", LOOKUP, "-data-hex", LOOKUP_ONE.hex()]
    command += ["-duration", f"{duration_s:.3f}s", "-warm-up", f"{warm_up_s:g}s", "-deadline", f"{deadline_s:g}s"]
    return [*command, *words]


def go_report(line: str) -> Report:
    """The report that the program printed."""
    said = json.loads(line)
    late = {"late": said["calls"] - said["good"]} if said["calls"] > said["good"] else {}
    errors = {**said["errors"], **late}
    return Report(said["good"], said["seconds"], errors, said["never_sent"], said["late_us_p99"])


def politely(address: Address, duration_s: float) -> Report:
    """Load of 16 channels. Each channel makes its calls when they are due, one at a time."""
    until_s = time.monotonic() + duration_s
    gap_s = POLITE / POLITE_HZ

    def calls(place: int) -> list[str | None]:
        with _channel(address) as channel:
            call, made = _lookup(channel), 0
            began_s, ended = time.monotonic() + gap_s * place / POLITE, list[str | None]()
            while (due_s := began_s + made * gap_s) < until_s:
                threading.Event().wait(max(0.0, due_s - time.monotonic()))
                made += 1
                ended.append(_ended(lambda: call(LOOKUP_ONE, timeout=DEADLINE_S), due_s))
            return ended

    with _on_load_cores(), ThreadPoolExecutor(POLITE) as threads:
        every = [code for ended in threads.map(calls, range(POLITE)) for code in ended]
    return Report(every.count(None), duration_s, Counter(code for code in every if code is not None))


def _ended(call: Callable[[], bytes], due_s: float) -> str | None:
    """End of a call: None for an answer in time; else the call's code, or ``late``."""
    try:
        call()
    except grpc.RpcError as error:
        return str(error.code().name)
    return None if time.monotonic() <= due_s + DEADLINE_S else "late"


def with_metadata(address: Address, calls: int, at_once: int) -> Report:
    """Load of calls with 15 KiB of metadata on one channel, ``at_once`` at a time; a part is new in each."""
    numbers, errors = iter(range(calls)), Counter[str]()
    constant = [(f"x-load-{place:02d}", "0123456789abcdef" * 63 + "0123456") for place in range(14)]
    began_s = time.monotonic()

    def made(_: int) -> int:
        good = 0
        while (number := next(numbers, None)) is not None:
            entry = "x-load-14", f"{number:016x}" + "0123456789abcdef" * 62 + "0123456"
            try:
                call(LOOKUP_ONE, metadata=(*constant, entry))
                good += 1
            except grpc.RpcError as error:
                errors[str(error.code().name)] += 1
        return good

    with _on_load_cores(), _channel(address) as channel, ThreadPoolExecutor(at_once) as threads:
        call = _lookup(channel)
        good = sum(threads.map(made, range(at_once)))
    return Report(good, time.monotonic() - began_s, errors)


@contextmanager
def _on_load_cores() -> Iterator[None]:
    """In the block, this thread and the threads that it starts run on the cores of loads."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, bench(CATALOG).load_cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _channel(address: Address) -> grpc.Channel:
    """A channel with a new connection."""
    return grpc.insecure_channel(shown_address(address), options=[("grpc.use_local_subchannel_pool", 1)])


def _lookup(channel: grpc.Channel) -> "grpc.UnaryUnaryMultiCallable[bytes, bytes]":
    return channel.unary_unary(LOOKUP)
