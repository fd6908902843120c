"""What tests of whole runs have in common: a run that the machine let be, and what must hold of every run."""

from clients.load import fleet
from clients.load.plan import LoadPlan
from clients.load.result import LoadResult

TRIES = 3


def run_in_time(plan: LoadPlan) -> LoadResult:
    """A run in which every client came to send what was due, and some of each type.

    A busy machine may keep a client from its core past the end of the window, and what was due then is never sent. Such
    a run, if nothing else was wrong with it, is done again by the same plan: what a fault of ours leaves unsent, it
    leaves unsent each time. The last one counts.
    """
    result = fleet.run(plan)
    for _ in range(TRIES - 1):
        everything = all(result.requests[name].count for name in plan.mix)
        if result.errors.keys() != {"never_sent"} and (result.errors or everything):
            break
        result = fleet.run(plan)
    return result


def assert_accounted(result: LoadResult) -> None:
    """Every request that was begun was recorded, and none of them failed."""
    assert result.began == result.recorded > 0
    assert result.errors == {}
