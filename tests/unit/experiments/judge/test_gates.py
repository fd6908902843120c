"""Gates: each gate refuses a bad block, and accepts a good block that is nearly as bad."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.factors import FACTORS
from experiments.design.faults import Watched
from experiments.design.levels import Level
from experiments.design.limits import LIMITS
from experiments.design.setting import read, setting
from experiments.design.sweep import Sweep, Windows
from experiments.judge import gates, points
from experiments.judge.stats import Estimate
from experiments.results.observed import ALL, ArmSeen, Block, Window
from tests.unit.experiments.judge.synthetic_blocks import (
    GRPC,
    SOCKETS,
    answered,
    block,
    ratio,
    slowed,
    sweep,
    with_arm,
    with_slices,
)

FOUR = Arm(read("sockets workers=4"))
FIVE = Arm(read("sockets clients=5"))
UPDATED = Arm(read("sockets updater=yes"))

POOLS = ratio(FOUR, SOCKETS, "4 ÷ 8 workers")
OF = sweep(POOLS, ratio(), ratio(FIVE, SOCKETS, "5 ÷ 1"), ratio(UPDATED, SOCKETS, "updater"))


def plain() -> Block:
    """Block without a fault."""
    one = block(OF, dict.fromkeys(OF.arms, 100.0))
    return with_arm(one, place(UPDATED), updates=50, update_errors=0)


def place(arm: Arm) -> int:
    """Place of the arm among all arms."""
    return OF.arms.index(arm)


def refused(one: Block, by: Comparison = POOLS) -> list[int]:
    """Numbers of the gates that refuse."""
    return [each.gate for each in gates.block_refusals(OF, one, by)]


def wire(times: float, arm: Arm = FOUR) -> Block:
    """Block with the bytes on the wire of one arm's slices multiplied."""
    one = plain()
    slices = zip(one.slices.wire_bytes, one.slices.arm, strict=True)
    return with_slices(one, wire_bytes=[round(v * times) if a == place(arm) else v for v, a in slices])


def seen(one: Block, arm: Arm, **fields: Any) -> Block:
    """Block with changed fields of one arm."""
    return with_arm(one, place(arm), **fields)


def with_errors(count: int, kind: str = "unavailable") -> Block:
    """Block with this number of errors beside 10,000 replies."""
    counted = answered(10_000, errors={kind: count} if count else {})
    return seen(plain(), FOUR, answered={"lookup": counted, ALL: counted}, span_ns=counted.times.sum_ns)


def with_think(think: float) -> Block:
    """Block whose span is longer by this factor than response and think times."""
    of_all = plain().arms[place(FOUR)].answered[ALL].times.sum_ns
    return seen(plain(), FOUR, think_ns=round(0.1 * of_all), span_ns=round(1.1 * of_all * think))


def with_window(**fields: Any) -> Block:
    """Block with two windows of an open loop, the second one changed."""
    usual = Window(1000.0, 1000.0, 1000.0, starved_clients=0, never_sent=0, late_us_p99=5.0, duration_s=1e4)
    return seen(plain(), FOUR, windows=(usual, replace(usual, **fields)))


def served(arm: Arm, **fields: Any) -> Block:
    """Block with changed fields of the server of one arm."""
    one, of = plain(), OF.servers.index(arm.server)
    servers = [each and replace(each, **fields) if n == of else each for n, each in enumerate(one.servers)]
    return replace(one, servers=servers)


