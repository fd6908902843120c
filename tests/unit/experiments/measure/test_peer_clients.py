"""A peer's own client as the load: windows, cold runs, and checks of its report.

The peer is two small scripts with the contracts of peers, under the name of a peer in Go.
"""

import sys
from collections.abc import Mapping

import numpy as np
import pytest

from experiments.design.arms import Arm
from experiments.design.setting import setting
from experiments.design.sweep import Windows
from experiments.judge import gates
from experiments.kinds.cold import ColdCell, ColdPlan
from experiments.measure import cold, peer_clients
from experiments.measure.bench import CATALOG, bench, server_command
from experiments.measure.programs import Program, ProgramFailed
from experiments.measure.runner import measure_block
from experiments.peers import Peer
from experiments.results.observed import ALL, KEPT
from tests.unit.experiments.blocks import on_servers

pytestmark = pytest.mark.slow

SERVER = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with socket.create_server(("127.0.0.1", 0)) as server:
    print(f"ready 127.0.0.1:{server.getsockname()[1]}", flush=True)
    while True:
        connection = server.accept()[0]
        while connection.recv(1): connection.sendall(b".")
"""

CLIENT = """
import json, socket, sys, time
host, port = sys.argv[1].split(":")
began = time.perf_counter_ns()
connection = socket.create_connection((host, int(port)))
print(json.dumps({"what": "connect", "ns": time.perf_counter_ns() - began}))
for number in range(int(sys.argv[2]) - int(sys.argv[3])):
    began = time.perf_counter_ns()
    connection.sendall(b"."), connection.recv(1)
    print(json.dumps({"what": "call" if number else "first call", "ns": time.perf_counter_ns() - began}))
print(json.dumps({"what": "somebody else's", "calls": 1}))
"""

OF = setting(service="sort", language="go", transport="net-rpc", client="peer", mix="quick")


def planted(client: str, missing: int = 0) -> Mapping[str, Peer]:
    """The peer of ``OF`` as scripts. ``missing`` is the number of calls that the client leaves out."""
    start = sys.executable, "-c", SERVER
    words = sys.executable, "-c", client.replace("{", "{{").replace("}", "}}"), "{address}", "{calls}", str(missing)
    return {"planted": Peer("go", "sort", "net-rpc", (), (), start, words)}


@pytest.fixture(autouse=True)
def peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the planted peer the only peer."""
    monkeypatch.setattr("experiments.peers.PEERS", planted(CLIENT))
    monkeypatch.setattr("experiments.measure.bench.PEERS", planted(CLIENT))
    monkeypatch.setattr("experiments.peers.is_built", lambda _: True)


def test_a_window_has_the_calls_behind_the_first() -> None:
    """The times of a window leave out each client's first call. The server's processor time includes all calls."""
    sweep = on_servers(Windows(calls=50), Arm(OF), rounds=2)
    block = measure_block(sweep, 1, 1, bench(CATALOG))
    assert block.slices.fate == [KEPT, KEPT]
    assert block.slices.requests == [50, 50]
    assert block.slices.counts == {"quick": [49, 49], ALL: [49, 49]}
    assert min(block.slices.server_cpu_ns) > 0
    assert block.arms[0].answered["quick"].times.count == 98


TOGETHER = """
print(json.dumps({"what": "client", "calls": 49, "wall_ns": 490_000_000, "processor_ns": 1}))
print(json.dumps({"what": "total", "calls": 49, "wall_ns": 500_000_000, "processor_ns": 2_000_000}))
"""


def test_a_window_has_the_clocks_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a client reports its clocks, the rates are over its own wall clock."""
    monkeypatch.setattr("experiments.peers.PEERS", planted(CLIENT + TOGETHER))
    sweep = on_servers(Windows(calls=50), Arm(OF))
    block = measure_block(sweep, 1, 1, bench(CATALOG))
    assert (block.slices.active_ns, block.slices.client_cpu_ns) == ([500_000_000], [2_000_000])
    (window,) = block.arms[0].windows
    assert (window.answered_hz, window.clients_hz) == (98, [100])


TIMED = CLIENT.replace(
    "time.perf_counter_ns() - began}))\nprint", 'time.perf_counter_ns() - began, "at_ns": number * 11_000_000}))\nprint'
)


def test_a_rate_that_is_not_kept_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window with a rate has the calls that are due in it. Gate 7 refuses calls that are due every 10 ms, and sent
    every 11 ms."""
    monkeypatch.setattr("experiments.peers.PEERS", planted(TIMED))
    of = OF.but(rate_hz=100.0)
    sweep = on_servers(Windows(duration_s=0.08), Arm(of))
    block = measure_block(sweep, 1, 1, bench(CATALOG))
    assert block.slices.requests == [8]
    (arm,) = block.arms
    (window,) = arm.windows
    assert window.rate_hz == 100.0
    assert window.sent_hz == pytest.approx(1000 / 11)
    assert window.late_us_p99 is None
    (refusal,) = gates.rate_off(sweep.limits, Arm(of), arm)
    assert refusal.gate == 7


def test_calls_as_due_are_not_off_their_rate() -> None:
    """Eight calls in seven gaps have their rate. A percentile of their lateness needs a hundred calls."""
    sent_hz, late_us = peer_clients.on_schedule(np.arange(1, 8) * 10_000_000 - 5, 100.0)
    assert sent_hz == pytest.approx(100.0)
    assert late_us is None
    assert peer_clients.on_schedule(np.arange(1, 201) * 10_000_000 - 5, 100.0)[1] == 0.0
    assert peer_clients.on_schedule(np.arange(1, 201) * 10_000_000 + 7_000, 100.0)[1] == pytest.approx(7.0)


def test_a_cold_run_has_connecting_and_the_first_call_apart() -> None:
    """A cold run has separate times of connecting, of the first call, and of all later calls together."""
    plan = ColdPlan("study", "part", (ColdCell(OF, 5, 2),), 1, warm_up_calls=2)
    for run in cold.runs(plan, 1, bench(CATALOG)):
        seen = run.seen
        assert seen.connect_ns > 0
        assert (seen.first_ns or 0) > 0
        assert (seen.rest, seen.outcomes, seen.errors) == (4, {"OK": 5}, {})
        assert seen.rest_ns > 0


@pytest.mark.parametrize(
    ("client", "missing", "said"),
    [(CLIENT, 1, "were made, expected: "), (CLIENT, 5, "were made, expected: "), ("print('nonsense')", 0, "not JSON")],
)
def test_a_wrong_report_is_refused(client: str, missing: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that makes too few calls is refused, since it may have left out failed calls. Other lines are
    refused."""
    monkeypatch.setattr("experiments.peers.PEERS", planted(client, missing))
    with Program(server_command(Arm(OF).server, CATALOG)) as server, pytest.raises(ProgramFailed, match=said):
        peer_clients.run(OF, server.ready(), 5, None)
