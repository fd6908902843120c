"""Servers and loads of a block: servers that run in turn, their cores, and their processes."""

from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep, Windows
from experiments.measure import slices
from experiments.measure.bench import CATALOG, Bench, bench
from experiments.measure.programs import Program
from experiments.measure.runner import measure_block
from experiments.measure.slices import Servers, turn_loads
from experiments.results.observed import KEPT
from tests.unit.experiments.blocks import BESIDE_OTHERS

ECHO = setting(service="echo", mix="echo", client="lean", connections=2)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_each_group_has_its_own_servers_while_it_stands() -> None:
    """Each group starts its servers. Every server is observed before its end."""
    small, large = (ECHO.but(workers=workers) for workers in (1, 4))
    loads = [Arm(small), Arm(large), Arm(small.but(connections=4))]
    groups = (Group((loads[0], loads[1])), Group((loads[2],)))
    turns = Windows(warm_up_s=0.05, duration_s=0.1, in_turn=True)
    sweep = Sweep("try", "try", groups, (), 1, (1,), turns=turns, limits=BESIDE_OTHERS)
    block = measure_block(sweep, 1, 1, bench(CATALOG))
    assert block.slices.fate == [KEPT] * 3
    assert sorted(block.slices.arm) == [0, 1, 2]
    threads = [each.threads if each else 0 for each in block.servers]
    assert len(threads) == len(sweep.servers) == 2
    assert threads[1] == threads[0] + 3
    assert min(block.slices.server_cpu_ns) > 0


def test_a_server_that_is_free_is_pinned_to_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with placement free has no core of its own, and neither has its load. Others are pinned."""
    pinned = []

    def program(_: object, cpus: tuple[int, ...] | None, __: object) -> AbstractContextManager[object]:
        pinned.append(cpus)
        return nullcontext(SimpleNamespace(ready=lambda: ("127.0.0.1", 1)))

    monkeypatch.setattr(slices, "Program", program)
    on = Bench(CATALOG, (0,), (1,))
    arms = [Arm(ECHO.but(placement=each)) for each in ("free", "apart")]
    with ExitStack() as running:
        slices.started([arm.server for arm in arms], on, running)
    assert pinned == [None, (0,)]
    assert [slices.load_plan(arm, ("127.0.0.1", 1), on, 1).cpus for arm in arms] == [None, (1,)]


def test_a_load_is_told_of_every_process_of_its_server() -> None:
    """A load gets the ids of all processes of its server. The list is empty for a server that cannot be read."""
    arms = Arm(ECHO.but(processes=2)), Arm(ECHO)
    sweep = Sweep("try", "try", (Group(arms),), (), 2, (1,))
    program = cast(Program, SimpleNamespace(pids=(7, 8, 9)))
    servers = Servers(dict.fromkeys(sweep.servers, ("127.0.0.1", 5)), {arms[0].server: program}, {})
    several, other = turn_loads(sweep, servers, bench(CATALOG), seed=1)
    assert (several.server_pids, other.server_pids) == ((7, 8, 9), ())
    _, other = turn_loads(sweep, replace(servers, running={arms[1].server: (5,)}), bench(CATALOG), seed=1)
    assert other.server_pids == (5,)