@pytest.mark.parametrize(
    ("gate", "bad", "good", "by"),
    [
        (2, lambda: wire(1.06), lambda: wire(1.04), POOLS),
        (2, lambda: wire(0.94), lambda: wire(0.0), POOLS),
        (3, lambda: served(FIVE, connections=4), lambda: served(FIVE, connections=5), OF.comparisons[2]),
        (3, lambda: seen(plain(), UPDATED, updates=0), lambda: seen(plain(), UPDATED, updates=1), OF.comparisons[3]),
        (3, lambda: seen(plain(), UPDATED, updates=9, update_errors=9), plain, OF.comparisons[3]),
        (3, lambda: served(FOUR, threads=4), lambda: served(FOUR, threads=5), POOLS),
        (3, lambda: served(FOUR, processes=2), lambda: served(FOUR, processes=1), POOLS),
        (4, lambda: with_errors(11), lambda: with_errors(10), POOLS),
        (4, lambda: with_errors(11, "invalid_reply"), lambda: with_errors(0), POOLS),
        (6, lambda: with_think(1.03), lambda: with_think(1.01), POOLS),
        (6, lambda: with_think(0.97), lambda: with_think(0.99), POOLS),
        (6, lambda: seen(plain(), FOUR, unrecorded=1), plain, POOLS),
        (7, lambda: with_window(sent_hz=955.0), lambda: with_window(sent_hz=965.0), POOLS),
        (7, lambda: with_window(sent_hz=1045.0), lambda: with_window(rate_hz=None, sent_hz=5.0), POOLS),
        (8, lambda: with_window(arrival_faults=("gaps",)), lambda: with_window(late_us_p99=None), POOLS),
    ],
)
def test_a_gate_leaves_a_bad_block_out_and_no_good_one(
    gate: int, bad: Callable[[], Block], good: Callable[[], Block], by: Comparison
) -> None:
    """A gate leaves a bad block out of the comparison that it concerns, and out of no comparison of other arms."""
    assert refused(bad(), by) == [gate]
    assert refused(good(), by) == []
    assert refused(plain(), by) == []
    if gate not in (2, 3):
        assert refused(bad(), OF.comparisons[1]) == []


def test_arms_may_differ_on_the_wire_where_a_factor_says_so() -> None:
    """Transports may differ on the wire; pools of workers may not."""
    assert refused(wire(0.5, SOCKETS), ratio()) == []
    assert refused(wire(0.5, SOCKETS)) == [2]


def test_windows_may_take_more_on_the_wire_for_what_connecting_and_late_replies_take() -> None:
    """Windows may take the bytes of connecting and of late replies, and no more. Slices, whose connections exist, may
    not."""
    windows = replace(OF, turns=Windows())
    for of, times, gate in ((OF, 1.2, [2]), (windows, 1.2, []), (windows, 9.0, [2])):
        assert [each.gate for each in gates.wire_differs(of, wire(times), POOLS)] == gate


OTHERS: tuple[dict[str, Level], ...] = ({"service": "./server --port 0"}, {"service": "entity", "language": "go"})


@pytest.mark.parametrize("factor", ["workers", "processes"])
@pytest.mark.parametrize("others", OTHERS, ids=str)
def test_the_threads_of_somebody_elses_server_are_its_own_affair(factor: str, others: dict[str, Level]) -> None:
    """A command and a peer may have any threads and processes, though the factors stand at their defaults."""
    seen = Watched(threads=1, processes=3, connections=1, updates=0)
    ours: dict[str, Level] = {"executor": "static-pool", "workers": 8, "processes": 1, "language": "python"}
    assert FACTORS[factor].fault(ours | {"service": "stock"}, seen) is not None
    assert FACTORS[factor].fault(ours | others, seen) is None


@pytest.mark.parametrize(
    ("words", "at_work", "refused"),
    [
        ("sockets connections=16", 1, True),
        ("grpc clients=2", 1, True),
        ("sockets connections=16", 2, False),
        ("sockets connections=16", None, False),
        ("sockets", 1, False),
        ("sockets connections=16 workers=1", 1, False),
        ("sockets connections=16 rate_hz=100", 1, False),
        ("sockets connections=16 executor=leader-followers", 1, False),
    ],
)
def test_a_pool_of_which_one_thread_ran_all_is_no_pool(words: str, at_work: int | None, refused: bool) -> None:
    """A static pool must use several threads, if requests waited. Leader/followers need not."""
    watched = Watched(threads=20, processes=1, connections=16, updates=0, at_work=at_work)
    fault = FACTORS["executor"].fault(dict(read(words).levels), watched)
    assert (fault is not None) is refused
    assert fault is None or "one thread of its" in fault


