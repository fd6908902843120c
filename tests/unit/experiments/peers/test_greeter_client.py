"""The greeter's client in Python: its report, and its end after a wrong reply."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from experiments.helloworld.greeter_pb2 import HelloReply, HelloRequest
from experiments.helloworld.greeter_pb2_grpc import GreeterServicer, add_GreeterServicer_to_server
from tests.end_to_end.process import ROOT, WAIT_S

pytestmark = pytest.mark.slow


class Planted(GreeterServicer):
    """A greeter that gives ``right`` correct replies, and then wrong replies."""

    def __init__(self, right: int) -> None:
        self._right = right

    def SayHello(self, request: HelloRequest, context: grpc.ServicerContext) -> HelloReply:  # noqa: N802  # gRPC's
        """See the class."""
        self._right -= 1
        return HelloReply(message=f"Hello {request.name}" if self._right >= 0 else "Hello nobody")


@pytest.fixture
def right() -> int:
    """Number of correct replies."""
    return 1000


@pytest.fixture
def address(right: int) -> Iterator[str]:
    """The address of the planted greeter."""
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool)
        add_GreeterServicer_to_server(Planted(right), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(0).wait()


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """Runs the client to its end."""
    command = [sys.executable, "-m", "experiments.peers.python.greeter_client", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=WAIT_S)


@pytest.mark.parametrize("options", [(), ("--clients", "2"), ("--mode", "async", "--in-flight", "3")])
def test_every_call_is_printed_and_the_sums_of_each_client(options: Sequence[str], address: str) -> None:
    """The client prints the times of connecting, of the first call and of later calls, and then sums over later
    calls."""
    done = run("--address", address, "--count", "20", *options)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    clients = 2 if "--clients" in options else 1
    kinds = [line["what"] for line in lines]
    assert kinds == [*(["connect", "first call", *["call"] * 19, "client"] * clients), "total"]
    assert all(line["ns"] > 0 for line in lines if "ns" in line)
    sums = [line for line in lines if "calls" in line]
    assert [line["calls"] for line in sums] == [19] * clients + [19 * clients]
    total = sums[-1]
    for line in sums:
        assert 0 < line["processor_ns"] <= total["processor_ns"]
        assert 0 < line["wall_ns"] <= total["wall_ns"]


@pytest.mark.parametrize(("right", "options"), [(0, ("--clients", "2")), (7, ("--mode", "async"))])
def test_a_wrong_reply_ends_it(options: Sequence[str], address: str) -> None:
    """A wrong reply ends the client with exit code 1 and without times."""
    done = run("--address", address, "--count", "20", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert "a wrong reply: 'Hello nobody'" in done.stderr


def test_calls_at_once_are_of_the_asynchronous_client() -> None:
    """Concurrent calls need the asynchronous client. Else the client refuses in one line with exit code 2."""
    done = run("--address", "127.0.0.1:1", "--in-flight", "2")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "--in-flight" in line
