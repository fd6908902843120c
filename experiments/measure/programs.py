"""Programs of an experiment: starts, pins, observes, stops and always reaps other processes.

Every program with the process contract can be measured, in any language. By this contract the first line on standard
output is ``ready HOST:PORT``, and SIGTERM makes the program answer its calls and exit with 0. A ``Program`` has a
session of its own. So Ctrl-C in the terminal reaches only the experiment, which then stops its programs. The standard
error of a program goes to a file, so that no thread must read a pipe. The message of a failure quotes this file. The
kernel kills a program when the thread that started the program ends, also after a SIGKILL of the experiment
(``rpc/process/lifeline.py``). So the main thread should start programs.

A server may have several processes. The descendants that have the server's port open at the ready line are measured as
parts of the server. Other descendants are not measured, and may end at any time. The processor time is read from each
process's CPU clock (``clock_getcpuclockid(3)``): the scheduler's time of all threads of the process, including ended
threads, in nanoseconds. ``/proc/PID/stat`` has only ticks of 10 ms.

``finished`` runs a program that ends by itself, such as a load program. ``running`` keeps such a program running for
the time of a ``with`` block.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self, TypeVar

import msgspec
import psutil

from clients.load.run.counters import processes_cpu_ns
from stock_service.rpc.errors import StockServiceError, Unavailable
from stock_service.rpc.process.command_line import HELP_HINT, USAGE_EXIT, address
from stock_service.rpc.process.lifeline import tied
from stock_service.rpc.transports import Address

READY_S = 15.0
"""Longest time for a server's ready line, in seconds. The slowest server of the studies needed 1 s."""

STOP_S = 10.0
"""Longest time from SIGTERM until a program's exit, in seconds. After this time the program is killed. This time is
twice the servers' grace time."""

Seen = TypeVar("Seen")
Report = TypeVar("Report")

_TRY_S = 0.05
"""Time in seconds between two attempts to connect to a starting server."""

_LINE_BYTES_MAX = 4096
"""Largest length of a ready line, in bytes."""

_STDERR_BYTES = 1 << 20
"""Largest number of bytes of standard error that are read for an error message: the last bytes."""

_STDERR_LINES = 5
"""Number of last lines of standard error that an error message quotes. A Python traceback names its error last."""


class ProgramFailed(StockServiceError):
    """Failure of a program that did not start, broke the process contract or ended early. The error has the program's
    standard error."""

    def __init__(self, command: Sequence[str], what: str, stderr: str) -> None:
        super().__init__(command, what, stderr)
        self.command = tuple(command)
        self.what = what
        self.stderr = stderr

    def __str__(self) -> str:
        program = " ".join([Path(self.command[0]).name, *self.command[1:5]])
        said = " | ".join(self.stderr.strip().splitlines()[-_STDERR_LINES:])
        return f"{program}: {self.what}; its error output: {said or 'nothing'}"


class ProgramRefused(ProgramFailed):
    """Refusal of options or files. Before a ready line, the program prints a reason and exits with 2."""

    def __str__(self) -> str:
        said = self.stderr.strip().splitlines() or [" ".join(self.command)]
        return f"a server refused to start: {said[-1].removesuffix(HELP_HINT)}"


