"""Delivery runs: the reports of receiver and sender are read, and reports that contradict each other are refused.

The peer is two small scripts under the name of a peer in Go. The server receives lines, and counts the lines.
"""

import sys

import pytest

from experiments.design.setting import setting
from experiments.kinds.delivery import Delivered, DeliveryCell, DeliveryPlan
from experiments.measure import delivery
from experiments.measure.bench import CATALOG, bench
from experiments.measure.programs import ProgramFailed
from experiments.peers import Peer

pytestmark = pytest.mark.slow

SERVER = """
import json, signal, socket, sys
def told(*_):
    for _ in range(min(came, int(sys.argv[-1]))): print(json.dumps({"what": "message", "answer_ns": 5, "cycle_ns": 50}))
    for _ in range(2): print(json.dumps({"what": "second", "messages": came // 2, "bytes": came // 2 * 8 - LOST}))
    print(" " * 200_000)
    sys.stdout.flush()
    sys.exit(0)
came = 0
signal.signal(signal.SIGTERM, told)
with socket.create_server(("127.0.0.1", 0)) as server:
    print(f"ready 127.0.0.1:{server.getsockname()[1]}", flush=True)
    while True:
        connection = server.accept()[0]
        while connection.recv(8, socket.MSG_WAITALL):
            came += 1
            connection.sendall(b".")
"""

CLIENT = """
import json, socket, sys
host, port = sys.argv[1].split(":")
connection = socket.create_connection((host, int(port)))
for number in range(20):
    connection.sendall(b"." * 8), connection.recv(1)
    if sys.argv[2] != "one-way": print(json.dumps({"what": "call" if number else "first call", "ns": 7}))
"""

OF = setting(service="sort", language="go", transport="net-rpc", client="peer", size=8)


def told(of: DeliveryCell, monkeypatch: pytest.MonkeyPatch, lost: int = 0) -> Delivered:
    """Observation of a cell, by a server that miscounts by ``lost`` bytes."""
    server = SERVER.replace("LOST", str(lost))
    client = CLIENT.replace("{", "{{").replace("}", "}}")
    words = sys.executable, "-c", client, "{address}", "{pattern}"
    takes = {"pattern": "--pattern"}
    start = sys.executable, "-c", server
    planted = {"planted": Peer("go", "sort", "net-rpc", (), (), start, words, takes, "--report")}
    for module in ("experiments.peers", "experiments.measure.bench", "experiments.measure.delivery"):
        monkeypatch.setattr(f"{module}.PEERS", planted)
    monkeypatch.setattr("experiments.peers.is_built", lambda _: True)
    (run,) = delivery.runs(DeliveryPlan("study", "part", (of,), 1), 1, bench(CATALOG))
    return run.seen


@pytest.mark.usefixtures("no_leaks")
def test_both_sides_tell_of_the_same_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides leave out their first message. A report that is longer than a pipe's buffer is read."""
    assert told(DeliveryCell(OF.but(rate_hz=10.0), 2), monkeypatch) == Delivered((10, 10), 19, 95, 950, 19, 133)


def test_one_way_only_the_receiver_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without replies only the receiver reports. Without a rate the receiver counts messages, and times none."""
    assert told(DeliveryCell(OF.but(pattern="one-way"), 1), monkeypatch) == Delivered((10,), 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("seconds", "lost", "fault"), [(2, 1, "but not all of 8 bytes"), (3, 0, "messages came for 2 s, instead of 3 s")]
)
def test_what_does_not_fit_together_is_refused(
    seconds: int, lost: int, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports of incomplete messages and of missing seconds are refused."""
    with pytest.raises(ProgramFailed, match=fault):
        told(DeliveryCell(OF.but(rate_hz=10.0), seconds), monkeypatch, lost)
