"""A server of several processes on one port. A parent process starts the child processes, and keeps the process
contract for all children.

The kernel gives each new connection to one of the children, by a hash of the client's and the server's address
(SO_REUSEPORT in socket(7)). A child is a new Python process with the parent's command line and two more options: the
port, and the shared memory.

- The parent prints its ready line once all children serve. The parent starts the first child alone, and the other
  children once the first child is ready. So if an option is bad, only one child reports the error.
- The parent passes SIGTERM and SIGINT on to the children. Each child is in its own session, so Ctrl-C reaches only the
  parent. At the signal, the parent kills a child that is not ready yet: such a child has accepted no request.
- At a second signal the parent kills all children at once, and exits with 1. If somebody sends a signal to every
  process, a child gets the signal twice: once directly, and once from the parent. A child handles only its first
  signal, so both count as one signal.
- If a child ends by itself, the parent logs one line, and stops the other children as after a signal. Then the parent
  exits with 1.
- If the parent is killed, the kernel kills the children (``lifeline.py``).

The parent listens on the port until the first child is ready. So no other server can listen on the port, not even
another server of several processes. If a client connects before the ready line, the server may close its connection.
"""

import argparse
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import family_of, shown_address
from stock_service.rpc.process import serving
from stock_service.rpc.process.beginning import STOPPING
from stock_service.rpc.process.command_line import USAGE_EXIT, refuse
from stock_service.rpc.process.lifeline import tied
from stock_service.rpc.process.serving import ENDING_S, FAILED_EXIT, NO_MEMORY, Unbound

_log = logging.getLogger(__name__)

_OVER_S = 5.0
"""Time in seconds that the parent waits for its children after the end of their grace. A child may have to finish its
start first, and a library may continue to work after the grace.
"""

_GONE_S = 5.0
"""Longest time, in seconds, between two events: the close of a child's output, and the end of the child. A child closes
its output in its last system call.
"""

_SIGNAL_S = 0.1
"""Time in seconds. If somebody sends a signal to every process, the parent gets the signal at most this time after a
child. So an idle child may end before the parent gets the signal.
"""

_CHILD = "STOCK_SERVICE_CHILD"
"""Environment variable that the parent sets for every child process. A process with this variable refuses to start
children of its own.
"""


def begins(options: argparse.Namespace) -> bool:
    """Returns True if the options ask for several processes, and this process is not a child."""
    return options.processes > 1 and options.member is None


def run(program: str, options: argparse.Namespace, memory: int = NO_MEMORY) -> int:
    """Serves with several processes until a signal comes. Returns the exit code. Blocks. Call this in the main thread
    of the parent process, and then call ``serving.leave``. ``memory`` is the descriptor of the shared memory.
    """
    try:
        family = _Family(options, _listener(options), memory)
    except UsageError as error:
        refuse(program, error)
    try:
        return family.run()
    except Exception:
        _log.exception("the server failed")
        return FAILED_EXIT
    finally:
        family.kill()


def _listener(options: argparse.Namespace) -> socket.socket:
    """Opens the port for the parent, and allows the children to share the port. Raises UsageError."""
    if _CHILD in os.environ:
        raise UsageError("--processes", options.processes, "1 where it is not on the command line itself")
    serving.prepare(options)
    if options.timeline is not None:
        allowed = "none with several --processes: it is of one process"
        raise UsageError("--timeline", str(options.timeline), allowed)
    try:
        listener = socket.create_server((options.host, options.port), family=family_of(options.host), backlog=1)
    except (OSError, UnicodeError) as error:
        raise Unbound(error, options.host, options.port) from error
    # Only after the bind: a bind without SO_REUSEPORT fails if another server has the port.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return listener