@pytest.mark.parametrize(("processes", "least"), [(1, 5), (2, 11), (3, 16)])
def test_each_of_several_processes_has_its_workers(processes: int, least: int) -> None:
    """Four workers and a main thread in each; with several a parent besides, of one thread at least.

    Servers have other threads too, which may be as many as those of a process that is missing: see the next test.
    """
    levels = dict(setting(transport="sockets", workers=4, processes=processes).levels)
    enough, few = (Watched(number, processes=None, connections=1, updates=0) for number in (least, least - 1))
    assert FACTORS["workers"].fault(levels, enough) is None
    assert f"threads of its server: {least - 1}" in str(FACTORS["workers"].fault(levels, few))


@pytest.mark.parametrize(("processes", "whole"), [(1, 1), (2, 3), (3, 4)])
def test_a_server_has_the_processes_that_were_declared(processes: int, whole: int) -> None:
    """One process, or this number and their parent. One less or one more is another server, with any number of
    threads."""
    levels = dict(setting(transport="sockets", workers=4, processes=processes).levels)
    for number in (whole - 1, whole, whole + 1):
        fault = FACTORS["processes"].fault(levels, Watched(threads=23, processes=number, connections=1, updates=0))
        assert (fault is None) == (number == whole)
        declared = f"{processes} and a parent" if processes > 1 else "1"
        assert fault is None or f"processes of its server: {number}, declared: {declared}" in fault


@pytest.mark.parametrize(
    ("words", "factor", "level", "others"),
    [
        ("grpc service=greeter language=cpp client=peer", "call_style", "async", {"client": "library"}),
        ("grpc service=greeter language=cpp client=peer", "in_flight", 10, {"language": "go", "service": "sort"}),
        ("grpc client=grpc-go", "headers", "deadline", {"client": "h2load"}),
        ("grpc client=grpc-go", "in_flight", 10, {"client": "h2load"}),
        ("grpc client=grpc-go", "deadline_ms", 90.0, {"client": "h2load"}),
    ],
)
def test_how_calls_are_made_is_the_affair_of_the_clients_that_are_told(
    words: str, factor: str, level: Level, others: dict[str, Level]
) -> None:
    """A client that does not have a factor of calls is refused with that factor."""
    seen = Watched(threads=None, processes=None, connections=None, updates=0)
    told = dict(read(words).levels)
    assert FACTORS[factor].fault(told | {factor: level}, seen) is None
    assert FACTORS[factor].fault(told | {factor: level} | others, seen) is not None
    assert FACTORS[factor].fault(told | others, seen) is None


def test_connections_of_windows_are_not_counted_after_them() -> None:
    """Connections of windows are not counted after them, since they are closed."""
    window = Window(None, 900.0, 900.0, 0, 0, None)
    assert refused(seen(served(FIVE, connections=1), FIVE, windows=(window,)), OF.comparisons[2]) == []


def test_a_refusal_says_what_was_seen_and_what_is_allowed() -> None:
    """A refusal has the measured and the allowed value in one line. Every gate has a name."""
    (said,) = gates.block_refusals(OF, with_errors(20), POOLS)
    assert said.said == "sockets workers=4: 20 unavailable of 10,020 requests, allowed: 0.1%"
    assert set(gates.NAMES) == {2, 3, 4, 5, 6, 7, 8, 20}


def halves(first: float, second: float, noise: float = 0.01, number: int = 10) -> list[Block]:
    """Blocks with these ratios in the first and in the second half of the rounds."""
    made = []
    for each in range(1, number + 1):
        one = block(OF, dict.fromkeys(OF.arms, 100.0), each, noise)
        by = [first if number < 7 else second for number in one.slices.round]
        made.append(slowed(one, [b if a == place(FOUR) else 1 for b, a in zip(by, one.slices.arm, strict=True)]))
    return made


