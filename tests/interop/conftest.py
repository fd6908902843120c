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
from typing import NoReturn

import pytest

from tests.end_to_end.process import Server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOLS = ROOT / ".tools" / "bin"

OFFLINE = {"GOPROXY": "off", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
"""Environment in which the go command never reaches for the network."""


def leave_out(why: str) -> NoReturn:
    """Ends the test: skipped, or failed where nothing may be skipped."""
    if os.environ.get("INTEROP_REQUIRED"):
        pytest.fail(why)
    pytest.skip(why)


def absent(what: str, remedy: str = "make go-tools") -> NoReturn:
    """Ends the test, as ``leave_out`` does, with the command to get what is absent."""
    leave_out(f"{what} is absent: run {remedy}")


def run(*command: str, cwd: Path | None = None, **environment: str) -> str:
    """The output of a command; fails the test, with the command's words, where it failed."""
    done = subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False)
    if done.returncode and "GOPROXY=off" in done.stderr:
        absent("a Go module")
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


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
        with (out / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run("make", "--silent", f"OUT={out}", name, cwd=HERE / "cpp")
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

    def run_go(folder: Path, *arguments: str) -> str:
        return run("go", *arguments, cwd=folder, **OFFLINE)

    return run_go


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
