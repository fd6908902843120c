"""A/A and A/B: equal arms, slowed arms, looks declared beforehand, and the record that is kept."""

import json
import math
import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from experiments import stats
from experiments.selfcheck import ab, pairs
from experiments.selfcheck.ab import PLAIN, SLOWED, AaRecord, Plan
from experiments.stats import Verdict


class Machine:
    """Gives every arm 100 µs, times noise; slowed arms take what they are to take longer. Remembers what it ran."""

    def __init__(self, deviation: float, slowed: float = ab.INJECTED, seed: int = 1) -> None:
        self.ran: list[tuple[tuple[str, str], int]] = []
        self._noise = random.Random(seed)
        self._deviation = deviation / math.sqrt(2)  # of an arm, so that a log-ratio of two has the one asked for
        self._slowed = slowed

    def measure(self, arms: tuple[str, str], block: int) -> tuple[float, float]:
        """One block."""
        self.ran.append((arms, block))
        return self._took_us(arms[0]), self._took_us(arms[1])

    def _took_us(self, arm: str) -> float:
        factor = self._slowed if arm == SLOWED else 1.0
        return 100 * factor * math.exp(self._noise.gauss(0, self._deviation))


def record_of(deviation: float, plan: Plan, slowed: float = ab.INJECTED) -> AaRecord:
    """The record of a round on such a machine."""
    return ab.recorded(ab.run(Machine(deviation, slowed).measure, plan), plan, "a machine", "sockets", "2025-01-31")


def test_on_a_quiet_machine_all_is_found_and_nothing_else() -> None:
    """Deviation 3 %: eight A/A, four A/B, and all findings pass."""
    outcomes = ab.run(Machine(0.03).measure, ab.MINUTES)
    record = ab.recorded(outcomes, ab.MINUTES, "a machine", "sockets", "2025-01-31")
    assert (record.comparisons, record.false_differences, record.ab_comparisons, record.found) == (8, 0, 4, 4)
    assert record.deviation == pytest.approx(0.03, rel=0.2)
    assert [finding.passed for finding in ab.findings(outcomes, record)] == [True, True, True]
    assert {len(one.log_ratios) for one in outcomes} == {8}


@pytest.mark.slow
def test_a_night_on_a_noisy_machine_shows_at_most_six_false_differences_and_finds_nine_in_ten() -> None:
    """Deviation 8 %, as runs of a quarter of a minute have on two shared cores."""
    record = record_of(0.08, ab.OVERNIGHT)
    assert record.false_differences <= 6
    assert record.found >= 36


@pytest.mark.slow
def test_a_machine_on_which_10_percent_are_lost_fails_and_can_tell_nothing_apart() -> None:
    """Deviation 40 %: the injected difference is not found, and the least that can be told is endless."""
    plan = Plan(8, 8)
    outcomes = ab.run(Machine(0.4).measure, plan)
    record = ab.recorded(outcomes, plan, "a machine", "sockets", "2025-01-31")
    assert record.effect_min == math.inf
    assert [finding.passed for finding in ab.findings(outcomes, record)] == [True, False, False]


@pytest.mark.slow
def test_an_instrument_that_favours_the_arm_that_is_run_first_shows_it_in_its_spread() -> None:
    """If what is measured second looks 20 % slower, equal arms differ so much from block to block, either way."""
    machine = Machine(0.01)

    def second_is_slow(arms: tuple[str, str], block: int) -> tuple[float, float]:
        first_us, second_us = machine.measure(arms, block)
        return first_us, 1.2 * second_us

    record = ab.recorded(ab.run(second_is_slow, ab.MINUTES), ab.MINUTES, "m", "l", "d")
    assert record.deviation > 0.15


def test_slowed_arms_that_are_not_slowed_are_not_found() -> None:
    """The check of the check: an injection that fails is no pass."""
    plan = Plan(8, 8)
    outcomes = ab.run(Machine(0.03, slowed=1.0).measure, plan)
    record = ab.recorded(outcomes, plan, "m", "l", "d")
    assert record.found == 0
    assert [finding.passed for finding in ab.findings(outcomes, record)][1] is False


def test_every_block_has_both_arms_in_random_order() -> None:
    """Blocks are numbered through; in a slowed block either arm is first about as often."""
    machine = Machine(0.05)
    ab.run(machine.measure, Plan(4, 20))
    assert [block for _, block in machine.ran] == list(range(1, len(machine.ran) + 1))
    slowed = [arms for arms, _ in machine.ran if SLOWED in arms]
    assert set(slowed) == {(PLAIN, SLOWED), (SLOWED, PLAIN)}
    assert 0.35 < sum(first == SLOWED for first, _ in slowed) / len(slowed) < 0.65


