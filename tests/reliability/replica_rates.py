"""Speed of three replicas on one PostgreSQL: trades a second, and the price of a synchronous standby.

``python -m tests.reliability.replica_rates [SECONDS]`` measures each case for this time, seven times, in turns. The
program prints a row for each case, and ratios within each turn. PostgreSQL, its standby, the replicas and the load run
on one machine. A trader waits for a reply, then sends a trade with a new id. The control ``one a trade`` is the server
with one transaction for each trade (``one_a_trade.py``). Each case that waits for a standby is compared with a case
that has a standby and does not wait. At the end volumes, numbers and replies must agree.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, cycle, islice
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clients import replies
from clients.load.history.operations import Trade
from clients.load.plan.checked_workload import encoded
from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.workload import Request, Workload
from clients.load.record.records import Deadline
from clients.load.send.driver import Surroundings
from clients.load.send.lanes import Lanes
from clients.load.send.lean import lean_codec
from stock_service.rpc.transports import Address
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.model import Side, Status
from tests.end_to_end.process import Server
from tests.reliability.replicas import REPLICAS
from tests.reliability.rows import Row

if TYPE_CHECKING:
    from tests.postgres import Postgres  # which needs psycopg

SECONDS, TURNS, WARM_UP_S = 1.0, 7, 0.3

TRADERS = 64

STOCKS = [replace(stock, volume_limit=10**15) for stock in DEFAULT_STOCKS]
NAMES = [stock.name for stock in STOCKS]

LOCAL = "options=-csynchronous_commit=local"
"""Setting of a session that does not wait for the standby."""


class Case(NamedTuple):
    """A case that is measured."""

    name: str
    program: str = "stock_service"
    traders: int = TRADERS
    stocks: int = 1
    session: str = ""


class Measured(NamedTuple):
    """One turn of a case."""

    trades_hz: float
    groups_hz: float
    waits_ms: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    load_share: float
    """Share of a core that the load took."""


HOT = Case(f"{TRADERS} traders, one stock")
FOUR = Case(f"{TRADERS} traders, four stocks", stocks=4)
ALONE = Case(f"{TRADERS} traders, one stock, one a trade", program="tests.reliability.one_a_trade")
PLAIN = (
    HOT,
    FOUR,
    ALONE,
    Case("1 trader", traders=1),
    Case("16 traders, one stock", traders=16),
    Case("256 traders, one stock", traders=256),
)
"""Cases without a standby."""

FOLLOWED = (
    Case(f"{TRADERS} traders, a standby", session=LOCAL),
    Case(f"{TRADERS} traders, a synchronous standby"),
    Case("1 trader, a standby", traders=1, session=LOCAL),
    Case("1 trader, a synchronous standby", traders=1),
)
"""Cases with a standby."""


class Rates:
    """Replicas of each program and session, while they serve, and their measurements."""

    def __init__(self, postgres: "Postgres", cases: Sequence[Case], running: ExitStack) -> None:
        from psycopg import connect

        self._cases, self._dsn = cases, postgres.store(STOCKS)
        self._looking = running.enter_context(connect(self._dsn, autocommit=True))
        self._prefixes = count()
        self._done = 0
        self.found: dict[str, list[Measured]] = {case.name: [] for case in cases}
        self._servers = {
            (case.program, case.session): running.enter_context(self._server(case.program, case.session))
            for case in {(case.program, case.session): case for case in cases}.values()
        }

    def _server(self, program: str, session: str) -> Server:
        store = f"postgres:{self._dsn} {session}"
        return Server((program, "serve", "--transport", "grpc_static", "--processes", str(REPLICAS), "--store", store))

    def turn(self, seconds: float) -> None:
        """Measures each case once."""
        for case in self._cases:
            server = self._servers[case.program, case.session]
            self.found[case.name].append(self._measured(case, server.address, seconds))

    def _measured(self, case: Case, address: Address, seconds: float) -> Measured:
        start_ns = time.perf_counter_ns() + int(WARM_UP_S * 1e9)
        end_ns = start_ns + int(seconds * 1e9)
        lanes = self._lanes(case, address, end_ns)
        try:
            lanes.open()
            lanes.drive(start_ns)
            groups, cpu_ns = self._groups(), time.process_time_ns()
            lanes.drive(end_ns)
            groups, cpu_ns = self._groups() - groups, time.process_time_ns() - cpu_ns
            lanes.finish()
        finally:
            lanes.close()
        outcomes = [outcome for lane in lanes.lanes for outcome in lane.records.outcomes]
        if not outcomes:  # the machine stood still, and the lanes were open after the window alone
            return self._measured(case, address, 2 * seconds)
        assert set(outcomes) == {Status.OK}, set(outcomes)
        self._done += len(outcomes)
        sent, done = (
            np.array([at for lane in lanes.lanes for at in getattr(lane.records, name)]) for name in ("sent", "done")
        )
        within = (done >= start_ns) & (done < end_ns)
        return Measured(within.sum() / seconds, groups / seconds, (done - sent)[within] / 1e6, cpu_ns / seconds / 1e9)

    def _lanes(self, case: Case, address: Address, end_ns: int) -> Lanes:
        stocks = tuple(NAMES[: case.stocks])
        plan = LoadPlan("grpc_static", address, 1, {"trade": 1.0}, stocks, 0.0, 1.0, case.traders)
        workload, around = Workload(plan), Surroundings(Deadline(end_ns), plan.timeout_s, 10**7, [0], 0)
        lanes = Lanes(address, lean_codec(plan), workload, [[0]] * case.traders, around)
        for number, lane in enumerate(lanes.lanes):
            own = islice(cycle(stocks), number % case.stocks, None)
            lane.requests = lanes.ready(trades(f"{next(self._prefixes)}", own))
        return lanes

    def _groups(self) -> int:
        """The transactions that have changed something so far."""
        return self._number("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")

    def agreed(self) -> bool:
        """True if the store has each acknowledged trade once, and no other trade."""
        volume = self._number("SELECT sum(volume)::bigint FROM stock_service.stocks")
        return volume == self._number("SELECT sequence FROM stock_service.state") == self._done

    def _number(self, statement: str) -> int:
        ((number,),) = self._looking.execute(statement)
        assert isinstance(number, int)
        return number


def measured(
    postgres: "Postgres", cases: Sequence[Case], seconds: float, turns: int = TURNS
) -> tuple[dict[str, list[Measured]], bool]:
    """Measures each case, in turns. Gives the turns, and True if the store agrees with the replies."""
    with ExitStack() as running:
        rates = Rates(postgres, cases, running)
        for _ in range(turns):
            rates.turn(seconds)
        return rates.found, rates.agreed()


def trades(prefix: str, stocks: Iterator[str]) -> Iterator[Request]:
    """Endless trades of a share, each with a new id."""
    for number, stock in enumerate(stocks):
        path, payload = encoded(Trade(stock, 1, Side.BUY, f"{prefix}-{number}"))
        yield Request(path, payload, {}, status, 0)


def status(reply: bytes) -> int:
    """The outcome of a reply."""
    return replies.trade(reply).status


def waits(turns: Sequence[Measured]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The waits of all turns, in ms."""
    return np.concatenate([turn.waits_ms for turn in turns])


