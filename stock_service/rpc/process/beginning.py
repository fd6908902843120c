"""Handling of signals and standard streams at the first step of a program and at its end.

A server calls ``begin`` before its imports, which take most of the time until it serves. From then on

- signals that stop the server wait until the server can stop in order. In the first hundredths of a second, while
  Python itself starts, signals cannot be made to wait;
- standard input, output and error are open. If standard error were closed, the first socket would get its number, and
  the log would be written to a client.
"""

import os
import signal
import sys
from collections.abc import Callable

STOPPING = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop a server."""

UNREAD_EXIT = 141
"""The exit code of a program whose output is not read any more: the code that a shell gives for SIGPIPE."""


def begin() -> None:
    """Blocks the signals and opens the streams of a server's process. May be repeated. Call this in the main thread
    before it starts other threads: new threads inherit the blocked signals.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    open_streams()


def open_streams() -> None:
    """Opens each closed standard stream on /dev/null: the stream gives no input, and loses its output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file that is opened gets its number
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:  # Python sets None for a closed stream
            setattr(sys, name, open(number, "r+" if number == 0 else "w", closefd=False))  # noqa: SIM115  # to the end


def printing(main: Callable[[], int]) -> int:
    """Runs a program that prints. Returns the program's exit code, or ``UNREAD_EXIT`` if the reader of the output has
    gone.
    """
    open_streams()
    try:
        code = main()
        sys.stdout.flush()  # here, where a missing reader is handled
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes once more at exit
        return UNREAD_EXIT
    return code
