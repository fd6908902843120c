"""What was seen of one run, as rows: pure.

The client's side comes from the load client's result, the server's from its process: processor time over the measured
window, memory at its end, and, where they were timed, the waits for the catalog's lock, which the server counts over
its whole life, warm-up included.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from clients.load.recorder import Distribution
from clients.load.result import CLIENT_CPU_LIMIT, LoadResult
from experiments.design import Run, Setting, mix_text
from experiments.results import ALL, Row, counts_text


@dataclass(frozen=True, slots=True)
class LockWait:
    """Waits for the catalog's lock, of one kind of request."""

    mean_us: float
    p99_us: float


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


def rows(study: str, run: Run, seen: Observation) -> list[Row]:
    """The rows of a run: one for each request type of its mix, and that of all of them last."""
    requests = [*(name for name, _ in run.setting.mix), ALL] if seen.load is not None else [ALL]
    return [_row(study, run, seen, request) for request in requests]


def _row(study: str, run: Run, seen: Observation, request: str) -> Row:
    setting, load = run.setting, seen.load
    result = None if load is None else load.requests[request]
    errors = _errors(load, request)
    wait = _lock_wait(seen.lock_waits, request)
    share = _client_share(seen)
    return Row(
        study=study,
        part=setting.part,
        block=run.block,
        order=run.order,
        run_id=run.run_id,
        service=setting.service,
        transport=setting.transport,
        executor=setting.executor,
        dispatch=setting.dispatch,
        workers=setting.workers,
        locking=setting.locking,
        clients=setting.clients,
        connections=setting.connections,
        connection=setting.connection,
        mix=mix_text(setting.mix),
        updater=setting.updater,
        request=request,
        count=0 if result is None else result.count,
        errors=sum(errors.values()),
        error_kinds=counts_text(errors),
        starved_clients=0 if load is None else load.starved_clients,
        outcomes="" if result is None else counts_text(result.outcomes),
        duration_s=seen.duration_s,
        throughput_hz=0.0 if result is None else result.throughput_hz,
        throughput_all_hz=0.0 if load is None else load.throughput_hz,
        latency_us_mean=None if result is None else result.mean_us,
        latency_us_p50=None if result is None else result.p50_us,
        latency_us_p90=None if result is None else result.p90_us,
        latency_us_p99=None if result is None else result.p99_us,
        latency_us_p999=None if result is None else result.p999_us,
        latency_us_max=None if result is None else result.max_us,
        latency_us_stddev=None if result is None else result.stddev_us,
        connect_us_mean=None if load is None else _mean(load.connect_us),
        first_call_us_mean=None if load is None else _mean(load.first_call_us),
        n_over_x_us=None if load is None else load.n_over_x_us,
        little_ratio=None if load is None else load.little_ratio,
        server_cpu_s=seen.server_cpu_s,
        server_cpu_us_per_request=_server_us_per_request(setting, seen),
        client_cpu_share=share,
        load_limited=share is not None and share > CLIENT_CPU_LIMIT,
        lock_wait_us_mean=None if wait is None else wait.mean_us,
        lock_wait_us_p99=None if wait is None else wait.p99_us,
        server_memory_mib=seen.server_memory_mib,
        pinned=seen.pinned,
        started_at=seen.started_at,
        seed=run.seed,
    )


def _errors(load: LoadResult | None, request: str) -> Mapping[str, int]:
    """Errors by kind: of a request type in the window; of all, whatever went wrong in the whole run."""
    if load is None:
        return {}
    return load.errors if request == ALL else load.requests[request].errors


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


def _lock_wait(waits: Mapping[str, LockWait] | None, request: str) -> LockWait | None:
    """The waits of the requests of that type; of all together there is no one answer."""
    if waits is None or request == ALL:
        return None
    return waits["read" if request == "lookup" else "write"]


def _mean(times: Distribution | None) -> float | None:
    return None if times is None else times.mean_us
