"""Standalone servers and cold runs on real servers: every place of the plan is observed, and no process remains."""

from collections import Counter

import pytest

from clients.load.run import fleet
from experiments.design.setting import setting
from experiments.kinds.block import Block
from experiments.kinds.cold import ColdCell, ColdPlan, rows
from experiments.kinds.standalone import LoneServer, StandalonePlan
from experiments.measure import cold, standalone
from experiments.measure.bench import CATALOG, bench

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize(("transport", "service"), [("sockets", "echo"), ("grpc", "stock")])
def test_a_server_by_itself_is_seen_with_every_number_of_connections(transport: str, service: str) -> None:
    """A standalone server has its start time, and memory and processor time with every number of connections."""
    of = setting(transport=transport, service=service, mix="lookup" if service == "stock" else "echo")
    plan = StandalonePlan("study", "part", (LoneServer(of, (3, 20)),), 1, 0.05)
    (run,) = standalone.runs(plan, 1, bench(CATALOG))
    server = run.seen
    assert run.machine is not None
    assert server.ready_ms > 1
    assert [held.connections for held in server.held] == [0, 3, 20]
    for held in server.held:
        assert held.resident_mib > 1
        assert held.threads >= 1
        assert 50_000_000 <= held.watched_ns < 30e9
        assert 0 <= held.cpu_ns <= held.watched_ns


def test_a_cold_block_has_every_run() -> None:
    """Each cell runs as often as planned, with all calls answered. Warm-up runs do not count."""
    fleet.warm()
    sockets, grpc = (setting(transport=each) for each in ("sockets", "grpc"))
    cells = (ColdCell(sockets, 1, 2), ColdCell(sockets, 5), ColdCell(grpc, 5))
    plan = ColdPlan("study", "part", cells, blocks=1, warm_up_calls=3)
    block = Block(1, "", 1.0, 2, 1000.0, tuple(cold.runs(plan, 1, bench(CATALOG))))
    assert Counter(each.place for each in block.runs) == {0: 2, 1: 1, 2: 1}
    assert tuple(each.place for each in block.runs) == plan.order(1)
    for each in block.runs:
        assert each.seen.outcomes == {"OK": cells[each.place].calls}
        assert each.machine is not None
        assert each.machine.duration_s > 0
    assert [(row.cell, row.runs, row.errors) for row in rows(plan, block)] == [(cell, cell.runs, 0) for cell in cells]
