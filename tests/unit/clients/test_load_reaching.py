"""What the load client says where nothing answers it, or something of another protocol."""

import socket
from contextlib import ExitStack

import pytest

from clients.load import command, fleet
from clients.load.plan import LoadPlan

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _warmed() -> None:
    """The fork server runs: what it keeps open is no test's doing."""
    fleet.warm()


def test_a_server_that_is_slow_to_accept_is_no_error_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a refusal ends the run before it begins: a full backlog does not answer at all."""
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


@pytest.mark.parametrize("loop", [(), ("--rate-hz", "200"), ("--find-rate", "--p99-ms", "5")], ids=str)
@pytest.mark.parametrize("client", ["lean", "library"])
def test_a_server_of_another_protocol_is_one_line(
    server: str, client: str, loop: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """No table of requests that all failed: what to check, and exit code 3."""
    times = ["--warm-up-s", "0.1", "--duration-s", "0.3", "--no-floor", "--timeout-s", "1"]
    assert command.main(["--transport", "grpc", "--address", server, "--client", client, *times, *loop]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert last.startswith("python -m clients.load: UNAVAILABLE: ")
    assert "check --address and --transport (what listens there may speak another protocol)" in last
    if client == "lean":
        assert f"nothing that speaks grpc answered at {server}" in last
