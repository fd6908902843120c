"""Durable trades in the table of goals: what its rows compute, and that its servers and its probe are what they say."""

import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from clients.load.record.times import Times
from experiments.design.arms import Arm
from experiments.measure.bench import CATALOG, bench, server_command
from experiments.measure.load_programs import Ask, Reading
from experiments.measure.programs import Program
from experiments.performance import catalog_size
from experiments.performance.by_turns import Derived, by_turns, found
from experiments.performance.durable import (
    ALONE,
    DURABLE,
    FDATASYNC,
    LOADS,
    MEMORY,
    ROWS,
    SERVERS,
    SYNCS,
    TRADES_HZ,
    Probe,
    beside,
    measure,
    trading,
)
from experiments.performance.trades import Trades
from experiments.performance.turns import Turn
from experiments.selfcheck.load import stock_server
from stock_service.trading.service import LOOKUP
from stock_service.trading.service import TRADE as TRADED
from stock_service.v1 import stock_pb2
from tests.conformance.running import until

TURN = Turn("a", 1, 0, 10.0, 1.0, 100.0, 200.0, 300.0, 0.5, 0)
TRADE = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()
STRACE = shutil.which("strace")


def seen(turns: list[Turn], what: str, rows: tuple[Derived, ...] = ROWS) -> float:
    """The figure of a row by its name's beginning."""
    (row,) = (row for row in rows if row.what.startswith(what))
    figure = found(row, turns).figure
    assert figure is not None
    return figure.value


def test_every_row_is_measured() -> None:
    """Its windows are those of a turn."""
    names = {FDATASYNC, *(trading(*load) for load in LOADS), *(beside(server) for server in (DURABLE, MEMORY))}
    assert {name for row in ROWS for name in row.arms} == names


def test_what_the_rows_compute() -> None:
    """More is above: throughputs of the durable server, times in fdatasyncs and round trips."""
    hz = {trading(DURABLE, 64): 50.0, trading(MEMORY, 64): 100.0, trading(ALONE, 64): 5.0}
    hz |= {trading(DURABLE, 16): 30.0, trading(ALONE, 16): 6.0, beside(DURABLE): 9.0, beside(MEMORY): 10.0}
    turns = [replace(TURN, arm=name, throughput_hz=each) for name, each in hz.items()]
    turns += [
        replace(TURN, arm=FDATASYNC, p50_us=50),
        replace(TURN, arm=trading(MEMORY, 1), p50_us=30),
        replace(TURN, arm=trading(DURABLE, 1), p50_us=160),
    ]
    assert seen(turns, "durable trades ÷ in memory") == 0.5
    assert seen(turns, "durable trades ÷ one commit a trade, 64") == 10
    assert seen(turns, "durable trades ÷ one commit a trade, 16") == 5
    assert seen(turns, "durable trades ÷ fdatasync, 16") == 200 / 50
    assert seen(turns, "durable trades ÷ (fdatasync") == 2
    assert seen(turns, "Lookups beside") == 0.9


def test_what_the_rows_of_the_catalog_compute() -> None:
    """More is better in both."""
    many = replace(TURN, arm=catalog_size.stocks(100_000), throughput_hz=9, cpu_us=2)
    turns = [many, replace(TURN, arm=catalog_size.stocks(4), throughput_hz=10, cpu_us=1)]
    assert seen(turns, "100,000 stocks ÷ 4", catalog_size.ROWS) == 0.9
    assert seen(turns, "4 stocks ÷ 100,000", catalog_size.ROWS) == 0.5


