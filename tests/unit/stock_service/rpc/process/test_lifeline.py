"""A program that is tied to its parent ends with it, and otherwise runs as if it were started itself."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from stock_service.rpc.process import lifeline
from stock_service.rpc.process.lifeline import tied
from tests.conformance.running import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a program stays")

ROOT = Path(__file__).resolve().parents[5]
PROGRAM = [sys.executable, "-S", "-E", "-c", "import signal; signal.pause()"]

SAY = "print('started', flush=True)"

STARTED_BY = {
    "tied": f"import subprocess; from {lifeline.__name__} import tied; subprocess.Popen(tied({PROGRAM})); {SAY}",
    "another's client": f"from experiments.measure.programs import finished; {SAY}; finished({PROGRAM}, None, 60)",
}
"""Code of a parent that starts a program."""


def began(process: psutil.Process) -> bool:
    """True where the process is the program by now, and not the one that ties it."""
    command = process.cmdline()
    return bool(command) and lifeline.__file__ not in command


def gone(process: psutil.Process) -> bool:
    """True where the process has ended, also if its exit code was not read yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def started(source: str) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """A parent that runs some Python and then waits, and the one program that it started."""
    command = [sys.executable, "-c", f"{source}\nimport signal; signal.pause()"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as parent, ExitStack() as ends:
        ends.callback(parent.kill)
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        until(lambda: len(psutil.Process(parent.pid).children()) == 1, "it has a child")
        (child,) = psutil.Process(parent.pid).children()
        ends.enter_context(suppress(psutil.NoSuchProcess))
        ends.callback(child.kill)
        until(lambda: began(child), "the child has begun")
        yield parent, child


@pytest.mark.slow
@pytest.mark.parametrize(("source", "stopped"), [("tied", False), ("tied", True), ("another's client", False)])
def test_a_program_is_gone_when_its_parent_was_killed(source: str, stopped: bool) -> None:
    """A program is gone when its parent was killed, whether or not the parent waits for the program. This also holds
    for a stopped program. Every other start is one of these: ``test_whatever_is_started_is_tied``."""
    with started(STARTED_BY[source]) as (parent, child):
        if stopped:
            child.suspend()
        parent.kill()
        until(lambda: gone(child), "it has ended")


def test_a_parent_that_was_gone_before_starts_nothing(tmp_path: Path) -> None:
    """A parent that was gone before starts nothing: here another process is named as the parent."""
    command = tied([sys.executable, "-c", f"open({str(tmp_path / 'began')!r}, 'w')"])
    assert str(os.getpid()) in command
    command[command.index(str(os.getpid()))] = str(os.getppid())
    assert subprocess.run(command, timeout=20).returncode == 1
    assert not (tmp_path / "began").exists()


def test_a_program_finds_what_it_would_find_untied() -> None:
    """A tied program has the same words, environment, folder, output and signals as an untied one."""
    shell = shutil.which("sh")
    assert shell is not None
    look = [shell, "-c", 'echo "$0" "$LIFE"; pwd; exec grep ^Sig[BI] /proc/self/status', "a word"]
    one, other = (
        subprocess.run(each, cwd=ROOT, env=os.environ | {"LIFE": "x"}, stdout=subprocess.PIPE, timeout=20)
        for each in (look, tied(look))
    )
    assert one.stdout.startswith(b"a word x\n")
    assert (other.stdout, other.returncode) == (one.stdout, 0) == (one.stdout, one.returncode)


def test_a_program_that_is_none_is_told(tmp_path: Path) -> None:
    """A missing program is an error at once. One that cannot be run is a line when it begins."""
    with pytest.raises(FileNotFoundError):
        tied([str(tmp_path / "nothing")])
    (tmp_path / "text").write_text("text")
    ended = subprocess.run(tied([str(tmp_path / "text")]), stderr=subprocess.PIPE, text=True, timeout=20)
    assert (ended.returncode, ended.stderr) == (1, f"{tmp_path / 'text'}: Permission denied\n")


def test_the_sign_is_a_kill() -> None:
    """The kernel has it down for a process that asked, and for no other."""
    look = (
        "import ctypes; from stock_service.rpc.process import lifeline; told = ctypes.c_int()\n"
        "def said(): ctypes.CDLL(None).prctl(2, ctypes.byref(told)); return told.value\n"
        "before = said(); lifeline.end_with_parent(); print(before, said())"
    )
    ended = subprocess.run([sys.executable, "-c", look], cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=20)
    assert ended.stdout == f"0 {int(signal.SIGKILL)}\n"


def test_whatever_is_started_is_tied() -> None:
    """Every ``Popen`` of ours; ``subprocess.run`` waits for what ends by itself."""
    calls = [
        ast.unparse(node)
        for folder in ("stock_service", "clients", "experiments")
        for file in (ROOT / folder).rglob("*.py")
        if "subprocess.Popen(" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "subprocess.Popen"
    ]
    assert len(calls) >= 3
    assert all(call.startswith("subprocess.Popen(tied(") for call in calls), calls
