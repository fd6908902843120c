"""Several processes as one server on one port: a parent starts them, and keeps the process contract for all of them.

The kernel gives each new connection to one of them, by a hash of both addresses (SO_REUSEPORT in socket(7)). A child is
a fresh interpreter with the parent's own command line, and two options more: the port, and which memory they share.

- The parent prints its ready line once all serve. It starts the first child alone: what that one refuses is said once.
- SIGTERM or SIGINT is passed on. Children are in sessions of their own, so that Ctrl-C reaches them by the parent only.
  A child that is not ready yet is killed: it has accepted nothing.
- A second signal kills all at once: exit 1. A signal to every process is one signal: children hear the first alone.
- A child that ends by itself: one line says so, the others are stopped as by a signal, exit 1.
- A parent that is killed takes its children along (``lifeline.py``).

The port is the parent's before there is a child, and until the first one is ready. The parent listens on it for so
long, and so keeps out every other server, one of several processes too. Who connects before the ready line may be cut
off.
"""

import argparse
import logging
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import family_of, shown_address
from stock_service.rpc.process import serving
from stock_service.rpc.process.beginning import STOPPING
from stock_service.rpc.process.command_line import USAGE_EXIT, refuse
from stock_service.rpc.process.lifeline import tied
from stock_service.rpc.process.serving import ENDING_S, FAILED_EXIT, NO_MEMORY

_log = logging.getLogger(__name__)

_OVER_S = 5.0
"""How long the children get beside their grace: to end a start-up, and what a library does behind the grace."""

_GONE_S = 5.0
"""How long a child may take to be gone that has closed its output; it does so in its last system call."""

_SIGNAL_S = 0.1
"""How much later the parent may get a signal that was sent to all: an idle child has ended before."""

_CHILD = "STOCK_SERVICE_CHILD"
"""The variable of the environment that a child has."""


def begins(options: argparse.Namespace) -> bool:
    """Whether these options ask for several processes, and this is none of them yet."""
    return options.processes > 1 and options.member is None


def run(program: str, options: argparse.Namespace, memory: int | None = None) -> int:
    """Serves with several processes until a signal comes; gives the exit code. Blocks. For the main thread of its own
    process, which must then ``leave``. ``memory`` is the descriptor of what they share; None: nothing.
    """
    if _CHILD in os.environ:
        refuse(program, f"--processes: got {options.processes}, allowed: 1 where it is not on the command line itself")
    serving.prepare(program, options)
    if options.timeline is not None:
        allowed = "none with several --processes: it is of one process"
        refuse(program, UsageError("--timeline", str(options.timeline), allowed))
    try:
        listener = socket.create_server((options.host, options.port), family=family_of(options.host), backlog=1)
    except (OSError, UnicodeError) as error:
        refuse(program, serving.unbound(error, options.host, options.port))
    # Only now: bound without it, the port was free of others.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    port = listener.getsockname()[1]
    command = [sys.executable, *sys.orig_argv[1:], "--port", str(port)]
    command += ["--member", str(NO_MEMORY if memory is None else memory)]
    family = _Family(
        command, options.processes, listener, options.grace_s, () if memory is None else (memory,), options.metrics
    )
    try:
        return family.run()
    except Exception:
        _log.exception("the server failed")
        return FAILED_EXIT
    finally:
        family.kill()


