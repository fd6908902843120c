"""Handling of signals and standard streams at the start and at the end of a program.

A server calls ``begin`` before its imports, which take most of the time until the server serves. After ``begin``,

- signals that stop the server wait until the server can stop in order. Before ``begin``, in the first hundredths of a
  second while Python itself starts, a signal ends the process at once;
- standard input, output and error are open. If standard error were closed, the server's first socket would get the
  number of standard error's descriptor. Then the server would write its log to a client.
"""

import os
import signal
import sys
from collections.abc import Callable

STOPPING = (signal.SIGTERM, signal.SIGINT)
"""Signals that stop a server."""

UNREAD_EXIT = 141
"""Exit code of a program whose output has no reader any more; in a shell, the code for SIGPIPE."""


def begin() -> None:
    """Blocks the signals ``STOPPING``, and opens the standard streams. May be called again. Call ``begin`` in the main
    thread before other threads start, since a new thread inherits the blocked signals.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    open_streams()


def open_streams() -> None:
    """Opens each closed standard stream on /dev/null."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # the descriptor is closed; the next open file gets its number
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:  # Python sets None for a closed stream
            setattr(sys, name, open(number, "r+" if number == 0 else "w", closefd=False))  # noqa: SIM115  # to the end


def printing(main: Callable[[], int]) -> int:
    """Runs ``main``, the main function of a program that prints. Returns its exit code, or ``UNREAD_EXIT`` if the
    output has no reader any more.
    """
    open_streams()
    try:
        code = main()
        sys.stdout.flush()  # before the interpreter's own flush, whose error could not be caught
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for the interpreter's flush at exit
        return UNREAD_EXIT
    return code
