"""Plans of cold runs: refusals, and the order of runs."""

from collections import Counter

import pytest

from experiments.design.setting import setting
from experiments.kinds.cold import ColdCell, ColdPlan

SOCKETS, GRPC = setting(transport="sockets"), setting(transport="grpc")
CELLS = tuple(ColdCell(each, calls, runs) for each in (SOCKETS, GRPC) for calls, runs in ((1, 9), (100, 2)))


def test_a_block_has_every_cell_as_often_in_an_order_of_its_own() -> None:
    """A block has every cell as often as planned, in a random order of its seed and number. Cells may share a
    server."""
    plan = ColdPlan("study", "part", CELLS, blocks=2)
    orders = [plan.order(number) for number in (1, 2)]
    assert [Counter(order) for order in orders] == [{0: 9, 1: 2, 2: 9, 3: 2}] * 2
    assert orders[0] != orders[1]
    assert orders[0] == plan.order(1)
    assert len(plan.servers) == 2


@pytest.mark.parametrize(
    "levels",
    [
        {"clients": 2},
        {"connections": 2},
        {"connection": "per-request"},
        {"rate_hz": 100.0},
        {"updater": True},
    ],
)
def test_a_load_that_is_not_one_clients_is_refused(levels: dict[str, int | float | str | bool]) -> None:
    """A load of more than one client or connection, an open loop, and an updater are refused."""
    with pytest.raises(ValueError, match="one client"):
        ColdPlan("study", "part", (ColdCell(SOCKETS.but(**levels), 1),), 1)


@pytest.mark.parametrize(
    ("cells", "blocks", "said"),
    [
        ((), 1, "each once"),
        ((CELLS[0], ColdCell(CELLS[0].setting, CELLS[0].calls, 3)), 1, "each once"),
        ((ColdCell(SOCKETS, 1, 0),), 1, "at least one"),
        (CELLS, 0, "at least one"),
        ((ColdCell(SOCKETS, 0),), 1, "at least one"),
        (tuple(ColdCell(SOCKETS.but(workers=n), 1) for n in range(1, 13)), 1, "12 servers"),
    ],
)
def test_what_could_not_be_run_is_refused(cells: tuple[ColdCell, ...], blocks: int, said: str) -> None:
    """A plan without cells, blocks, runs or calls, with a cell twice, or with too many servers is refused."""
    with pytest.raises(ValueError, match=said):
        ColdPlan("study", "part", cells, blocks)
