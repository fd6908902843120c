"""Made-up reports of clients and results of runs, for tests of their readers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import TYPE_STEP
from clients.load.record.dependence import ArrivalCheck, arrival_check
from clients.load.record.recorder import ClientReport, Recorder
from clients.load.record.records import Records, Window
from clients.load.record.result import LoadResult, combine
from stock_service.trading.model import Status

PLAN = LoadPlan("sockets", ("127.0.0.1", 50052), 2, {"lookup": 1.0, "trade": 1.0}, ("GameStart",), 1.0, 2.0)
OPEN = replace(PLAN, rate_hz=1000.0, arrivals="constant")
WINDOW = Window(0, 1_000_000_000, 3_000_000_000)

US, MS = 1000, 1_000_000


def closed_records(took_us: int = 200, think_us: int = 50, start_ns: int = 0) -> Records:
    """One connection's closed loop, with Lookups and Trades in turn."""
    records = Records()
    records.note_connect(start_ns, start_ns + 50 * US)
    now_ns, place = start_ns, 0
    while now_ns < WINDOW.end_ns:
        records.started += 1
        records.note(now_ns, now_ns + took_us * US, place % 2 * TYPE_STEP + Status.OK)
        if place == 0:
            records.note_first()
        now_ns += (took_us + think_us) * US
        place += 1
    return records


def report(client: int, *connections: Records, plan: LoadPlan = PLAN, cpu_s: float = 0.5) -> ClientReport:
    """The report of a client with these connections."""
    recorder = Recorder(replace(plan, connections_per_client=max(1, len(connections))), client, WINDOW)
    for number, records in enumerate(connections):
        recorder.fold(records, recorder.new_span(number))
    return ClientReport(client, recorder.recorded(), cpu_s)


def closed_run(*connections: Records) -> LoadResult:
    """A run of one client with these connections."""
    plan = replace(PLAN, clients=1, connections_per_client=len(connections))
    return combine(plan, WINDOW, [report(0, *connections, plan=plan)])


def open_run(times_us: Sequence[int] = (200,), late_us: int = 3, count: int = 2000, failed: int = 0) -> LoadResult:
    """A run of one client: this number of requests evenly over the window, with these times in turn, Lookups and
    Trades."""
    plan = replace(OPEN, clients=1, rate_hz=count / 2.0)
    records = Records()
    gap_ns = (WINDOW.end_ns - WINDOW.start_ns) // count
    for place in range(count):
        due_ns = WINDOW.start_ns + place * gap_ns
        took_ns = times_us[place % len(times_us)] * US
        outcome = place % 2 * TYPE_STEP + (31 if place < failed else Status.OK)
        records.started += 1
        records.note(due_ns + late_us * US, due_ns + took_ns, outcome, due_ns)
    return combine(plan, WINDOW, [report(0, records, plan=plan)])


def bad_arrivals() -> ArrivalCheck:
    """Check of arrivals that came all at once."""
    return arrival_check(np.zeros(1000, dtype=np.int64) + 1, 1000.0, "poisson")
