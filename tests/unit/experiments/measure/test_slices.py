"""Loads of the arms of a block."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep
from experiments.measure.bench import CATALOG, bench
from experiments.measure.programs import Program
from experiments.measure.slices import Servers, turn_loads

SEVERAL = Arm(setting(transport="sockets", processes=2))
OTHER = Arm(setting(transport="sockets"))


def test_a_load_is_told_of_every_process_of_its_server() -> None:
    """A load gets the ids of all processes of its server. The list is empty for a server that cannot be read."""
    sweep = Sweep("try", "try", (Group((SEVERAL, OTHER)),), (), 2, (1,))
    program = cast(Program, SimpleNamespace(pids=(7, 8, 9)))
    servers = Servers(dict.fromkeys(sweep.servers, ("127.0.0.1", 5)), {SEVERAL.server: program}, {})
    several, other = turn_loads(sweep, servers, bench(CATALOG), seed=1)
    assert (several.server_pids, other.server_pids) == ((7, 8, 9), ())
    _, other = turn_loads(sweep, replace(servers, running={OTHER.server: (5,)}), bench(CATALOG), seed=1)
    assert other.server_pids == (5,)
