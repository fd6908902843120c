"""Verdicts: every kind, at declared looks alone, corrected over the family; contradictions of two runs."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from experiments.design.arms import Arm, Comparison, Kind, Measure, twins
from experiments.design.limits import LIMITS
from experiments.design.setting import read
from experiments.design.sweep import Sweep
from experiments.judge.stats import Estimate, holm, sign_flip_p
from experiments.judge.verdicts import Judged, Judgement, Ruling, Verdict, contradict, judge
from experiments.results.observed import Block
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

FIVE = Arm(read("sockets clients=5"))

SPREAD = (-1.0, 0.4, 1.1, -0.3, 0.7, -1.2, 0.2, 0.9, -0.8, 0.0, 1.2, -0.6, 0.3, -0.4)
"""Errors of the blocks' log-ratios, in deviations. The first ten have mean 0, and so have all."""


def growth(kind: Kind = "growth") -> Comparison:
    """Five clients ÷ one."""
    return Comparison("growth", "5 ÷ 1", FIVE, SOCKETS, ("clients",), kind, family="headline")


def measured(of: Sweep, true: float, deviation: float, number: int = 10) -> list[Block]:
    """Blocks in which every comparison has this true ratio, with this deviation over blocks."""
    below = {each.below for each in of.comparisons}
    return [
        block(
            of,
            {arm: 100.0 if arm in below else 100 * true * math.exp(deviation * SPREAD[at]) for arm in of.arms},
            at + 1,
        )
        for at in range(number)
    ]


def judged(of: Sweep, blocks: Sequence[Block]) -> Judged:
    """Judgement of the first comparison."""
    return judge(of, blocks).judged[of.comparisons[0].name]


@pytest.mark.parametrize(
    ("true", "deviation", "verdict", "small"),
    [
        (0.5, 0.02, Verdict.FASTER, False),
        (1.5, 0.02, Verdict.SLOWER, False),
        (0.975, 0.005, Verdict.FASTER, True),
        (1.025, 0.005, Verdict.SLOWER, True),
        (1.0, 0.02, Verdict.EQUIVALENT, False),
        (1.01, 0.02, Verdict.EQUIVALENT, False),
        (1.0, 0.10, Verdict.INCONCLUSIVE, False),
        (1.06, 0.10, Verdict.INCONCLUSIVE, False),
    ],
)
def test_a_ratio_is_judged(true: float, deviation: float, verdict: Verdict, small: bool) -> None:
    """A ratio is judged by its interval and its p. An undecided one has the blocks that would decide."""
    one = judged(sweep(), measured(sweep(), true, deviation))
    assert (one.verdict, one.by_less_than_5) == (verdict, small)
    assert one.typical.value == pytest.approx(true, rel=2e-3)
    assert one.decided == (verdict is not Verdict.INCONCLUSIVE)
    needed = one.rulings[0].blocks_needed
    assert (needed is not None and needed > 10) == (verdict is Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("true", "verdicts"),
    [
        (0.8, (Verdict.FALLS, Verdict.SUBLINEAR)),
        (1.0, (Verdict.FLAT, Verdict.SUBLINEAR)),
        (3.0, (Verdict.GROWS, Verdict.SUBLINEAR)),
        (5.0, (Verdict.GROWS, Verdict.PROPORTIONAL)),
        (7.0, (Verdict.GROWS, Verdict.SUPERLINEAR)),
    ],
)
def test_growth_is_judged_twice(true: float, verdicts: tuple[Verdict, Verdict]) -> None:
    """Growth is judged against 1 and against the clients; ``per client`` against the clients alone."""
    one = judged(sweep(growth()), measured(sweep(growth()), true, 0.02))
    assert tuple(each.verdict for each in one.rulings) == verdicts
    assert [each.against for each in one.rulings] == [1, 5]
    alone = judged(sweep(growth("per client")), measured(sweep(growth("per client")), true, 0.02))
    assert [each.verdict for each in alone.rulings] == [verdicts[1]]


@pytest.mark.parametrize(("true", "small"), [(4.85, True), (5.15, True), (4.6, False), (5.6, False), (5.0, False)])
def test_growth_is_small_near_the_clients_own(true: float, small: bool) -> None:
    """Growth within 5 % of five times the clients is small, as a ratio within 5 % of 1."""
    for kind in ("growth", "per client"):
        one = judged(sweep(growth(kind)), measured(sweep(growth(kind)), true, 0.005))
        assert one.is_small(one.rulings[-1]) == small
        assert one.decided
    assert one.by_less_than_5 == small  # of the first ruling, which is all that this kind has


