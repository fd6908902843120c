"""The check ``ab``: A/A and A/B on this machine, with real servers; what is judged and how stands in ``ab``.

A run is a fresh echo server on sockets and one lean connection in a closed loop, server and load on a core each. The
slowed arm's server computes a tenth of the plain response longer over every request; the plain response is measured
first. The record that gate 20 can read is written where the check is told to.
"""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from experiments import environment
from experiments.design import ECHO
from experiments.selfcheck import ab
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import found, known, lookups, run, server_cores, times
from experiments.server_process import Program
from experiments.services.workloads import REQUEST_TYPES

LOAD = "an echo on sockets, one lean connection, closed loop, 0.5 s"

WARM_UP_S, DURATION_S = 0.15, 0.5

_TRIED = 5
"""Runs that the plain response is taken from: their median."""

SECONDS = ab.Plan(aa=1, ab=1, aa_blocks=6, looks=(6,))


def check(overnight: bool = False, seconds: bool = False, record_to: Path | None = None) -> list[Finding]:
    """Runs the pairs: some 6 minutes, hours with ``overnight``. Raises OSError where the record cannot be written."""
    plan = SECONDS if seconds else ab.OVERNIGHT if overnight else ab.MINUTES
    return found("A/A and A/B", "equal arms equal, a slowed one slower", lambda: _check(plan, record_to))


def _check(plan: ab.Plan, record_to: Path | None) -> list[Finding]:
    extra_us = ab.extra_us(median(measure(0.0) for _ in range(_TRIED)))

    def arm(name: str, _: int) -> float:
        return measure(extra_us if name == ab.SLOWED else 0.0)

    outcomes = ab.run(arm, plan, lambda line: print(f"  {line}", file=sys.stderr))
    here = environment.look()
    machine = f"{here.cpu_model}, {here.cores} cores"
    record = ab.recorded(outcomes, plan, machine, LOAD, datetime.now(UTC).date().isoformat())
    if record_to is not None:
        ab.save(record, record_to)
    return list(ab.findings(outcomes, record))


def measure(extra_us: float) -> float:
    """One run: the mean response in µs. Raises LoadFailed, ProgramFailed."""
    command = [sys.executable, "-m", "experiments.services", "serve", "echo", "--transport", "sockets", "--port", "0"]
    with Program([*command, "--extra-us", repr(extra_us)], server_cores()) as server:
        plan = lookups("sockets", server.ready())
        mix = dict(ECHO)
        phases = replace(plan, mix=mix, request_types=REQUEST_TYPES, warm_up_s=WARM_UP_S, duration_s=DURATION_S)
        return known(times(run(phases)).mean_us)
