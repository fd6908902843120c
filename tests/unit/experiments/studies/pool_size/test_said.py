"""Sentences on prediction and measurement follow planted data."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge.stats import Estimate, median_interval
from experiments.judge.verdicts import Judgement
from experiments.kinds.prediction import Foretold
from experiments.recommend.advice import USUAL
from experiments.show.content import Seen, content
from experiments.studies.pool_size import POOL_SIZE
from experiments.studies.pool_size.answers import answers, lookups
from experiments.studies.pool_size.beside import (
    NEAR,
    Beside,
    Ladder,
    asked,
    begins,
    beside,
    enough_between,
    gains,
    least_enough,
)
from experiments.studies.pool_size.claims import ENTRIES, claims
from experiments.studies.pool_size.design import SOCKETS, Work, model_of, work_of
from tests.unit.experiments.studies.pool_size.planted import Off, never, of_lookups, seen

pytestmark = pytest.mark.slow  # judges sweeps of some 60 arms

LOOKUPS, HOLDING, LETTING_GO, NO_GIL, WAITING, DURABLE, THROUGHPUT, STEPS, TAILS = range(9)


def few_slow(arm: Arm) -> float:
    """Ratio of 0.01 to the prediction, on pools of 16 and of 64 threads."""
    return 0.01 if arm.setting["workers"] in (16, 64) else 1.0


def all_slow(_: Arm) -> float:
    """A fifth less than the prediction."""
    return 0.8


def test_a_machine_that_is_slower_in_the_sweep_misses_nothing() -> None:
    """A prediction is of the machine's speed in the sweep. Predictions of the faster minutes before it miss."""
    found = seen(slower=1.5)
    closed = [each for each in beside(found) if not each.is_open and work_of(each.setting) == Work()]
    assert all(each.ratio is not None and each.ratio.value == pytest.approx(1, rel=0.02) for each in closed)
    seen_hz = [each.throughput_hz and each.throughput_hz.value for each in closed]
    assert seen_hz == pytest.approx([each.written.throughput_hz / 1.5 for each in closed], rel=0.02)
    assert not any(each.was_hit for each in closed)
    assert answers(found)[3].details[0].endswith("of one worker, 0 are this near.")
    for each in beside(found):
        if each.share is not None and each.share_now is not None:
            assert each.share_now > each.share


def one_row_off(arm: Arm) -> float:
    """Ratio of 0.05 to the prediction, on large pools whose requests wait 10 ms. The smallest pool is best."""
    of = arm.setting
    return 0.05 if model_of(of) == SOCKETS and work_of(of) == Work(io_ms=10) and of.whole("workers") > 4 else 1.0


@pytest.mark.parametrize(
    ("off", "number", "expected"),
    [
        (never, 10, dict.fromkeys(range(TAILS), "CONFIRMED")),
        (never, 3, dict.fromkeys(range(TAILS + 1), "INCONCLUSIVE")),
        (all_slow, 10, {THROUGHPUT: "CONTRADICTED"}),
        (few_slow, 10, {HOLDING: "CONFIRMED", **dict.fromkeys((WAITING, NO_GIL, DURABLE, STEPS), "CONTRADICTED")}),
        (one_row_off, 10, {STEPS: "CONTRADICTED"}),
    ],
)
def test_a_verdict_follows_its_data(off: Off, number: int, expected: dict[int, str]) -> None:
    """A server as predicted confirms the claims; three blocks of ten decide nothing. Larger pools that answer less
    contradict the claims on gains: of requests that wait, also for the disk, and of computing without a GIL."""
    found = claims(seen(off, number))
    assert {claim: found[claim].verdict for claim in expected} == expected


def test_one_row_that_misses_contradicts_the_claim_on_every_row() -> None:
    """The claim on the least pool is on every tried row: one row that is two steps off contradicts the claim."""
    found = claims(seen(one_row_off))[STEPS]
    said = "2 of 3 rows in which a miss is possible; 2 surely, by all intervals, and 1 surely missed. A row of 3 steps"
    assert found.said.startswith(said)
    middle = Ladder("", "", "thread", (1, 2, 16), foretold=1, seen=1, earliest=1, latest=1)
    rows = {"of_pools": (middle,), "of_clients": ()}
    assert of_arms(STEPS, seen(), beside(seen()), **rows)[0] == "INCONCLUSIVE"


