"""``python -m clients.load --check`` on right servers and on servers with a planted bug."""

import json
import re
from pathlib import Path
from typing import cast

import pytest

from clients.load import command
from clients.remote_exchange import RemoteExchange
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Stock
from stock_service.trading.service import stock_service
from tests.conformance.running import Kind, Limits, Running
from tests.races.interleaving import Handoff
from tests.races.planted_exchanges import LaggingReplica, RightExchange

pytestmark = pytest.mark.slow

STOCKS = (Stock("A", 100, 10**9), Stock("B", 100, 200))


def load(running: Running, *more: str) -> int:
    """The exit code of a third of a second of load."""
    where = ["--transport", running.kind.transport, "--address", "{}:{}".format(*running.address)]
    what = ["--mix", "lookup=0.4,trade=0.5,update=0.1", "--stocks", "A", "B"]
    return command.main([*where, *what, "--warm-up-s", "0", "--duration-s", "0.3", "--no-floor", "--check", *more])


def serving(exchange: type[RightExchange]) -> Running:
    """A server of this exchange, in place of the real exchange."""
    service = stock_service(cast(Exchange, exchange(STOCKS, Handoff(0.0))))
    return Running(Kind("sockets", "static-pool"), service, Limits())


@pytest.mark.parametrize("client", ["lean", "library"])
def test_a_right_server_is_linearizable(client: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Both kinds of client find a right server linearizable, also after earlier trades. The history is written."""
    path = tmp_path / "history.json"
    with serving(RightExchange) as running:
        RemoteExchange(running.connect(), 5.0).update("A", 7)
        eight = ["--clients", "2", "--connections-per-client", "4", "--client", client]
        assert load(running, *eight, "--history", str(path)) == 0
    told = re.search(r"checked: ([\d,]+) requests, .*: linearizable", " ".join(capsys.readouterr().out.split()))
    assert told is not None
    document = json.loads(path.read_text())
    assert len(document["operations"]) == int(told[1].replace(",", ""))
    assert document["stocks"][0] == {
        "name": "A",
        "price_cents": 7,
        "volume_limit": 2**63 - 1,
        "volume": 0,
        "sequence": 1,
    }


def test_a_planted_bug_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """A planted bug gives exit code 4 and a line with the fault."""
    with serving(LaggingReplica) as running:
        assert load(running, "--clients", "2", "--connections-per-client", "4") == 4
    assert ": not linearizable: Lookup(" in " ".join(capsys.readouterr().out.split())


def test_a_history_without_overlap_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """One connection sends its requests in sequence: exit code 4, with advice."""
    with serving(RightExchange) as running:
        assert load(running) == 4
    assert ": vacuous: 0% overlapped a conflicting request" in " ".join(capsys.readouterr().out.split())
