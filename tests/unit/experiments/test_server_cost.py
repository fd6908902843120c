"""The table of ``server_cost``: ratios within blocks, goals met and missed, and what was not measured left out."""

import dataclasses
import random

import pytest

from experiments.results import Row
from experiments.studies.server_cost import goals
from experiments.studies.server_cost.goals import Arm
from tests.unit.experiments.test_results import ALL


def row(arm: Arm, block: int, cost_us: float) -> Row:
    """A run of an arm that cost so much."""
    return dataclasses.replace(
        ALL,
        study="server_cost",
        part=arm.part,
        transport=arm.transport,
        executor=arm.executor,
        block=block,
        run_id=f"{block:03}-{arm}",
        loop="closed",
        rate_hz=None,
        errors=0,
        error_kinds="",
        server_cpu_us_per_request=cost_us,
        throughput_all_hz=1e6 / cost_us,
    )


def idle(transport: str, connections: int, cpu_s: float, memory_mib: float) -> Row:
    """A server watched for a minute."""
    return dataclasses.replace(
        ALL,
        study="server_cost",
        part="idle",
        transport=transport,
        connections=connections,
        duration_s=60.0,
        server_cpu_s=cpu_s,
        server_memory_mib=memory_mib,
    )


def planted(costs: dict[Arm, float], blocks: int = 9) -> list[Row]:
    """Runs of these costs, with a drift between the blocks that all arms share, and 1 % of noise."""
    rng = random.Random(1)
    drift = {block: rng.uniform(0.7, 1.5) for block in range(1, blocks + 1)}
    return [row(arm, block, cost * drift[block] * rng.gauss(1, 0.01)) for arm, cost in costs.items() for block in drift]


def planted_with(arm: Arm, fields: dict[str, object]) -> list[Row]:
    """Good runs, with a fault in the first of that arm."""
    rows = planted(GOOD)
    place = next(place for place, each in enumerate(rows) if Arm(each.part, each.transport, each.executor) == arm)
    rows[place] = dataclasses.replace(rows[place], **fields)  # type: ignore[arg-type]  # each is its column's
    return rows


GOOD = {goals.SOCKETS: 12.0, goals.GRPC: 132.0, goals.SOCKETS_ECHO: 10.0, goals.GRPC_ECHO: 128.0}


def test_a_ratio_is_taken_within_blocks_so_that_their_drift_is_gone() -> None:
    """Blocks differ by a factor of two and the interval of the ratio is within 2 %."""
    ratio = goals.cost_ratio(planted(GOOD), goals.GRPC, goals.SOCKETS)
    assert ratio is not None
    assert ratio.value == pytest.approx(11.0, rel=0.01)
    assert ratio.low / ratio.value > 0.98
    assert ratio.n == 9


def test_goals_that_are_met_and_missed_are_told_apart() -> None:
    """Eight times, 1.10 and 1.5 times, a thousandth of a core and 20 MiB."""
    good = [*planted(GOOD), idle("grpc", 0, 0.01, 40), idle("sockets", 0, 0.0, 16), idle("sockets", 1000, 0.0, 25)]
    assert "MISSED" not in goals.conclude(good)
    assert goals.conclude(good).count(": met") == 7
    bad = {goals.SOCKETS: 20.0, goals.GRPC: 132.0, goals.SOCKETS_ECHO: 10.0, goals.GRPC_ECHO: 110.0}
    worse = [*planted(bad), idle("grpc", 0, 0.08, 40), idle("sockets", 0, 0.0, 16), idle("sockets", 1000, 0.0, 37)]
    assert goals.conclude(worse).count("MISSED") == 5


FAULTS: tuple[tuple[int, dict[str, object]], ...] = (
    (4, {"errors": 1000, "error_kinds": "closed:1000"}),
    (6, {"lost": 7}),
    (14, {"steal_share": 0.2}),
)
"""A fault of a run, and the gate that is there for it."""


