"""Windows whose servers start in turn: measured on real servers, which are there for their group alone."""

from dataclasses import replace

import pytest

from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep, Windows
from experiments.measure.bench import CATALOG, bench
from experiments.measure.runner import measure_block
from experiments.results.observed import KEPT
from tests.unit.experiments.blocks import BESIDE_OTHERS, on_servers

ECHO = setting(service="echo", mix="echo", client="lean", connections=2)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_each_group_has_its_own_servers_while_it_stands() -> None:
    """Loads of one server in two groups are of two processes; every server is looked at before it stops."""
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


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_server_that_is_free_is_pinned_to_no_core() -> None:
    """A server with placement free is pinned to no core, and neither is its load. On one core there is no choice."""
    on = bench(CATALOG)
    apart, free = on.placed({"placement": "apart"}), on.placed({"placement": "free"})
    assert (apart, free.server_cores, free.load_cores) == (on, None, None)
    sweep = on_servers(Windows(0.05, 0.1, in_turn=True), Arm(ECHO.but(placement="free")))
    block = measure_block(sweep, 1, 1, replace(on, server_cores=None))
    assert block.slices.fate == [KEPT]