class _Child:
    """A process that serves."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.process = process
        self.said = b""  # on standard output, up to its ready line
        self.killed = False  # by us

    @property
    def ready(self) -> bool:
        """Whether it has said its whole line."""
        return b"\n" in self.said


class _Family:
    """The children, and what the parent does about them; of the main thread."""

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        listener: socket.socket,
        grace_s: float,
        descriptors: tuple[int, ...],
        metrics: tuple[str, int] | None,
    ) -> None:
        self._command = command
        self._count = count
        self._listener = listener
        self._grace_s = grace_s
        self._descriptors = descriptors
        self._metrics = metrics
        self._children: list[_Child] = []
        self._running: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._signals = _signals()
        self._signalled = False
        self._deadline_s: float | None = None  # by when all must have ended; None: nobody is to stop
        self._code = 0

    def run(self) -> int:
        """Until all have ended, or were asked to twice; then the exit code. ``kill`` ends those that are left."""
        self._selector.register(self._signals, selectors.EVENT_READ)
        self._start()
        while self._running:
            left_s = None if self._deadline_s is None else self._deadline_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                _log.error("%d processes did not end within the grace, and were killed", len(self._running))
                return FAILED_EXIT
            for key, _ in self._selector.select(left_s):
                if key.data is not None:
                    self._hear(key.data)
                elif self._signal_waits(0):  # else a child's end has taken it
                    if self._signalled:
                        return FAILED_EXIT  # the second signal
                    self._take_signal()
        return self._code

    def kill(self) -> None:
        """Ends all that still run, and waits for that."""
        self._listener.close()
        for child in self._running:
            child.process.kill()
        for child in self._running:
            child.process.wait()

    def _start(self) -> None:
        number = len(self._children) + 1
        process = subprocess.Popen(
            tied([*self._command, *self._own(number)]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=os.environ | {_CHILD: "1"},
            pass_fds=self._descriptors,
            start_new_session=True,
        )
        assert process.stdout is not None
        child = _Child(number, process)
        self._children.append(child)
        self._running.append(child)
        self._selector.register(process.stdout, selectors.EVENT_READ, child)

    def _own(self, number: int) -> tuple[str, ...]:
        """What a child is told that is its own: where it shows its metrics, each on the port behind the last one's."""
        if self._metrics is None:
            return ()
        host, port = self._metrics
        return "--metrics", shown_address((host, port + number - 1 if port else 0))

    def _hear(self, child: _Child) -> None:
        """Reads what a child says: that it is ready, or by its end that it is gone."""
        assert child.process.stdout is not None
        said = os.read(child.process.stdout.fileno(), 4096)
        if not said:
            self._end(child)
            return
        if child.ready:
            return  # what it says behind its line is nobody's
        child.said += said
        if b"\n" in said and self._deadline_s is None:
            self._go_on(child)

    def _go_on(self, child: _Child) -> None:
        """A child has become ready: the others are started, or all are."""
        if len(self._children) < self._count:
            self._listener.close()  # the child has the port now
            while len(self._children) < self._count:
                self._start()
        elif all(each.ready for each in self._children) and not serving.announced(
            child.said.partition(b"\n")[0].decode()
        ):
            self._code = FAILED_EXIT
            self._stop()

    def _signal_waits(self, timeout_s: float) -> bool:
        """Whether a signal has come, or comes within so long, that is not taken yet."""
        return bool(select.select([self._signals], [], [], timeout_s)[0])

    def _take_signal(self) -> None:
        """The first signal has come."""
        os.read(self._signals, 1)
        self._signalled = True
        if self._deadline_s is None:  # else a child that has ended has stopped the others already
            self._stop()

    def _stop(self) -> None:
        """Has all end that run."""
        self._deadline_s = time.monotonic() + max(self._grace_s, ENDING_S) + _OVER_S
        for child in self._running:
            if child.ready:
                child.process.terminate()
            else:
                child.killed = True
                child.process.kill()

    def _end(self, child: _Child) -> None:
        """A child has ended, or is about to."""
        assert child.process.stdout is not None
        self._selector.unregister(child.process.stdout)
        child.process.stdout.close()
        try:
            code = child.process.wait(_GONE_S)
        except subprocess.TimeoutExpired:
            child.process.kill()
            code = child.process.wait()
        self._running.remove(child)
        if self._deadline_s is None and code == 0 and self._signal_waits(_SIGNAL_S):
            self._take_signal()  # it was sent to all
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        of = f"process {child.number} of {self._count} (id {child.process.pid})"
        if self._deadline_s is not None:
            if code and not child.killed:
                self._code = self._code or FAILED_EXIT
                if code < 0:  # others have said themselves what was wrong
                    _log.error("%s %s while it stopped", of, how)
            return
        self._code = FAILED_EXIT
        if code == USAGE_EXIT and not child.ready:
            self._code = code  # it has said what is wrong
        else:
            _log.error("%s %s%s; the others are stopped", of, how, "" if child.ready else " before it was ready")
        self._stop()


def _signals() -> int:
    """A descriptor that gets a byte for each signal to stop. ``begin`` blocked them for all threads, children's too."""
    reading, writing = os.pipe()

    def watch() -> None:
        while True:
            signal.sigwait(STOPPING)
            os.write(writing, b"!")

    threading.Thread(target=watch, name="signals").start()  # outlives all but leave()
    return reading
