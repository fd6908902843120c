"""Cold runs: the separate times and counts, and the end of the process."""

import dataclasses
import socket
from multiprocessing import Pipe
from multiprocessing.context import ForkServerProcess

import pytest

from clients.load.plan.load_plan import CLIENT_KINDS, ClientKind, LoadPlan
from clients.load.plan.outcomes import INVALID_REPLY, TYPE_STEP, fault_outcome
from clients.load.record.records import Records
from clients.load.run import cold, cold_client, fleet
from clients.load.run.cold_client import told
from stock_service.rpc.errors import DeadlineExceeded, Unavailable, UsageError
from stock_service.rpc.transports import TRANSPORTS
from stock_service.trading.model import Status
from tests.covering import each_once
from tests.unit.clients.load.run.fleet_bench import client_pids, serving, spoken

PLAN = LoadPlan("sockets", ("127.0.0.1", 9), 1, {"lookup": 1.0}, ("GameStart", "FishCo"), warm_up_s=0, duration_s=20)


def records(*calls: tuple[int, int]) -> Records:
    """Records of successive calls, each given by its duration in nanoseconds and its outcome."""
    kept = Records()
    for number, (took_ns, outcome) in enumerate(calls):
        kept.note(number * 1000, number * 1000 + took_ns, outcome)
    return kept


def test_the_first_call_is_in_no_other_time() -> None:
    """Connecting, the first call and the rest are three numbers; outcomes are of all calls."""
    seen = told(7, records((500, Status.OK), (20, Status.OK), (30, Status.UNKNOWN_STOCK)))
    assert (seen.connect_ns, seen.first_ns, seen.rest_ns, seen.rest) == (7, 500, 50, 2)
    assert seen.outcomes == {"OK": 2, "UNKNOWN_STOCK": 1}
    assert seen.errors == {}


def test_calls_that_failed_are_counted_and_in_no_time() -> None:
    """Faults and invalid replies of any request type are counted by kind, also for the first call. No time includes
    them."""
    fault = TYPE_STEP + fault_outcome(DeadlineExceeded("late"))
    seen = told(7, records((500, fault), (20, Status.OK), (9000, INVALID_REPLY), (30, Status.OK)))
    assert (seen.first_ns, seen.rest_ns, seen.rest) == (None, 50, 2)
    assert seen.errors == {"deadline_exceeded": 1, "invalid_reply": 1}


@pytest.mark.parametrize(
    ("changes", "calls"),
    [
        ({"clients": 2}, 1),
        ({"connections_per_client": 2}, 1),
        ({"rate_hz": 5.0}, 1),
        ({"connection": "per-request"}, 1),
        ({}, 0),
        ({}, cold.CALLS_MAX + 1),
    ],
)
def test_only_one_connection_s_calls_can_be_cold(changes: dict[str, object], calls: int) -> None:
    """A plan with more than one connection is refused before a process is made."""
    with pytest.raises(UsageError):
        cold.run(dataclasses.replace(PLAN, **changes), calls)  # type: ignore[arg-type]  # fields of the plan


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "client"), spoken(each_once(TRANSPORTS, CLIENT_KINDS)))
def test_every_call_is_answered_and_the_process_is_gone(transport: str, client: ClientKind) -> None:
    """Every call is answered and the process is gone, on every transport, with either client. A run of one call has no
    later calls."""
    fleet.warm()
    with serving(transport) as where:
        plan = dataclasses.replace(PLAN, transport=transport, address=where, client=client)
        many, one = cold.run(plan, 30), cold.run(plan, 1)
    assert many.outcomes == {"OK": 30}
    assert not many.errors
    assert many.rest == 29
    assert many.first_ns is not None
    assert many.connect_ns > 0
    assert many.first_ns > 0
    assert many.rest_ns > 0
    assert (one.rest, one.rest_ns) == (0, 0)
    assert client_pids() == []


@pytest.mark.slow
def test_a_server_that_is_not_there_is_unavailable() -> None:
    """A server that is not there is Unavailable, with the fault's words. No process is left."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        where = closed.getsockname()
    with pytest.raises(Unavailable, match="no connection to"):
        cold.run(dataclasses.replace(PLAN, address=where), 1)
    assert client_pids() == []


@pytest.mark.slow
@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_as_the_process_starts_leaves_none(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as the process starts leaves no process, begun or not."""
    start = ForkServerProcess.start

    def interrupted(process: ForkServerProcess) -> None:
        if begun:
            start(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(ForkServerProcess, "start", interrupted)
    fleet.warm()
    with serving("sockets") as where, pytest.raises(KeyboardInterrupt):
        cold.run(dataclasses.replace(PLAN, address=where), cold.CALLS_MAX)
    assert client_pids() == []


def test_a_cold_client_whose_parent_is_gone_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cold client whose parent has gone ends quietly, also without a connection."""
    monkeypatch.setattr(cold_client, "settle", lambda _plan: None)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        where = closed.getsockname()
    parents, its = Pipe()
    parents.close()
    cold_client.run_cold_client(its, dataclasses.replace(PLAN, address=where), 1)
    assert its.closed
