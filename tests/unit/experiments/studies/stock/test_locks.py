"""Costs of waiting for the lock: by strategy and request type, with the least and the greatest block."""

from collections.abc import Sequence

from experiments.design.arms import Arm
from experiments.show.content import Seen
from experiments.studies.stock import figures, sweeps
from experiments.studies.stock.locks import lock_details
from tests.unit.experiments.blocks import World, stage_summary
from tests.unit.experiments.studies.stock.judgements import SCALE, judgement, planted

SWEEP = sweeps.lock_waits(SCALE)


def waiting(errors: Sequence[Arm] = ()) -> World:
    """A world in which requests wait 1 µs for the lock. A snapshot's Lookup takes no lock."""
    free = {arm: arm.setting["locking"] == "snapshot" for arm in SWEEP.arms}
    stages = {
        arm: {"lookup": stage_summary(1.0, locked=0 if is_free else 1000), "trade": stage_summary(1.0)}
        for arm, is_free in free.items()
    }
    return planted(stages=stages, scatter=0.0, errors=errors)


def test_one_block_has_no_spread() -> None:
    """The wait of a single block has no least and greatest block."""
    assert "1.00 µs (1 block), " in lock_details(judgement(SWEEP, 1, waiting()))[1]


def test_without_stages_nothing_was_stamped() -> None:
    """Without stamped stages the details have no number."""
    assert lock_details(judgement(SWEEP, 3, planted())) == ("No lock wait was stamped.",)


def test_a_wait_that_was_not_measured_is_not_drawn_as_no_lock() -> None:
    """The figure tells a request without a lock from an arm that a gate refuses. Without blocks it has no wait."""
    arm = Arm(sweeps.GRPC.but(mix=sweeps.MIXED, clients=5))
    (drawn,) = figures.lock_waits(Seen(judgement(SWEEP, 3, waiting([arm]))))
    assert "mutex, gRPC: lookup not measured; mutex, gRPC: trade not measured" in drawn.alternative
    assert "snapshot, sockets: lookup no lock" in drawn.alternative
    (empty,) = figures.lock_waits(Seen(judgement(SWEEP, 0, waiting())))
    assert "lookup no lock" not in empty.alternative
