"""The leak check: it sees leaks, and waits for threads and descriptors that are ending."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.leaks import footprint


@contextmanager
def thread() -> Iterator[None]:
    """A thread that runs as long as the block."""
    told = threading.Event()
    forgotten = threading.Thread(target=told.wait, name="forgotten")
    forgotten.start()
    try:
        yield
    finally:
        told.set()
        forgotten.join()


@pytest.mark.parametrize(("opened", "said"), [(socket.socket, "descriptor on socket:"), (thread, "thread forgotten")])
def test_what_is_forgotten_is_a_leak(opened: Callable[[], AbstractContextManager[object]], said: str) -> None:
    """A forgotten socket or thread is a leak, and is named. What has ended is not a leak."""
    before = footprint()
    with opened():
        (left,) = before.leaks(wait_s=0)
        assert left.startswith(said)
    assert before.leaks() == []


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_to_stay_on_one_core_is_a_leak() -> None:
    """A process that stays on one core is a leak: the servers of later tests would have no other core."""
    before, cores = footprint(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert before.leaks(wait_s=0) == [f"cores [{min(cores)}] in place of {sorted(cores)}"]
    finally:
        os.sched_setaffinity(0, cores)
    assert before.leaks() == []


def test_what_is_going_is_waited_for() -> None:
    """A thread that ends within the wait is not a leak, though it ran when the check began."""
    before = footprint()
    told = threading.Event()
    threading.Thread(target=told.wait, name="ending").start()
    threading.Timer(0.05, told.set).start()
    assert before.leaks() == []


@pytest.mark.slow
def test_servers_tests_are_checked_without_asking(tmp_path: Path) -> None:
    """A test of ``conformance`` that leaves a socket open is an error. Elsewhere the check must be asked for."""
    root = Path(__file__).resolve().parent.parent
    planted = "import socket\n\nkept = []\n\n\ndef test_a():\n    kept.append(socket.socket())\n"
    for folder in ("conformance", "unit"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_planted.py").write_text(planted)
    for name in ("tests/conftest.py", "tests/turns.py"):
        shutil.copy(root / name, tmp_path / name)
    leaks = (root / "tests/leaks.py").read_text()
    (tmp_path / "tests/leaks.py").write_text(re.sub(r"^WAIT_S = .*$", "WAIT_S = 0.1", leaks, flags=re.MULTILINE))
    (tmp_path / "pytest.toml").write_text('[pytest]\naddopts = ["--import-mode=importlib"]\npythonpath = ["."]\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:nbmake", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert "ERROR tests/conformance/test_planted.py::test_a - AssertionError: left behind" in "\n".join(lines)
    assert lines[-1].startswith("2 passed, 1 error in")
