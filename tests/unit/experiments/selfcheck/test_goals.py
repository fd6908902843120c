"""Verdicts of the checks that compare clients: medians over turns, ratios, bounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from experiments.selfcheck import agreement, clients
from experiments.selfcheck.clients import GOALS, Cell, Goal
from experiments.selfcheck.load import LoadFailed
from experiments.selfcheck.peers import Absent, Ask, Reading
from stock_service.rpc.transports import Address

CELL = Cell("grpc", "stock", 1)
SLOW = Goal(CELL, "p50_us", "c", 1.05)
FAST = Goal(CELL, "throughput_hz", "ghz", 1.5)


def readings(*p50_us: float) -> list[Reading]:
    """Readings with these medians, and a throughput that goes with them."""
    return [Reading(1, 1e6 / each, each, 2 * each) for each in p50_us]


def test_one_connection_is_read_oftener() -> None:
    """Its goals ask for a twentieth."""
    turns = [clients.MINUTES.turns_at(replace(CELL, connections=connections)) for connections in (1, 64)]
    assert turns == [25, 9]


@pytest.mark.parametrize(
    ("ours", "theirs", "within", "of_medians", "passed"),
    [
        ((100.0, 208.0, 104.0), (100.0, 200.0, 100.0), 1.04, 1.04, True),
        ((104.0, 208.0, 110.0), (100.0, 200.0, 100.0), 1.04, 1.10, False),
        ((106.0, 106.0, 318.0), (100.0, 110.0, 300.0), 1.06, 0.96, False),
    ],
    ids=["both", "medians missed", "turns missed"],
)
def test_a_time_must_stay_under_its_bound(
    ours: tuple[float, ...], theirs: tuple[float, ...], within: float, of_medians: float, passed: bool
) -> None:
    """By the ratios within turns and by the ratio of the medians: the worse of both counts."""
    finding = clients.judge(SLOW, {"ours": readings(*ours), "c": readings(*theirs)}, {}, clients.MINUTES)
    assert finding.passed is passed
    worse = max(within, of_medians)
    assert finding.shown.startswith(f"{worse:.2f} (within turns {within:.2f}, of the medians {of_medians:.2f}); ours ")
    assert finding.must == "at most 1.05"


@pytest.mark.parametrize(
    ("ours", "theirs", "passed"),
    [
        ((100.0,), (151.0,), True),
        ((100.0,), (149.0,), False),
        ((100.0, 100.0, 200.0), (160.0, 110.0, 320.0), True),
        ((100.0, 110.0, 300.0), (160.0, 160.0, 480.0), False),
        ((100.0, 100.0, 300.0), (160.0, 140.0, 430.0), False),
    ],
    ids=["reached", "missed", "both reached", "medians missed", "turns missed"],
)
def test_a_throughput_must_reach_its_bound(ours: tuple[float, ...], theirs: tuple[float, ...], passed: bool) -> None:
    """1.5 times theirs, or more, by both ratios."""
    read = {"ours": readings(*ours), "ghz": readings(*theirs)}
    assert clients.judge(FAST, read, {}, clients.MINUTES).passed is passed


def test_nobody_to_compare_with_is_skipped() -> None:
    """The finding then says how to get whoever is absent."""
    finding = clients.judge(FAST, {"ours": readings(1.0)}, {"ghz": Absent("ghz is absent")}, clients.MINUTES)
    assert (finding.passed, finding.shown) == (None, "ghz is absent")


def test_seconds_judge_no_speed() -> None:
    """Whatever the ratio: there was a reading."""
    read = {"ours": readings(900.0), "c": readings(1.0)}
    assert clients.judge(SLOW, read, {}, clients.SECONDS).passed


def test_every_goal_is_named_by_what_it_compares() -> None:
    """No two alike, and each is against somebody who is read on that transport."""
    assert len({goal.name for goal in GOALS}) == len(GOALS)
    assert all(goal.than in clients.OTHERS[goal.cell.transport] for goal in GOALS)


@pytest.mark.parametrize(
    ("percentile", "ours", "passed"),
    [
        ("p50", 259.0, True),
        ("p50", 261.0, False),
        ("p50", 141.0, True),
        ("p50", 139.0, False),
        ("p99", 319.0, True),
        ("p99", 321.0, False),
    ],
)
def test_clients_agree_within_a_share_and_some(percentile: str, ours: float, passed: bool) -> None:
    """Theirs is 200 µs, and 400 µs at the 99th: 60 µs apart may be the medians, 240 µs the 99th, either way."""
    turns, [floor] = (readings(ours), readings(200.0)), readings(50.0)
    finding = agreement.judge("agreement", percentile, turns, (floor, floor), agreement.MINUTES)
    assert finding.passed is passed
    assert f"of a server that does nothing {50 if percentile == 'p50' else 100} and" in finding.shown


@pytest.mark.parametrize(("theirs_hz", "passed"), [(1000.0, True), (981.0, True), (979.0, False), (1021.0, False)])
def test_clients_that_agree_were_asked_for_one_rate_and_kept_it(theirs_hz: float, passed: bool) -> None:
    """Within 2 %: half the load has other times."""
    ours, theirs = ([Reading(4000, hz, 200.0, 400.0)] for hz in (1000.0, theirs_hz))
    assert agreement.pace("agreement", 1000.0, (ours, theirs), agreement.MINUTES).passed is passed
    assert agreement.pace("agreement", 1000.0, (theirs, ours), agreement.MINUTES).passed is passed


def test_how_evenly_the_others_sent_is_said_where_it_is_known() -> None:
    """The median over the turns; nothing where the program does not say when it sent."""
    ours = [Reading(4000, 1000.0, 200.0, 400.0)] * 3
    theirs = [Reading(4000, 1000.0, 200.0, 400.0, share) for share in (0.1, 0.4, 0.43)]
    shown = agreement.pace("agreement", 1000.0, (ours, theirs), agreement.MINUTES).shown
    assert shown.endswith("theirs 1,000/s, 40% of theirs less than half as far apart as they should be")
    assert agreement.pace("agreement", 1000.0, (ours, ours), agreement.MINUTES).shown.endswith("theirs 1,000/s")


def test_one_clients_failure_keeps_what_the_others_showed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a server of its own, where it takes turns with ours, in another order every time."""
    loads: list[str] = []

    @dataclass
    class Peer:
        name: str

        def load(self, _: Ask) -> Reading:
            loads.append(self.name)
            if self.name == "go":
                raise LoadFailed("the Go client: exit code 1")
            return Reading(4000, 1000.0, 200.0, 400.0)

    def own(*_: object) -> Reading:
        loads.append("ours")
        return Reading(4000, 1000.0, 200.0, 400.0)

    @contextmanager
    def server(_: str) -> Iterator[tuple[None, Address]]:
        yield None, ("127.0.0.1", 1)

    @contextmanager
    def peers() -> Iterator[dict[str, Peer | Absent]]:
        yield {"ghz": Absent("ghz is absent"), "go": Peer("go"), "c": Peer("c")}

    for name, fake in (("peers", peers), ("stock_server", server), ("null_server", server), ("_own", own)):
        monkeypatch.setattr(agreement, name, fake)
    monkeypatch.setattr(agreement, "run", lambda _: SimpleNamespace(throughput_hz=8000.0))
    passed = {finding.name: finding.passed for finding in agreement.check()}
    assert passed == {
        "agreement, grpc with ghz": None,
        "agreement, sockets with go": False,
        "agreement, sockets with c, pace": True,
        "agreement, sockets with c, p50 at 1000/s": True,
        "agreement, sockets with c, p99 at 1000/s": True,
    }
    assert loads[2:] == [*(["ours", "c", "c", "ours"] * 5)[:18], "ours", "c"]
