"""Programs: start, pinning, observation, and the end of all processes."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import psutil
import pytest

from clients.load.run.counters import processes_cpu_ns
from experiments.measure import programs
from experiments.measure.programs import Program, ProgramFailed, ProgramRefused, kept_to
from experiments.results.machine import cores

GOOD = "import signal,sys; signal.signal(15, lambda *_: sys.exit(0)); print('ready 127.0.0.1:5', flush=True)"
WAIT = "; signal.pause()"


def python(source: str, cpus: tuple[int, ...] | None = None) -> Program:
    """A program of Python code, in an interpreter that starts quickly."""
    return Program([sys.executable, "-S", "-E", "-c", source], cpus)


def gone(pid: int) -> bool:
    """True if the process has ended, and has been reaped."""
    return not psutil.pid_exists(pid)


@pytest.mark.usefixtures("no_leaks")
def test_a_program_says_where_it_listens_and_is_gone_after_with() -> None:
    """A program with the process contract is ready at its address, and has ended after ``with``. The program has a
    session of its own, so that Ctrl-C only reaches the experiment."""
    with python(GOOD + WAIT) as program:
        assert program.ready() == ("127.0.0.1", 5)
        assert os.getsid(program.pid) == program.pid != os.getsid(0)
        assert program.memory_mib() > 1
        assert program.threads() == 1
    assert gone(program.pid)
    program.stop()


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; print('no catalog', file=sys.stderr); sys.exit(1)", "exit code 1; its error output: no catalog"),
        ("import sys; sys.exit('filler ' * 300_000 + 'no catalog')", r"exit code 1; its error output: .*no catalog"),
        ("print('serving 127.0.0.1:5', flush=True); import signal; signal.pause()", "not 'ready HOST:PORT'"),
        ("print('ready nowhere', flush=True); import signal; signal.pause()", "'ready nowhere', not 'ready"),
        ("print('r' * 5000, flush=True); import signal; signal.pause()", "over 4096 bytes"),
        ("import signal; signal.pause()", "no first line within 0.1 s"),
        ("import os, signal; os.close(1); signal.pause()", "closed its output before its first line"),
    ],
)
def test_a_program_that_is_not_ready_is_reported_and_gone(
    source: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that ends early, that closes its output, or that prints no line, another line or too long a line, is
    refused and ended."""
    monkeypatch.setattr(programs, "STOP_S", 0.1 if "closed" in message else 10)
    program = python(source)
    with pytest.raises(ProgramFailed, match=message) as failed, program:
        program.ready(timeout_s=0.1 if "no first line" in message else 10)
    assert type(failed.value) is ProgramFailed
    assert gone(program.pid)


@pytest.mark.usefixtures("no_leaks")
def test_a_program_that_takes_none_of_its_options_has_refused() -> None:
    """A program that exits with 2 before its ready line has refused its options."""
    refuses = "import sys; print('shop: --depth: got 0 (--help lists the options)', file=sys.stderr); sys.exit(2)"
    with pytest.raises(ProgramRefused) as refused, python(refuses) as program:
        program.ready()
    assert str(refused.value) == "a server refused to start: shop: --depth: got 0"


@pytest.mark.usefixtures("no_leaks")
def test_a_program_without_a_ready_line_is_waited_for_at_its_port() -> None:
    """``listening`` waits until the port accepts connections."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
    listens = f"import socket,signal; s = socket.create_server(('127.0.0.1', {port})); signal.pause()"
    with Program([sys.executable, "-c", listens], exits=(-signal.SIGTERM,)) as program:
        program.listening(("127.0.0.1", port))


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; sys.exit('no table')", "ended before it listened, with exit code 1; its error output: no"),
        (GOOD + WAIT, "nothing listens at 127.0.0.1:1 after 0.1 s"),
    ],
)
def test_a_program_that_never_listens_is_reported(source: str, message: str) -> None:
    """A program that ends before it listens, or that never listens, is refused."""
    with pytest.raises(ProgramFailed, match=message), python(source) as program:
        program.listening(("127.0.0.1", 1), timeout_s=10 if "ended" in message else 0.1)


@pytest.mark.usefixtures("no_leaks")
def test_a_program_that_prints_a_lot_is_not_stopped_by_a_full_pipe() -> None:
    """A program that prints more than a pipe holds after its ready line goes on, and listens. Its reader is gone with
    it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    prints = f"; import socket; print('x' * 1_000_000, flush=True); s = socket.create_server(('127.0.0.1', {port}))"
    with python(GOOD + prints + WAIT) as program:
        program.ready()
        with program.drained():
            program.listening(("127.0.0.1", port), 10)
            (reader,) = (each for each in psutil.Process().children() if each.name() == "cat")
        assert not reader.is_running()


