"""Cells of a table: shared server processes, random order, and refusals."""

import pytest

from experiments.kinds.table import Cell, CellRatio, TablePlan
from tests.unit.experiments.cells_seen import BASE, CELLS, FEW, FREE, MANY, PUT, plan


def test_cells_that_differ_in_the_request_alone_share_a_process() -> None:
    """Cells with different requests share a server process. Another pool, other connections or other cores need
    another process."""
    assert FEW.start == PUT.start
    others = (MANY, FREE, Cell(FEW.setting.but(connections=10), 100))
    assert len({each.start for each in (FEW, *others)}) == 4


def test_the_order_is_drawn_anew_for_each_block() -> None:
    """Each block has every cell once, with the cells of a start together. Equal seeds give equal orders."""
    of = plan()
    orders = [of.starts(number) for number in range(1, 20)]
    for number, order in enumerate(orders, 1):
        assert of.order(number) == tuple(place for places in order for place in places)
        assert sorted(of.order(number)) == list(range(len(CELLS)))
        assert all(len({of.cells[place].start for place in places}) == 1 for places in order)
        assert len(order) == 3
    assert len(set(orders)) > 5
    assert plan().starts(1) == orders[0]


@pytest.mark.parametrize(
    ("cells", "ratios", "blocks"),
    [
        ((), (), 1),
        ((FEW, FEW), (), 1),
        ((FEW,), (), 0),
        ((Cell(BASE.but(client="lean"), 1),), (), 1),
        ((Cell(BASE.but(clients=2), 1),), (), 1),
        ((Cell(BASE, 0),), (), 1),
        ((Cell(BASE.but(connections=100), 499),), (), 1),
        ((FEW,), (CellRatio("a", "a", (1,), (0,), "cpu_us"),), 1),
        ((FEW, MANY), (CellRatio("a", "a", (1,), (0, 1), "cpu_us"),), 1),
        ((FEW, MANY), (CellRatio("a", "a", (1,), (0,), "cpu_us"),) * 2, 1),
    ],
)
def test_what_could_not_be_measured_is_refused(
    cells: tuple[Cell, ...], ratios: tuple[CellRatio, ...], blocks: int
) -> None:
    """A table with invalid cells, ratios or blocks is refused."""
    with pytest.raises(ValueError):  # noqa: PT011  # each message names what was given
        TablePlan("study", "part", cells, ratios, blocks)
