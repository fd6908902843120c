"""Windows with servers that only run while their group is measured."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar, Self

import pytest

from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep, Windows
from experiments.measure import slices
from experiments.measure.bench import CATALOG, Bench, bench
from experiments.measure.runner import measure_block
from experiments.results.observed import KEPT
from stock_service.rpc.transports import Address
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


class Noted:
    """A program that notes its cores instead of starting."""

    pinned: ClassVar[list[tuple[int, ...] | None]] = []

    def __init__(self, _: Sequence[str], cpus: tuple[int, ...] | None, __: Sequence[int]) -> None:
        self.pinned.append(cpus)

    def ready(self) -> Address:
        return "127.0.0.1", 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_a_server_that_is_free_is_pinned_to_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with placement free has no core of its own, and neither has its load. Others are pinned."""
    monkeypatch.setattr(slices, "Program", Noted)
    on = Bench(CATALOG, (0,), (1,))
    arms = [Arm(ECHO.but(placement=each)) for each in ("free", "apart")]
    with ExitStack() as running:
        slices.started([arm.server for arm in arms], on, running)
    assert Noted.pinned == [None, (0,)]
    assert [slices.load_plan(arm, ("127.0.0.1", 1), on, 1).cpus for arm in arms] == [None, (1,)]
