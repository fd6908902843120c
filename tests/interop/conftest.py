"""Fixtures of the interoperability tests: the real gRPC servers, and the tools that `make go-tools` builds.

A tool that is absent skips its tests. Where INTEROP_REQUIRED is set it fails them: `.ci/run` sets it where Go is there.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.process import Server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOLS = ROOT / ".tools" / "bin"


def absent(what: str, remedy: str = "make go-tools") -> None:
    """Ends the test: skipped, or failed where nothing may be skipped."""
    message = f"{what} is absent: run {remedy}"
    if os.environ.get("INTEROP_REQUIRED"):
        pytest.fail(message)
    pytest.skip(message)


CPP_PACKAGES = "libgrpc++-dev protobuf-compiler-grpc g++ pkg-config make"


@pytest.fixture(scope="session")
def build_cpp() -> Callable[[str], Path]:
    """Builds a program of ``cpp``, if it is not built yet, and gives its path. One process of xdist builds at a time.

    The program stays in ``.tools``, for the next run. Debian has the libraries. Where they are absent the test is
    skipped or fails.
    """

    def build(name: str) -> Path:
        for program in ("make", "protoc", "grpc_cpp_plugin", "g++", "pkg-config"):
            if shutil.which(program) is None:
                absent(program, f"apt-get install {CPP_PACKAGES}")
        out = TOOLS.parent / "interop"
        out.mkdir(parents=True, exist_ok=True)
        command = ["make", "--silent", f"OUT={out}", name]
        with (out / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run(command, cwd=HERE / "cpp", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return out / name

    return build


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Gives the path of a tool by its name; ends the test where it is absent."""

    def find(name: str) -> str:
        path = TOOLS / name
        if not path.exists():
            absent(name)
        return str(path)

    return find


@pytest.fixture(scope="session")
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
    with Server(("stock_service", "serve", "--transport", transport, "--store", "memory")) as process:
        yield process.at
        assert process.stopped().code == 0