PLAIN = "import signal; print('ready h:1', flush=True); signal.pause()"


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("stop", [Program.stop, Program.ended])
@pytest.mark.parametrize(
    ("source", "message"),
    [
        (PLAIN.replace(";", "; signal.signal(15, signal.SIG_IGN);", 1), r"within 0\.05 s of SIGTERM, and was killed"),
        (GOOD.replace("sys.exit(0)", "sys.exit(1)") + WAIT, "exit code 1"),
        (PLAIN, "exit code -15"),
    ],
)
def test_a_program_that_does_not_stop_well_is_reported_and_gone(
    source: str, message: str, stop: Callable[[Program, float], object]
) -> None:
    """After SIGTERM, a program that ignores the signal is killed and refused. A program that the signal ends, or that
    has another exit code than 0, is refused."""
    program = python(source)
    program.ready()
    with pytest.raises(ProgramFailed, match=message):
        stop(program, 0.05 if "killed" in message else 10)
    assert gone(program.pid)


@pytest.mark.usefixtures("no_leaks")
def test_an_error_inside_with_stays_the_error_and_the_program_is_gone() -> None:
    """An error inside ``with`` is raised, with the program's failure as a note. The program has ended."""
    program = python(GOOD.replace("sys.exit(0)", "sys.exit(1)") + WAIT)
    program.ready()
    with pytest.raises(KeyError) as caught, program:
        raise KeyError("mine")
    assert "exit code 1" in caught.value.__notes__[0]
    assert gone(program.pid)


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system pins nothing")
def test_a_program_that_cannot_be_pinned_is_reported_and_gone() -> None:
    """A program that cannot be pinned is refused, and no process remains."""
    before = psutil.Process().children()
    with pytest.raises(ProgramFailed, match="did not start on cores 100000"):
        python(GOOD + WAIT, (100_000,))
    assert psutil.Process().children() == before


def test_processor_time_counts_every_thread_dead_ones_included() -> None:
    """The processor time includes an ended thread that computed for 50 ms, and excludes sleep."""
    spin = "import threading,time\ndef spin():\n while time.thread_time() < 0.05: pass\n"
    threads = "t = threading.Thread(target=spin); t.start(); t.join()\n"
    with python(spin + threads + GOOD + "\nwhile True: signal.pause()") as program:
        program.ready()
        before_s = program.cpu_s()
        assert 0.05 <= before_s < 1
        assert program.cpu_s() - before_s < 0.01


def test_processor_time_is_told_apart_by_who_spent_it() -> None:
    """A program that reads zeros spends its time in the kernel. A program that adds spends its time in user mode."""
    read = (
        "import os\nzero = os.open('/dev/zero', os.O_RDONLY)\nwhile os.times().system < 0.1: os.read(zero, 1 << 16)\n"
    )
    count = "import os\nwhile os.times().user < 0.15: sum(range(100_000))\n"
    with python(read + GOOD + "\nwhile True: signal.pause()") as program:
        program.ready()
        assert program.user_and_kernel_s()[1] >= 0.1
    with python(count + GOOD + "\nwhile True: signal.pause()") as program:
        program.ready()
        user_s, kernel_s = program.user_and_kernel_s()
        assert user_s >= 0.15 > kernel_s


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(cores()) < 2, reason="this system pins nothing, or has one core"
)
def test_a_program_has_its_cores_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program inherits its cores at its start, so that no thread can start on another core."""
    core, before, began = cores()[-1], os.sched_getaffinity(0), []
    start = subprocess.Popen

    def starting(*arguments: Any, **options: Any) -> Any:
        began.append(os.sched_getaffinity(0))
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", starting)
    with python(GOOD + WAIT, (core,)) as program:
        program.ready()
    assert began == [{core}]
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(cores()) < 2, reason="this system pins nothing, or has one core"
)
def test_a_signal_right_behind_the_pinning_leaves_the_thread_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt right after the pinning leaves this thread on its former cores."""
    before, pin = os.sched_getaffinity(0), os.sched_setaffinity

    def pin_and_hear(process: int, cpus: Iterable[int]) -> None:
        pin(process, cpus)
        if set(cpus) != before:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "sched_setaffinity", pin_and_hear)
    with pytest.raises(KeyboardInterrupt), kept_to(cores()[-1:]):
        pass
    assert os.sched_getaffinity(0) == before


