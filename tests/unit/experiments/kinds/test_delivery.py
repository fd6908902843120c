"""Plans of what receivers tell: what is refused, and which cells stand in a block."""

import pytest

from experiments.design.setting import setting
from experiments.kinds.delivery import Received, ReceivedCell

ONE, OTHER = (setting(service="echo", language="c", transport=each, client="peer") for each in ("nng", "zeromq"))


def test_a_cell_stands_in_its_first_blocks() -> None:
    """In an order drawn from the seed and the block."""
    plan = Received("study", "part", (ReceivedCell(ONE, 1, 2), ReceivedCell(OTHER, 1)), 3)
    assert [sorted(plan.order(number)) for number in (1, 2, 3)] == [[0, 1], [0, 1], [1]]
    assert plan.order(1) == plan.order(1)


@pytest.mark.parametrize(
    "cells",
    [(), (ReceivedCell(ONE, 0),), (ReceivedCell(ONE, 1), ReceivedCell(ONE, 2)), (ReceivedCell(ONE.but(clients=2), 1),)],
)
def test_what_cannot_be_run_is_refused(cells: tuple[ReceivedCell, ...]) -> None:
    """No cell, no second, one cell twice, two clients."""
    with pytest.raises(ValueError, match=r"receivers|one client"):
        Received("study", "part", cells, 1)
