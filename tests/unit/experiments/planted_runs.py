"""Planted runs: what an execution would have seen, from times that are drawn, folded as those of real clients are.

Every number that a run's record has comes from the load client's own recorder and ``combine``; only the times were
never measured. ``sweep`` runs a small design of every kind of part with them, in a second or two.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import TYPE_STEP, fault_outcome
from clients.load.record.recorder import ClientReport, Recorder
from clients.load.record.records import Records, Window
from clients.load.record.result import LoadResult, combine
from clients.load.run.floor import Floor
from experiments.design import LOOKUP_AND_TRADE, Design, Factor, Run, Setting, cross
from experiments.observation import LockWait, Machine, Observation
from experiments.runner import Sweep, Watch, run_sweep
from experiments.timeline import StageSummary, StageTimes
from stock_service.rpc.errors import DeadlineExceeded
from stock_service.trading.model import Status

MEAN_NS = 400_000
"""Of a response time."""

FAULT_EVERY = 97
"""One request in so many fails."""

_CLIENTS = Factor("clients", (1, 2))
_BASE = Setting("figure_4", warm_up_s=0.01, duration_s=0.05)

DESIGN = Design(
    (
        *cross(Setting("figure_2", 0.01, 0.05, transport="grpc"), _CLIENTS),
        *cross(_BASE, _CLIENTS),
        Setting("locks", 0.01, 0.05, mix=LOOKUP_AND_TRADE, lock_waits=True),
        Setting("stages", 0.01, 0.05, workers=5, timeline=True),
        Setting("offered_load", 0.01, 0.05, client="lean", connections=2, rate_hz=4000.0),
    ),
    blocks=2,
    seed=4,
    once=(Setting("idle", 0.01, 0.05, clients=0, connections=100),),
)
"""Closed and open loops, one request type and two, lock waits, stages, and a server that nobody calls."""


def observed(run: Run, keep_records: bool = False) -> Observation:
    """What was seen of a run: the same for the same run."""
    setting, rng = run.setting, random.Random(run.seed)
    load = None if setting.clients == 0 else load_result(run, keep_records)
    return Observation(
        started_at=f"2025-01-01T00:{run.block:02d}:{run.order:02d}.000+00:00",
        pinned=True,
        duration_s=setting.duration_s,
        server_cpu_s=rng.uniform(0.01, 0.04),
        server_memory_mib=rng.uniform(20, 30),
        load=load,
        lock_waits={kind: LockWait(rng.uniform(0.2, 0.4), 2.0) for kind in ("read", "write")}
        if setting.lock_waits
        else None,
        stages={name: _stages(rng) for name in ("lookup", "all")} if setting.timeline else None,
        server_threads=setting.workers + 2,
        server_connections=max(setting.clients, 1) * setting.connections,
        floor=None if load is None else Floor(25.5, 61.25),
        machine=Machine(rng.uniform(0, 0.01), rng.uniform(1900, 2100)),
    )


def load_result(run: Run, keep_records: bool = False) -> LoadResult:
    """The load of a run, of drawn times."""
    setting = run.setting
    start_ns = round(setting.warm_up_s * 1e9) + 10_000_000
    window = Window(1, start_ns, start_ns + round(setting.duration_s * 1e9))
    plan = LoadPlan(
        transport=setting.transport,
        address=("127.0.0.1", 1),
        clients=setting.clients,
        connections_per_client=setting.connections,
        mix=dict(setting.mix),
        stocks=("GameStart",),
        warm_up_s=setting.warm_up_s,
        duration_s=setting.duration_s,
        client=setting.client,
        rate_hz=setting.rate_hz,
        keep_records=keep_records,
    )
    reports = []
    for client in range(setting.clients):
        recorder = Recorder(plan, client, window)
        for number in range(setting.connections):
            rng = random.Random(f"{run.seed} {client} {number}")
            records, span = Records(), recorder.new_span(number)
            _send(rng, plan, window, records)
            recorder.fold(records, span)
        reports.append(ClientReport(client, recorder.recorded(), 0.3 * setting.duration_s))
    return combine(plan, window, reports)


def _send(rng: random.Random, plan: LoadPlan, window: Window, records: Records) -> None:
    """One connection from before the window to after it: a first call, then requests, now and then one that fails."""
    records.note_connect(window.connect_ns, window.connect_ns + 900_000)
    now, count = window.connect_ns + 900_000, 0
    for due in _due(rng, plan, window):
        now = max(now + 3_000, due)
        if now >= window.end_ns:
            break
        took = round(rng.lognormvariate(0, 0.5) * MEAN_NS / (1 if plan.rate_hz is None else 4))
        fails = count % FAULT_EVERY == FAULT_EVERY - 1
        ended = fault_outcome(DeadlineExceeded("late")) if fails else int(Status.OK)
        place = rng.randrange(len(plan.mix))
        records.started += 1
        records.note(now, now + took, place * TYPE_STEP + ended, None if plan.rate_hz is None else due or now)
        if not count:
            records.note_first()
        now, count = now + took, count + 1


def _due(rng: random.Random, plan: LoadPlan, window: Window) -> Iterator[int]:
    """When requests are due; 0 for at once."""
    due = window.connect_ns + 1_000_000
    while True:
        if plan.rate_hz is None:
            yield 0
        else:
            yield due
            due += round(rng.expovariate(plan.rate_hz / plan.connections) * 1e9)


def _stages(rng: random.Random) -> StageSummary:
    queue, preparation, lock, service, reply, total = (StageTimes(rng.uniform(1, 9), 1.5, None) for _ in range(6))
    return StageSummary(150, 150, 5, queue, preparation, lock, service, reply, total, violations=0, violation_share=0.0)


def stolen_from(seen: Observation, share: float) -> Observation:
    """The same, with so much of the cores' time stolen."""
    assert seen.machine is not None
    return replace(seen, machine=replace(seen.machine, steal_share=share))