class Program:
    """A running program. For one thread. The end of a ``with`` block stops the program."""

    def __init__(
        self,
        command: Sequence[str],
        cpus: tuple[int, ...] | None = None,
        exits: Sequence[int] = (0,),
        folder: Path | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Starts the program in a new session, pinned to the cores ``cpus``. None: not pinned. Raises ProgramFailed for
        a missing program.

        ``exits`` has the allowed exit codes after SIGTERM. A negative code is the number of a signal. ``variables`` are
        added to the program's environment.
        """
        self.command, self._exits = tuple(command), exits
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by kill
        self._pids: tuple[int, ...] = ()
        self._port = 0  # port at which the program listens; 0: not known yet
        try:
            with kept_to(cpus):
                self._process = subprocess.Popen(
                    tied(self.command),
                    cwd=folder,
                    env=os.environ | variables,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                    start_new_session=True,
                )
        except OSError as error:
            self._stderr.close()
            where = "" if cpus is None else f" on cores {', '.join(map(str, cpus))}"
            raise ProgramFailed(self.command, f"did not start{where}: {error}", "") from error

    @property
    def pid(self) -> int:
        """Id of the process. Invalid after ``stop``."""
        return self._process.pid

    def first_line(self, timeout_s: float) -> str:
        """First line that the program prints, without the line end. Blocks. Raises ProgramFailed if no line comes
        within ``timeout_s``."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline_s = time.monotonic() + timeout_s
        line = b""
        while not line.endswith(b"\n"):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
                raise self._failed(f"no first line within {timeout_s:g} s: a server prints 'ready HOST:PORT'")
            byte = os.read(descriptor, 1)  # one byte at a time: later bytes belong to other readers
            if not byte:
                with suppress(subprocess.TimeoutExpired):
                    raise self._ended("its first line, 'ready HOST:PORT'", self._process.wait(STOP_S))
                raise self._failed("closed its output before its first line, 'ready HOST:PORT'")
            line += byte
            if len(line) > _LINE_BYTES_MAX:
                raise self._failed(f"a first line of over {_LINE_BYTES_MAX} bytes")
        return line[:-1].decode("utf-8", "replace")

    def ready(self, timeout_s: float = READY_S) -> Address:
        """Address of a server, read from its ready line. Blocks. Raises ProgramFailed if no ready line comes."""
        line = self.first_line(timeout_s)
        word, _, where = line.partition(" ")
        try:
            if word != "ready":
                raise ValueError(line)
            at = address(where)
        except Exception as error:
            raise self._failed(f"its first line was {line!r}, not 'ready HOST:PORT'") from error
        self._port = at[1]
        return at

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of the process, and of its descendants that have the server's port open. Call ``ready`` first.

        Later calls of this method give the result of the first call. Raises ProgramFailed if the program has ended.
        """
        if not self._pids:
            try:
                started = psutil.Process(self.pid).children(recursive=True)
            except psutil.Error as error:
                raise self._failed("has ended") from error
            self._pids = (self.pid, *(each.pid for each in started if _has_open(each, self._port)))
        return self._pids

    def listening(self, at: Address, timeout_s: float = READY_S) -> None:
        """Waits until a server without a ready line accepts connections. Blocks. Raises ProgramFailed if the server
        ends, or if it accepts no connection within ``timeout_s``."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise self._ended("it listened", self._process.returncode)
            try:
                socket.create_connection(at, _TRY_S).close()
                self._port = at[1]
                return
            except OSError:  # nothing listens yet
                time.sleep(_TRY_S)
        raise self._failed(f"nothing listens at {at[0]}:{at[1]} after {timeout_s:g} s")

    @contextmanager
    def drained(self) -> Iterator[None]:
        """Reads and drops the program's output after the ready line, during a ``with`` block. A program that prints a
        line for each request would otherwise fill the pipe, and stop. Raises OSError if ``cat`` is missing."""
        cat, out, none = [shutil.which("cat") or "cat"], self._process.stdout, subprocess.DEVNULL
        with subprocess.Popen(tied(cat), stdin=out, stdout=none, stderr=none, process_group=0) as reader:
            try:
                yield
            finally:
                reader.kill()

    def cpu_s(self) -> float:
        """Processor time of all threads so far, in user and kernel mode, in seconds. Raises ProgramFailed for an ended
        program."""
        try:
            return processes_cpu_ns(self.pids) / 1e9
        except Unavailable as error:
            raise self._failed("has ended") from error

    def user_and_kernel_s(self) -> tuple[float, float]:
        """Processor time so far in user mode and in kernel mode, in seconds, counted in ticks of at most 10 ms."""
        every = self._of_each(psutil.Process.cpu_times)
        return sum(times.user for times in every), sum(times.system for times in every)

    def memory_mib(self) -> float:
        """Memory in MiB. On Linux: PSS, which divides a shared page among its processes. On other systems: resident
        memory."""
        every = self._of_each(psutil.Process.memory_full_info)
        return sum(float(getattr(memory, "pss", memory.rss)) for memory in every) / 2**20

    def resident_mib(self) -> float:
        """Resident memory in MiB. Each process counts the whole of a shared page, so other programs do not change this
        number."""
        return sum(float(memory.rss) for memory in self._of_each(psutil.Process.memory_info)) / 2**20

    def threads(self) -> int:
        """Number of threads of all the program's processes. Raises ProgramFailed if the program has ended."""
        return sum(self._of_each(psutil.Process.num_threads))

    def connections(self, at: Address) -> int:
        """Number of established connections to the port of ``at``. Raises ProgramFailed if the program has ended."""
        every = self._of_each(lambda process: process.net_connections("tcp"))
        found = (one for of_one in every for one in of_one)
        return sum(one.status == psutil.CONN_ESTABLISHED and one.laddr.port == at[1] for one in found)

    def _of_each(self, ask: Callable[[psutil.Process], Seen]) -> list[Seen]:
        """Result of ``ask`` for each of the program's processes. Raises ProgramFailed if a process has ended."""
        try:
            return [ask(psutil.Process(pid)) for pid in self.pids]
        except psutil.Error as error:
            raise self._failed("has ended") from error

    def stop(self, timeout_s: float = STOP_S) -> None:
        """Sends SIGTERM, and after ``timeout_s`` SIGKILL. Blocks until the program is reaped. Later calls do nothing.

        Raises ProgramFailed unless the program exits within ``timeout_s`` with one of ``exits``.
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
            self.kill()

    def kill(self) -> None:
        """Kills all running processes of the program's session, and reaps the program. Blocks."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._stderr.close()

    def has_ended(self, within_s: float) -> bool:
        """Waits up to ``within_s`` for the end of a program that ends by itself. True if the program has ended.

        The pipe of the output holds 64 KiB. A program that prints more cannot end before ``said`` reads the output.
        """
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def said(self, timeout_s: float) -> str:
        """Waits for the end of a program that ends by itself. Gives the program's output. Blocks.

        Raises ProgramFailed if the program does not end within ``timeout_s``, or if the exit code is not 0.
        """
        try:
            said, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as expired:
            raise ProgramFailed(self.command, f"took over {timeout_s:g} s", "") from expired
        if self._process.returncode:
            raise self._failed(f"exit code {self._process.returncode}")
        return said.decode("utf-8", "replace")

    def ended(self, timeout_s: float = STOP_S) -> str:
        """Stops the program like ``stop``. Returns the output after the first line. Blocks. Raises ProgramFailed."""
        self._signal(signal.SIGTERM)
        try:
            said, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            said = b""  # ``stop`` raises below, since the program has not stopped
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
        except ProgramFailed as failed:  # an error inside the ``with`` block must not be hidden
            error.add_note(str(failed))

    def _signal(self, number: int) -> None:
        """Sends a signal to all processes of the program's session. Does nothing if all processes have ended."""
        if self._process.returncode is not None and psutil.pid_exists(self._process.pid):
            return  # a later program has the number, which Linux does not give away while the session has a process
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _ended(self, before: str, code: int) -> ProgramFailed:
        kind = ProgramRefused if code == USAGE_EXIT else ProgramFailed
        return self._failed(f"ended before {before}, with exit code {code}", kind)

    def _failed(self, what: str, kind: type[ProgramFailed] = ProgramFailed) -> ProgramFailed:
        begin = max(0, os.fstat(self._stderr.fileno()).st_size - _STDERR_BYTES)
        said = os.pread(self._stderr.fileno(), _STDERR_BYTES, begin)  # pread: the program shares the file's offset
        return kind(self.command, what, said.decode("utf-8", "replace"))


def _has_open(process: psutil.Process, port: int) -> bool:
    """True if the process has a socket with this port. False for an ended process, and for a process that this user has
    no right to inspect."""
    try:
        return any(one.laddr and one.laddr.port == port for one in process.net_connections("inet"))
    except psutil.Error:
        return False


@contextmanager
def kept_to(cpus: tuple[int, ...] | None) -> Iterator[None]:
    """Pins this thread to the cores ``cpus`` during a ``with`` block. Programs that this thread starts inherit the
    cores.

    With None, or on a system without pinning, the thread keeps its cores. Raises OSError for a missing core.
    """
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)  # may block until a core is free: KeyboardInterrupt often comes next
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def running(
    command: Sequence[str],
    cpus: tuple[int, ...] | None,
    folder: Path | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Program]:
    """Runs a program that ends by itself, during a ``with`` block. The program is pinned to the cores ``cpus``. None:
    not pinned.

    The program is killed if the ``with`` block ends first, as after Ctrl-C, or if this process ends
    (``rpc/process/lifeline.py``). ``variables`` are added to the program's environment. Raises ProgramFailed if the
    program does not start.
    """
    program = Program(command, cpus, folder=folder, variables=variables)
    try:
        yield program
    finally:
        program.kill()


def finished(
    command: Sequence[str],
    cpus: tuple[int, ...] | None,
    timeout_s: float,
    folder: Path | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Runs a program to its end, for ``timeout_s`` at most, and returns its output. Blocks. Raises ProgramFailed."""
    with running(command, cpus, folder, variables) as program:
        return program.said(timeout_s)


def reported(command: Sequence[str], said: str, form: type[Report]) -> Report:
    """Reads the report that a program has printed as JSON. Raises ProgramFailed for a report of another form."""
    try:
        return msgspec.json.decode(said, type=form)
    except ValueError as error:
        raise ProgramFailed(command, f"{said[:80]!r}, which is not a report", "") from error
