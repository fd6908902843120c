"""Races of the catalog that processes share: its histories over real processes, planted bugs, and processes killed."""

import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from clients.load.history.by_sequence import violations
from clients.load.history.operations import Operation, contended
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side, Status, Stock, TradeReply
from tests.conformance.running import WAIT_S
from tests.conformance.shared import Shared, check_window
from tests.races.history import Plan, plan
from tests.races.process_member import KINDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

PROCESSES, THREADS = 3, 2

TIMES = 2
"""How many histories must each show a planted bug."""

BARELY_S = 0.02
"""Long enough for a thread that is not held back to be seen going on."""

CONTENDED_MIN = 0.3
"""The share of operations that must overlap a conflicting one; a history with less proves nothing."""

RIGHT, *PLANTED = KINDS


@contextmanager
def started(descriptor: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that has a memory's descriptor. It is killed if it still runs at the end."""
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[descriptor]
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class MemberFailed(Exception):
    """A process raised an error, which it says on standard error."""


def record(asked: Plan, kind: str) -> list[Operation]:
    """A plan run by processes with this number of threads each. Raises MemberFailed."""
    with Shared() as shared:
        descriptor = shared.memory(asked.stocks)
        members = [
            shared.enter_context(started(descriptor, "-m", "tests.races.process_member", str(descriptor), kind))
            for _ in range(PROCESSES)
        ]
        for number, member in enumerate(members):
            own = slice(number * THREADS, (number + 1) * THREADS)
            assert member.stdin is not None
            member.stdin.write(pickle.dumps(Plan(asked.stocks, tuple(each[own] for each in asked.rounds))))
            member.stdin.flush()
        for _ in asked.rounds:
            if [member.stdout.read(1) for member in members if member.stdout] != [b"."] * PROCESSES:
                raise MemberFailed
            for member in members:
                assert member.stdin is not None
                member.stdin.write(b".")
                member.stdin.flush()
        told = [member.stdout.read() for member in members if member.stdout]
        if not all(told):
            raise MemberFailed
        histories: list[list[Operation]] = [pickle.loads(each) for each in told]
    return [operation for history in histories for operation in history]


def test_histories_are_linearizable(rng: random.Random) -> None:
    """Threads of several processes at once get replies as from a sequential order."""
    asked = plan(rng, PROCESSES * THREADS, rounds=20)
    history = record(asked, RIGHT)
    assert violations(asked.stocks, history) == []
    assert contended(history) >= CONTENDED_MIN


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught_every_time(bug: str, rng: random.Random) -> None:
    """The check finds the bug in each of several histories; or, without a lock, the memory is past use before."""
    for _ in range(TIMES):
        asked = plan(rng, PROCESSES * THREADS, rounds=12)
        try:
            assert violations(asked.stocks, record(asked, bug))
        except MemberFailed:
            assert bug == "no_lock_between_processes"


STOCKS = (Stock("A", 100, 10**9), Stock("B", 200, 10**9))

OPEN = """
import os, signal, sys
from stock_service.trading.exchange import Exchange
from stock_service.trading.once import Once
from stock_service.trading.shared.catalog import SharedCatalog
from stock_service.trading.shared.memory import Memory

catalog = SharedCatalog(Memory(int(sys.argv[1])))
exchange = Exchange(catalog)
"""


def test_who_waits_for_a_killed_process_goes_on() -> None:
    """A second use that waits for a first one in another process takes its place when that process is killed in a step.
    The step has the memory to itself: others then read and change the old stock at once."""
    with Shared() as shared, ThreadPoolExecutor(1) as threads:
        descriptor = shared.memory(STOCKS)
        exchange = Exchange(shared.catalog(descriptor))
        running = 'catalog.change("A", lambda _: (print("in", flush=True), signal.pause()), Once("id", "1 5 A"))'
        with started(descriptor, "-c", OPEN + running, str(descriptor)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"in\n"
            second = threads.submit(exchange.trade, "A", 5, Side.BUY, "id")
            with pytest.raises(TimeoutError):
                second.result(BARELY_S)
            process.kill()
            assert second.result(WAIT_S) == TradeReply(Status.OK, 5, 1)
        assert exchange.lookup("A").volume == 5


TRADE_ON = """
print("in", flush=True)
number = 0
while True:
    number += 1
    exchange.trade("A", 1, 1, f"{os.getpid()}-{number}")
    exchange.trade("B", 1, 1)
"""


def test_processes_killed_under_load_leave_nothing_half_done() -> None:
    """After processes are killed at any moment, one after the other, every commit is in one stock's volume, and the
    window is whole."""
    with Shared() as shared:
        descriptor = shared.memory(STOCKS, retry_window=20)
        catalog = shared.catalog(descriptor)
        exchange = Exchange(catalog)
        members = [shared.enter_context(started(descriptor, "-c", OPEN + TRADE_ON, str(descriptor))) for _ in range(5)]
        for number, member in enumerate(members):
            assert member.stdout is not None
            assert member.stdout.readline() == b"in\n"
            sequences = [exchange.trade("A", 1, Side.BUY, f"{number}-{each}").sequence for each in range(50)]
            assert sequences == sorted(set(sequences))
            member.kill()
            member.wait(WAIT_S)
            check_window(catalog)
        volumes = [exchange.lookup(stock.name).volume for stock in STOCKS]
        assert exchange.trade("A", 1, Side.BUY).sequence == sum(volumes) + 1