@pytest.mark.parametrize("number", [1, 9, 11])
def test_between_looks_there_is_no_verdict(number: int) -> None:
    """Between looks numbers are shown and nothing is decided, for the clearest data too."""
    found = judge(sweep(), measured(sweep(), 0.5, 0.02, number))
    one = found.judged["sockets ÷ gRPC"]
    assert (found.look, one.rulings, one.decided, found.decided) == (None, (), False, False)
    assert one.typical.value == pytest.approx(0.5, rel=0.05)


def test_at_a_look_all_blocks_count() -> None:
    """The verdict at a later look is over all blocks: it may differ from an earlier verdict."""
    early = measured(sweep(), 1.10, 0.02)
    late = [replace(each, number=11 + at) for at, each in enumerate(measured(sweep(), 0.55, 0.02, 4))]
    assert judged(sweep(), early).verdict is Verdict.SLOWER
    found = judge(sweep(), [*early, *late])
    assert found.look == 14
    assert found.judged["sockets ÷ gRPC"].verdict is Verdict.INCONCLUSIVE
    assert found.judged["sockets ÷ gRPC"].typical.n == 14


@pytest.mark.parametrize(("left", "verdict"), [(5, Verdict.INCONCLUSIVE), (6, Verdict.EQUIVALENT)])
def test_few_blocks_decide_nothing(left: int, verdict: Verdict) -> None:
    """Fewer than six blocks that no gate leaves out decide nothing, however near to 1 they lie."""
    of = sweep()
    blocks = [one if one.number <= left else with_arm(one, 0, unrecorded=1) for one in measured(of, 1.0, 0.0001)]
    found = judged(of, blocks)
    assert (found.typical.n, found.verdict, len(found.dropped)) == (left, verdict, 10 - left)
    assert found.rulings[0].blocks_needed == (7 if left == 5 else None)


def test_intervals_and_p_use_the_share_of_the_level() -> None:
    """Each of three looks has a third of the level: a difference at 0.05 may be undecided at 0.0167."""
    three, one = sweep(), sweep(looks=(10,))
    assert [judge(three, []).confidence, judge(one, []).confidence] == pytest.approx([1 - 0.05 / 3, 0.95])
    blocks = measured(one, 1.09, 0.11)
    assert judged(one, blocks).verdict is Verdict.SLOWER
    assert judged(three, blocks).verdict is Verdict.INCONCLUSIVE
    assert judged(three, blocks).typical.low < judged(one, blocks).typical.low


def test_a_sweep_of_few_blocks_has_no_verdicts_even_at_a_later_look() -> None:
    """A sweep of few blocks has no verdicts at a later look: its families were not bounded by the first look."""
    found = judge(sweep(looks=(2, 10)), measured(sweep(), 0.5, 0.02))
    assert found.look is None
    assert not found.judged["sockets ÷ gRPC"].rulings


def test_p_is_corrected_over_the_declared_family() -> None:
    """The correction covers the family, with comparisons without a value, and no other family."""
    five = [ratio(name=f"headline {number}") for number in range(5)]
    lost = ratio(name="lost", request="trade")
    other = ratio(name="other", family="further")
    of = sweep(*five, lost, other)
    blocks = measured(of, 1.05, 0.06)
    found = judge(of, blocks)
    p = sign_flip_p(list(found.judged["other"].log_ratios.values()))
    assert found.judged["other"].rulings[0].p_holm == pytest.approx(p)
    adjusted = holm([p] * 5 + [1.0])[0]
    assert adjusted == pytest.approx(6 * p)
    assert found.judged["headline 3"].rulings[0].p_holm == pytest.approx(adjusted)
    assert "lost" not in found.judged
    assert not found.decided


def test_a_sweep_is_decided_when_every_headline_is() -> None:
    """A sweep is decided when every headline comparison is. Others may be open."""
    noisy = ratio(FIVE, SOCKETS, "five", family="further")
    of = sweep(ratio(), noisy)
    means = {GRPC: 400.0, SOCKETS: 100.0}
    found = judge(of, [block(of, means | {FIVE: 100 * math.exp(SPREAD[at] / 3)}, at + 1) for at in range(10)])
    assert found.judged["five"].verdict is Verdict.INCONCLUSIVE
    assert found.decided
    assert not judge(sweep(noisy, ratio(family="headline", name="x")), []).decided


def test_a_block_that_a_gate_refuses_is_dropped_from_its_comparison_alone() -> None:
    """A block that a gate refuses is left out of its comparison alone, and named. Other comparisons have all blocks."""
    of = sweep(ratio(), growth())
    blocks = measured(of, 0.5, 0.02)
    blocks[3] = with_arm(blocks[3], of.arms.index(GRPC), answered={"all": answered(100, errors={"internal": 9})})
    found = judge(of, blocks)
    one = found.judged["sockets ÷ gRPC"]
    assert {number: refusals[0].gate for number, refusals in one.dropped.items()} == {4: 4}
    assert (one.typical.n, found.judged["growth"].typical.n) == (9, 10)
    assert found.judged["growth"].dropped == {}