def test_experiments_of_both_kinds_are_mixed_and_announced() -> None:
    """Not all A/A first: the time of day would then be theirs."""
    said: list[str] = []
    ab.run(Machine(0.03).measure, Plan(10, 10), said.append)
    kinds = [line.split(": ")[1][:3] for line in said]
    assert Counter(kinds) == {"A/A": 10, "A/B": 10}
    assert kinds != sorted(kinds)


@pytest.mark.slow
def test_looking_thrice_at_a_third_of_the_level_keeps_the_error_under_5_percent() -> None:
    """300 experiments of equal arms, of up to 12 blocks; looking after every block would be wrong in over 9 %."""
    noise = random.Random(3)
    wrong = unguarded = 0
    for _ in range(300):
        values = [noise.gauss(0, 0.08) for _ in range(12)]
        looks = (ab.judged((SLOWED, PLAIN), values[:look], 3) for look in (8, 10, 12))
        wrong += next((one.differs for one in looks if one.verdict is not Verdict.INCONCLUSIVE), False)
        unguarded += any(ab.judged((SLOWED, PLAIN), values[:n], 1).differs for n in range(6, 13))
    assert wrong / 300 <= 0.05
    assert unguarded / 300 > 0.09


def test_a_look_is_judged_at_its_share_of_the_level() -> None:
    """Three looks: an interval of 98.3 %, and thrice the p."""
    values = [0.2, 0.1, 0.15, 0.12, 0.3, 0.22, 0.18, 0.05]
    one = ab.judged((SLOWED, PLAIN), values, 3)
    assert one.ratio == stats.ratio_interval(values, 1 - 0.05 / 3)
    assert one.verdict is Verdict.SLOWER
    assert ab.judged((SLOWED, PLAIN), values[:6], 3).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("deviation", "blocks"), [(0.08, 9), (0.08, 20), (0.03, 12)], ids=["noisy", "more blocks", "quiet"]
)
@pytest.mark.slow
def test_the_smallest_ratio_is_found_in_nine_of_ten_experiments(deviation: float, blocks: int) -> None:
    """And one of two thirds of its logarithm in far fewer: 2,000 experiments each, by their intervals."""
    noise = random.Random(blocks)
    smallest = math.log(ab.smallest_ratio(deviation, blocks))
    found = {
        share: sum(
            stats.ratio_interval([noise.gauss(share * smallest, deviation) for _ in range(blocks)]).low > 1
            for _ in range(2000)
        )
        / 2000
        for share in (1, 2 / 3)
    }
    assert 0.88 < found[1] < 0.95
    assert found[2 / 3] < 0.7


def test_a_slowed_server_computes_a_tenth_of_the_response_longer() -> None:
    """With several connections in a queue before it, of its own time for one."""
    assert ab.extra_us(200) == pytest.approx(20)
    assert ab.extra_us(200, connections=8) == pytest.approx(2.5)
    with pytest.raises(ValueError, match="over 0"):
        ab.extra_us(0)


@pytest.mark.parametrize(
    ("aa", "ab_", "aa_blocks", "looks"),
    [
        (0, 4, 8, (8, 13, 20)),
        (8, 0, 8, (8, 13, 20)),
        (8, 4, 5, (8, 13, 20)),
        (8, 4, 8, ()),
        (8, 4, 8, (6, 12, 20)),
        (8, 4, 8, (8, 20, 13)),
    ],
)
def test_a_plan_that_could_show_nothing_is_refused(aa: int, ab_: int, aa_blocks: int, looks: tuple[int, ...]) -> None:
    """No experiments, too few blocks, or looks at which no p could be small enough."""
    with pytest.raises(ValueError, match="needed"):
        Plan(aa, ab_, aa_blocks, looks)


@pytest.mark.parametrize("time_us", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_is_none_is_refused(time_us: float) -> None:
    """And not made a ratio of."""
    with pytest.raises(ValueError, match="over 0"):
        ab.run(lambda arms, block: (100.0, time_us), ab.MINUTES)  # noqa: ARG005


@pytest.mark.parametrize("deviation", [0.03, 0.4], ids=["all found", "nothing found"])
def test_a_record_is_written_as_json(tmp_path: Path, deviation: float) -> None:
    """Every field; an endless smallest ratio is null."""
    record = record_of(deviation, Plan(8, 4))
    ab.save(record, tmp_path / "aa.json")
    endless = {"effect_min": None} if math.isinf(record.effect_min) else {}
    assert math.isinf(record.effect_min) is (deviation > 0.1)
    assert json.loads((tmp_path / "aa.json").read_text()) == asdict(record) | endless


def test_the_check_slows_the_arm_that_it_calls_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a tenth of the plain response, whichever begins; and all of it is found."""
    noise = random.Random(1)

    def measure(*extra_us: float) -> tuple[float, ...]:
        return tuple((200.0 + each) * math.exp(noise.gauss(0, 0.02)) for each in extra_us)

    monkeypatch.setattr(pairs, "measure", measure)
    assert [finding.passed for finding in pairs.check()] == [True, True, True]