def shown(name: str, turns: Sequence[Measured]) -> str:
    """The line of a case: medians over its turns, and percentiles over all waits."""
    rate, load = median(turn.trades_hz for turn in turns), median(turn.load_share for turn in turns)
    group = median(turn.trades_hz / turn.groups_hz for turn in turns)
    middle, p99 = np.percentile(waits(turns), [50, 99])
    return (
        f"{name:<38} | {rate:>6,.0f} trades/s | {group:>5.1f} a commit, {1000 * group / rate:.2f} ms each "
        f"| p50 {middle:.1f} ms | p99 {p99:.1f} ms | load {load:.0%} of a core"
    )


def ratio(above: Sequence[Measured], below: Sequence[Measured]) -> float:
    """The median of the ratios of each turn."""
    return median(one.trades_hz / other.trades_hz for one, other in zip(above, below, strict=True))


def rows(found: dict[str, list[Measured]], agreed: bool) -> list[Row]:
    """Rows of the goals, with the figures reached."""
    hot, four, alone = (found[case.name] for case in (HOT, FOUR, ALONE))
    rate, p99 = median(turn.trades_hz for turn in hot), float(np.percentile(waits(hot), 99))
    grouped, spread = ratio(hot, alone), ratio(four, hot)
    return [
        Row(f"{HOT.name}: trades a second", "≥ 10,000", f"{rate:,.0f}", rate >= 10_000),
        Row(f"{HOT.name}: p99", "≤ 25 ms", f"{p99:.1f} ms", p99 <= 25),
        Row("group commit ÷ one transaction a trade", "≥ 7", f"{grouped:.1f}", grouped >= 7),
        Row("four stocks ÷ one stock", "≥ 1", f"{spread:.2f}", spread >= 1),
        Row("volumes, numbers and replies agree", "always", "yes" if agreed else "no", agreed),
    ]


def main(arguments: Sequence[str]) -> int:
    """Prints a line for each case, then the rows. The exit code is 1 if a row falls short."""
    from tests.postgres import STANDBY, Postgres

    seconds = float(arguments[0]) if arguments else SECONDS
    with Postgres() as postgres:
        found, agreed = measured(postgres, PLAIN, seconds)
        with Postgres(postgres):
            postgres.set("synchronous_standby_names", STANDBY)
            followed, agreed_too = measured(postgres, FOLLOWED, seconds)
    found |= followed
    print(*(shown(name, turns) for name, turns in found.items()), sep="\n")
    pairs = zip(FOLLOWED[::2], FOLLOWED[1::2], strict=True)
    costs = (f"{late.name} ÷ without waiting: {ratio(found[late.name], found[each.name]):.2f}" for each, late in pairs)
    told = rows(found, agreed and agreed_too)
    print(*costs, *told, sep="\n")
    return 0 if all(row.passed for row in told) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
