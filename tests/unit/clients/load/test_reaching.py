"""Messages of the load client if no server answers, or a server of a different protocol."""

import socket
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest

from clients.load import command
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.records import Records
from stock_service.rpc.errors import Unavailable
from tests.covering import half
from tests.unit.clients.load.reports import PLAN, closed_records, closed_run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warmed")]


def test_a_server_that_is_slow_to_accept_is_no_error_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a refusal ends the run before it begins. A full backlog does not answer at all."""
    monkeypatch.setattr(command, "PROBE_S", 0.05)
    with socket.socket() as full, ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        plan = LoadPlan("sockets", full.getsockname(), 1, {"lookup": 1.0}, ("GameStart",), 0.0, 1.0)
        for _ in range(3):
            taken = waiting.enter_context(socket.socket())
            taken.setblocking(False)
            taken.connect_ex(full.getsockname())
        command._knock(plan)


@pytest.mark.parametrize(
    ("client", "loop"), half(("lean", "library"), ((), ("--rate-hz", "200"), ("--find-rate", "--p99-ms", "5")))
)
def test_a_server_of_another_protocol_is_one_line(
    server: str, client: str, loop: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A server of a different protocol is one line with advice, exit code 3, and no table of failed requests."""
    times = ["--warm-up-s", "0.1", "--duration-s", "0.3", "--no-floor", "--timeout-s", "1"]
    assert command.main(["--transport", "grpc", "--address", server, "--client", client, *times, *loop]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert last.startswith("python -m clients.load: UNAVAILABLE: ")
    assert "check --address and --transport (the program there may speak a different protocol, or TLS, which" in last
    if client == "lean":
        assert f"no server that speaks grpc answered at {server}" in last


def test_a_server_that_dies_between_two_runs_is_said_to_be_gone(canned: Callable[..., None]) -> None:
    """A server that dies between two runs has answered before, so the message does not name the protocol as a cause.
    Both runs are kept."""
    heard = closed_run(closed_records())
    unheard = replace(closed_run(Records()), errors={"unavailable": 3})
    canned(heard, unheard)
    session = command._Session(Namespace(cluster=None))
    session.run(PLAN, None)
    with pytest.raises(Unavailable, match=r"^UNAVAILABLE: no server answers any more at 127\.0\.0\.1:50052$"):
        session.run(PLAN, None)
    assert [run.result for run in session.runs] == [heard, unheard]
