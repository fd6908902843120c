"""Lines: which loads share connections, and where each sender stands on the board."""

from dataclasses import replace
from itertools import pairwise

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.turns import TurnLoad
from clients.load.run.turn_lines import lines

HERE, THERE = ("127.0.0.1", 1), ("127.0.0.1", 2)

PLAN = LoadPlan("sockets", HERE, 1, {"lookup": 1.0}, ("GameStart",), 0.0, 1.0, client="library")

FIVE, LEAN, MANY, OTHER, TRADES = (
    TurnLoad(plan)
    for plan in (
        replace(PLAN, clients=5),
        replace(PLAN, client="lean"),
        replace(PLAN, client="lean", connections_per_client=4),
        replace(PLAN, address=THERE, clients=2),
        replace(PLAN, mix={"trade": 1.0}),
    )
)
ONE = TurnLoad(PLAN)


def test_loads_of_one_server_by_one_kind_of_client_share_connections() -> None:
    """Loads of one server by one kind of client share connections, with any requests and numbers of clients. Other
    loads do not."""
    found = lines([ONE, FIVE, LEAN, OTHER, TRADES, MANY])
    assert [line.loads for line in found] == [(0, 1, 4), (2,), (3,), (5,)]
    assert [line.plan.clients for line in found] == [5, 1, 2, 1]
    assert [line.number for line in found] == [0, 1, 2, 3]


def test_one_thread_drives_all_lean_connections_of_a_process() -> None:
    """One thread drives all lean connections of a process. Each library connection has a thread."""
    (many,), (lean,) = lines([MANY]), lines([LEAN])
    assert (many.multiplexed, many.senders) == (True, 1)
    assert (lean.multiplexed, lean.senders) == (False, 1)
    (library,) = lines([TurnLoad(replace(PLAN, connections_per_client=4))])
    assert (library.multiplexed, library.senders) == (False, 4)


def test_every_sender_has_a_place_of_its_own() -> None:
    """Every sender has a unique place on one board, without gaps. A load with fewer clients has the first places of its
    line."""
    four = TurnLoad(replace(PLAN, address=THERE, clients=3, connections_per_client=4))
    found = lines([ONE, FIVE, four, MANY])
    taken = [
        line.place(client, sender)
        for line in found
        for client in range(line.plan.clients)
        for sender in range(line.senders)
    ]
    assert taken == list(range(5 + 12 + 1))
    for line, following in pairwise(found):
        assert line.places(line.plan.clients).stop == following.first_place
    assert found[0].places(1) == range(1)
    assert found[1].places(2) == range(5, 13)
