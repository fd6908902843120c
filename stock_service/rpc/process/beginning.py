"""What a program does before all else, and at its very end, about its signals and its standard streams.

A server's process begins before its imports, which take most of the time until it serves. Then

- signals that stop it wait until it can stop as it should. In the first hundredths of a second, while Python itself
  starts, nobody can have them wait;
- standard input, output and error are open. Of one that is closed, the first socket would get the number: a log would
  then be written to a client.
"""

import os
import signal
import sys
from collections.abc import Callable

STOPPING = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop a server."""

UNREAD_EXIT = 141
"""The exit code of a program whose output nobody reads any more: what a shell gives for SIGPIPE."""


def begin() -> None:
    """Begins a server's process. May be repeated. For its main thread, before there are others: they inherit it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    open_streams()


def open_streams() -> None:
    """Opens those standard streams that are closed: nothing comes from them, and what goes there is nobody's."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # it is closed: what is opened now gets its number
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:  # as Python leaves one that was closed
            setattr(sys, name, open(number, "r+" if number == 0 else "w", closefd=False))  # noqa: SIM115  # to the end


def printing(main: Callable[[], int]) -> int:
    """Runs a program that prints: its exit code, or ``UNREAD_EXIT`` where whoever read its output has gone."""
    open_streams()
    try:
        code = main()
        sys.stdout.flush()  # here, where it is known what to do if nobody reads
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes once more at exit
        return UNREAD_EXIT
    return code