@pytest.mark.parametrize(
    ("first", "second", "contradict"),
    [
        (0.9, 1.1, True),
        (1.1, 0.9, True),
        (1.0, 1.2, True),
        (1.2, 1.0, True),
        (1.0, 1.0, False),
        (1.2, 1.4, False),
        (0.997, 1.003, False),
    ],
)
def test_halves_of_the_blocks_must_not_contradict_each_other(first: float, second: float, contradict: bool) -> None:
    """Gate 5: two halves contradict each other on two sides of 1, or if one is equal and the other clearly not."""
    found = [each.gate for each in gates.halves_contradict(OF, halves(first, second, noise=0.04), POOLS)]
    assert found == ([5] if contradict else [])


def test_one_block_has_no_halves_to_contradict() -> None:
    """A single block has no interval of a half."""
    assert not list(gates.halves_contradict(OF, halves(0.5, 2.0, number=1), POOLS))


def test_a_load_that_fills_its_core_is_said_to_be() -> None:
    """Gate 7's note: a load over 80 % of the sending time is limited in a closed loop, and not in an open loop."""
    one = plain()
    active = one.slices.active_ns
    for share, limited in ((0.79, False), (0.81, True)):
        busy = with_slices(one, client_cpu_ns=[round(share * each) for each in active])
        assert gates.load_share(OF, [busy, busy], FOUR) == pytest.approx(share, rel=1e-3)
        assert gates.is_load_limited(OF, [busy], FOUR) == limited
    unsaid = with_slices(one, client_cpu_ns=[0 for _ in active])
    assert gates.load_share(OF, [unsaid], FOUR) is None
    assert not gates.is_load_limited(OF, [unsaid], FOUR)
    due = Arm(read("sockets rate_hz=100"))
    of = Sweep("t", "t", (Group((due, SOCKETS)),), (), 3, (1,), turns=Windows())
    sliced = Sweep("t", "t", (Group((Arm(read("sockets clients=2")), SOCKETS)),), (), 3, (1,))
    busy = block(sliced, dict.fromkeys(sliced.arms, 100.0))
    assert not gates.is_load_limited(of, [with_slices(busy, client_cpu_ns=busy.slices.active_ns)], due)


@pytest.mark.parametrize(
    ("effective", "percent", "carried"),
    [(1000, 99.0, True), (999, 99.0, False), (9999, 99.9, False), (10_000, 99.9, True), (20, 50, True)],
)
def test_a_percentile_is_carried_by_ten_beyond_it(effective: float, percent: float, carried: bool) -> None:
    """Gate 13: a percentile needs ten independent requests beyond it, of all blocks together, for any count."""
    one = plain()
    parts = [replace(answered(50_000), effective=effective / 2)] * 2
    blocks = [seen(one, FOUR, answered={ALL: part}) for part in parts]
    point = points.points(OF, blocks)[FOUR, ALL]
    assert point.effective == effective
    assert (point.percentile_us(percent) is not None) == carried
    if carried:
        assert point.percentile_us(percent) == pytest.approx(100, rel=1e-3)


@pytest.mark.parametrize(
    ("ratio_of", "against", "stands"),
    [(1.06, 1, True), (1.04, 1, False), (0.94, 1, True), (0.96, 1, False), (5.2, 5, False), (5.5, 5, True)],
)
def test_no_effect_smaller_than_equal_arms_show_is_concluded(ratio_of: float, against: float, stands: bool) -> None:
    """Gate 20: equal arms differ by up to 5 %, so a smaller effect is refused."""
    end = gates.far_end(Estimate(1.03, 1.01, 1.05, 10))
    assert end == pytest.approx(gates.far_end(Estimate(0.97, 1 / 1.05, 0.99, 10)))
    found = gates.too_small(Estimate(ratio_of, 0.9 * ratio_of, 1.1 * ratio_of, 10), against, end)
    assert (found is None) == stands
    if found is not None:
        assert found.said == "equal servers of this transport differ by up to 5.0%"


def test_gates_take_their_bounds_from_the_sweeps_limits() -> None:
    """A gate uses the limits of the sweep."""
    arm, one = ArmSeen({ALL: answered(1000, errors={"internal": 5})}), Arm(read("grpc"))
    assert [each.gate for each in gates.errors(LIMITS, one, arm)] == [4]
    assert not list(gates.errors(replace(LIMITS, errors_share=0.01), one, arm))
    assert one == GRPC
