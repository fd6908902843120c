"""The card: the verdict of each claim follows the claim's data."""

import math
from collections.abc import Callable, Mapping, Sequence
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


def the(of: Seen, begin: str) -> Claim:
    """The one claim with this beginning."""
    (found,) = (claim for claim in claims(of) if claim.text.startswith(begin))
    return found


def verdicts(of: Seen, *begins: str) -> list[str]:
    """Verdicts on the claims with these beginnings."""
    return [the(of, each).verdict for each in begins]


LONG = rows(RECEIVED_HZ, replace(SCALE, rounds=60, looks=(14,)))
"""Rows of as many blocks as decide."""

BEST = ("Graph 1 (", "Graph 2 (", "Graph 3 (", "Graph 4 (")
SPREAD = ("Graph 1: ZeroMQ", "Graph 3: ZeroMQ")
THREE_EQUAL, MOST, ALIKE = "Graph 3: by the intervals", "Graph 5 (", "Graph 5: nanomsg and Berkeley"
SIZE, PERFORMANCE, WHOLE = "The times already differ", "Performance", "nanomsg is the best"

FASTEST = MEANS_US | {"nanomsg": 60.0}
NEAR_BERKELEY = MEANS_US | {"nanomsg": 110.0}


def carrying(nanomsg_hz: float, means_us: Mapping[str, float] = MEANS_US, blocks: int = 10, whole: bool = True) -> Seen:
    """The study with this throughput of nanomsg, in this number of blocks of the receivers."""
    found = seen(means_us, RECEIVED_HZ | {"nanomsg": nanomsg_hz})
    return with_rows(found, [row for row in delivered(found).rows if row.block <= blocks], whole)


def at_100_kb(larger_us: float, errors: Callable[[Arm], int] = lambda _: 0) -> Seen:
    """The study with this mean of all APIs at 100 KB, and 100 µs at 10 KB. Blocks and windows scatter."""
    world = World(lambda arm, _: larger_us if arm.setting["size"] == 100_000 else 100.0, 0.05, 0.06, errors=errors)
    return of_world(world)


def two_apis() -> Seen:
    """The study of Berkeley sockets and ZeroMQ alone."""
    return of_world(World(lambda _, __: 100.0), replace(SCALE, peers=frozenset({"c-berkeley", "c-zeromq"})))


def wide(widest: str, reports: Sequence[DeliveryRow] = LONG) -> Seen:
    """The study in which the receivers' times of one API scatter ten times as far as those of the others."""
    far = {row: (10.0 if row.cell.setting["transport"] == widest else 1.0) * (-1) ** row.block for row in reports}
    return with_rows(
        seen(),
        [replace(row, cycle_us=row.cycle_us and row.cycle_us + at * (1 + row.block / 100)) for row, at in far.items()],
    )


