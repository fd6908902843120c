"""Plans of runs other than sweeps: refusals, the order of a block's places, and shared server processes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from experiments.design.setting import setting
from experiments.kinds import Plan
from experiments.kinds.cold import ColdCell, ColdPlan
from experiments.kinds.delivery import DeliveryCell, DeliveryPlan
from experiments.kinds.standalone import HELD_MAX, IDLE_S_MAX, LoneServer, StandalonePlan
from experiments.kinds.table import Cell, CellRatio, TablePlan
from tests.unit.experiments.cells_seen import BASE, FEW, FREE, MANY, PUT, plan

SOCKETS, GRPC = setting(transport="sockets"), setting(transport="grpc")
COLD = tuple(ColdCell(each, calls, runs) for each in (SOCKETS, GRPC) for calls, runs in ((1, 9), (100, 2)))
LONE = LoneServer(SOCKETS)
NNG, ZEROMQ = (setting(service="echo", language="c", transport=each, client="peer") for each in ("nng", "zeromq"))


@pytest.mark.parametrize(
    ("of", "places"),
    [
        (ColdPlan("study", "part", COLD, 20), {0: 9, 1: 2, 2: 9, 3: 2}),
        (StandalonePlan("study", "part", (LONE, LoneServer(GRPC)), 20, 1.0), {0: 1, 1: 1}),
        (DeliveryPlan("study", "part", (DeliveryCell(NNG, 1), DeliveryCell(ZEROMQ, 1)), 20), {0: 1, 1: 1}),
        (plan(20), dict.fromkeys(range(4), 1)),
    ],
)
def test_a_block_has_every_place_in_an_order_of_its_own(of: Plan, places: Mapping[int, int]) -> None:
    """A block has every place as often as planned, in a random order of its seed and number."""
    orders = [of.order(number) for number in range(1, 21)]
    assert all(Counter(order) == places for order in orders)
    assert len(set(orders)) > 1
    assert orders == [of.order(number) for number in range(1, 21)]


def test_a_cell_stands_in_its_first_blocks() -> None:
    """A cell of delivery runs can be left out of later blocks."""
    of = DeliveryPlan("study", "part", (DeliveryCell(NNG, 1, 2), DeliveryCell(ZEROMQ, 1)), 3)
    assert [sorted(of.order(number)) for number in (1, 2, 3)] == [[0, 1], [0, 1], [1]]


def test_a_server_is_looked_at_without_connections_first() -> None:
    """A server is observed first without connections, then with each number of connections."""
    assert LoneServer(SOCKETS, (10, 20)).connections == (0, 10, 20)


def test_cells_that_differ_in_the_request_alone_share_a_process() -> None:
    """Cells with different requests share a server process. Another pool, other connections or other cores need
    another process. A block has the cells of a process together."""
    others = (MANY, FREE, Cell(FEW.setting.but(connections=10), 100))
    of = plan(cells=(FEW, *others, PUT))
    for starts in map(of.starts, range(1, 20)):
        assert sorted(map(sorted, starts)) == [[0, 4], [1], [2], [3]]


ONE_CLIENT = [
    (ColdPlan, ((ColdCell(SOCKETS.but(**levels), 1),), 1), "one client")
    for levels in (
        {"clients": 2},
        {"connections": 2},
        {"connection": "per-request"},
        {"rate_hz": 9.0},
        {"updater": True},
    )
]
"""Loads of more than one client or connection, an open loop, and an updater."""


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        *ONE_CLIENT,
        (ColdPlan, ((), 1), "each once"),
        (ColdPlan, ((COLD[0], ColdCell(COLD[0].setting, COLD[0].calls, 3)), 1), "each once"),
        (ColdPlan, ((ColdCell(SOCKETS, 1, 0),), 1), "at least one"),
        (ColdPlan, (COLD, 0), "at least one"),
        (ColdPlan, ((ColdCell(SOCKETS, 0),), 1), "at least one"),
        (ColdPlan, (tuple(ColdCell(SOCKETS.but(workers=n), 1) for n in range(1, 13)), 1), "12 servers"),
        (DeliveryPlan, ((), 1), "receivers"),
        (DeliveryPlan, ((DeliveryCell(NNG, 0),), 1), "receivers"),
        (DeliveryPlan, ((DeliveryCell(NNG, 1), DeliveryCell(NNG, 2)), 1), "receivers"),
        (DeliveryPlan, ((DeliveryCell(NNG.but(clients=2), 1),), 1), "one client"),
        (StandalonePlan, ((), 1, 1.0), "at least"),
        (StandalonePlan, ((LONE, LoneServer(SOCKETS, (5,))), 1, 1.0), "at least"),
        (StandalonePlan, ((LoneServer(SOCKETS, (20, 10)),), 1, 1.0), "allowed: ascending"),
        (StandalonePlan, ((LoneServer(SOCKETS, (0, 10)),), 1, 1.0), "allowed: ascending"),
        (StandalonePlan, ((LoneServer(SOCKETS, (HELD_MAX + 1,)),), 1, 1.0), "allowed: ascending"),
        (StandalonePlan, ((LONE,), 0, 1.0), "allowed: from 1"),
        (StandalonePlan, ((LONE,), 1, 0.0), "allowed: from 1"),
        (StandalonePlan, ((LONE,), 1, IDLE_S_MAX + 1), "allowed: from 1"),
        (TablePlan, ((), (), 1), "each once"),
        (TablePlan, ((FEW, FEW), (), 1), "each once"),
        (TablePlan, ((FEW,), (), 0), "0 blocks"),
        (TablePlan, ((Cell(BASE.but(client="lean"), 1),), (), 1), "a closed loop of one request"),
        (TablePlan, ((Cell(BASE.but(clients=2), 1),), (), 1), "a closed loop of one request"),
        (TablePlan, ((Cell(BASE, 0),), (), 1), "a closed loop of one request"),
        (TablePlan, ((Cell(BASE.but(connections=100), 499),), (), 1), "for each connection or more"),
        (TablePlan, ((FEW,), (CellRatio("a", "a", (1,), (0,), "cpu_us"),), 1), "as many cells above"),
        (TablePlan, ((FEW, MANY), (CellRatio("a", "a", (1,), (0, 1), "cpu_us"),), 1), "as many cells above"),
        (TablePlan, ((FEW, MANY), (CellRatio("a", "a", (1,), (0,), "cpu_us"),) * 2, 1), "two ratios of one name"),
    ],
)
def test_what_could_not_be_run_is_refused(kind: type[Any], values: tuple[Any, ...], said: str) -> None:
    """A plan without places, blocks, runs, calls or time is refused. A plan with a place twice, with too many servers
    or connections, or with too long a time is refused. A load that the kind does not have is refused, too, and a ratio
    of missing cells."""
    with pytest.raises(ValueError, match=said):
        kind("study", "part", *values)
