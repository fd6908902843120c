"""A process is stopped now and then, and always runs afterwards."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.selfcheck.stalls import stalls

WAIT_S = 10.0

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


@pytest.fixture
def echo() -> Iterator[subprocess.Popen[str]]:
    """A process that prints the lines that it reads."""
    command = [sys.executable, "-c", ECHO]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.kill()


def state(process: subprocess.Popen[str]) -> str:
    """The process's state, by proc(5): T is stopped."""
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]


def until(process: subprocess.Popen[str], stopped: bool) -> None:
    """Waits until the process is stopped, or runs. Fails after a bound."""
    deadline_s = time.perf_counter() + WAIT_S
    while (state(process) == "T") is not stopped:
        assert time.perf_counter() < deadline_s


def answers(process: subprocess.Popen[str]) -> None:
    """Sends a line to the process, and reads it back."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("line\n")
    assert process.stdout.readline() == "line\n"


@pytest.mark.slow
def test_a_process_is_stopped_again_and_again(echo: subprocess.Popen[str]) -> None:
    """Between two stalls, and after the last, it runs and answers."""
    answers(echo)
    with stalls(echo.pid, 0.05, 0.1):
        for _ in range(2):
            until(echo, stopped=True)
            until(echo, stopped=False)
    answers(echo)


def interrupted_in_a_stall(process: subprocess.Popen[str]) -> None:
    """Raises KeyboardInterrupt, as Ctrl-C does, while the process is stopped for long."""
    with stalls(process.pid, 6 * WAIT_S, 0.02):
        until(process, stopped=True)
        raise KeyboardInterrupt


def test_the_process_runs_when_the_stalls_end_within_one(echo: subprocess.Popen[str]) -> None:
    """After an exception within a stall the process runs."""
    answers(echo)
    with pytest.raises(KeyboardInterrupt):
        interrupted_in_a_stall(echo)
    assert state(echo) != "T"
    answers(echo)
