"""Plans of delivery runs: refusals, and the cells of a block."""

import pytest

from experiments.design.setting import setting
from experiments.kinds.delivery import DeliveryCell, DeliveryPlan

ONE, OTHER = (setting(service="echo", language="c", transport=each, client="peer") for each in ("nng", "zeromq"))


def test_a_cell_stands_in_its_first_blocks() -> None:
    """A cell runs in its first blocks, in a random order of the seed and the block."""
    plan = DeliveryPlan("study", "part", (DeliveryCell(ONE, 1, 2), DeliveryCell(OTHER, 1)), 3)
    assert [sorted(plan.order(number)) for number in (1, 2, 3)] == [[0, 1], [0, 1], [1]]
    assert plan.order(1) == plan.order(1)


@pytest.mark.parametrize(
    "cells",
    [(), (DeliveryCell(ONE, 0),), (DeliveryCell(ONE, 1), DeliveryCell(ONE, 2)), (DeliveryCell(ONE.but(clients=2), 1),)],
)
def test_what_cannot_be_run_is_refused(cells: tuple[DeliveryCell, ...]) -> None:
    """A plan without a cell or a second, with a cell twice, or with two clients is refused."""
    with pytest.raises(ValueError, match=r"receivers|one client"):
        DeliveryPlan("study", "part", cells, 1)
