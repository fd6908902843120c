"""Simulation of a primary: commit numbers of the whole catalog, compared with commit numbers of each stock.

``python -m tests.reliability.numbering`` prints, for each of ``CASES``, trades a second and the p99 of their waits. A
trader sends a trade of a stock, waits for the reply, and sends the next trade. A replica asks for a turn (the right to
commit). When the turn comes, the replica commits all waiting trades as a group. A group takes a core of the primary for
``group_s``, and for ``trade_s`` for each trade. Then the group waits for the disk and the standby, without a core, and
the turn ends. With one number all stocks share a turn. With numbers for each stock, each stock has a turn, and turns
run side by side. The service would stay linearizable, since each request is of one stock (Herlihy and Wing, ACM TOPLAS
12, 1990). Left out: the replicas' own processors.
"""

import heapq
import random
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from itertools import count, product
from typing import NamedTuple

from tests.reliability.replicas import REPLICAS

SECONDS, SEED, THINK_S = 1.0, 1, 0.001
"""Simulated time; seed; and mean time from a reply to the trader's next trade."""


class Primary(NamedTuple):
    """Times of a primary, in seconds, and its cores. ``replica_rates.py`` measured the times."""

    group_s: float = 0.0027
    trade_s: float = 0.000125
    wait_s: float = 0.0003
    cores: int = 8


class Group(NamedTuple):
    """A commit: its turn, and the number of trades in the commit."""

    turn: int
    began_s: float
    ended_s: float
    trades: int


class Simulation:
    """Simulation of a primary's groups and waits, with this number of traders, stocks and turns."""

    def __init__(self, primary: Primary, traders: int, stocks: int, turns: int, seconds: float = SECONDS) -> None:
        self.groups: list[Group] = []
        self.waits_s: list[float] = []
        self._primary, self._stocks, self._turns, self._seconds = primary, stocks, turns, seconds
        self._rng, self._now_s, self._ties, self._free = random.Random(SEED), 0.0, count(), primary.cores
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._waiting = defaultdict[tuple[int, int], list[tuple[int, float]]](list)  # trades, by turn and replica
        self._asking = defaultdict[int, deque[int]](deque)  # replicas that wait, by turn
        self._taken = set[int]()  # turns that a group has
        self._ready = deque[int]()  # of these, those that wait for a core
        for trader in range(traders):
            self._think(trader)
        while self._events[0][0] < seconds:
            self._now_s, _, happen = heapq.heappop(self._events)
            happen()

    def __str__(self) -> str:
        late_s = sorted(self.waits_s)[len(self.waits_s) * 99 // 100]
        return f"{len(self.waits_s) / self._seconds:>7,.0f} trades/s, p99 {late_s * 1000:>4.0f} ms"

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now_s + seconds, next(self._ties), happen))

    def _think(self, trader: int) -> None:
        self._after(self._rng.expovariate(1 / THINK_S), partial(self._send, trader))

    def _send(self, trader: int) -> None:
        turn, replica = self._rng.randrange(self._stocks) % self._turns, trader % REPLICAS
        self._waiting[turn, replica].append((trader, self._now_s))
        if replica not in self._asking[turn]:
            self._asking[turn].append(replica)
        self._take(turn)

    def _take(self, turn: int) -> None:
        if self._asking[turn] and turn not in self._taken:
            self._taken.add(turn)
            self._ready.append(turn)
            self._compute()

    def _compute(self) -> None:
        if self._ready and self._free:
            self._free -= 1
            turn = self._ready.popleft()
            trades = self._waiting.pop((turn, self._asking[turn].popleft()))
            busy_s = self._primary.group_s + self._primary.trade_s * len(trades)
            self._after(busy_s, partial(self._write, turn, self._now_s, trades))

    def _write(self, turn: int, began_s: float, trades: list[tuple[int, float]]) -> None:
        self._free += 1
        self._after(self._primary.wait_s, partial(self._end, turn, began_s, trades))
        self._compute()

    def _end(self, turn: int, began_s: float, trades: list[tuple[int, float]]) -> None:
        self.groups.append(Group(turn, began_s, self._now_s, len(trades)))
        for trader, sent_s in trades:
            self.waits_s.append(self._now_s - sent_s)
            self._think(trader)
        self._taken.remove(turn)
        self._take(turn)


CASES = tuple(product((64, 1024), (1, 16), (0, 1, 10)))
"""Traders, stocks, and the time in ms that a commit waits for a standby, beside the disk."""


def main() -> None:
    """Prints a line for each case."""
    print("traders stocks  standby  one number                  numbers a stock")
    for traders, stocks, standby_ms in CASES:
        primary = Primary()._replace(wait_s=Primary().wait_s + standby_ms / 1000)
        one, each = (Simulation(primary, traders, stocks, turns) for turns in (1, stocks))
        print(f"{traders:>7} {stocks:>6} {standby_ms:>5} ms  {one}  {each}", flush=True)


if __name__ == "__main__":
    main()