def test_a_row_is_decided_by_its_intervals() -> None:
    """A row with two steps on each side can miss. Wide intervals decide nothing; narrow ones give a hit or a miss.
    Enough is the first step that reaches 95 % of the highest, which need not be the last."""
    assert [least_enough(each) for each in ([1, 2, 3], [94, 95, 100, 80], [5, 5, 5])] == [2, 1, 0]
    row = Ladder("", "", "thread", (1, 2, 4, 8, 16), foretold=1, seen=3, earliest=0, latest=4)
    assert row.can_miss
    assert not row.is_hit
    assert not row.is_sure_hit
    assert not row.is_sure_miss
    assert replace(row, earliest=1, latest=2).is_sure_hit
    assert replace(row, earliest=3, latest=4).is_sure_miss
    assert replace(row, foretold=4, earliest=1, latest=2).is_sure_miss
    assert not replace(row, steps=(1, 2, 16)).can_miss
    rates_hz = [Estimate(each, each - 5, each + 5, 10) for each in (50.0, 92.0, 100.0, 99.0)]
    assert enough_between(rates_hz) == (1, 3)
    assert enough_between([Estimate(each, each - 1, each + 1, 10) for each in (50.0, 92.0, 100.0, 99.0)]) == (2, 2)


@pytest.mark.parametrize(("out", "verdict"), [(2, "INCONCLUSIVE"), (3, "CONTRADICTED")])
def test_ten_of_twelve_is_counted_in_whole_arms(out: int, verdict: str) -> None:
    """Of twelve arms nine are surely inside. Two outside leave the claim open, three contradict it."""
    found = seen()
    twelve = [each for each in beside(found) if not each.is_open][:12]
    hz = [each.foretold.throughput_hz for each in twelve]
    ends = [(0.99, 1.01)] * 9 + [(0.5, 0.6)] * out + [(0.85, 1.0)] * (3 - out)
    arms = [
        replace(each, throughput_hz=Estimate(told, low * told, high * told, 10))
        for each, told, (low, high) in zip(twelve, hz, ends, strict=True)
    ]
    assert of_arms(THROUGHPUT, found, arms, asked=[each.setting for each in arms])[0] == verdict


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ([1.0] * 10, "CONFIRMED"),
        ([1.4] * 10, "CONTRADICTED"),
        ([0.9, 0.9, 0.9, 1.1, 1.1, 1.1, 1.4, 1.4, 1.4, 1.4], "INCONCLUSIVE"),
        ([1.0] * 5, "INCONCLUSIVE"),
    ],
)
def test_a_tail_is_judged_by_its_interval(factors: list[float], verdict: str) -> None:
    """The claim on tails is decided by the interval over blocks: too wide an interval, or too few blocks for one,
    decide nothing."""
    assert with_tails(factors)[0] == verdict


def is_near(each: Beside) -> bool:
    """True for an open loop near the share of the capacity in the claim on tails."""
    return each.share_now is not None and abs(each.share_now - USUAL) < NEAR


def with_tails(factors: list[float], missing: int = 0) -> tuple[str, str]:
    """Verdict of the claim on tails, and its text, if each block measures the foretold percentile times its factor.
    The first ``missing`` rows have no percentile."""
    found, every, rows = seen(), list(beside(seen())), 0
    for place, each in enumerate(every):
        if is_near(each):
            p99_s = median_interval([each.foretold.response_s * factor for factor in factors], 0.95)
            every[place] = replace(each, p99_s=p99_s if rows >= missing else None)
            rows += 1
    assert rows > missing
    return of_arms(TAILS, found, every)


def of_arms(claim: int, found: Seen, arms: Sequence[Beside], **others: Sequence[object]) -> tuple[str, str]:
    """Verdict and text of a claim if these arms alone have a prediction and a measurement. ``others``: results of other
    functions that the claims call."""
    with pytest.MonkeyPatch.context() as patch:
        for name, result in {"beside": arms, **others}.items():
            patch.setattr(f"experiments.studies.pool_size.claims.{name}", lambda _, result=result: result)
        told = ENTRIES[claim].claim(found)
    return told.verdict, told.said


