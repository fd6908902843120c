"""The card: the verdict of each claim follows the claim's data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.kinds.delivery import DeliveryRow
from experiments.show.content import Claim, Seen
from experiments.studies.sockets import claims as card
from experiments.studies.sockets.claims import claims
from experiments.studies.sockets.wording import delivered
from tests.unit.experiments.blocks import World
from tests.unit.experiments.studies.sockets.planted import MEANS_US, RECEIVED_HZ, SCALE, of_world, rows, seen, with_rows

pytestmark = pytest.mark.slow  # judges sweeps of 20 arms: some 0.3 s each


def the(of: Seen, *begins: str) -> list[Claim]:
    """The claims with these beginnings, one for each."""
    found = [[claim for claim in claims(of) if claim.text.startswith(each)] for each in begins]
    assert [len(each) for each in found] == [1] * len(begins)
    return [each[0] for each in found]


def verdicts(of: Seen, *begins: str) -> list[str]:
    """Verdicts on the claims with these beginnings."""
    return [claim.verdict for claim in the(of, *begins)]


LONG = rows(RECEIVED_HZ, replace(SCALE, rounds=60, looks=(14,)))
"""Rows of as many blocks as decide."""

GRAPHS = ("Graph 1 (", "Graph 2 (", "Graph 3 (", "Graph 4 (")
THROUGHPUT = ("Graph 5 (", "Graph 5: nanomsg and Berkeley")

EQUAL = dict.fromkeys(MEANS_US, 100.0)
FASTEST = MEANS_US | {"nanomsg": 60.0}


@pytest.mark.parametrize(
    ("means_us", "expected"), [(FASTEST, "CONFIRMED"), (MEANS_US, "CONTRADICTED"), (EQUAL, "CONTRADICTED")]
)
def test_nanomsg_is_best_where_it_is_fastest(means_us: dict[str, float], expected: str) -> None:
    """Nanomsg is best where it is fastest, and not where it is slower than Berkeley, or equal to it. The messages of a
    cell, here and in the thesis, stand beside the verdicts."""
    found = the(seen(means_us), *GRAPHS)
    assert [claim.verdict for claim in found] == [expected] * 4
    assert all("Messages an API: 4,000 here" in claim.said for claim in found)
    assert ["108,000 in the thesis" in claim.said for claim in found] == [True, False, True, False]


def test_the_three_may_be_equal_only_if_they_are() -> None:
    """The three APIs count as equal within 5 %."""
    claim = "Graph 3: by the intervals"
    assert verdicts(seen(), claim) == ["CONTRADICTED"]
    assert verdicts(seen(EQUAL), claim) == ["CONFIRMED"]


def test_zeromq_spreads_most_by_the_thesis_own_timer() -> None:
    """The spread of the receiver's means decides. Three blocks decide nothing, for any windows at the client."""
    spread = ("Graph 1: ZeroMQ", "Graph 3: ZeroMQ")
    found = of_world(World(lambda _, __: 100.0, slice_noise=0.02, pauses=_berkeley_pauses))
    assert verdicts(_wide(found, delivered(found).rows, "zeromq"), *spread) == ["INCONCLUSIVE"] * 2
    for api, expected in (("zeromq", "CONFIRMED"), ("berkeley", "CONTRADICTED")):
        assert verdicts(_wide(seen(), LONG, api), *spread) == [expected] * 2


def test_a_run_without_timed_messages_is_in_no_spread() -> None:
    """A run in which the receiver timed no message is left out, as if it had no report."""
    wide = _wide(seen(), LONG, "zeromq")
    lacking = [replace(row, cycle_us=None) if row.block == 1 else row for row in delivered(wide).rows]
    without = [row for row in delivered(wide).rows if row.block != 1]
    assert the(with_rows(wide, lacking), "Graph 1: ZeroMQ") == the(with_rows(wide, without), "Graph 1: ZeroMQ")


def _berkeley_pauses(arm: Arm) -> float:
    return 3.0 if arm.setting["transport"] == "berkeley" else 1.0


def _wide(of: Seen, reports: Sequence[DeliveryRow], widest: str) -> Seen:
    """Times of the receivers' timer. The times of one API scatter ten times as far."""
    far = {row: (10.0 if row.cell.setting["transport"] == widest else 1.0) * (-1) ** row.block for row in reports}
    return with_rows(
        of,
        [replace(row, cycle_us=row.cycle_us and row.cycle_us + at * (1 + row.block / 100)) for row, at in far.items()],
    )


