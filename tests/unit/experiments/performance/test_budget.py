"""The budget of a request: its stages are the server's own, and its lines add up."""

from contextlib import ExitStack

import pytest

from experiments.performance.budget import SPEECHES, Line, Rig, steps, table
from stock_service.v1 import stock_pb2


@pytest.mark.parametrize("transport", SPEECHES)
def test_every_step_of_a_budget_goes_on_for_ever(transport: str) -> None:
    """Each is taken again and again over the same connections, and leaves nothing unread."""
    with ExitStack() as stack:
        for step in steps():
            rig = Rig(SPEECHES[transport], step, 2, stack)
            assert rig.turn(3) > 0
            assert rig.turn(3) > 0


@pytest.mark.parametrize("transport", SPEECHES)
def test_the_last_step_answers_a_lookup(transport: str) -> None:
    """What the whole of a budget measures is a request that goes well: its reply has the stock's price."""
    replies: list[bytes] = []
    with ExitStack() as stack:
        rig = Rig(SPEECHES[transport], steps()[-1], 1, stack)
        rig.turn(1)
        receive = rig.clients[0].recv
        rig.send()
        rig.round()
        replies.append(receive(4096))
    assert stock_pb2.LookupResponse(status=stock_pb2.STATUS_OK, price_cents=1599).SerializeToString()[:4] in replies[0]


def test_what_the_server_takes_besides_is_the_rest() -> None:
    """The stages add up to a line, and the whole server's line is that and what is left."""
    found = [Line("epoll", (1.0, 0.5)), Line("send", (4.0, 4.25))]
    assert table(found, Line("the whole server", (9.0, 7.0)))[2:] == [
        "| epoll | 1.00 | 0.50 |",
        "| send | 4.00 | 4.25 |",
        "| all of these | 5.00 | 4.75 |",
        "| the whole server | 9.00 | 7.00 |",
        "| the server besides | 4.00 | 2.25 |",
    ]
    assert len(table(found, None)) == 5
