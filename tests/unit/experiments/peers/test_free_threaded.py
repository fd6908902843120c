"""The search for a Python without a GIL, and the message if there is no such Python."""

import sys
from pathlib import Path

import pytest

from experiments.commands.run import _left_out
from experiments.design.arms import Arm
from experiments.design.setting import read
from experiments.measure.bench import CATALOG, server_command
from experiments.peers import BUILT, PEERS, WITHOUT_GIL
from experiments.peers.python.free_threaded import NAMES, VARIABLE, find
from experiments.studies.pool_size import POOL_SIZE
from stock_service.rpc.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a free-threaded Python, and a program that fails."""
    for name, text in (("python3.14t", "echo Python 3.14.9 free-threaded"), ("python3.15t", "exit 1")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    return tmp_path


def test_the_first_on_the_path_is_found(folder: Path) -> None:
    """The first free-threaded Python on the PATH is found. A program that fails is skipped."""
    assert NAMES.index("python3.15t") < NAMES.index("python3.14t")
    assert find({"PATH": str(folder)}) == (str(folder / "python3.14t"), "Python 3.14.9 free-threaded")
    assert find({"PATH": str(folder / "none")}) is None


def test_the_one_that_is_named_is_taken_or_none(folder: Path) -> None:
    """The environment variable selects a Python by path or name. A Python with a GIL is refused, even if the PATH has a
    free-threaded Python."""
    path = str(folder)
    assert find({"PATH": path, VARIABLE: str(folder / "python3.14t")}) == find({"PATH": path, VARIABLE: "python3.14t"})
    assert find({"PATH": path, VARIABLE: "python3.14t"}) is not None
    has_gil = sys.version_info < (3, 13) or sys._is_gil_enabled()
    assert (find({"PATH": path, VARIABLE: sys.executable}) is None) == has_gil
    assert find({"PATH": path, VARIABLE: str(folder / "nothing")}) is None


def test_one_line_says_that_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing free-threaded Python is one line with the way to get one."""
    monkeypatch.setattr("experiments.commands.run.is_built", lambda name: name != WITHOUT_GIL)
    monkeypatch.setenv(VARIABLE, "nothing")
    (line,) = _left_out([POOL_SIZE.parts["pool_size"]])
    assert line.startswith(f"left out: the peer {WITHOUT_GIL} is not built")
    assert all(word in line for word in ("python3.14t", VARIABLE, "make peers"))


def test_it_starts_our_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command starts our server on sockets with the usual options, and keeps the GIL off."""
    monkeypatch.setattr("experiments.peers.is_built", lambda _: True)
    command = list(server_command(Arm(read("sockets build=free-threaded workers=2 cpu_ms=1")).server, CATALOG))
    assert command[:3] == [str(BUILT / PEERS[WITHOUT_GIL].start[0]), "-X", "gil=0"]
    plain = list(server_command(Arm(read("sockets workers=2 cpu_ms=1")).server, CATALOG))
    assert command[3:] == plain[1:]
    for other in ("grpc build=free-threaded", "sockets service=echo build=free-threaded", "sockets build=debug"):
        with pytest.raises(UsageError, match="no peer in python"):
            server_command(Arm(read(other)).server, CATALOG)
