"""The card: each claim follows the data it is about, whichever way they point."""

import math
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.kinds.delivery import DeliveryRow
from experiments.show.content import Seen
from experiments.studies.sockets import claims as card
from experiments.studies.sockets.claims import claims
from experiments.studies.sockets.wording import delivered
from tests.unit.experiments.blocks import World
from tests.unit.experiments.studies.sockets.planted import MEANS_US, RECEIVED_HZ, SCALE, rows, seen, with_rows

pytestmark = pytest.mark.slow  # judges sweeps of 20 arms: some 0.3 s each


def verdict(of: Seen, begins: str) -> str:
    """Verdict on the claim with this beginning."""
    (found,) = (claim.verdict for claim in claims(of) if claim.text.startswith(begins))
    return found


LONG = rows(RECEIVED_HZ, replace(SCALE, rounds=60, looks=(14,)))
"""Rows of as many blocks as decide."""

GRAPHS = ("Graph 1 (", "Graph 2 (", "Graph 3 (", "Graph 4 (")


@pytest.mark.parametrize(
    ("nanomsg_us", "expected"), [(60.0, "CONFIRMED"), (150.0, "CONTRADICTED"), (100.0, "CONTRADICTED")]
)
def test_nanomsg_is_best_where_it_is_fastest(nanomsg_us: float, expected: str) -> None:
    """Nanomsg is best where it is fastest, and not where it is slower than Berkeley, or equal to it."""
    found = seen(MEANS_US | {"nanomsg": nanomsg_us})
    assert [verdict(found, graph) for graph in GRAPHS] == [expected] * 4


def test_the_three_may_be_equal_only_if_they_are() -> None:
    """The three APIs count as equal within 5 %."""
    claim = "Graph 3: by the intervals"
    assert verdict(seen(), claim) == "CONTRADICTED"
    assert verdict(seen(dict.fromkeys(MEANS_US, 100.0)), claim) == "CONFIRMED"


def test_zeromq_spreads_most_by_the_thesis_own_timer() -> None:
    """The spread of the receiver's means decides. Three blocks decide nothing, for any windows at the client."""

    def pauses(arm: Arm) -> float:
        return 3.0 if arm.setting["transport"] == "berkeley" else 1.0

    found = seen(world=World(lambda _, __: 100.0, slice_noise=0.02, pauses=pauses))
    found = with_rows(found, [replace(row, cycle_us=_cycle_us(row, "zeromq")) for row in delivered(found).rows])
    assert verdict(found, "Graph 1: ZeroMQ") == verdict(found, "Graph 3: ZeroMQ") == "INCONCLUSIVE"
    long = with_rows(seen(), LONG)
    for api, expected in (("zeromq", "CONFIRMED"), ("berkeley", "CONTRADICTED")):
        wide = [replace(row, cycle_us=_cycle_us(row, api)) for row in delivered(long).rows]
        assert verdict(with_rows(long, wide), "Graph 1: ZeroMQ") == expected


def _cycle_us(row: DeliveryRow, widest: str) -> float | None:
    """A time about the timer's; of one API, ten times as far from it."""
    far = 10.0 if row.cell.setting["transport"] == widest else 1.0
    return None if row.cycle_us is None else row.cycle_us + far * (-1) ** row.block * (1 + 0.01 * row.block)


def test_a_little_wider_is_not_much_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told apart from equal, but under one and a half times as far."""
    long = with_rows(seen(), LONG)
    for times, expected in ((1.2, "CONTRADICTED"), (1.5, "INCONCLUSIVE"), (1.8, "CONFIRMED")):
        logs = [math.log(times) + 0.05 * (-1) ** block for block in range(10)]
        monkeypatch.setattr(card, "told_log_ratios", lambda *_, logs=logs: logs)
        assert verdict(long, "Graph 1: ZeroMQ") == expected


def test_messages_stand_beside_the_verdicts() -> None:
    """A cell's messages, here and in the thesis, stand beside the verdicts."""
    said = [claim.said for claim in claims(seen()) if claim.text.startswith(GRAPHS)]
    assert all("Messages an API: " in each for each in said)
    assert ["108,000 in the thesis" in each for each in said] == [True, False, True, False]


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
    """The most, and much alike, are two claims."""
    found = seen(received_hz=RECEIVED_HZ | {"nanomsg": nanomsg_hz})
    assert verdict(found, "Graph 5 (") == most
    assert verdict(found, "Graph 5: nanomsg and Berkeley") == alike


