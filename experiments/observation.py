"""What was seen of one run, as it is kept, and as rows: pure.

An ``Observation`` is everything that was counted and timed; the rows are computed from it alone, so that whoever has it
can compute every number again (``verify``). The client's side is the load client's result, histograms included; the
server's comes from its process: processor time over the measured window, memory, threads and connections at its end,
and where they were timed the waits for the catalog's lock, which the server counts over its whole life, or the stages
of every request in the window.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from clients.load.record.result import CLIENT_CPU_LIMIT, LoadResult
from clients.load.record.times import Distribution
from clients.load.run.floor import Floor
from experiments.design import Run, Setting, mix_text
from experiments.percentiles import effective_count
from experiments.results import ALL, Row, counts_text
from experiments.steady_state import SLICES_MIN, SteadyState, detect, tenths
from experiments.timeline import StageSummary


@dataclass(frozen=True, slots=True)
class LockWait:
    """Waits for the catalog's lock, of one kind of request."""

    mean_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine around one run. The calibration is a fixed piece of work on the server's core, timed before it."""

    steal_share: float
    """Of all cores' time during the run, what the hypervisor gave to others."""
    calibration_us: float


@dataclass(frozen=True, slots=True)
class Observation:
    """One run as it was seen. ``load`` is None where nobody sent."""

    started_at: str
    pinned: bool
    duration_s: float
    server_cpu_s: float | None
    """None where the window was not seen in time."""
    server_memory_mib: float
    load: LoadResult | None = None
    lock_waits: Mapping[str, LockWait] | None = None
    """For ``read`` and ``write``; None where they were not timed."""
    updater_cpu_s: float = 0.0
    """Processor time of the price updater in the window; 0 without one."""
    stages: Mapping[str, StageSummary] | None = None
    """By request type, and of all; None where they were not stamped."""
    server_threads: int | None = None
    server_connections: int | None = None
    floor: Floor | None = None
    machine: Machine | None = None

    @property
    def steal_share(self) -> float | None:
        """Of all cores' time during the run, what the hypervisor gave to others; None where it was not counted."""
        return None if self.machine is None else self.machine.steal_share


def rows(study: str, run: Run, seen: Observation, attempt: int = 1) -> list[Row]:
    """The rows of a run, of the attempt that counts: one for each request type of its mix, and that of all of them
    last."""
    requests = [*(name for name, _ in run.setting.mix), ALL] if seen.load is not None else [ALL]
    return [_row(study, run, seen, request, attempt) for request in requests]


def steadiness(load: LoadResult) -> SteadyState | None:
    """Whether the run's response times show no trend; None where too few slices of it have a reply to tell."""
    means = load.slices.means_us()
    return detect(means) if len(means) >= SLICES_MIN else None


def _tenths(load: LoadResult) -> str:
    """How the response times went over the window, for ``Row.tenths``."""
    means = load.slices.means_us()
    return " ".join(f"{share:.5g}" for share in tenths(means)) if len(means) >= SLICES_MIN else ""


def _row(study: str, run: Run, seen: Observation, request: str, attempt: int) -> Row:
    columns: Columns = {"study": study, "request": request, "attempt": attempt}
    columns |= _set(run) | _answered(seen, request)
    columns |= _told_by_client(seen) | _told_by_server(seen, run.setting, request)
    return Row(**columns)  # type: ignore[arg-type]  # every column is there, as tests/unit/experiments check


Columns = dict[str, object]


def _set(run: Run) -> Columns:
    """What was set, and the run's place."""
    setting = run.setting
    names = "part service transport executor dispatch workers locking clients connections connection updater client"
    same = (*names.split(), "loop", "rate_hz", "timeline", "warm_up_s")
    columns: Columns = {name: getattr(setting, name) for name in same}
    columns |= {name: getattr(run, name) for name in ("block", "order", "run_id", "seed")}
    arrivals = "" if setting.rate_hz is None else setting.arrivals
    return columns | {"mix": mix_text(setting.mix), "arrivals": arrivals}


def _answered(seen: Observation, request: str) -> Columns:
    """One request type, or all: how its requests ended, and how long they took."""
    load = seen.load
    result = None if load is None else load.requests[request]
    errors = _errors(load, request)
    measured = ("mean", "p50", "p90", "p99", "p999", "max", "stddev")
    columns: Columns = {f"response_us_{name}": getattr(result, f"{name}_us", None) for name in measured}
    columns |= {name: getattr(result, name, None) for name in ("service_us_mean", "service_us_p50", "service_us_p99")}
    return columns | {
        "count": 0 if result is None else result.count,
        "errors": sum(errors.values()),
        "error_kinds": counts_text(errors),
        "outcomes": "" if result is None else counts_text(result.outcomes),
        "throughput_hz": 0.0 if result is None else result.throughput_hz,
        "effective_count": None if load is None or result is None else _effective(load, result.count),
    }


