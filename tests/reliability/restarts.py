"""Promise: a restart fails no request. Each new server takes port and store over from the last server: ``--hand-over``.
Clients have the retry policy of ``clients/retrying.py``, and reconnect when the last server closes a connection.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from clients.retrying import RetryingExchange
from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Connection, load
from stock_service.trading.model import Side, Status, TradeReply, UpdateReply
from tests.end_to_end.process import WAIT_S, Server
from tests.end_to_end.test_store import stored
from tests.reliability.rows import Row

RESTARTS, SOME = 100, 2
TRANSPORTS = ("sockets", "grpc_static")
TOLD = ("sockets",)
"""Transports whose clients learn that a request was not begun, so that an Update may be sent again. grpcio does not
tell its client."""

TRADERS = 3
RETRIES = 5

BETWEEN = 30
"""Least number of answered requests between two restarts, so that each server serves under load."""


@dataclass(slots=True)
class Told:
    """The replies to one client."""

    sequences: list[int] = field(default_factory=list)
    requests: int = 0
    failures: list[str] = field(default_factory=list)
    retried: int = 0
    longest_s: float = 0.0


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for four minutes. Drawn: the clients' waits before they try again."""
    return [row(transport, RESTARTS if minutes else SOME, random.Random(seed)) for transport in TRANSPORTS]


def row(transport: str, restarts: int, rng: random.Random) -> Row:
    """Row on this number of restarts under load, and the clients' failures."""
    told = restarted(transport, restarts, rng)
    requests, failures, rest = summed(told)
    figure = f"{failures} of {requests:,} requests in {restarts} restarts; {rest}"
    goal = f"0 failures that a client sees in {RESTARTS}"
    return Row(f"{transport}: rolling restarts under load", goal, figure, not failures)


def summed(told: Sequence[Told]) -> tuple[int, int, str]:
    """Numbers of the clients' requests and failures, and a text on the repeated requests and the first failures."""
    requests, retried = sum(client.requests for client in told), sum(client.retried for client in told)
    failures = [failure for client in told for failure in client.failures]
    longest_s, first = max(client.longest_s for client in told), "; ".join(failures[:2])
    rest = f"{retried} were sent again by the retry policy, the longest took {longest_s:.2f} s"
    return requests, len(failures), f"{rest}: {first}" if failures else rest


def restarted(transport: str, restarts: int, rng: random.Random) -> list[Told]:
    """The replies to each client. Fails if a commit was done twice or lost, or if a server did not end with 0."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(TRADERS + 3) as threads, ExitStack() as running:
        start = (*stored(Path(folder) / "store", transport), "--hand-over", str(Path(folder) / "socket"))
        server = running.enter_context(Server(start))
        answered, over = threading.Semaphore(0), threading.Event()
        running.callback(over.set)

        def connect() -> Connection:
            return load(transport).connect(server.address, WAIT_S)

        exchanges = [
            RetryingExchange(connect, WAIT_S, RETRIES, rng=random.Random(rng.random())) for _ in range(TRADERS + 3)
        ]
        *traders, dials, reads, last = exchanges
        sixth = updating(last) if transport in TOLD else reading(last)
        works = [*map(trading, traders), dialing(dials), reading(reads), sixth]
        clients = [
            threads.submit(until_over, work, exchange, answered, over)
            for work, exchange in zip(works, exchanges, strict=True)
        ]
        for _ in range(restarts):
            assert all(answered.acquire(timeout=WAIT_S) for _ in range(BETWEEN))
            heir = running.enter_context(Server(start))
            assert heir.address == server.address
            ended = server.ended()
            assert (ended.code, ended.stdout) == (0, ""), ended
            server.__exit__(None, None, None)
            server = heir
        assert all(answered.acquire(timeout=WAIT_S) for _ in range(BETWEEN))
        over.set()
        told = [client.result(WAIT_S) for client in clients]
        sequences = sorted(sequence for client in told for sequence in client.sequences)
        assert sequences == list(range(1, len(sequences) + 1)), "a commit done twice, or that no reply tells of"
        assert server.stopped().code == 0
    return told


Work = Callable[[Told], None]


def committing(request: Callable[[Told], TradeReply | UpdateReply]) -> Work:
    """Sends a request that commits."""

    def commit(told: Told) -> None:
        reply = request(told)
        assert reply.status is Status.OK, reply
        told.sequences.append(reply.sequence)

    return commit


def trading(exchange: RetryingExchange) -> Work:
    """Trades a share."""
    return committing(lambda _: exchange.trade("FishCo", 1, Side.BUY))


def dialing(exchange: RetryingExchange) -> Work:
    """Trades a share on a new connection."""

    def dial(told: Told) -> None:
        exchange.close()
        trading(exchange)(told)

    return dial


def updating(exchange: RetryingExchange) -> Work:
    """Sets a price. The request is sent again only if the server said that it had not begun the request."""
    return committing(lambda told: exchange.update("FishCo", 100 + told.requests))


def reading(exchange: RetryingExchange) -> Work:
    """Looks a stock up. Its commit number may only grow."""
    last = 0

    def read(_told: Told) -> None:
        nonlocal last
        reply = exchange.lookup("FishCo")
        assert reply.sequence >= last, f"commit {reply.sequence} behind {last}"
        last = reply.sequence

    return read


def until_over(work: Work, exchange: RetryingExchange, answered: threading.Semaphore, over: threading.Event) -> Told:
    """Runs a closed loop. After a failure the loop notes the failure and goes on."""
    told = Told()
    while not over.is_set():
        began_s = time.monotonic()
        try:
            work(told)
        except (Fault, AssertionError) as error:
            told.failures.append(" ".join(str(error).split())[:120])
        told.requests += 1
        told.longest_s = max(told.longest_s, time.monotonic() - began_s)
        answered.release()
    told.retried = exchange.retried
    exchange.close()
    return told
