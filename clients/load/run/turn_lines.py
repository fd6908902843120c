"""Lines of a block. A **line** is the group of loads that share connections, with the senders on these connections. One
line has all loads with the same server, kind of client, timeout, and number of connections for each client.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.turns import TurnLoad


@dataclass(frozen=True, slots=True)
class Line:
    """Loads on one server, by one kind of client, with equal numbers of connections. The loads of a line share the
    connections.
    """

    number: int
    loads: tuple[int, ...]
    """Numbers of the line's loads among all loads of the block."""
    plan: LoadPlan
    """Plan of the load with the most clients."""
    first_place: int
    """Index of this line's first value on the board: the array in which senders mark turns (``send/turns.py``)."""

    @property
    def multiplexed(self) -> bool:
        """True if one thread drives all connections of a process."""
        return self.plan.client == "lean" and self.plan.connections_per_client > 1

    @property
    def senders(self) -> int:
        """Number of senders in one process. Each sender is a thread, and has one value on the board."""
        return 1 if self.multiplexed else self.plan.connections_per_client

    def place(self, client: int, sender: int) -> int:
        """Index of one sender's value on the board."""
        return self.first_place + client * self.senders + sender

    def places(self, clients: int) -> range:
        """Indices of the values on the board for all senders of the first ``clients`` clients."""
        return range(self.first_place, self.place(clients, 0))


def lines(loads: Sequence[TurnLoad]) -> tuple[Line, ...]:
    """All lines of these loads. Each load is in one line."""
    by_key: dict[tuple[object, ...], list[int]] = {}
    for place, each in enumerate(loads):
        plan = each.plan
        key = (plan.transport, plan.address, plan.client, plan.connections_per_client, plan.timeout_s)
        by_key.setdefault(key, []).append(place)
    found: list[Line] = []
    for number, places in enumerate(by_key.values()):
        widest = max((loads[place].plan for place in places), key=lambda plan: plan.clients)
        first_place = found[-1].places(found[-1].plan.clients).stop if found else 0
        found.append(Line(number, tuple(places), widest, first_place))
    return tuple(found)
