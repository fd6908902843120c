"""Costs of waiting for the lock: by strategy and request type, with the least and the greatest block."""

from collections.abc import Sequence

from experiments.design.arms import Arm
from experiments.show.content import Seen
from experiments.studies.stock import figures, sweeps
from experiments.studies.stock.locks import CAVEAT, lock_details, lock_waits
from stock_service.trading.locking import LOCKINGS
from tests.unit.experiments.blocks import World, stage_summary
from tests.unit.experiments.studies.stock.judgements import SCALE, judgement, planted

SWEEP = sweeps.lock_waits(SCALE)

BY_LOCKING = {"mutex": 0.5, "per-stock": 0.6, "read-write": 2.0, "two-level": 4.0, "snapshot": 0.0}


def waiting(errors: Sequence[Arm] = ()) -> World:
    """A world with waits by strategy. A Trade waits half a µs longer, and a snapshot's Lookup takes no lock."""
    stages = {}
    for arm in SWEEP.arms:
        locking = arm.setting.text("locking")
        wait_us = BY_LOCKING.get(locking, 0.0)
        lookup = stage_summary(wait_us, locked=0 if locking == "snapshot" else 1000)
        stages[arm] = {"lookup": lookup, "trade": stage_summary(wait_us + 0.5)}
    return planted(stages=stages, scatter=0.0, errors=errors)


def test_every_strategy_is_told() -> None:
    """The details have the mutex for both transports and requests, the longer wait of each other strategy, and the
    largest share."""
    details = lock_details(judgement(SWEEP, 3, waiting()))
    further = tuple(f"Under {each}, " for each in LOCKINGS if each not in BY_LOCKING)
    assert tuple(each for each in details if not each.startswith(further)) == (
        "A Lookup waits for the mutex on sockets with 5 clients: 0.500 µs (0.500 to 0.500 in 3 blocks), 0.100 % of its "
        "latency.",
        "A Trade waits for the mutex on sockets with 5 clients: 1.00 µs (1.00 to 1.00 in 3 blocks), 0.200 % of its "
        "latency.",
        "A Lookup waits for the mutex on gRPC with 5 clients: 0.500 µs (0.500 to 0.500 in 3 blocks), 0.100 % of its "
        "latency.",
        "A Trade waits for the mutex on gRPC with 5 clients: 1.00 µs (1.00 to 1.00 in 3 blocks), 0.200 % of its "
        "latency.",
        "Under per-stock, a Trade waits: 1.10 µs (1.10 to 1.10 in 3 blocks), 0.220 % of its latency.",
        "Under read-write, a Trade waits: 2.50 µs (2.50 to 2.50 in 3 blocks), 0.500 % of its latency.",
        "Under two-level, a Trade waits: 4.50 µs (4.50 to 4.50 in 3 blocks), 0.900 % of its latency.",
        "Under snapshot, a Trade waits: 0.500 µs (0.500 to 0.500 in 3 blocks), 0.100 % of its latency. A Lookup takes "
        "no lock.",
        "The largest share of the latency: 0.900 %, for a Trade under two-level on sockets.",
        CAVEAT,
    )


def test_one_block_has_no_spread() -> None:
    """The wait of a single block has no least and greatest block."""
    assert "1.00 µs (1 block), " in lock_details(judgement(SWEEP, 1, waiting()))[1]


def test_without_stages_nothing_was_stamped() -> None:
    """Without stamped stages the details have no number."""
    assert lock_details(judgement(SWEEP, 3, planted())) == ("No lock wait was stamped.",)


def test_blocks_with_errors_are_left_out() -> None:
    """An arm that a gate refuses in every block has no wait."""
    arm = Arm(sweeps.GRPC.but(mix=sweeps.MIXED, clients=5))
    assert not [each for each in lock_waits(judgement(SWEEP, 3, waiting([arm]))) if each.arm == arm]


def test_a_wait_that_was_not_measured_is_not_drawn_as_no_lock() -> None:
    """The figure tells a request without a lock from an arm that a gate refuses. Without blocks it has no wait."""
    arm = Arm(sweeps.GRPC.but(mix=sweeps.MIXED, clients=5))
    (drawn,) = figures.lock_waits(Seen(judgement(SWEEP, 3, waiting([arm]))))
    assert "mutex, gRPC: lookup not measured; mutex, gRPC: trade not measured" in drawn.alternative
    assert "snapshot, sockets: lookup no lock" in drawn.alternative
    (empty,) = figures.lock_waits(Seen(judgement(SWEEP, 0, waiting())))
    assert "lookup no lock" not in empty.alternative
