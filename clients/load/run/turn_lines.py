"""Which loads of a block share connections, and who sends on them: a **line** for each server and kind of client."""

from collections.abc import Sequence
from dataclasses import dataclass

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.turns import TurnLoad


@dataclass(frozen=True, slots=True)
class Line:
    """Loads of one server, by one kind of client, with as many connections each: they share these."""

    number: int
    loads: tuple[int, ...]
    """The loads' places."""
    plan: LoadPlan
    """Of the load with the most clients."""
    first_place: int
    """On the board."""

    @property
    def multiplexed(self) -> bool:
        """True where one thread drives all connections of a process."""
        return self.plan.client == "lean" and self.plan.connections_per_client > 1

    @property
    def senders(self) -> int:
        """Number of threads that drive the connections of one process: each has a place on the board."""
        return 1 if self.multiplexed else self.plan.connections_per_client

    def place(self, client: int, sender: int) -> int:
        """One sender's place on the board."""
        return self.first_place + client * self.senders + sender

    def places(self, clients: int) -> range:
        """The places of so many clients, from the first on."""
        return range(self.first_place, self.place(clients, 0))


def lines(loads: Sequence[TurnLoad]) -> tuple[Line, ...]:
    """Every line of these loads; each load is in one."""
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