def test_a_refused_comparison_is_inconclusive() -> None:
    """Gate 5: arms that are faster in different halves of the blocks are INCONCLUSIVE."""
    of = sweep()
    blocks = measured(of, 1.0, 0.005)
    turned = []
    for one in blocks:
        places = zip(one.slices.round, one.slices.arm, strict=True)
        turned.append(slowed(one, [2 if (n < 7) == (of.arms[arm] == SOCKETS) else 1 for n, arm in places]))
    assert judged(of, blocks).verdict is Verdict.EQUIVALENT
    found = judged(of, turned)
    assert [each.gate for each in found.refusals] == [5]
    assert found.verdict is Verdict.INCONCLUSIVE


def computing(one: Block) -> Block:
    """Block whose servers compute all the time."""
    return with_slices(one, server_cpu_ns=one.slices.active_ns)


@pytest.mark.parametrize(("true", "verdict"), [(0.5, Verdict.LESS), (1.5, Verdict.MORE), (1.0, Verdict.EQUIVALENT)])
def test_processor_time_is_less_or_more(true: float, verdict: Verdict) -> None:
    """Processor time is less or more, and neither faster nor slower."""
    of = sweep(ratio(measure="cpu"))
    assert judged(of, [computing(one) for one in measured(of, true, 0.02)]).verdict is verdict


def a_a(times: float, of_transport: float, measure: Measure = "response") -> Judgement:
    """A sweep in which an A/A pair of sockets differs by one factor, and two kinds of ratios by another."""
    same, first, again = twins(read("sockets"), "same")
    pair, other = replace(same, measure=measure), ratio(FIVE, first, "on sockets", measure=measure)
    elsewhere = ratio(Arm(read("grpc clients=5")), GRPC, "on gRPC")
    of = sweep(pair, other, elsewhere, limits=replace(LIMITS, equivalent_low=0.9, equivalent_high=1.1))
    blocks = []
    for at in range(10):
        noise = math.exp(0.004 * SPREAD[at])
        means = dict.fromkeys(of.arms, 100.0) | {again: 100 * times * noise, other.above: 100 * of_transport * noise}
        blocks.append(computing(block(of, means | {elsewhere.above: 100 * of_transport * noise}, at + 1)))
    return judge(of, blocks)


def test_where_equal_arms_differ_no_smaller_effect_is_concluded() -> None:
    """Gate 20: an effect smaller than the difference of equal arms of its transport is refused. The limits are the
    sweep's."""
    small = a_a(1.05, 1.03)
    assert small.judged["same sockets"].verdict is Verdict.SLOWER
    assert small.judged["on sockets"].verdict is Verdict.INCONCLUSIVE
    assert [each.gate for each in small.judged["on sockets"].refusals] == [20]
    assert small.judged["on sockets"].equivalent == (0.9, 1.1)
    assert small.judged["on gRPC"].verdict is Verdict.SLOWER
    assert [each.gate for each in a_a(1.05, 1.03, "cpu").judged["on sockets"].refusals] == [20]
    assert a_a(1.05, 1.3).judged["on sockets"].verdict is Verdict.SLOWER
    assert a_a(1.0, 1.03).judged["on sockets"].verdict is Verdict.SLOWER
    assert a_a(1.0, 1.03).judged["same sockets"].verdict is Verdict.EQUIVALENT


def test_growth_of_two_small_effects_is_refused_once() -> None:
    """Gate 20 refuses both effects of a growth with one refusal, which is one line of the report."""
    same, first, again = twins(read("sockets"), "same")
    of = sweep(same, growth())
    noise = [math.exp(0.004 * each) for each in SPREAD[:10]]
    means = [{first: 100.0, again: 600 * each, FIVE: 200 * each} for each in noise]
    one = judge(of, [block(of, each, number) for number, each in enumerate(means, 1)]).judged["growth"]
    assert [each.verdict for each in one.rulings] == [Verdict.INCONCLUSIVE] * 2
    assert [each.gate for each in one.refusals] == [20]


def limited(share: float, comparison: Comparison) -> Judgement:
    """Ten blocks whose load takes this share of its core in the arm above."""
    of, found = sweep(comparison), []
    for one in measured(of, 2.0, 0.02):
        above = [of.arms[arm] == comparison.above for arm in one.slices.arm]
        busy = [round(share * ns) if own else 1 for ns, own in zip(one.slices.active_ns, above, strict=True)]
        found.append(with_slices(one, client_cpu_ns=busy))
    return judge(of, found)


