"""Planted results of study ``stock``: rows as a run would write them, from a small model of a closed loop.

A server answers a request in ``service_us`` of its one core, and a reply takes ``round_trip_us`` more; N clients that
wait for their replies see the larger of the two bounds. Noise is lognormal, by block and by run. Nothing here was
measured: the tests say with it what must be found, and what must not.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from experiments.design import mix_text
from experiments.results import RESULTS_FILE, ResultsWriter, Row

STRATEGIES = ("mutex", "per-stock", "read-write", "two-level", "snapshot")
MAIN_PARTS = ("figure_1", "figure_2", "figure_3", "figure_4", "figure_5", "locks", "same")
EXTENSIONS = ("socket_trade", "pool_by_clients", "dispatch", "connection_policy", "updater", "lock_strategies")


@dataclass(frozen=True, slots=True)
class World:
    """What is true in a planted study."""

    blocks: int = 9
    seed: int = 4
    noise: float = 0.02
    """Standard deviation of the logarithm of a run's latency."""
    block_noise: float = 0.05
    sockets_factor: float = 0.3
    """Latency of sockets ÷ gRPC."""
    trade_factor: float = 1.0
    pool_jump: float = 1.0
    """Latency × this where clients exceed the pool."""
    growth: bool = True
    """False: the latency is the same whatever the number of clients."""
    lock_wait_us: float = 0.4
    load_limited: bool = False
    service_factor: float = 1.0
    """Time of the server in every request × this."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run's factors."""

    part: str
    transport: str
    clients: int
    requests: tuple[str, ...] = ("lookup",)
    workers: int = 10
    locking: str = "mutex"
    dispatch: str = "request"
    connection: str = "kept-alive"
    updater: bool = False
    lock_timed: bool = False


def rows_of(world: World, parts: tuple[str, ...] = MAIN_PARTS) -> list[Row]:
    """The rows of every run of ``parts``, and of those that the study runs beside them, blocks in order."""
    if not set(parts) & set(MAIN_PARTS):
        parts += ("same", "same_again")
    random = Random(world.seed)
    rows: list[Row] = []
    for block in range(1, world.blocks + 1):
        shift = random.gauss(0, world.block_noise)
        settings = [setting for part in parts for setting in _settings(part)]
        random.shuffle(settings)
        for order, setting in enumerate(settings, start=1):
            factor = math.exp(shift + random.gauss(0, world.noise))
            rows.extend(_run(world, setting, (block, order), factor))
    return rows


def write_results(folder: Path, rows: list[Row]) -> Path:
    """A results folder with these rows and no environment."""
    folder.mkdir(parents=True, exist_ok=True)
    with ResultsWriter(folder / RESULTS_FILE) as writer:
        writer.append(rows)
    return folder


def swapped(rows: list[Row]) -> list[Row]:
    """The same results with the two servers exchanged in figures 2 and 4, so that what was faster is slower."""
    by_key = {(row.part, row.block, row.clients, row.request): row for row in rows}
    other = {"figure_2": "figure_4", "figure_4": "figure_2"}
    result = []
    for row in rows:
        twin = by_key.get((other.get(row.part, ""), row.block, row.clients, row.request))
        if row.part == "same":
            result.append(replace(row, transport="grpc" if row.transport == "sockets" else "sockets"))
            continue
        kept = {name: getattr(row, name) for name in ("part", "transport", "workers", "order", "run_id")}
        result.append(replace(twin, **kept) if twin else row)
    return result


def _settings(part: str) -> Iterator[Setting]:
    few, many = range(1, 6), range(1, 11)
    both = ("lookup", "trade")
    match part:
        case "figure_1":
            yield from (Setting(part, "grpc", n, both, updater=True) for n in few)
        case "figure_2":
            yield from (Setting(part, "grpc", n) for n in few)
        case "figure_3":
            yield from (Setting(part, "grpc", n, ("trade",)) for n in few)
        case "figure_4":
            yield from (Setting(part, "sockets", n) for n in few)
        case "same" | "same_again":
            yield from (Setting(part, transport, n) for transport in ("grpc", "sockets") for n in (1, 5))
        case "figure_5":
            yield from (Setting(part, "sockets", n, workers=5) for n in many)
        case "locks" | "lock_strategies":
            mixes = (both,) if part == "locks" else (("lookup",), ("trade",), both)
            counts = (5,) if part == "locks" else (1, 5)
            for mix in mixes:
                for n in counts:
                    yield from (Setting(part, "sockets", n, mix, locking=s, lock_timed=True) for s in STRATEGIES)
        case "socket_trade":
            yield from (Setting(part, "sockets", n, (request,)) for n in few for request in both)
            yield from (Setting(part, "grpc", n, ("trade",)) for n in few)
        case "pool_by_clients":
            pools, past = (1, 3, 5, 10), (1, 2, 3, 4, 5, 10)
            yield from (Setting(part, "sockets", n, workers=w) for w in pools for n in past)
        case "dispatch":
            yield from (
                Setting(part, "sockets", n, workers=5, dispatch=d) for d in ("request", "connection") for n in many
            )
        case "connection_policy":
            policies = ("kept-alive", "per-request")
            yield from (
                Setting(part, t, n, connection=c) for t in ("grpc", "sockets") for c in policies for n in (1, 5)
            )
        case "updater":
            servers, counts = ("grpc", "sockets"), (1, 5)
            yield from (Setting(part, t, n, both, updater=u) for t in servers for u in (False, True) for n in counts)


