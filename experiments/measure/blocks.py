"""One block of a sweep: what its slices or windows showed, with the machine on which they stood."""

import time
from datetime import UTC, datetime

from experiments.design.slots import seed_of, starts
from experiments.design.sweep import Slices, Sweep
from experiments.measure import slices, windows
from experiments.measure.bench import Bench
from experiments.measure.programs import kept_to
from experiments.measure.slices import Watch
from experiments.results.machine import calibrated_us, cores
from experiments.results.observed import Block


def measure(sweep: Sweep, number: int, attempt: int, bench: Bench, watch: Watch) -> Block:
    """Measures a block. Blocks for as long as it takes.

    Raises ProgramFailed where a server does not start or fails; Unavailable where a client of slices cannot connect or
    dies; KeyboardInterrupt. A window whose clients cannot connect is kept as one that failed.
    """
    started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with kept_to(bench.server_cores):
        calibration_us = calibrated_us()
    observe = slices.observe if isinstance(sweep.turns, Slices) else windows.observe
    seen = observe(sweep, number, attempt, bench, watch)
    first = starts(sweep, seed_of(sweep, number, attempt)) if sweep.starts_at_once else ()
    return Block(
        number=number,
        attempt=attempt,
        started_at=started_at,
        duration_s=time.monotonic() - began_s,
        pinned=bench.server_cores is not None,
        calibration_us=calibration_us,
        slices=seen.slices,
        arms=seen.arms,
        servers=seen.servers,
        rounds=seen.rounds,
        cores=len(cores()),
        server_cores=bench.server_cores or (),
        load_cores=bench.load_cores or (),
        starts=[sweep.servers.index(key) for key in first],
    )