def _told_by_client(seen: Observation) -> Columns:
    """What the load side knows of the run as a whole."""
    load = seen.load
    steady = None if load is None else steadiness(load)
    arrivals = None if load is None else max(load.arrivals, key=lambda check: check.ks_distance, default=None)
    share = _client_share(seen)
    same = ("think_us", "n_over_x_us", "little_ratio")
    think, n_over_x, little = (None if load is None else getattr(load, name) for name in same)
    return {
        "starved_clients": 0 if load is None else load.starved_clients,
        "lost": 0 if load is None else load.began - load.recorded,
        "throughput_all_hz": 0.0 if load is None else load.throughput_hz,
        "late_us_p99": None if load is None or load.late_us is None else load.late_us.p99_us,
        "arrival_rate_ratio": None if arrivals is None else arrivals.rate_ratio,
        "arrival_variation": None if arrivals is None else arrivals.coefficient_of_variation,
        "arrival_ks_distance": None if arrivals is None else arrivals.ks_distance,
        "arrival_dispersion": None if arrivals is None else arrivals.dispersion_long,
        "think_us_mean": think,
        "steady": None if steady is None else steady.from_start,
        "tenths": "" if load is None else _tenths(load),
        "floor_us_p50": None if seen.floor is None else seen.floor.floor_us_p50,
        "connect_us_mean": None if load is None else _mean(load.connect_us),
        "first_call_us_mean": None if load is None else _mean(load.first_call_us),
        "n_over_x_us": n_over_x,
        "little_ratio": little,
        "client_cpu_share": share,
        "load_limited": _load_limited(load, share),
    }


def _told_by_server(seen: Observation, setting: Setting, request: str) -> Columns:
    """What the server's process and the machine showed."""
    wait = _lock_wait(seen.lock_waits, request)
    stages = None if seen.stages is None else seen.stages.get(request)
    same = ("duration_s", "server_cpu_s", "server_memory_mib", "server_threads", "server_connections", "pinned")
    columns: Columns = {name: getattr(seen, name) for name in (*same, "started_at")}
    for column, stage in _STAGES.items():
        columns[f"stage_{column}_us_mean"] = None if stages is None else getattr(stages, stage).mean_us
    return columns | {
        "server_cpu_us_per_request": _server_us_per_request(setting, seen),
        "lock_wait_us_mean": None if wait is None else wait.mean_us,
        "lock_wait_us_p99": None if wait is None else wait.p99_us,
        "stage_total_us_p50": None if stages is None else stages.total.p50_us,
        "stage_total_us_p99": None if stages is None else stages.total.p99_us,
        "stage_violation_share": None if stages is None else stages.violation_share,
        "calibration_us": None if seen.machine is None else seen.machine.calibration_us,
        "steal_share": seen.steal_share,
    }


_STAGES = {
    "queue": "queue_wait",
    "preparation": "preparation",
    "lock": "lock_wait",
    "service": "service",
    "reply": "reply",
    "total": "total",
}
"""What a stage is called in a column, and in the timeline's summary."""


def _errors(load: LoadResult | None, request: str) -> Mapping[str, int]:
    """Errors by kind: of a request type in the window; of all, whatever went wrong in the whole run."""
    if load is None:
        return {}
    return load.errors if request == ALL else load.requests[request].errors


def _effective(load: LoadResult, count: int) -> float:
    return effective_count(count, load.slices.design_effect(99.0))


def _server_us_per_request(setting: Setting, seen: Observation) -> float | None:
    """Of the clients' requests; None where the updater's, which are counted nowhere, are in the server's time too."""
    count = 0 if seen.load is None else seen.load.requests[ALL].count
    if seen.server_cpu_s is None or not count or setting.updater:
        return None
    return seen.server_cpu_s / count * 1e6


def _client_share(seen: Observation) -> float | None:
    """Of one core: where the load side has one between them, of all clients and updater; otherwise of the busiest."""
    if seen.load is None:
        return None
    if not seen.pinned:
        return seen.load.client_cpu_share
    return (seen.load.client_cpu_s + seen.updater_cpu_s) / seen.load.duration_s


def _load_limited(load: LoadResult | None, share: float | None) -> bool:
    """In a closed loop: an open loop's clients wait awake, and whether they keep up is seen by how late they send."""
    if load is None or load.loop == "open":
        return False
    return load.load_limited or (share is not None and share > CLIENT_CPU_LIMIT)


def _lock_wait(waits: Mapping[str, LockWait] | None, request: str) -> LockWait | None:
    """The waits of the requests of that type; of all together there is no one answer."""
    if waits is None or request == ALL:
        return None
    return waits["read" if request == "lookup" else "write"]


def _mean(times: Distribution | None) -> float | None:
    return None if times is None else times.mean_us
