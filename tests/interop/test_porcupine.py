"""Porcupine, a checker of histories by others, agrees with ours on right histories and on planted bugs."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clients.load.history.as_json import to_json
from clients.load.history.operations import NEVER_NS, History, Operation, Untold
from clients.load.history.search import unexplained
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS
from tests.races.history import plan, record
from tests.races.interleaving import Handoff
from tests.races.planted_exchanges import PLANTED_EXCHANGES

pytestmark = [pytest.mark.interop, pytest.mark.slow]

LINEARIZABLE = {True: "linearizable", False: "not linearizable"}


def lost(history: list[Operation], rng: random.Random) -> list[Operation]:
    """The history, of whose every twentieth operation nothing was heard."""
    return [
        Operation(each.request, Untold.UNKNOWN, each.called_ns, NEVER_NS) if rng.random() < 0.05 else each
        for each in history
    ]


def test_it_agrees_with_the_search(tool: Callable[[str], str], rng: random.Random, tmp_path: Path) -> None:
    """Both agree on histories of every locking, of every planted bug, and on these with some outcomes unknown."""
    asked = plan(rng, threads=4, rounds=12, conflicts=True)
    stocks = asked.stocks
    recorded = [
        *(record(Exchange(MemoryCatalog(stocks, locking)), asked) for locking in LOCKINGS.values()),
        *(record(make(stocks, Handoff(0.001)), asked) for make in PLANTED_EXCHANGES.values()),
    ]
    ours = dict[str, str]()
    for number, history in enumerate([*recorded, *(lost(each, rng) for each in recorded)]):
        path = tmp_path / f"{number}.json"
        path.write_bytes(to_json(History(stocks, None, history)))
        ours[str(path)] = LINEARIZABLE[not unexplained(stocks, history)]
    said = subprocess.run([tool("porcupine"), *ours], capture_output=True, text=True, check=True, timeout=50).stdout
    assert dict(line.split("\t") for line in said.splitlines()) == ours
    assert set(ours.values()) == set(LINEARIZABLE.values())


def test_a_file_that_is_no_history_is_refused(tool: Callable[[str], str], tmp_path: Path) -> None:
    """A file that is not a history is refused by name, with exit code 2."""
    path = tmp_path / "none.json"
    path.write_text("[")
    ended = subprocess.run([tool("porcupine"), str(path)], capture_output=True, text=True)
    assert ended.returncode == 2
    assert str(path) in ended.stderr