class Stolen:
    """Does planted runs of which time is stolen: for each run's id, of its first attempt, its second and so on.

    Of other runs and attempts, less than the limit.
    """

    def __init__(self, shares: Mapping[str, Sequence[float]], keep_records: bool = False, fail_at: int = 0) -> None:
        """``fail_at``: the attempt, of all runs together and from 1, that is interrupted."""
        self.executed: list[str] = []
        self.said: list[tuple[str, float]] = []
        self._shares = {run_id: iter(of) for run_id, of in shares.items()}
        self._keep_records, self._fail_at = keep_records, fail_at

    def execute(self, run: Run) -> Observation:
        """Does one attempt."""
        if len(self.executed) + 1 == self._fail_at:
            raise KeyboardInterrupt
        before = self.executed.count(run.run_id)
        self.executed.append(run.run_id)
        seen = observed(replace(run, seed=run.seed + before), self._keep_records)
        seen = replace(seen, started_at=f"attempt {len(self.executed)} of the sweep")
        share = next(self._shares.get(run.run_id, iter(())), None)
        return seen if share is None else stolen_from(seen, share)

    def again(self, run: Run, share: float) -> None:
        """Told before a run is done again."""
        self.said.append((run.run_id, share))

    def sweep(self, folder: Path, design: Design, resume: bool = False) -> None:
        """Runs a sweep."""
        watch = Watch(lambda _: None, lambda _: None, lambda _: None, self.again)
        run_sweep(Sweep("stock", design, folder), self.execute, resume, watch)


def sweep(folder: Path, keep_records: bool = False, design: Design = DESIGN) -> Path:
    """A whole sweep of planted runs in a folder: its design, records, rows and environment, and no figures."""
    watch = Watch(lambda _: None, lambda _: None, lambda _: None, lambda *_: None)
    run_sweep(Sweep("stock", design, folder), lambda run: observed(run, keep_records), False, watch)
    return folder