def test_throughput_needs_every_block_that_was_planned() -> None:
    """Throughput needs every planned block, and six that count, though two have an interval as well."""
    claims_of = ("Graph 5 (", "Graph 5: nanomsg and Berkeley")
    for hz, decided in ((23_000.0, ("CONFIRMED", "CONFIRMED")), (8_000.0, ("CONTRADICTED", "CONTRADICTED"))):
        whole = seen(received_hz=RECEIVED_HZ | {"nanomsg": hz})
        few = with_rows(whole, [row for row in delivered(whole).rows if row.block <= 5])
        assert tuple(verdict(whole, each) for each in claims_of) == decided
        for found in (with_rows(whole, delivered(whole).rows, is_whole=False), few):
            assert tuple(verdict(found, each) for each in claims_of) == ("INCONCLUSIVE", "INCONCLUSIVE")


def test_throughput_is_confirmed_by_the_test_that_contradicts_it() -> None:
    """Seven blocks of four ratios: an interval that excludes 1, and a p that Holm's correction leaves at 0.06."""
    whole = seen(received_hz=RECEIVED_HZ | {"nanomsg": 30_000.0})
    seven = with_rows(whole, [row for row in delivered(whole).rows if row.block <= 7])
    assert verdict(whole, "Graph 5 (") == "CONFIRMED"
    assert verdict(seven, "Graph 5 (") == "INCONCLUSIVE"


def test_the_whole_needs_every_part() -> None:
    """Best in all four cells and in throughput; contradicted by one."""
    claim, best = "nanomsg is the best", MEANS_US | {"nanomsg": 60.0}
    assert verdict(seen(), claim) == "CONTRADICTED"
    assert verdict(seen(best), claim) == "CONTRADICTED"
    assert verdict(seen(best, RECEIVED_HZ | {"nanomsg": 30_000.0}), claim) == "CONFIRMED"


def test_performance_wants_two_alike_and_zeromq_behind_both() -> None:
    """In every cell two APIs must be alike and ZeroMQ behind both: with nanomsg at 1.5 times Berkeley the claim
    fails."""
    assert verdict(seen(), "Performance") == "CONTRADICTED"
    assert verdict(seen(MEANS_US | {"nanomsg": 110.0}), "Performance") == "CONFIRMED"
    assert verdict(seen(MEANS_US | {"nanomsg": 110.0, "zeromq": 105.0}), "Performance") == "CONTRADICTED"


def test_size_shows_where_it_does() -> None:
    """100 KB beside 10 KB, all three APIs at both rates together; a cell alone decides less."""
    assert verdict(seen(), "10 and 100 KB") == "CONFIRMED"
    flat = World(lambda _, __: 100.0, slice_noise=0.02)
    assert verdict(seen(world=flat), "10 and 100 KB") == "INCONCLUSIVE"
    slight = World(
        lambda arm, _: 106.0 if arm.setting["size"] == 100_000 else 100.0, block_noise=0.05, slice_noise=0.06
    )
    (claim,) = (each for each in claims(seen(world=slight)) if each.text.startswith("10 and 100 KB"))
    assert (claim.verdict, "INCONCLUSIVE" in claim.said) == ("CONFIRMED", True)


def test_samples_that_spread_reach_under_zero() -> None:
    """Which says nothing of their mean, however many do: the numbers are told, and nothing is decided."""
    paused = World(lambda _, __: 100.0, slice_noise=0.02, pauses=lambda _: 20.0)
    for found, number in ((seen(), "in 0 of"), (seen(world=paused), "in 16 of")):
        assert verdict(found, "Some intervals") == "NOT TESTABLE"
        (said,) = (claim.said for claim in claims(found) if claim.text.startswith("Some intervals"))
        assert number in said


def test_what_is_not_built_here_is_not_testable() -> None:
    """Rather than undecided."""
    without = replace(SCALE, peers=frozenset({"c-berkeley", "c-zeromq"}))
    found = seen(scale=without)
    for claim in (*GRAPHS, "Graph 3: by the", "Graph 1: ZeroMQ", "Graph 5 (", "Performance", "nanomsg is the best"):
        assert verdict(found, claim) == "NOT TESTABLE", claim


def test_before_a_look_no_measurement_decides() -> None:
    """Claims on counts in the sources alone are decided, and on throughput, which has no look."""
    early = with_rows(seen(number=9), ())
    decided = [claim.text for claim in claims(early) if claim.verdict in ("CONFIRMED", "CONTRADICTED")]
    assert all("lines" in text for text in decided)
