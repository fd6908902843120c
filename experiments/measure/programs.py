"""Programs that run beside the experiment: started, pinned, observed, stopped, always reaped.

Any program that keeps the process contract (the first line on standard output is ``ready HOST:PORT``, SIGTERM drains
and exits 0) can be measured, in any language. A ``Program`` is in a session of its own, so that Ctrl-C in the terminal
reaches the experiment alone, which then stops its programs. A program's standard error goes to a file, kept for the
message if the program fails; no thread is needed to read it. A program ends with the experiment, also if the experiment
is killed (``rpc/process/lifeline.py``). So start programs from the main thread.

Processes that a server has started by its ready line, and that have its port open too, are measured with it, as one
server. Other processes that the server has started are left out, and may end.
Processor time is read from each process's CPU clock (``clock_getcpuclockid(3)``). It is the scheduler's own account of
the process's threads, dead ones included, in nanoseconds. ``/proc/PID/stat`` counts ticks of 10 ms instead.

``finished`` runs a program that ends by itself, such as a load program. ``running`` has it run for the time of a block.
"""

import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Self, TypeVar

import psutil

from clients.load.run.counters import processes_cpu_ns
from stock_service.rpc.errors import StockServiceError, Unavailable
from stock_service.rpc.process.command_line import HELP_HINT, USAGE_EXIT, address
from stock_service.rpc.process.lifeline import tied
from stock_service.rpc.transports import Address

READY_S = 15.0
"""Longest time for a server's ready line; the slowest measured here took 1 s."""

STOP_S = 10.0
"""Longest time for a program's exit after SIGTERM, before it is killed: twice the servers' grace."""

Seen = TypeVar("Seen")

_TRY_S = 0.05
"""Time between two tries to connect to a server that starts."""

_LINE_BYTES_MAX = 4096
"""Longest first line, in bytes, that is read as a ready line."""

_STDERR_BYTES = 1 << 20
"""Bytes of standard error read for an error message."""

_STDERR_LINES = 5
"""Last lines of standard error that an error message has: a Python traceback names its error there."""


class ProgramFailed(StockServiceError):
    """A program did not start, broke the contract or ended badly: ``command``, ``what`` happened, its ``stderr``."""

    def __init__(self, command: Sequence[str], what: str, stderr: str) -> None:
        super().__init__(command, what, stderr)
        self.command = tuple(command)
        self.what = what
        self.stderr = stderr

    def __str__(self) -> str:
        program = " ".join([Path(self.command[0]).name, *self.command[1:5]])
        said = " | ".join(self.stderr.strip().splitlines()[-_STDERR_LINES:])
        return f"{program}: {self.what}; it said: {said or 'nothing'}"


class ProgramRefused(ProgramFailed):
    """A program refused its options or files: it ended with 2 before it was ready, and said why."""

    def __str__(self) -> str:
        said = self.stderr.strip().splitlines() or [" ".join(self.command)]
        return f"a server refused to start: {said[-1].removesuffix(HELP_HINT)}"