@pytest.mark.parametrize(("gate", "planted"), FAULTS)
def test_a_goal_is_not_concluded_where_a_gate_refuses_a_run_of_either_arm(
    gate: int, planted: dict[str, object]
) -> None:
    """One of nine runs of the socket server: its goals are open, and gRPC's over its echo is met."""
    rows = planted_with(goals.SOCKETS, planted)
    text = goals.conclude(rows)
    by_name = {line[2:37].strip(): line for line in text.splitlines()}
    for name in ("gRPC ÷ sockets, Lookup", "Lookup ÷ echo, sockets", str(goals.SOCKETS)):
        assert f"not concluded (gate {gate}: " in by_name[name]
        assert "met" not in by_name[name]
        assert "MISSED" not in by_name[name]
    assert "met" in by_name["Lookup ÷ echo, grpc"]


def test_processor_time_may_be_concluded_from_times_with_a_trend() -> None:
    """The gate on steadiness forbids the times alone."""
    growing = " ".join(str(0.1 + 0.2 * tenth) for tenth in range(10))
    rows = [dataclasses.replace(each, tenths=growing) for each in planted(GOOD)]
    assert "not concluded" not in goals.conclude(rows)


def test_an_idle_server_is_not_judged_while_others_took_its_core() -> None:
    """Its processor time is then not known so well; its memory is."""
    stolen = [dataclasses.replace(idle("sockets", n, 0.0, 16), steal_share=0.2) for n in (0, 1000)]
    text = goals.conclude(stolen)
    assert text.count("goal under 0.1%: not concluded (gate 14: ") == 2
    assert "goal under 20 MiB: met" in text


def test_it_is_said_whether_the_whole_interval_keeps_the_goal() -> None:
    """A ratio of 1.46 with blocks from 1.3 to 1.6 is met at its value alone; a single run has no interval."""
    ratios = (1.3, 1.6, 1.4, 1.5, 1.45, 1.6, 1.3, 1.55, 1.5)
    wide = [row(goals.SOCKETS_ECHO, block, 10.0) for block in range(1, 10)]
    wide += [row(goals.SOCKETS, block, 10 * ratio) for block, ratio in enumerate(ratios, start=1)]
    assert "goal at most 1.5: met, but the interval reaches past the goal" in goals.conclude(wide)
    assert "goal at most 1.5: met, by the whole interval" in goals.conclude(planted(GOOD))
    assert "goal at most 1.5: met, by one run" in goals.conclude(planted(GOOD, blocks=1))


def test_memory_is_the_growth_per_thousand_connections() -> None:
    """Of the socket server; half as many connections count double."""
    assert goals.idle_growth_mib([idle("sockets", 0, 0, 16), idle("sockets", 500, 0, 20)]) == 8.0
    assert goals.idle_growth_mib([idle("sockets", 0, 0, 16), idle("grpc", 1000, 0, 90)]) is None


def test_a_throughput_that_the_load_limited_says_so() -> None:
    """It is the load's, not the server's."""
    rows = [dataclasses.replace(each, load_limited=True, client_cpu_share=0.97) for each in planted(GOOD)]
    assert "load at 97% of its core at most, the limit in 9 of 9 runs" in goals.conclude(rows)


def test_a_run_without_a_reply_is_left_out_of_the_throughput_and_counted() -> None:
    """A geometric mean has no place for 0."""
    rows = planted({goals.SOCKETS: 12.0})
    rows[0] = dataclasses.replace(rows[0], throughput_all_hz=0.0, server_cpu_us_per_request=None)
    assert "no reply in 1 of 9 runs, left out" in goals.conclude(rows)


def test_no_interval_of_a_throughput_crosses_zero() -> None:
    """However much it differs from run to run."""
    rows = [row(goals.SOCKETS, block, cost) for block, cost in enumerate((10.0, 20.0, 4000.0), start=1)]
    assert "(-" not in goals.conclude(rows)


def test_what_was_not_measured_is_left_out() -> None:
    """An unfinished sweep has a table, too, without ratios or goals."""
    text = goals.conclude(planted({goals.SOCKETS: 12.0}, blocks=1))
    assert "lookup on sockets" in text
    assert "goal" not in text
    assert "-inf" not in text
