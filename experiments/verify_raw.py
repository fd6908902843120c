"""Folds every request's own times anew, and says where a run's record has something else.

They go through the load client's own recorder, as they did when they were measured. What they cannot give is left out:
the time of connecting, requests begun and never recorded, processor time, and errors of connecting.
"""

import math
from array import array
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.dependence import ArrivalCheck
from clients.load.record.recorder import ClientReport, RawRecords, Recorder
from clients.load.record.records import Records, Window
from clients.load.record.result import LoadResult, combine
from clients.load.record.times import Times
from experiments.design import Run
from experiments.services.workloads import REQUEST_TYPES

ROUNDING = 1e-9
"""Relative: what adding up a million floats in another order loses."""


def refolded(run: Run, load: LoadResult, raw: RawRecords) -> Iterator[str]:
    """Everything in which a run's record is not that of its requests' own times, in a few words each.

    Raises ValueError or IndexError where they are no requests of such a run.
    """
    if load.loop == "closed" and np.any(raw.due_ns != raw.sent_ns):
        yield "requests of a closed loop that were not due when they were sent"
    again = _again(run, load, raw)
    for name, part in load.parts.items():
        new = again.parts[name]
        for what, has, gives in (("outcomes", part.outcomes, new.outcomes), ("errors", part.errors, new.errors)):
            if dict(has) != dict(gives):
                yield f"{name}: {what} {dict(has)}, and {dict(gives)} by the requests kept"
        if not _equal(part.response, new.response):
            yield f"{name}: response times that are not those of the requests kept"
        if not _equal(part.service, new.service):
            yield f"{name}: service times that are not those of the requests kept"
    for name in ("first_calls", "late", "think"):
        if not _equal(getattr(load, name), getattr(again, name)):
            yield f"{name}: times that are not those of the requests kept"
    for name in ("recorded", "completed", "sending_connections", "served_clients"):
        if getattr(load, name) != getattr(again, name):
            yield f"{name} {getattr(load, name)}, and {getattr(again, name)} by the requests kept"
    same_counts = np.array_equal(load.slices.counts, again.slices.counts)
    if not same_counts or not np.array_equal(load.slices.sums_ns, again.slices.sums_ns):
        yield "slices that are not those of the requests kept"
    checks = zip(load.arrivals, again.arrivals, strict=False)
    if len(load.arrivals) != len(again.arrivals) or not all(_same_check(one, new) for one, new in checks):
        yield "arrivals that are not those of the requests kept"


def _again(run: Run, load: LoadResult, raw: RawRecords) -> LoadResult:
    setting = run.setting
    plan = LoadPlan(
        transport=setting.transport,
        address=("127.0.0.1", 0),
        clients=setting.clients,
        connections_per_client=setting.connections,
        mix=dict(setting.mix),
        stocks=("any",),
        connection=setting.connection,
        warm_up_s=setting.warm_up_s,
        duration_s=setting.duration_s,
        request_types=REQUEST_TYPES,
        rate_hz=setting.rate_hz,
        arrivals=setting.arrivals,
    )
    window = Window(0, load.start_ns, load.start_ns + round(load.duration_s * 1e9))
    reports = []
    for client in range(setting.clients):
        recorder = Recorder(plan, client, window)
        for number in range(setting.connections):
            span = recorder.new_span(number)
            recorder.fold(_records(raw, client * setting.connections + number, plan), span)
        reports.append(ClientReport(client, recorder.recorded()))
    return combine(plan, window, reports)


def _records(raw: RawRecords, connection: int, plan: LoadPlan) -> Records:
    """What one connection wrote down."""
    own = np.flatnonzero(raw.connection == connection)
    records = Records()
    if plan.rate_hz is not None:
        records.due = array("q", raw.due_ns[own].tobytes())
    records.sent = array("q", raw.sent_ns[own].tobytes())
    records.done = array("q", raw.done_ns[own].tobytes())
    records.outcomes = array("B", raw.outcomes[own].tobytes())
    records.firsts = array("q", np.flatnonzero(raw.first[own]).tolist())
    records.started = len(own)
    return records


def _equal(one: Times, new: Times) -> bool:
    squares = math.isclose(one.squares, new.squares, rel_tol=ROUNDING)
    exact = [(times.count, times.out_of_range, times.sum_ns, times.min_ns, times.max_ns) for times in (one, new)]
    return squares and exact[0] == exact[1] and all(map(np.array_equal, one.buckets(), new.buckets()))


def _same_check(one: ArrivalCheck, new: ArrivalCheck) -> bool:
    pairs = zip(asdict(one).values(), asdict(new).values(), strict=True)
    return all(
        math.isclose(a, b, rel_tol=ROUNDING) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in pairs
    )