def test_a_little_wider_is_not_much_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spread that surely differs, and is under 1.5 times the other, contradicts."""
    long = with_rows(seen(), LONG)
    for times, expected in ((1.2, "CONTRADICTED"), (1.5, "INCONCLUSIVE"), (1.8, "CONFIRMED")):
        logs = [math.log(times) + 0.05 * (-1) ** block for block in range(10)]
        monkeypatch.setattr(card, "told_log_ratios", lambda *_, logs=logs: logs)
        assert verdicts(long, "Graph 1: ZeroMQ") == [expected]


@pytest.mark.parametrize(
    ("nanomsg_hz", "most", "alike"),
    [
        (30_000.0, "CONFIRMED", "CONTRADICTED"),
        (23_000.0, "CONFIRMED", "CONFIRMED"),
        (20_000.0, "INCONCLUSIVE", "CONFIRMED"),
        (8_000.0, "CONTRADICTED", "CONTRADICTED"),
    ],
)
def test_throughput_is_by_what_receivers_counted(nanomsg_hz: float, most: str, alike: str) -> None:
    """The most, and much alike, are two claims. Both need every planned block, and six that count, though two have an
    interval as well."""
    whole = seen(received_hz=RECEIVED_HZ | {"nanomsg": nanomsg_hz})
    assert verdicts(whole, *THROUGHPUT) == [most, alike]
    few = with_rows(whole, [row for row in delivered(whole).rows if row.block <= 5])
    for found in (with_rows(whole, delivered(whole).rows, is_whole=False), few):
        assert verdicts(found, *THROUGHPUT) == ["INCONCLUSIVE"] * 2


def test_throughput_is_confirmed_by_the_test_that_contradicts_it() -> None:
    """Seven blocks of four ratios: an interval that excludes 1, and a p that Holm's correction leaves at 0.06."""
    whole = seen(received_hz=RECEIVED_HZ | {"nanomsg": 30_000.0})
    seven = with_rows(whole, [row for row in delivered(whole).rows if row.block <= 7])
    assert verdicts(seven, "Graph 5 (") == ["INCONCLUSIVE"]


def test_the_whole_needs_every_part() -> None:
    """The claim needs nanomsg to be the best in all four cells and in throughput."""
    claim = "nanomsg is the best"
    assert verdicts(seen(FASTEST), claim) == ["CONTRADICTED"]
    assert verdicts(seen(received_hz=RECEIVED_HZ | {"nanomsg": 30_000.0}), claim) == ["CONTRADICTED"]
    assert verdicts(seen(FASTEST, RECEIVED_HZ | {"nanomsg": 30_000.0}), claim) == ["CONFIRMED"]


def test_performance_wants_two_alike_and_zeromq_behind_both() -> None:
    """In every cell two APIs must be alike and ZeroMQ behind both: with nanomsg at 1.5 times Berkeley the claim
    fails."""
    assert verdicts(seen(), "Performance") == ["CONTRADICTED"]
    assert verdicts(seen(MEANS_US | {"nanomsg": 110.0}), "Performance") == ["CONFIRMED"]
    assert verdicts(seen(MEANS_US | {"nanomsg": 110.0, "zeromq": 105.0}), "Performance") == ["CONTRADICTED"]


def test_size_shows_where_it_does() -> None:
    """100 KB beside 10 KB, all three APIs at both rates together; a cell alone decides less."""
    assert verdicts(seen(), "10 and 100 KB") == ["CONFIRMED"]
    for larger_us, expected in ((100.0, "INCONCLUSIVE"), (106.0, "CONFIRMED")):
        world = World(_at_100_kb(larger_us), block_noise=0.05, slice_noise=0.06)
        (claim,) = the(of_world(world), "10 and 100 KB")
        assert (claim.verdict, "INCONCLUSIVE" in claim.said) == (expected, True)


def test_blocks_that_a_gate_refuses_show_no_size() -> None:
    """Every block of ZeroMQ has too many errors, so that no block has the three APIs."""
    world = World(_at_100_kb(150.0), errors=lambda arm: 100 * (arm.setting["transport"] == "zeromq"))
    assert verdicts(of_world(world), "10 and 100 KB") == ["NOT TESTABLE"]


def _at_100_kb(larger_us: float) -> Callable[[Arm, str], float]:
    return lambda arm, _: larger_us if arm.setting["size"] == 100_000 else 100.0


def test_samples_that_spread_reach_under_zero() -> None:
    """Samples under zero decide nothing on their mean: the text has their number, and there is no verdict."""
    paused = World(lambda _, __: 100.0, slice_noise=0.02, pauses=lambda _: 20.0)
    for found, number in ((seen(), "in 0 of"), (of_world(paused), "in 16 of")):
        (claim,) = the(found, "Some intervals")
        assert claim.verdict == "NOT TESTABLE"
        assert number in claim.said


def test_what_is_not_built_here_is_not_testable() -> None:
    """A claim on an API that is not built here is NOT TESTABLE, and not INCONCLUSIVE."""
    scale = replace(SCALE, peers=frozenset({"c-berkeley", "c-zeromq"}))
    found = of_world(World(lambda _, __: 100.0), scale)
    asked = (*GRAPHS, "Graph 3: by the", "Graph 1: ZeroMQ", "Graph 5 (", "Performance", "nanomsg is the best")
    assert verdicts(found, *asked) == ["NOT TESTABLE"] * len(asked)


def test_before_a_look_no_measurement_decides() -> None:
    """Claims on counts in the sources alone are decided, and on throughput, which has no look."""
    early = with_rows(seen(number=9), ())
    decided = [claim.text for claim in claims(early) if claim.verdict in ("CONFIRMED", "CONTRADICTED")]
    assert decided
    assert all("lines" in text for text in decided)
