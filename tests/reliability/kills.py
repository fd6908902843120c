"""Promises: durable under kill -9, and exactly once. Servers with a store are killed under load and started again. A
client that lost its server does not know if its last trade was done. The client sends this trade three times to the
next server.
"""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from stock_service.rpc.transports import load
from tests.end_to_end.process import WAIT_S, Server
from tests.end_to_end.test_store import killed as at_work
from tests.end_to_end.test_store import sent, stored, volume
from tests.reliability.rows import Row

KILLS, SOME = 100, 3
CLIENTS = 12
IN_DOUBT = 1_000
AGAIN = 3

TRADES_MAX = 200
"""Most trades of all clients before a kill. The number before each kill is drawn at random."""

LOOKED_AT = 100
"""Number of acknowledged trades that are sent again after each kill. At the end all acknowledged trades are sent
again."""


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for two minutes. Drawn: when the kills come."""
    with TemporaryDirectory() as folder:
        return killed(stored(Path(folder) / "store"), random.Random(seed), KILLS if minutes else SOME)


def killed(start: tuple[str, ...], rng: random.Random, kills: int, of: str = "kill -9 under load") -> list[Row]:
    """The rows of a server that is killed ``kills`` times, and started again with its store. Blocks."""
    return _Run(start, rng).rows(kills, of)


class _Run:
    """The replies to clients over all restarts, and the faults that were found."""

    def __init__(self, start: tuple[str, ...], rng: random.Random) -> None:
        self._start, self._rng = start, rng
        self._commits: dict[str, int] = {}  # by request id
        self._doubtful: list[str] = []
        self._retried = self._doubled = self._lost = 0

    def rows(self, kills: int, of: str) -> list[Row]:
        for kill in range(kills):
            self._killed(kill)
        with Server(self._start) as server:
            self._look(server, list(self._commits))
        many, doubt = len(self._commits), self._retried
        lost, doubled = f"{self._lost} of {many:,} acknowledged in {kills} kills", f"{self._doubled} of {doubt:,}"
        enough = doubt >= IN_DOUBT or kills < KILLS
        doubtful = "trades in doubt" if of == "kill -9 under load" else f"{of}: trades in doubt"
        return [
            Row(f"{of}: trades lost", f"0 in {KILLS} kills", lost, not self._lost),
            Row(f"{doubtful} that had two effects", f"0 of {IN_DOUBT:,}", doubled, not self._doubled and enough),
        ]

    def _killed(self, kill: int) -> None:
        """Starts a server, checks its store, and kills it under load."""
        with Server(self._start) as server:
            self._look(server, self._rng.sample(list(self._commits), min(LOOKED_AT, len(self._commits))))
            told, self._doubtful = at_work(server, CLIENTS, self._rng.randrange(1, TRADES_MAX), f"{kill}")
            self._commits |= told

    def _look(self, server: Server, again: list[str]) -> None:
        """Sends the trades in doubt, and the trades ``again``, and compares the replies."""
        connection = load("sockets").connect(server.address, WAIT_S)
        for request_id in self._doubtful:
            sequences = {sent(connection, request_id).sequence for _ in range(AGAIN)}
            self._doubled += len(sequences) > 1
            self._retried += 1
            self._commits[request_id] = min(sequences)
        self._doubtful = []
        self._lost += sum(sent(connection, request_id).sequence != self._commits[request_id] for request_id in again)
        self._lost += max(0, len(self._commits) - volume(connection))
        self._doubled += max(0, volume(connection) - len(self._commits))
        self._doubled += len(self._commits) - len(set(self._commits.values()))
        connection.close()