def test_threads_and_open_connections_are_counted() -> None:
    """Threads, and open connections to the given port, are counted."""
    listen = "import socket,threading; a, b = (socket.create_server(('127.0.0.1', 0)) for _ in 'ab')\n"
    accept = "kept = []\nfor s in (a, a, b): kept.append(s.accept()[0])\n"
    more = "for _ in 'ab': threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    say = "print(a.getsockname()[1], b.getsockname()[1], flush=True)\n"
    wait = more + "print('ready 127.0.0.1:5', flush=True)\nsignal.pause()"
    handler = "import signal,sys; signal.signal(15, lambda *_: sys.exit(0))\n"
    with python(listen + handler + say + accept + wait) as program, contextlib.ExitStack() as made:
        ports = [int(port) for port in program.first_line(10).split()]
        for port in (ports[0], *ports):
            made.enter_context(socket.create_connection(("127.0.0.1", port)))
        program.ready(10)
        assert [program.connections(("127.0.0.1", port)) for port in ports] == [2, 1]
        assert program.threads() == 3


def test_a_program_that_is_gone_is_reported_whatever_is_asked_of_it() -> None:
    """Every reading of an ended program raises ProgramFailed with the program's standard error."""
    program = python("import sys; print('out of memory', file=sys.stderr); sys.exit(3)")
    psutil.Process(program.pid).wait(10)  # reaps it
    asked = (program.threads, program.memory_mib, program.cpu_s, program.user_and_kernel_s)
    for ask in (*asked, lambda: program.connections(("h", 1))):
        with pytest.raises(ProgramFailed, match=r"has ended; its error output: out of memory"):
            ask()
    with contextlib.suppress(ProgramFailed):
        program.stop()


def test_a_later_program_with_the_same_number_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a program is reaped, Linux may give its number to another program, which is not killed."""
    program, killed = python("pass"), list[object]()
    assert program.has_ended(10)
    monkeypatch.setattr(os, "killpg", lambda *sent: killed.append(sent))
    monkeypatch.setattr(psutil, "pid_exists", lambda _: True)
    program.kill()
    assert killed == []


BUSY = "import signal, time\nwhile time.process_time() < 0.1: pass\nprint(end='.', flush=True)\nsignal.pause()"
SEVERAL = f"""
import signal, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
python = [sys.executable, "-S", "-E", "-c"]
children = [subprocess.Popen([*python, {BUSY!r}], stdout=-1, pass_fds=[listener.fileno()]) for _ in range(2)]
for each in children: each.stdout.read(1)
children.append(subprocess.Popen([*python, "import signal; signal.pause()"]))
def end_one(*_): children[2].kill(), children[2].wait(), print("ended", flush=True)
def end(*_):
    for each in children: each.kill(), each.wait()
    sys.exit(0)
signal.signal(15, end)
signal.signal(10, end_one)
print("ready 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
while True: signal.pause()
"""
"""A server of three processes. Two child processes share its port, and have computed for 0.1 s each. A third child
process does not serve, and ends at SIGUSR1."""


@pytest.mark.slow
def test_what_a_server_started_is_measured_with_it() -> None:
    """Threads, memory and processor time include child processes that serve. Other child processes may end."""
    with python(SEVERAL) as program:
        program.ready()
        assert len(program.pids) == 3
        assert program.pids[0] == program.pid
        assert program.threads() == 3
        assert program.cpu_s() >= 0.2
        assert processes_cpu_ns(program.pids) >= 0.2e9
        assert program.memory_mib() > 3
        assert program.resident_mib() > program.memory_mib()
        os.kill(program.pid, signal.SIGUSR1)
        assert program.first_line(5) == "ended"
        assert program.cpu_s() >= 0.2
    assert all(gone(pid) for pid in program.pids)


def test_a_wrappers_own_program_ends_with_it() -> None:
    """The end of a shell also ends the server that the shell has started without exec."""
    with Program(["/bin/sh", "-c", "sleep 300 & echo $!; wait"], exits=(-signal.SIGTERM,)) as wrapper:
        child = psutil.Process(int(wrapper.first_line(5)))
    gone_by_s = time.monotonic() + 10
    with contextlib.suppress(psutil.NoSuchProcess):  # nobody is left to reap it but the system
        while child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < gone_by_s
