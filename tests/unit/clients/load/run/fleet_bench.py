"""What tests of whole runs have in common: which runs, one that the machine let be, and what must hold of every run."""

import itertools
from collections.abc import Iterable

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import LoadResult
from clients.load.run import fleet
from clients.load.send.driver import LATE_NS

TRIES = 3


def run_in_time(plan: LoadPlan) -> LoadResult:
    """A run in which every client came to send what was due.

    A busy machine may keep a client from its core past the end of the window. What was due then is never sent. A run is
    done again where some request was so late that it was given up, and nothing else was wrong; the last run counts. A
    request that is left unsent without being late is a fault of ours, and nothing is repeated.
    """
    result = fleet.run(plan)
    for _ in range(TRIES - 1):
        late = result.late_us is not None and (result.late_us.max_us or 0.0) * 1000 >= LATE_NS
        if result.errors.keys() != {"never_sent"} or not late:
            break
        result = fleet.run(plan)
    return result


def assert_accounted(result: LoadResult) -> None:
    """Every request that was begun was recorded, and none of them failed."""
    assert result.began == result.recorded > 0
    assert result.errors == {}


def half(*factors: Iterable[object]) -> list[tuple[object, ...]]:
    """Half of all combinations of factors: those in which the levels' places add up to an even number.

    Where each factor has two levels, every level is combined with every one of all factors but one.
    """
    levels = [list(factor) for factor in factors]
    places = itertools.product(*(range(len(each)) for each in levels))
    return [tuple(each[at] for each, at in zip(levels, place, strict=True)) for place in places if sum(place) % 2 == 0]