class _Child:
    """State of a child process in the memory of the parent process."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.process = process
        self.ready_line = b""  # empty until the child has printed its ready line
        self.killed = False  # True: the parent has killed the child


class _Family:
    """The parent's work: start, watch and stop of the children. Only the main thread uses the object.

    One thread for each child, and one for signals, put events into the main thread's queue.
    """

    def __init__(self, options: argparse.Namespace, listener: socket.socket, memory: int) -> None:
        self._options = options
        self._listener = listener
        self._port = listener.getsockname()[1]
        self._memory = memory
        self._children: list[_Child] = []
        self._running: list[_Child] = []
        self._happened: queue.SimpleQueue[tuple[_Child, bytes] | None] = queue.SimpleQueue()  # events; None: a signal
        self._signalled = threading.Event()
        self._deadline_s: float | None = None  # time by which all children must have ended; None before a stop
        self._code = 0

    def run(self) -> int:
        """Starts the children, and handles events until all children have ended, or a second signal comes. Returns the
        exit code. The caller must then call ``kill``.
        """
        threading.Thread(target=self._watch_signals, name="signals").start()  # ends only with the process
        self._start()
        signals = 0
        while self._running:
            left_s = None if self._deadline_s is None else max(0.0, self._deadline_s - time.monotonic())
            try:
                happened = self._happened.get(timeout=left_s)
            except queue.Empty:
                _log.error("%d processes did not end within the grace, and were killed", len(self._running))
                return FAILED_EXIT
            if happened is not None:
                self._hear(*happened)
                continue
            signals += 1
            if signals > 1:
                return FAILED_EXIT
            self._stop()
        return self._code

    def kill(self) -> None:
        """Kills all children that still run, and waits for their end."""
        self._listener.close()
        for child in self._running:
            child.process.kill()
        for child in self._running:
            child.process.wait()

    def _watch_signals(self) -> None:
        """Main function of the thread that waits for signals. ``begin`` has blocked these signals for all threads."""
        while True:
            signal.sigwait(STOPPING)
            self._signalled.set()
            self._happened.put(None)

    def _start(self) -> None:
        number = len(self._children) + 1
        command = [sys.executable, *sys.orig_argv[1:], "--port", str(self._port), "--member", str(self._memory)]
        if self._options.metrics is not None:  # each child has its own metrics, on consecutive ports
            host, port = self._options.metrics
            command += ["--metrics", shown_address((host, port + number - 1 if port else 0))]
        process = subprocess.Popen(
            tied(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=os.environ | {_CHILD: "1"},
            pass_fds=() if self._memory == NO_MEMORY else (self._memory,),
            start_new_session=True,
        )
        child = _Child(number, process)
        self._children.append(child)
        self._running.append(child)
        threading.Thread(target=self._listen, args=(child,), name=f"process {number}").start()

    def _listen(self, child: _Child) -> None:
        """Main function of the thread for a child: waits for the ready line, and for the end of the child's output."""
        assert child.process.stdout is not None
        with child.process.stdout as said:
            line = said.readline(4096)
            if line.endswith(b"\n"):
                self._happened.put((child, line))
            while said.read(4096):
                pass  # output after the ready line is ignored
        self._happened.put((child, b""))

    def _hear(self, child: _Child, line: bytes) -> None:
        """Handles a child's ready line: starts the other children, or prints the ready line if all children are ready.
        Handles the child's end if ``line`` is empty.
        """
        if not line:
            self._end(child)
            return
        child.ready_line = line
        if self._deadline_s is not None:
            return
        if len(self._children) < self._options.processes:
            self._listener.close()  # the child has the port now
            while len(self._children) < self._options.processes:
                self._start()
        elif all(each.ready_line for each in self._children) and not serving.announced(line.decode().rstrip("\n")):
            self._code = FAILED_EXIT
            self._stop(known=False)

    def _stop(self, known: bool = True) -> None:
        """Begins the stop of all running children, once. Kills a child that is not ready. ``known`` is False if the
        ready line could not be printed: then kills all children, since no client knows the server yet.
        """
        if self._deadline_s is not None:
            return
        self._deadline_s = time.monotonic() + self._options.drain_s + max(self._options.grace_s, ENDING_S) + _OVER_S
        for child in self._running:
            if known and child.ready_line:
                child.process.terminate()
            else:
                child.killed = True
                child.process.kill()

    def _end(self, child: _Child) -> None:
        """Handles the end of a child, which has closed its output."""
        try:
            code = child.process.wait(_GONE_S)
        except subprocess.TimeoutExpired:
            child.process.kill()
            code = child.process.wait()
        self._running.remove(child)
        if self._deadline_s is None and code == 0 and self._signalled.wait(_SIGNAL_S):
            self._stop()  # somebody has sent the signal to every process
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        of = f"process {child.number} of {self._options.processes} (id {child.process.pid})"
        if self._deadline_s is not None:
            if code and not child.killed:
                self._code = self._code or FAILED_EXIT
                if code < 0:  # a child that was not killed has logged its own error
                    _log.error("%s %s while it stopped", of, how)
            return
        self._code = FAILED_EXIT
        if code == USAGE_EXIT and not child.ready_line:
            self._code = code  # the child has printed the error
        else:
            _log.error("%s %s%s; the others are stopped", of, how, "" if child.ready_line else " before it was ready")
        self._stop()
