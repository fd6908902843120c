"""Verdicts of the check that compares clients: ratios within turns, bounds, absent clients."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from experiments.measure.load_programs import Ask, LoadProgram, Reading
from experiments.measure.programs import ProgramFailed
from experiments.peers import Absent
from experiments.selfcheck import clients
from experiments.selfcheck.clients import MINUTES, judge


def readings(*p50_us: float) -> list[Reading]:
    """Readings with these medians, and twice as much at the 99th percentile."""
    return [Reading(1, 1e6 / each, each, 2 * each) for each in p50_us]


@pytest.mark.parametrize(
    ("ours_us", "passed"),
    [
        (219.0, [True, True]),
        (221.0, [False, True]),
        (181.0, [True, True]),
        (179.0, [False, True]),
        (241.0, [False, False]),
    ],
)
def test_ours_reads_what_c_reads(ours_us: float, passed: list[bool]) -> None:
    """For 200 µs the medians may differ by 20 µs in both directions, and the 99th percentiles by a fifth."""
    found = judge("clients", "c", {"ours": readings(*[ours_us] * 3), "c": readings(*[200.0] * 3)}, {})
    assert [each.passed for each in found] == passed
    assert found[0].must == "within 5% + 10 µs of c"


def test_what_counts_is_the_ratio_within_turns() -> None:
    """The ratio within turns counts: a machine that changes its speed between turns is not a client's fault."""
    ours, theirs = readings(100, 205, 410), readings(100, 200, 400)
    (of_p50, _) = judge("clients", "c", {"ours": ours, "c": theirs, "go": theirs}, {})
    assert of_p50.passed
    assert of_p50.shown == "+2.5% within turns; ours 205, c 200, go 200 µs, medians of 3 turns"


def test_nobody_to_compare_with_is_skipped() -> None:
    """Without another client the check is skipped, and the finding says how to get one."""
    (finding,) = judge("clients", "h2load", {"ours": readings(1.0)}, {"h2load": Absent("h2load is absent")})
    assert (finding.passed, finding.shown) == (None, "h2load is absent")


def test_clients_take_turns_and_one_failure_keeps_what_the_others_showed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients take turns, in reversed order every other time, on a server for each number of connections. After one
    fails, the readings of the others are kept."""
    loads: list[tuple[str, int]] = []

    def read(program: Path, ask: Ask) -> Reading:
        loads.append((program.name, ask.connections))
        if (program.name, ask.connections) == ("h2load", 64):
            raise ProgramFailed(["h2load"], "exit code 1", "")
        return Reading(4000, 1000.0, 200.0, 400.0, errors=int((program.name, ask.connections) == ("c", 64)))

    programs = {name: LoadProgram(Path(name), read) for name in ("h2load", "go", "c")} | {"ghz": Absent("absent")}
    monkeypatch.setattr(clients, "load_programs", lambda: nullcontext(programs))
    monkeypatch.setattr(clients, "stock_server", lambda _: nullcontext((None, ("127.0.0.1", 1))))
    monkeypatch.setattr(clients, "_own", lambda _, ask: read(Path("ours"), ask))
    passed = {finding.name: finding.passed for finding in clients.check(MINUTES)}
    assert passed == {
        "clients, grpc, 1 connection, p50": True,
        "clients, grpc, 1 connection, p99": True,
        "clients, grpc, 64 connections": False,
        "clients, sockets, 1 connection, p50": True,
        "clients, sockets, 1 connection, p99": True,
        "clients, sockets, 64 connections": False,
    }
    assert loads[:4] == [("ours", 1), ("h2load", 1), ("h2load", 1), ("ours", 1)]
    assert [name for name, connections in loads[:-2] if connections == 1][-6:] == ["go", "c", "ours", "ours", "c", "go"]
    assert loads[-2:] == [("ours", 64), ("c", 64)], "an error is no reading"