@pytest.mark.parametrize("kind", ["growth", "per client"])
def test_where_the_load_is_the_limit_there_is_no_verdict_on_the_server(kind: Kind) -> None:
    """Under a limiting load the rulings are on client and server together, and more blocks would change nothing."""
    free, full = (limited(share, growth(kind)) for share in (0.79, 0.81))
    one, other = free.judged["growth"], full.judged["growth"]
    assert one.rulings
    assert (one.load_share, one.together, one.as_clients_see_it) == (None, (), one)
    assert (other.rulings, other.decided, other.is_settled) == ((), False, True)
    assert other.load_share == pytest.approx(0.81, rel=1e-3)
    assert other.together == one.rulings == other.as_clients_see_it.rulings
    assert full.decided
    assert not contradict(other, replace(one, rulings=(Ruling(5, 0.001, Verdict.SUPERLINEAR),)))


def test_equal_servers_and_processor_time_are_not_the_loads_affair() -> None:
    """An A/A pair asks nothing about a server; its processor time is the server's own."""
    pair, cpu = twins(read("sockets"), "headline")[0], ratio(measure="cpu", name="cpu")
    for each in (pair, cpu):
        assert limited(0.95, each).judged[each.name].load_share is None
    assert limited(0.95, ratio(measure="wall")).judged["sockets ÷ gRPC"].load_share is not None


def run(verdict: Verdict, low: float, high: float, against: float = 1.0) -> Judged:
    """Judgement of a comparison by a run."""
    estimate = Estimate(math.sqrt(low * high), low, high, 10)
    return Judged(ratio(), {}, estimate, estimate, (Ruling(against, 0.001, verdict),))


@pytest.mark.parametrize(
    ("one", "other", "so"),
    [
        (run(Verdict.FASTER, 0.97, 0.99), run(Verdict.SLOWER, 1.01, 1.03), True),
        (run(Verdict.LESS, 0.97, 0.99), run(Verdict.MORE, 1.01, 1.03), True),
        (run(Verdict.FASTER, 0.5, 0.6), run(Verdict.FASTER, 0.2, 0.3), False),
        (run(Verdict.EQUIVALENT, 0.98, 1.02), run(Verdict.SLOWER, 1.2, 1.3), True),
        (run(Verdict.EQUIVALENT, 0.98, 1.02), run(Verdict.INCONCLUSIVE, 1.06, 1.3), True),
        (run(Verdict.EQUIVALENT, 0.98, 1.02), run(Verdict.SLOWER, 1.01, 1.2), False),
        (run(Verdict.FASTER, 0.96, 0.99), run(Verdict.FASTER, 0.5, 0.9), True),
        (run(Verdict.FASTER, 0.94, 0.99), run(Verdict.FASTER, 0.5, 0.9), False),
        (run(Verdict.INCONCLUSIVE, 0.5, 2.0), run(Verdict.SLOWER, 1.2, 1.3), False),
        (run(Verdict.GROWS, 1.2, 1.3), run(Verdict.FALLS, 0.7, 0.8), True),
        (run(Verdict.SUBLINEAR, 2, 3, 5), run(Verdict.SUPERLINEAR, 6, 7, 5), True),
        (run(Verdict.PROPORTIONAL, 4.9, 5.1, 5), run(Verdict.SUBLINEAR, 2, 3, 5), True),
        (run(Verdict.SUBLINEAR, 4.8, 4.9, 5), run(Verdict.SUBLINEAR, 2, 3, 5), True),
        (run(Verdict.SUBLINEAR, 4.7, 4.9, 5), run(Verdict.SUBLINEAR, 2, 3, 5), False),
    ],
)
def test_two_runs_contradict_each_other(one: Judged, other: Judged, so: bool) -> None:
    """Two runs contradict each other, in either order."""
    assert contradict(one, other) == so
    assert contradict(other, one) == so


def test_statements_on_client_and_server_together_contradict_each_other_alone() -> None:
    """Statements on client and server together contradict only each other, and not another run's verdict on the
    server."""
    faster, slower = run(Verdict.FASTER, 0.5, 0.6), run(Verdict.SLOWER, 1.2, 1.3)
    together = [replace(each, rulings=(), together=each.rulings) for each in (faster, slower)]
    assert contradict(*together)
    assert not contradict(together[0], slower)


def test_where_typical_and_whole_do_not_meet_both_are_to_be_said() -> None:
    """The typical and the whole ratio differ if their intervals do not overlap."""
    one = run(Verdict.FASTER, 0.5, 0.6)
    assert not one.typical_is_not_whole
    assert replace(one, whole=Estimate(0.8, 0.7, 0.9, 10)).typical_is_not_whole
    assert replace(one, whole=Estimate(0.3, 0.2, 0.4, 10)).typical_is_not_whole
