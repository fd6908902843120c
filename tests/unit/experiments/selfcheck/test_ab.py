"""A/A and A/B: triples on a machine with known noise, and their required results."""

from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.design.sweep import Sweep
from experiments.judge.stats import Estimate
from experiments.results.observed import ANSWERED_LATE, Block
from experiments.selfcheck import ab
from experiments.selfcheck.ab import MINUTES, Scale, Triple, check, design, half_width, of_each, of_many, triple
from experiments.selfcheck.load import LoadFailed
from tests.unit.experiments.blocks import pairs
from tests.unit.experiments.judge.synthetic_blocks import block, with_slices

PLAIN_US = {"sockets": 100.0, "grpc": 400.0}

SCALE = Scale(triples=1, blocks=20, rounds=8)


class Machine:
    """Every arm takes its transport's time and what its server computes longer; A again may be off by a factor."""

    def __init__(self, noise: float = 0.02, again: float = 1.0, finds: float = 1.0) -> None:
        self.asked: list[tuple[Sweep, int]] = []
        self._noise, self._again, self._finds = noise, again, finds

    def measure(self, sweep: Sweep, number: int) -> Block:
        """Makes a block."""
        self.asked.append((sweep, number))
        return block(sweep, {arm: self._us(arm) for arm in sweep.arms}, number, self._noise, seed=sweep.seed)

    def _us(self, arm: Arm) -> float:
        extra = arm.setting["cpu_ms"]
        assert isinstance(extra, float)
        return (PLAIN_US[arm.setting.text("transport")] + self._finds * extra * 1000) * (
            self._again if arm.copy else 1.0
        )


def test_a_triple_has_equal_arms_and_one_that_is_slowed_by_5_percent() -> None:
    """A triple has two equal arms and one that is slower by 5 % of the plain arm, on three servers, side by side, in
    twenty blocks."""
    machine = Machine()
    one = triple("grpc", SCALE, 7, machine.measure)
    (_, first), *rest = machine.asked
    assert (first, [number for _, number in rest]) == (1, list(range(1, 21)))
    sweep = rest[0][0]
    assert len(sweep.servers) == len(sweep.groups[0].arms) == 3
    assert pairs(sweep, sweep.comparisons[0]) == 2 * SCALE.rounds
    assert sweep.arms[1].setting["cpu_ms"] == pytest.approx(0.02, rel=0.08)
    assert one.same.typical.value == pytest.approx(1.0, abs=0.02)
    assert one.slowed.typical.value == pytest.approx(1.05, abs=0.02)
    assert one.found
    assert not one.called_different


def test_the_versions_have_blocks_and_pairs_enough() -> None:
    """A block has 60 pairs or more, and a night 60 triples."""
    sweep = design("sockets", 5.0, MINUTES, 1)
    assert pairs(sweep, sweep.comparisons[0]) >= 60
    assert sweep.looks == (20,)
    assert ab.OVERNIGHT.triples * len(ab.HALF_WIDTHS) == 60


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "failed"),
    [
        (Machine(), []),
        (Machine(again=1.02), ["A/A, sockets", "A/A, grpc"]),
        (Machine(noise=0.2), ["A/A, sockets"]),
        (Machine(finds=0.0), ["A/B, sockets: an arm slowed by 5%", "A/B, grpc: an arm slowed by 5%"]),
    ],
    ids=["as it should be", "equal arms differ", "too noisy", "nothing found"],
)
def test_what_is_wrong_does_not_pass(machine: Machine, failed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Equal arms that differ, an interval that is too wide, and a difference that is not found do not pass."""
    found = check(SCALE, machine.measure)
    assert len(found) == 4
    assert [each.name for each in found if not each.passed] == failed
    assert "1 of 1, grpc: A/A" in capsys.readouterr().err


def test_a_machine_too_busy_for_a_pair_is_told_of() -> None:
    """Without a counted slice the check fails, and says that the machine is too busy, without a traceback."""

    def measure(sweep: Sweep, number: int) -> Block:
        one = Machine().measure(sweep, number)
        return (
            with_slices(one, fate=[ANSWERED_LATE] * len(one.slices.fate))
            if sweep.comparisons[0].kind == "ratio"
            else one
        )

    (finding,) = check(replace(SCALE, blocks=2), measure)
    assert finding.passed is False
    assert "sockets: no block of" in finding.shown
    assert "has values of both A/A and A/B" in finding.shown


def test_the_half_width_is_a_share_of_the_ratio() -> None:
    """The half width is on the logarithmic scale, so that both directions are alike."""
    assert half_width(Estimate(1.0, 1 / 1.02, 1.02, 20)) == pytest.approx(0.02)
    assert half_width(Estimate(3.0, 3 / 1.04, 3 * 1.04, 20)) == pytest.approx(0.04)


@pytest.fixture(scope="module")
def seen() -> tuple[Triple, Triple]:
    """A triple as it should be, and one in which equal arms differ and the slowed one is not found."""
    good = triple("sockets", SCALE, 1, Machine().measure)
    return good, triple("sockets", SCALE, 1, Machine(again=1.05, finds=0.0).measure)


@pytest.mark.parametrize(
    ("wrong", "passed"), [(0, [True, True]), (6, [True, True]), (7, [False, True]), (13, [False, False])]
)
def test_a_night_may_have_some_wrong(seen: tuple[Triple, Triple], wrong: int, passed: list[bool]) -> None:
    """Of 60 triples, 6 A/A pairs may be called different, and 12 slowed arms may be missed."""
    triples = [seen[1]] * wrong + [seen[0]] * (60 - wrong)
    assert [each.passed for each in of_many(triples)] == passed
    assert [each.passed for each in of_each([seen[0]])] == [True, True]


def test_what_is_injected_is_a_share_of_the_typical_response() -> None:
    """A pause in one slice of four does not change the typical response time."""
    sweep = design("sockets", 0.0, SCALE, 1)
    one = block(sweep, dict.fromkeys(sweep.arms, 100.0))
    sums = [each * (30 if number % 4 == 0 else 1) for number, each in enumerate(one.slices.sums_ns["all"])]
    paused = with_slices(one, sums_ns={"all": sums})
    assert ab.typical_us(sweep, paused) == pytest.approx(100.0, rel=1e-3)
    with pytest.raises(LoadFailed, match="nothing"):
        ab.typical_us(sweep, with_slices(one, counts={"all": [0] * len(sums)}))