class Program:
    """A running program. One thread's. Leaving ``with`` stops it."""

    def __init__(
        self, command: Sequence[str], cpus: tuple[int, ...] | None = None, exits: Sequence[int] = (0,)
    ) -> None:
        """Starts it, on the cores ``cpus`` only (None: on any). Raises ProgramFailed where there is no such program.

        ``exits``: the exit codes with which it may answer SIGTERM; a negative one is a signal that ended it.
        """
        self._command, self._exits = tuple(command), exits
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by stop
        self._pids: tuple[int, ...] = ()
        self._port = 0  # where it listens; 0: it is not known yet
        try:
            self._process = _begun(self._command, cpus, self._stderr)
        except ProgramFailed:
            self._stderr.close()
            raise

    @property
    def pid(self) -> int:
        """Id of the process; after ``stop`` no process has it."""
        return self._process.pid

    def first_line(self, timeout_s: float) -> str:
        """First line that the program prints, without its end. Blocks; raises ProgramFailed if no line comes in
        time."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline_s = time.monotonic() + timeout_s
        line = b""
        while not line.endswith(b"\n"):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
                raise self._failed(f"no first line within {timeout_s:g} s: a server prints ready HOST:PORT")
            byte = os.read(descriptor, 1)  # one at a time: the bytes behind the line are not for us
            if not byte:
                raise self._ended("its first line, ready HOST:PORT", self._process.wait(STOP_S))
            line += byte
            if len(line) > _LINE_BYTES_MAX:
                raise self._failed(f"a first line of over {_LINE_BYTES_MAX} bytes")
        return line[:-1].decode("utf-8", "replace")

    def ready(self, timeout_s: float = READY_S) -> Address:
        """Address of a server, from its ready line. Blocks; raises ProgramFailed if it says nothing or something
        else."""
        line = self.first_line(timeout_s)
        word, _, where = line.partition(" ")
        try:
            if word != "ready":
                raise ValueError(line)
            at = address(where)
        except Exception as error:
            raise self._failed(f"its first line was {line!r}, not ready HOST:PORT") from error
        self._port = at[1]
        return at

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of the process, and of processes that it started and that have its port open too. Ask once it is ready.

        The first answer is kept. Raises ProgramFailed if the program is gone.
        """
        if not self._pids:
            try:
                started = psutil.Process(self.pid).children(recursive=True)
            except psutil.Error as error:
                raise self._failed("is gone") from error
            self._pids = (self.pid, *(each.pid for each in started if _has_open(each, self._port)))
        return self._pids

    def listening(self, at: Address, timeout_s: float = READY_S) -> None:
        """Waits until it accepts connections there, for a server that has no ready line. Blocks; raises ProgramFailed
        where it ends before, or does not in time."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise self._ended("it listened", self._process.returncode)
            try:
                socket.create_connection(at, _TRY_S).close()
                self._port = at[1]
                return
            except OSError:  # not yet
                time.sleep(_TRY_S)
        raise self._failed(f"nothing listens at {at[0]}:{at[1]} after {timeout_s:g} s")

    def cpu_s(self) -> float:
        """Processor time of all threads so far, user and system. Raises ProgramFailed if the program is gone."""
        try:
            return processes_cpu_ns(self.pids) / 1e9
        except Unavailable as error:
            raise self._failed("is gone") from error

    def user_and_kernel_s(self) -> tuple[float, float]:
        """Processor time so far in the program's own code, and in the kernel. Sampled by clock ticks, of 10 ms at
        most."""
        every = self._of_each(psutil.Process.cpu_times)
        return sum(times.user for times in every), sum(times.system for times in every)

    def memory_mib(self) -> float:
        """Memory in MiB, each shared page divided among its users (on other systems than Linux: resident memory)."""
        every = self._of_each(psutil.Process.memory_full_info)
        return sum(float(getattr(memory, "pss", memory.rss)) for memory in every) / 2**20

    def resident_mib(self) -> float:
        """Memory in MiB, shared pages counted whole, so that other programs do not change it.

        A page that several of its own processes share is counted once for each of them.
        """
        return sum(float(memory.rss) for memory in self._of_each(psutil.Process.memory_info)) / 2**20

    def threads(self) -> int:
        """Number of threads. Raises ProgramFailed if the program is gone."""
        return sum(self._of_each(psutil.Process.num_threads))

    def connections(self, at: Address) -> int:
        """Number of open connections to the port. Raises ProgramFailed if the program is gone."""
        every = self._of_each(lambda process: process.net_connections("tcp"))
        found = (one for of_one in every for one in of_one)
        return sum(one.status == psutil.CONN_ESTABLISHED and one.laddr.port == at[1] for one in found)

    def _of_each(self, ask: Callable[[psutil.Process], Seen]) -> list[Seen]:
        """Value of each process. Raises ProgramFailed if a process is gone."""
        try:
            return [ask(psutil.Process(pid)) for pid in self.pids]
        except psutil.Error as error:
            raise self._failed("is gone") from error

    def stop(self, timeout_s: float = STOP_S) -> None:
        """Sends SIGTERM, and SIGKILL after ``timeout_s``. Blocks until the program is reaped. May be repeated.

        Raises ProgramFailed unless it exits in time, with one of ``exits``.
        """
        if self._stderr.closed:
            return
        try:
            self._signal(signal.SIGTERM)
            try:
                code = self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise self._failed(f"did not stop within {timeout_s:g} s of SIGTERM, and was killed") from None
            if code not in self._exits:
                raise self._failed(f"exit code {code}")
        finally:
            self._kill()
            self._close()

    def ended(self, timeout_s: float = STOP_S) -> str:
        """Stops the program as ``stop`` does, and gives the output behind its first line, read while it ends."""
        self._signal(signal.SIGTERM)
        try:
            said, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            said = b""  # it is told off below, as one that does not stop
        self.stop(timeout_s)
        return said.decode("utf-8", "replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.stop()
            return
        try:
            self.stop()
        except ProgramFailed as failed:  # the error on its way matters more
            error.add_note(str(failed))

    def _signal(self, number: int) -> None:
        """Sends a signal to all processes of the session: to a wrapper's own programs too. Does nothing where all are
        gone."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _close(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._stderr.close()

    def _ended(self, before: str, code: int) -> ProgramFailed:
        kind = ProgramRefused if code == USAGE_EXIT else ProgramFailed
        return self._failed(f"ended before {before}, with exit code {code}", kind)

    def _failed(self, what: str, kind: type[ProgramFailed] = ProgramFailed) -> ProgramFailed:
        said = os.pread(self._stderr.fileno(), _STDERR_BYTES, 0)  # not read: the offset is the program's too
        return kind(self._command, what, said.decode("utf-8", "replace"))


