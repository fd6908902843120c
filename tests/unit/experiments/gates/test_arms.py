"""Gates 2, 3, 9 and 10: the arms of a comparison differ in the declared factor, which works, and in nothing else."""

from dataclasses import replace

import pytest

from experiments.gates import refusals
from experiments.gates.comparison_gates import HELD, differing
from experiments.gates.evidence import ComparisonEvidence
from experiments.gates.predicates import Level
from experiments.stats import Verdict
from tests.unit.experiments.gates.planted_evidence import SEEN, closed_run, compared, transports


def found(name: str, above: Level | None, below: Level | None, declared: str = "transport") -> ComparisonEvidence:
    """Two transports, of which that was found; None: not seen."""
    arms = []
    for transport, level in (("sockets", above), ("grpc", below)):
        seen = {key: value for key, value in SEEN.items() if key != name}
        run = replace(closed_run(transport=transport), seen=seen if level is None else {**seen, name: level})
        arms.append(run)
    return compared(arms[0], arms[1], declared)


def policies(above: bool, below: bool) -> ComparisonEvidence:
    """A connection per request against kept ones, and whether they were found to be kept."""
    arms = [
        replace(closed_run(connection=policy), seen={**SEEN, "keep_alive": kept})
        for policy, kept in (("per-request", above), ("kept-alive", below))
    ]
    return compared(arms[0], arms[1], "connection")


def refused(comparison: ComparisonEvidence) -> dict[int, str]:
    """By which gates, and why."""
    return {refusal.gate: refusal.what for refusal in refusals(comparison)}


@pytest.mark.parametrize("name", HELD)
def test_whatever_is_held_equal_is_looked_at(name: str) -> None:
    """Bytes, pattern, NODELAY, keep-alive, TLS, locking."""
    assert list(refused(found(name, 7, 3))) == [2]
    assert name in refused(found(name, 7, 3))[2]
    assert refused(found(name, 7, 7)) == {}
    assert refused(found(name, "one", "other")) == {
        2: f"declared to differ in transport, the arms differ in {name}: one against other"
    }


@pytest.mark.parametrize(("above", "below"), [(None, 3), (7, None), (None, None)])
def test_what_was_found_of_one_arm_only_is_no_difference(above: Level | None, below: Level | None) -> None:
    """It is not known."""
    assert refused(found("reply_bytes", above, below)) == {}


def test_true_is_not_a_number_of_bytes() -> None:
    """NODELAY on one side alone is a difference however close 1 and 1.01 are."""
    assert list(refused(found("tcp_nodelay", True, 1.01))) == [2]


def test_an_arm_has_one_setting() -> None:
    """Both arms have runs of two sizes of pool: the same, and yet neither is one setting."""
    comparison = transports()
    above, below = (
        tuple(replace(run, factors={**run.factors, "workers": 5 + run.block % 2}) for run in arm)
        for arm in (comparison.above, comparison.below)
    )
    mixed = replace(comparison, above=above, below=below)
    assert refused(mixed) == {2: "declared to differ in transport, the arms differ in workers: 5, 6 against 5, 6"}


def test_a_factor_that_one_arm_lacks_differs() -> None:
    """It is not set there."""
    comparison = compared(closed_run(batch=2), closed_run(transport="grpc"))
    assert refused(comparison) == {2: "declared to differ in transport, the arms differ in batch: 2 against none"}


def test_several_factors_may_be_declared() -> None:
    """All that differs; or nothing, and then nothing may."""
    both = compared(closed_run(), closed_run(transport="grpc", locking="none"))
    assert list(refused(both)) == [2]
    assert refused(replace(both, declared=frozenset({"transport", "locking"}))) == {}
    nothing = refused(replace(transports(), declared=frozenset()))
    assert nothing == {2: "declared to differ in nothing, the arms differ in transport: sockets against grpc"}


def test_a_declared_factor_must_differ() -> None:
    """The same level in both arms compares nothing, nor does one that was set in neither."""
    same = compared(closed_run(), closed_run())
    assert refused(same) == {3: "transport is declared to differ, and is sockets in both arms"}
    unset = replace(same, declared=frozenset({"dispatch"}))
    assert refused(unset) == {3: "dispatch is declared to differ, and is none in both arms"}
    assert differing(same) == {}


def test_a_policy_must_be_seen_to_work() -> None:
    """A connection per request that was kept is none; one that was not is."""
    assert refused(policies(False, True)) == {}
    assert refused(policies(True, True)) == {
        3: "connection was per-request against kept-alive, and keep alive 1 against 1"
    }


def test_numbers_are_compared_as_means_over_an_arm() -> None:
    """10 threads against 5 is seen as 10 against 5, however many runs there are."""
    large, small = (replace(closed_run(workers=n), seen={**SEEN, "threads": n}) for n in (10, 5))
    assert refused(compared(large, small, "workers")) == {}
    stuck = compared(replace(large, seen={**SEEN, "threads": 4}), small, "workers")
    assert refused(stuck) == {3: "workers was 10 against 5, and threads 4 against 5"}
    some = replace(stuck, above=tuple(replace(run, seen={}) if run.block == 1 else run for run in stuck.above))
    assert refused(some) == {}


def test_fewer_of_a_factor_are_seen_to_be_fewer() -> None:
    """The arm above may have the smaller level."""
    small, large = (replace(closed_run(workers=n), seen={**SEEN, "threads": n}) for n in (5, 10))
    assert refused(compared(small, large, "workers")) == {}


def test_arms_that_never_meet_in_a_block_are_confounded_with_time() -> None:
    """Sockets in the first nine blocks, gRPC in the next."""
    comparison = transports()
    later = tuple(replace(run, block=run.block + 9) for run in comparison.below)
    assert set(refused(replace(comparison, below=later))) == {9, 10}


def test_an_arm_with_two_runs_in_a_block_came_where_its_first_run_did() -> None:
    """The second run of a block does not turn the order round."""
    comparison = compared(closed_run(), closed_run(transport="grpc"))
    above = tuple(replace(run, order=1) for run in comparison.above)
    again = tuple(replace(run, order=3, run_id=f"{run.run_id}b") for run in above)
    below = tuple(replace(run, order=2) for run in comparison.below)
    for arm in (above + again, again + above):
        told = refused(replace(comparison, above=arm, below=below))
        assert told == {10: "the arm above the line came first in 9 of 9 blocks"}


def test_a_block_counts_where_both_arms_ran() -> None:
    """Nine of one arm, five of the other."""
    comparison = replace(transports(), verdict=Verdict.INCONCLUSIVE)
    assert 9 in refused(replace(comparison, below=comparison.below[:5]))


def test_a_factor_with_a_number_in_one_arm_only_must_change_something() -> None:
    """A pool of 10 against one that sizes itself."""
    fixed, free = closed_run(workers=10), closed_run(workers="as needed")
    assert refused(compared(fixed, replace(free, seen={**SEEN, "threads": 40}), "workers")) == {}
    assert list(refused(compared(fixed, free, "workers"))) == [3]