CASES: dict[str, tuple[Callable[[], Seen], dict[str, Sequence[str]]]] = {
    "nanomsg is slower than Berkeley, and carries less": (
        seen,
        {"CONTRADICTED": (*BEST, THREE_EQUAL, PERFORMANCE, MOST, ALIKE), "CONFIRMED": [SIZE]},
    ),
    "nanomsg is fastest": (lambda: seen(FASTEST), {"CONFIRMED": BEST, "CONTRADICTED": [WHOLE]}),
    "all are equal": (
        lambda: seen(dict.fromkeys(MEANS_US, 100.0)),
        {"CONTRADICTED": BEST, "CONFIRMED": [THREE_EQUAL]},
    ),
    "nanomsg is near Berkeley, ZeroMQ behind both": (lambda: seen(NEAR_BERKELEY), {"CONFIRMED": [PERFORMANCE]}),
    "all three are near": (lambda: seen(NEAR_BERKELEY | {"zeromq": 105.0}), {"CONTRADICTED": [PERFORMANCE]}),
    "nanomsg carries most": (lambda: carrying(30_000.0), {"CONFIRMED": [MOST], "CONTRADICTED": [ALIKE, WHOLE]}),
    "nanomsg is fastest, and carries most": (lambda: carrying(30_000.0, FASTEST), {"CONFIRMED": [WHOLE]}),
    "nanomsg carries 15 % more than Berkeley": (lambda: carrying(23_000.0), {"CONFIRMED": [MOST, ALIKE]}),
    "nanomsg carries as much": (lambda: carrying(20_000.0), {"INCONCLUSIVE": [MOST], "CONFIRMED": [ALIKE]}),
    "a planned block is missing": (lambda: carrying(30_000.0, whole=False), {"INCONCLUSIVE": [MOST, ALIKE]}),
    "five blocks": (lambda: carrying(30_000.0, blocks=5), {"INCONCLUSIVE": [MOST, ALIKE]}),
    # an interval that excludes 1, and a p that Holm's correction of four ratios leaves at 0.06
    "seven blocks": (lambda: carrying(30_000.0, blocks=7), {"INCONCLUSIVE": [MOST]}),
    "the size changes nothing": (lambda: at_100_kb(100.0), {"INCONCLUSIVE": [SIZE]}),
    "100 KB take 6 % longer": (lambda: at_100_kb(106.0), {"CONFIRMED": [SIZE]}),
    "gates refuse every block of ZeroMQ": (
        lambda: at_100_kb(150.0, lambda arm: 100 * (arm.setting["transport"] == "zeromq")),
        {"NOT TESTABLE": [SIZE]},
    ),
    "the receivers' times of ZeroMQ vary most": (lambda: wide("zeromq"), {"CONFIRMED": SPREAD}),
    "the receivers' times of Berkeley vary most": (lambda: wide("berkeley"), {"CONTRADICTED": SPREAD}),
    "three blocks of receivers' times": (lambda: wide("zeromq", rows(RECEIVED_HZ)), {"INCONCLUSIVE": SPREAD}),
    "two APIs are not built": (
        two_apis,
        {"NOT TESTABLE": (*BEST, *SPREAD, THREE_EQUAL, MOST, PERFORMANCE, WHOLE)},
    ),
}
"""Planted data, and the claims with each verdict."""


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_follows_its_data(name: str) -> None:
    """Planted data give each claim its verdict. Within 5 % three APIs count as equal, within a quarter two."""
    made, expected = CASES[name]
    found = made()
    assert {verdict: verdicts(found, *begins) for verdict, begins in expected.items()} == {
        verdict: [verdict] * len(begins) for verdict, begins in expected.items()
    }


def test_a_run_without_timed_messages_is_in_no_spread() -> None:
    """A run in which the receiver timed no message is left out, as if it had no report."""
    found = wide("zeromq")
    lacking = [replace(row, cycle_us=None) if row.block == 1 else row for row in delivered(found).rows]
    without = [row for row in delivered(found).rows if row.block != 1]
    assert the(with_rows(found, lacking), "Graph 1: ZeroMQ") == the(with_rows(found, without), "Graph 1: ZeroMQ")


def test_a_little_wider_is_not_much_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spread that surely differs, and is under 1.5 times the other, contradicts."""
    long = with_rows(seen(), LONG)
    for times, expected in ((1.2, "CONTRADICTED"), (1.5, "INCONCLUSIVE"), (1.8, "CONFIRMED")):
        logs = [math.log(times) + 0.05 * (-1) ** block for block in range(10)]
        monkeypatch.setattr(card, "told_log_ratios", lambda *_, logs=logs: logs)
        assert verdicts(long, "Graph 1: ZeroMQ") == [expected]


def test_samples_that_spread_reach_under_zero() -> None:
    """Samples under zero decide nothing on their mean: the text has their number, and there is no verdict."""
    paused = World(lambda _, __: 100.0, slice_noise=0.02, pauses=lambda _: 20.0)
    for found, number in ((seen(), "in 0 of"), (of_world(paused), "in 16 of")):
        claim = the(found, "Some intervals")
        assert claim.verdict == "NOT TESTABLE"
        assert number in claim.said


def test_before_a_look_no_measurement_decides() -> None:
    """Claims on counts in the sources alone are decided, and on throughput, which has no look."""
    early = with_rows(seen(number=9), ())
    decided = [claim.text for claim in claims(early) if claim.verdict in ("CONFIRMED", "CONTRADICTED")]
    assert decided
    assert all("lines" in text for text in decided)