def _has_open(process: psutil.Process, port: int) -> bool:
    """True where the process has a socket of the port. False for a process that is gone or may not be looked at."""
    try:
        return any(one.laddr and one.laddr.port == port for one in process.net_connections("inet"))
    except psutil.Error:
        return False


def _begun(
    command: Sequence[str],
    cpus: tuple[int, ...] | None,
    stderr: IO[bytes],
    folder: Path | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Starts a program in a session of its own, on these cores (None: any). Raises ProgramFailed."""
    try:
        with kept_to(cpus):
            return subprocess.Popen(
                tied(command),
                cwd=folder,
                env=os.environ | variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
    except OSError as error:
        where = "" if cpus is None else f" on cores {', '.join(map(str, cpus))}"
        raise ProgramFailed(command, f"did not start{where}: {error}", "") from error


@contextmanager
def kept_to(cpus: tuple[int, ...] | None) -> Iterator[None]:
    """Keeps this thread to these cores for the time of a block, and with it every program that the thread starts.

    None, or on a system that pins nothing: any core. Raises OSError for cores that are not there.
    """
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)  # may block until a core is free, so that Ctrl-C is often heard right behind it
        yield
    finally:
        os.sched_setaffinity(0, before)


class Running:
    """A program that ends by itself. Made by ``running``; for the thread that made it."""

    def __init__(self, command: Sequence[str], process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
        self._command, self._process, self._stderr = command, process, stderr

    def has_ended(self, within_s: float) -> bool:
        """True where the program has ended. Waits for its end up to ``within_s``. A program that prints over 64 KiB
        does not end before it is read."""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def said(self, timeout_s: float) -> str:
        """Output of the program, at its end. Blocks.

        Raises ProgramFailed where it takes longer than ``timeout_s`` from now on, or does not exit with 0.
        """
        try:
            said, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as expired:
            raise ProgramFailed(self._command, f"took over {timeout_s:g} s", "") from expired
        if self._process.returncode:
            self._stderr.seek(0)
            told = self._stderr.read().decode("utf-8", "replace")
            raise ProgramFailed(self._command, f"exit code {self._process.returncode}", told)
        return said.decode("utf-8", "replace")


@contextmanager
def running(
    command: Sequence[str],
    cpus: tuple[int, ...] | None,
    folder: Path | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Running]:
    """A program on these cores (None: any), for the time of the block.

    It is killed where the block ends before it, so by Ctrl-C, and with this process (``rpc/process/lifeline.py``).
    ``variables`` are added to its environment. Raises ProgramFailed where it does not start.
    """
    with tempfile.TemporaryFile() as stderr:
        process = _begun(command, cpus, stderr, folder, variables)
        assert process.stdout is not None
        try:
            yield Running(command, process, stderr)
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the whole session: its children too
                process.wait()
            process.stdout.close()


def finished(
    command: Sequence[str],
    cpus: tuple[int, ...] | None,
    timeout_s: float,
    folder: Path | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Output of a program, run to its end; see ``running``, and ``Running.said``. Blocks."""
    with running(command, cpus, folder, variables) as program:
        return program.said(timeout_s)
