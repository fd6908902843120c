"""For the interoperability tests: the real gRPC servers, and the tools that `make go-tools` builds.

A tool that is absent skips its tests. Where INTEROP_REQUIRED is set it fails them: `.ci/run` sets it where Go is there.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / ".tools" / "bin"
READY_S = 20.0
"""How long a server may take to start, on a busy machine."""


def absent(what: str, remedy: str = "make go-tools") -> None:
    """Ends the test: skipped, or failed where nothing may be skipped."""
    message = f"{what} is absent: run {remedy}"
    if os.environ.get("INTEROP_REQUIRED"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def tool() -> Callable[[str], str]:
    """Gives the path of a tool by its name; ends the test where it is absent."""

    def find(name: str) -> str:
        path = TOOLS / name
        if not path.exists():
            absent(name)
        return str(path)

    return find


@pytest.fixture
def go() -> Callable[..., str]:
    """Runs the go command in a folder and gives its output. Never reaches for the network."""
    if shutil.which("go") is None:
        absent("go")

    def run(folder: Path, *arguments: str) -> str:
        environment = os.environ | {"GOPROXY": "off", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
        done = subprocess.run(
            ["go", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode and "GOPROXY=off" in done.stderr:
            absent("a Go module")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(params=["grpc", "grpc_static"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A gRPC server as a process, fresh for each test, grpcio's and our own by turns: its address."""
    with serving(request.param) as address:
        yield address


@contextmanager
def serving(transport: str) -> Iterator[str]:
    """A server as a process, which must end well: its address."""
    command = [sys.executable, "-m", "stock_service", "serve", "--transport", transport, "--port", "0"]
    command += ["--store", "memory"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                assert selector.select(READY_S), f"no ready line within {READY_S} s"
            word, address = process.stdout.readline().split()
            assert word == "ready"
            yield address
            process.send_signal(signal.SIGTERM)
            assert process.wait(READY_S) == 0
        finally:
            process.kill()