def test_a_figure_is_the_median_over_turns() -> None:
    """Of what is computed within each; a turn that lacks a window is left out, and so are others' windows."""
    row = Derived("a ÷ b", "throughput", 1, True, ("a", "b"), lambda a, b: a.throughput_hz / b.throughput_hz)
    windows: dict[str, Callable[[int], Turn]] = {
        "a": lambda number: replace(TURN, appearance=number, throughput_hz=(10.0, 20.0, 90.0)[number], errors=1),
        "b": lambda number: replace(TURN, arm="b", appearance=number, load_share=0.0),
        "c": lambda number: replace(TURN, arm="c", appearance=number, errors=5),
    }
    shares: list[float] = []
    turns = by_turns(windows, 3, shares.append)
    got = found(row, [*turns, replace(TURN, appearance=3, throughput_hz=1e9)])
    assert got.figure is not None
    assert (got.figure.value, got.figure.n, got.load_shares, got.errors) == (2, 3, (0.5,), 3)
    assert shares == [1 / 3, 2 / 3, 1]
    assert found(row, []).absent


def test_the_probe_times_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write is synchronised, and its file is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    with Probe() as probe:
        turn = probe.turn(None, 3)
    assert (turn.arm, turn.appearance) == (FDATASYNC, 3)
    assert 0 < turn.p50_us <= turn.p99_us <= turn.p999_us
    assert SYNCS * turn.p50_us < 60e6
    assert not list(tmp_path.iterdir())


@dataclass
class Load:
    """A load program that has one reading."""

    asked: list[Ask] = field(default_factory=list)

    def load(self, ask: Ask) -> Reading:
        """See ``LoadProgram``."""
        self.asked.append(ask)
        times = Times()
        times.record(np.full(100, 50_000, dtype=np.int64))
        return Reading(100, 200.0, 50.0, 50.0, times=times, all_requests=120, served=(1, 99))


@pytest.mark.slow
def test_a_turn_on_real_servers() -> None:
    """Every window of it, each of its own server and with as many connections as it says."""
    load = Load()
    turns = measure(bench(CATALOG), load, 1, lambda _: None)
    assert {turn.arm for turn in turns} == {name for row in ROWS for name in row.arms}
    assert len({ask.address for ask in load.asked}) == len(SERVERS)
    assert sorted(ask.connections for ask in load.asked if ask.path == TRADED) == sorted(n for _, n in LOADS)
    assert [ask.connections for ask in load.asked if ask.path == LOOKUP] == [16, 16]
    assert not sum(turn.errors for turn in turns)


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="needs strace")
def test_one_commit_a_trade(tmp_path: Path) -> None:
    """Where it says so, the disk is waited for as often as trades are answered; else trades share a commit."""
    answered, synced = {}, {}
    for name in (ALONE, DURABLE):
        log = tmp_path / name
        command = server_command(Arm(SERVERS[name]).server, CATALOG, tmp_path / "t" if name == ALONE else None)
        with Program([str(STRACE), "-f", "-e", "trace=fdatasync", "-o", str(log), *command]) as server:
            with Trades(server.ready(), TRADE, 5 * TRADES_HZ, None) as sent:
                until(lambda sent=sent: sent.answered >= 60, "60 trades")  # type: ignore[misc]  # of this round
        answered[name], synced[name] = sent.answered, log.read_text().count("fdatasync(")
    assert synced[ALONE] >= answered[ALONE]
    assert synced[DURABLE] < answered[DURABLE] / 2


@pytest.mark.slow
def test_trades_come_at_their_rate() -> None:
    """None is left out and all are answered; a fault is one that was refused."""
    with stock_server("sockets") as (_, address):
        with Trades(address, TRADE, TRADES_HZ, None) as sent:
            until(lambda: sent.answered >= 200, "200 trades")
        assert sent.faults() == 0
        with Trades(address, b"\xff", TRADES_HZ, None) as refused:
            until(lambda: refused.sent >= 20, "20 trades")
        assert refused.faults() == refused.sent


@pytest.mark.slow
def test_trades_that_nobody_answers_are_faults() -> None:
    """So the row says it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with Trades(listener.getsockname(), TRADE, TRADES_HZ, None) as sent:
            until(lambda: sent.sent >= 20, "20 trades")
        assert sent.faults() == sent.sent
