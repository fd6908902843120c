"""Durable trades: beside the same server in memory, beside one that commits each trade alone, and beside the disk.

Three socket servers share the server's core: in memory, with a store, and with a store where no two trades share a
commit. The last has one worker, and ``--timeline``, with which a trade holds its thread until it is on the disk
(``stock_service/storage/README.md``): so there is one trade at a time. The timeline costs some 1 µs a trade.

Stores are in the working folder, as the bench has them. There the fdatasync is probed too, in every turn: two pages are
written where the file has pages already, as a commit of one trade does, and the fdatasync alone is timed.

Lookups are loaded beside trades that come at a rate, on connections of their own: once with the store, once in memory.
Who sends these sleeps between them, so that the load's core stays with the Lookups.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

import numpy as np

from experiments.design.arms import Arm
from experiments.design.factors import SQLITE
from experiments.design.setting import setting
from experiments.measure.bench import Bench, server_command
from experiments.measure.load_programs import Ask, LoadProgram
from experiments.measure.programs import Program, kept_to
from experiments.performance.by_turns import Derived, Window, by_turns, throughputs
from experiments.performance.trades import Trades
from experiments.performance.turns import Noted, Turn, turn_of
from stock_service.rpc.transports import Address
from stock_service.trading.catalog_file import load as load_catalog
from stock_service.trading.service import LOOKUP, TRADE
from stock_service.v1 import stock_pb2

WARM_UP_S, WINDOW_S = 0.1, 0.5

SETTLE_S, BESIDE_S = 0.3, 0.7
"""Before Lookups beside trades are counted, and while they are."""

LOOKUP_CONNECTIONS = 16

TRADES_HZ = 1000.0
"""Trades beside Lookups."""

SYNCS, PAGES, PAGE_BYTES = 100, 512, 4096
"""Of a probe: how often, and the pages of its file."""

MEMORY, DURABLE, ALONE = "in memory", "durable", "one a commit"
FDATASYNC = "fdatasync"

SERVERS = {
    MEMORY: setting(transport="sockets"),
    DURABLE: setting(transport="sockets", store=SQLITE),
    ALONE: setting(transport="sockets", store=SQLITE, workers=1),
}
"""Each pinned to the server's core, and the other is the load's."""

LOADS = ((MEMORY, 64), (DURABLE, 64), (ALONE, 64), (DURABLE, 16), (ALONE, 16), (MEMORY, 1), (DURABLE, 1))
"""Servers, each with so many traders."""


def trading(server: str, traders: int) -> str:
    """The name of such a window."""
    return f"{server}, {traders}"


def beside(server: str) -> str:
    """The name of a window of Lookups beside trades."""
    return f"Lookups, {server}"


def _in_syncs(of: Turn, sync: Turn) -> float:
    return of.p99_us / sync.p50_us


def _in_syncs_and_trips(of: Turn, sync: Turn, in_memory: Turn) -> float:
    return of.p50_us / (sync.p50_us + in_memory.p50_us)


ROWS = (
    Derived(
        "durable trades ÷ in memory, 64 traders",
        "throughput",
        0.5,
        True,
        (trading(DURABLE, 64), trading(MEMORY, 64)),
        throughputs,
    ),
    Derived(
        "durable trades ÷ one commit a trade, 64 traders",
        "throughput",
        10,
        True,
        (trading(DURABLE, 64), trading(ALONE, 64)),
        throughputs,
    ),
    Derived(
        "durable trades ÷ one commit a trade, 16 traders",
        "throughput",
        5,
        True,
        (trading(DURABLE, 16), trading(ALONE, 16)),
        throughputs,
    ),
    Derived("durable trades ÷ fdatasync, 16 traders", "p99", 6, False, (trading(DURABLE, 16), FDATASYNC), _in_syncs),
    Derived(
        "durable trades ÷ (fdatasync + round trip), 1 trader",
        "median",
        1.2,
        False,
        (trading(DURABLE, 1), FDATASYNC, trading(MEMORY, 1)),
        _in_syncs_and_trips,
    ),
    Derived(
        "Lookups beside 1,000 trades a second, durable ÷ in memory",
        "throughput",
        0.9,
        True,
        (beside(DURABLE), beside(MEMORY)),
        throughputs,
    ),
)


@dataclass(frozen=True, slots=True)
class Rig:
    """The servers, ready, and what loads them."""

    on: Bench
    program: LoadProgram
    programs: Mapping[str, Program]
    addresses: Mapping[str, Address]
    stock: str

    def trades(self, server: str, traders: int, number: int) -> Turn:
        """A window of trades in a closed loop, on connections kept."""
        return self._turn(
            trading(server, traders), server, number, self._ask(server, TRADE, _trade(self.stock), traders)
        )

    def lookups(self, server: str, number: int) -> Turn:
        """A window of Lookups beside trades."""
        payload = stock_pb2.LookupRequest(name=self.stock).SerializeToString()
        ask = self._ask(server, LOOKUP, payload, LOOKUP_CONNECTIONS)
        ask = replace(ask, warm_up_s=SETTLE_S, duration_s=BESIDE_S)
        with Trades(self.addresses[server], _trade(self.stock), TRADES_HZ, self.on.load_cores) as sent:
            turn = self._turn(beside(server), server, number, ask)
        return replace(turn, errors=turn.errors + sent.faults())

    def _ask(self, server: str, path: str, payload: bytes, connections: int) -> Ask:
        return Ask(self.addresses[server], path, payload, connections, WINDOW_S, WARM_UP_S, self.on.load_cores)

    def _turn(self, arm: str, server: str, number: int, ask: Ask) -> Turn:
        before_s = self.programs[server].cpu_s()
        reading = Noted(self.program, []).load(ask)
        assert reading.all_requests, "load.c says it, and one was answered"
        cpu_us = (self.programs[server].cpu_s() - before_s) / reading.all_requests * 1e6
        return turn_of(arm, (1, number), cpu_us, reading)


def measure(on: Bench, program: LoadProgram, turns: int, watch: Callable[[float], None]) -> list[Turn]:
    """Every turn: some 9 s each. Blocks. Raises ProgramFailed where a server or the load program fails."""
    with _rig(on, program) as rig, Probe() as probe:
        windows: dict[str, Window] = {trading(*each): partial(rig.trades, *each) for each in LOADS}
        windows |= {beside(server): partial(rig.lookups, server) for server in (DURABLE, MEMORY)}
        windows[FDATASYNC] = partial(probe.turn, on.server_cores)
        return by_turns(windows, turns, watch)


@contextmanager
def _rig(on: Bench, program: LoadProgram) -> Iterator[Rig]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs: dict[str, Program] = {}
        for name, of in SERVERS.items():
            timeline = scratch / "timeline" if name == ALONE else None
            command = server_command(Arm(of).server, on.catalog, timeline)
            programs[name] = stack.enter_context(Program(command, on.server_cores))
        addresses = {name: each.ready() for name, each in programs.items()}
        yield Rig(on, program, programs, addresses, load_catalog(on.catalog)[0].name)


def _trade(stock: str) -> bytes:
    return stock_pb2.TradeRequest(name=stock, quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()


class Probe:
    """A file on the disk of the stores, and how long fdatasync takes there. Leaving ``with`` removes it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(dir=".")  # noqa: SIM115  # closed by __exit__
        self._file.write(bytes(PAGES * PAGE_BYTES))
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def turn(self, cpus: tuple[int, ...] | None, number: int) -> Turn:
        """As a turn: its times are those of the fdatasyncs alone. Blocks."""
        with kept_to(cpus):
            took_us = [self._sync(place) for place in range(SYNCS)]
        p99_us, p999_us = (float(each) for each in np.percentile(took_us, [99, 99.9]))
        return Turn(FDATASYNC, 1, number, 1e6 / median(took_us), 0.0, median(took_us), p99_us, p999_us, 0.0, 0)

    def _sync(self, place: int) -> float:
        os.pwrite(self._file.fileno(), os.urandom(2 * PAGE_BYTES), 2 * place % PAGES * PAGE_BYTES)
        began_ns = time.perf_counter_ns()
        os.fdatasync(self._file.fileno())
        return (time.perf_counter_ns() - began_ns) / 1000
