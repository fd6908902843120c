"""What a server's process does before all else, its imports too: they take most of the time until it serves.

- Signals that stop it wait until it can stop as it should. In the first hundredths of a second, while Python itself
  starts, nobody can have them wait.
- Standard input, output and error are open. Of one that is closed, the first socket would get the number: a log would
  then be written to a client.
"""

import os
import signal
import sys

STOPPING = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop a server."""


def begin() -> None:
    """Does that. May be repeated. For the main thread of its own process, before there are others: they inherit it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # it is closed: what is opened now gets its number
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:  # as Python leaves one that was closed
            setattr(sys, name, open(number, "r+" if number == 0 else "w", closefd=False))  # noqa: SIM115  # to the end