def test_arms_without_a_value_keep_a_claim_open() -> None:
    """Arms without a prediction or a measurement count as no hits: where they could change the verdict, there is none.
    The text has their number."""
    found, every = seen(), beside(seen())
    closed = [each for each in every if not each.is_open]
    few, many = closed[1:], closed[len(closed) // 3 :]
    of_one, of_third = (of_arms(THROUGHPUT, found, own) for own in (few, many))
    assert (of_one[0], of_third[0]) == ("CONFIRMED", "INCONCLUSIVE")
    assert of_one[1].endswith(" 1 arm has no value.")
    assert of_third[1].endswith(f" {len(closed) // 3} arms have no value.")
    assert of_arms(STEPS, found, few)[0] == "INCONCLUSIVE"
    assert of_arms(STEPS, found, every)[0] == "CONFIRMED"
    lacking = with_tails([1.0] * 10, missing=1)
    assert (lacking[0], with_tails([1.0] * 10)[0]) == ("INCONCLUSIVE", "CONFIRMED")
    assert lacking[1].endswith(" 1 arm has no value.")
    without_closed = [each for each in every if each.is_open]
    assert of_arms(TAILS, found, without_closed) == of_arms(TAILS, found, every)
    far, near = ([each for each in every if is_near(each) is wanted] for wanted in (False, True))
    others = [each for each in asked(found) if each not in {one.setting for one in near}]
    assert of_arms(TAILS, found, far, asked=others)[1].startswith("No open loop was at 65 % to 75 %")


def test_a_fault_of_the_model_is_no_missing_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error other than a basis without a value ends the report: no arm is left out in silence."""

    def broken(_: Judgement, __: Setting) -> Foretold:
        raise ValueError("broken")

    monkeypatch.setattr("experiments.studies.pool_size.beside.foretell", broken)
    with pytest.raises(ValueError, match="broken"):
        beside(replace(seen()))


def test_an_arm_whose_basis_has_no_value_has_no_prediction() -> None:
    """Without processor times no arm has a basis: no arm is compared, and the answers say so."""
    whole = seen()
    blocks = whole.main.blocks
    unread = [replace(each.slices, server_cpu_ns=[0] * len(each.slices.arm)) for each in blocks]
    emptied = tuple(replace(each, slices=slices) for each, slices in zip(blocks, unread, strict=True))
    lacking = replace(whole, main=replace(whole.main, blocks=emptied))
    assert beside(lacking) == ()
    assert answers(lacking)[3].sentence.startswith("Not known")


@pytest.mark.parametrize(
    ("eight", "sixty_four", "verdict", "head"),
    [
        (0.8, 0.8, "CONTRADICTED", "Yes. "),
        (0.97, 0.97, "CONFIRMED", "No. "),
        (1.3, 1.3, "CONFIRMED", "No. "),
        (0.8, 1.0, "CONTRADICTED", "It depends on the server. "),
    ],
)
def test_a_lookup_that_gains_contradicts(eight: float, sixty_four: float, verdict: str, head: str) -> None:
    """A Lookup that gains more than 5 % contradicts. Less counts as no gain."""
    factors = {1: 1.0, 8: eight, 64: sixty_four}
    judged = of_lookups(lambda arm: factors[arm.setting.whole("workers")])
    assert ENTRIES[LOOKUPS].claim(Seen(judged, {"pool_lookups": judged})).verdict == verdict
    assert lookups(Seen(judged))[0].sentence.startswith(head)


def test_a_comparison_without_a_value_keeps_its_claim_open() -> None:
    """Two comparisons of pools on one server have no value: the comparisons on the other server confirm nothing."""
    whole = of_lookups(lambda _: 1.0)
    lacking = replace(whole, judged={name: each for name, each in whole.judged.items() if "sockets" in name})
    first, second = (ENTRIES[LOOKUPS].claim(Seen(each, {"pool_lookups": each})) for each in (whole, lacking))
    assert (first.verdict, second.verdict) == ("CONFIRMED", "INCONCLUSIVE")
    assert second.said.endswith(" 2 comparisons have no value.")


def test_an_interpreter_without_a_gil_that_is_not_here_is_not_judged() -> None:
    """Without a free-threaded interpreter its claim says how to get one. Other claims are judged as before."""
    found = seen()
    asked = tuple(each for each in found.main.sweep.comparisons if "without a GIL" not in each.title)
    judged = {each.name: found.main.judged[each.name] for each in asked}
    assert len(judged) < len(found.main.judged)
    absent = replace(found, main=replace(found.main, judged=judged, sweep=replace(found.main.sweep, comparisons=asked)))
    assert [claims(absent)[claim].verdict for claim in (NO_GIL, HOLDING)] == ["NOT TESTABLE", "CONFIRMED"]
    assert "make peers" in claims(absent)[NO_GIL].said


def test_the_effect_begins_where_the_whole_interval_is_over_it() -> None:
    """The effect begins where the whole interval is over it, not at an I/O share of 0. The gain has a prediction,
    too."""
    found = gains(seen())
    first = begins(found)
    assert first is not None
    assert found[0].share == 0
    assert first.share == pytest.approx(found[1].share)
    assert all(each.measured.value == pytest.approx(each.foretold, rel=0.02) for each in found)
    assert begins(gains(seen(few_slow))) is None


def test_every_figure_is_drawn_without_measurements() -> None:
    """Every figure is drawn without measurements and predictions."""
    for picture in content(POOL_SIZE.parts["pool_size"], seen(number=0)).pictures:
        picture.draw()
