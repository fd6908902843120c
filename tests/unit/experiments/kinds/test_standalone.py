"""Plans of standalone servers: refusals, and the order of servers."""

import pytest

from experiments.design.setting import setting
from experiments.kinds.standalone import HELD_MAX, IDLE_S_MAX, LoneServer, StandalonePlan

SOCKETS, GRPC = setting(transport="sockets"), setting(transport="grpc")


def test_every_repetition_has_every_server_in_an_order_of_its_own() -> None:
    """Every block has every server, in a random order of its seed and number."""
    plan = StandalonePlan("study", "part", (LoneServer(SOCKETS, (10, 20)), LoneServer(GRPC)), 20, 1.0)
    orders = [plan.order(number) for number in range(1, 21)]
    assert set(orders) == {(0, 1), (1, 0)}
    assert orders == [plan.order(number) for number in range(1, 21)]


def test_a_server_is_looked_at_without_connections_first() -> None:
    """A server is observed first without connections, then with each number of connections."""
    assert LoneServer(SOCKETS, (10, 20)).connections == (0, 10, 20)
    assert LoneServer(GRPC).connections == (0,)


@pytest.mark.parametrize(
    ("servers", "repetitions", "idle_s"),
    [
        ((), 1, 1.0),
        ((LoneServer(SOCKETS), LoneServer(SOCKETS, (5,))), 1, 1.0),
        ((LoneServer(SOCKETS, (20, 10)),), 1, 1.0),
        ((LoneServer(SOCKETS, (0, 10)),), 1, 1.0),
        ((LoneServer(SOCKETS, (HELD_MAX + 1,)),), 1, 1.0),
        ((LoneServer(SOCKETS),), 0, 1.0),
        ((LoneServer(SOCKETS),), 1, 0.0),
        ((LoneServer(SOCKETS),), 1, IDLE_S_MAX + 1),
    ],
)
def test_what_could_not_be_looked_at_is_refused(
    servers: tuple[LoneServer, ...], repetitions: int, idle_s: float
) -> None:
    """A plan without servers, blocks or time, with a server twice, wrong connections or too long a time is refused."""
    with pytest.raises(ValueError, match=r"allowed|at least"):
        StandalonePlan("study", "part", servers, repetitions, idle_s)
