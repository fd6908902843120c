"""Tables and stress tests on real servers: observations, wrong replies, wrong keys, and the end of all processes."""

import dataclasses
import shutil
import sys
from collections.abc import Iterator

import pytest

from experiments.kinds.stress import FinalState
from experiments.kinds.table import Cell, TablePlan
from experiments.measure import stress, table
from experiments.measure.bench import CATALOG, Bench, bench
from experiments.measure.load_programs import LoadProgram, load_programs
from stock_service.rpc.errors import Unavailable
from tests.unit.experiments.cells_seen import BASE
from tests.unit.experiments.stress_seen import ENTITY, PLAN

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler as cc")]


@pytest.fixture(scope="module")
def on() -> Iterator[Bench]:
    """A bench with the load program, which is built once."""
    with load_programs(("c-http",)) as built:
        program = built["c-http"]
        assert isinstance(program, LoadProgram)
        yield bench(CATALOG, load_programs={"c-http": program})


@pytest.mark.usefixtures("no_leaks")
def test_a_block_has_every_cell(on: Bench) -> None:
    """Every cell has its answered requests, bytes and times, and samples of the server."""
    plan = TablePlan(
        "study",
        "part",
        tuple(
            Cell(BASE.but(mix=mix, connections=5), 500, pinned) for mix in ("get", "put") for pinned in (True, False)
        ),
        (),
        1,
    )
    runs = tuple(table.runs(plan, 1, on))
    assert tuple(run.place for run in runs) == plan.order(1)
    for run in runs:
        cell, seen = plan.cells[run.place], run.seen
        assert (seen.requests, seen.errors, seen.load_requests) == (500, 0, 500 + cell.warm_up)
        assert 0 < seen.connect_us < seen.response_us
        assert min(seen.received_bytes, seen.sent_bytes) > 500 * 40
        assert seen.server_cpu_s > 0
        assert len(seen.cpu_samples) == len(seen.memory_samples_mib) > 0
        assert min(seen.memory_samples_mib) > 1
        assert 0 < seen.sampled_cpu_s / seen.sampled_s <= max(seen.cpu_samples) * (1 + 1e-9)


def test_a_server_that_answers_something_else_is_told_of(on: Bench) -> None:
    """Equal but wrong replies are refused."""
    # Our server of another service, which has no entity.
    other = f"{sys.executable} -m experiments.services serve echo --transport http1 --port 0"
    plan = TablePlan("study", "part", (Cell(BASE.but(service=other), 5),), (), 1)
    with pytest.raises(Unavailable, match="GET /entities/1: 0 correct replies"):
        tuple(table.runs(plan, 1, on))


@pytest.mark.usefixtures("no_leaks")
def test_every_key_is_looked_at(on: Bench) -> None:
    """An updated key has the value of one of its turns. A value of no turn and a missing key are wrong."""
    planted = FinalState("planted", "GET /entities/{id}", 2000, 20, ENTITY)
    missing = FinalState("missing", "GET /entities/{id}", 9000, 3, ENTITY)
    plan = dataclasses.replace(PLAN, final=(*PLAN.final, planted, missing))
    (run,) = stress.runs(plan, 1, on)
    server = run.seen
    assert [(kind.requests, kind.errors) for kind in server.kinds] == [(20, 0), (40, 0)]
    new, updated, wrong, none = server.final
    assert (new.right, new.wrong) == (20, 0)
    assert (updated.right, updated.wrong) == (20, 0)
    assert (wrong.right, wrong.wrong) == (0, 20)
    assert (none.right, none.wrong) == (0, 3)