_ALIKE: dict[str, object] = {
    "client": "library",
    "loop": "closed",
    "rate_hz": None,
    "arrivals": "",
    "timeline": False,
    "lost": 0,
    "late_us_p99": None,
    "arrival_rate_ratio": None,
    "arrival_variation": None,
    "arrival_ks_distance": None,
    "arrival_dispersion": None,
    "think_us_mean": 0.0,
    "steady": True,
    "tenths": " ".join(["1"] * 10),
    "floor_us_p50": 20.0,
    "stage_queue_us_mean": None,
    "stage_preparation_us_mean": None,
    "stage_lock_us_mean": None,
    "stage_service_us_mean": None,
    "stage_reply_us_mean": None,
    "stage_total_us_mean": None,
    "stage_total_us_p50": None,
    "stage_total_us_p99": None,
    "stage_violation_share": None,
    "calibration_us": 2000.0,
    "steal_share": 0.0,
    "attempt": 1,
    "server_memory_mib": 31.0,
    "pinned": True,
    "started_at": "2025-01-01T00:00:00+00:00",
    "server_cpu_s": 1.0,
    "connect_us_mean": 180.0,
    "little_ratio": 1.0,
    "duration_s": 2.0,
    "warm_up_s": 0.5,
    "connections": 1,
    "study": "stock",
    "service": "stock",
    "executor": "static-pool",
}
"""What every planted run has alike."""


def _run(world: World, setting: Setting, place: tuple[int, int], factor: float) -> Iterator[Row]:
    starved = max(setting.clients - setting.workers, 0) if setting.dispatch == "connection" else 0
    sending = setting.clients - starved
    base = _latency_us(world, setting, sending) * factor
    per_request = {r: base * (world.trade_factor if r == "trade" else 1) for r in setting.requests}
    mean = sum(per_request.values()) / len(per_request)
    x_hz = sending / mean * 1e6
    block, order = place
    run_id = f"{block:03d}-{order:03d}"
    for request in (*setting.requests, "all"):
        latency = per_request.get(request, mean)
        share = 1.0 if request == "all" else 1 / len(setting.requests)
        yield Row(
            part=setting.part,
            block=block,
            order=order,
            run_id=run_id,
            transport=setting.transport,
            dispatch=setting.dispatch,
            workers=setting.workers,
            locking=setting.locking,
            clients=setting.clients,
            connection=setting.connection,
            mix=mix_text((request, 1 / len(setting.requests)) for request in setting.requests),
            updater=setting.updater,
            request=request,
            count=int(x_hz * share * 2),
            errors=0,
            error_kinds="",
            starved_clients=starved,
            outcomes=f"OK:{int(x_hz * share * 2)}",
            throughput_hz=x_hz * share,
            throughput_all_hz=x_hz,
            response_us_mean=latency,
            response_us_p50=latency * 0.93,
            response_us_p90=latency * 1.3,
            response_us_p99=latency * 2.8 * factor**4,
            response_us_p999=latency * 6,
            response_us_max=latency * 20,
            response_us_stddev=latency * 0.6,
            effective_count=float(int(x_hz * share * 2)),
            service_us_mean=latency,
            service_us_p50=latency * 0.93,
            service_us_p99=latency * 2.8 * factor**4,
            first_call_us_mean=latency * 4,
            n_over_x_us=mean,
            server_cpu_us_per_request=min(_service_us(world, setting), 1e6 / x_hz),
            client_cpu_share=0.6 if not world.load_limited else 0.93,
            load_limited=world.load_limited,
            lock_wait_us_mean=_lock_wait_us(world, setting, request) * factor if setting.lock_timed else None,
            lock_wait_us_p99=_lock_wait_us(world, setting, request) * 7 * factor if setting.lock_timed else None,
            server_threads=setting.workers + 2,
            server_connections=setting.clients,
            seed=world.seed,
            **_ALIKE,  # type: ignore[arg-type]  # each is its column's
        )


def _service_us(world: World, setting: Setting) -> float:
    return 260.0 * world.service_factor * (world.sockets_factor if setting.transport == "sockets" else 1.0)


def _latency_us(world: World, setting: Setting, sending: int) -> float:
    service_us = _service_us(world, setting)
    alone_us = service_us * 1.7
    if setting.connection == "per-request":
        alone_us, service_us = alone_us * 3, service_us * 3
    latency = max(alone_us, sending * service_us) if world.growth else alone_us
    return latency * (world.pool_jump if setting.clients > setting.workers else 1.0)


def _lock_wait_us(world: World, setting: Setting, request: str) -> float:
    by_strategy = {"mutex": 1.0, "per-stock": 0.6, "read-write": 4.0, "two-level": 6.0, "snapshot": 0.5}
    if (setting.locking, request) == ("snapshot", "lookup"):
        return 0.0
    kind = {"lookup": 1.0, "trade": 1.1, "all": 1.05}[request]
    return world.lock_wait_us * by_strategy[setting.locking] * kind
