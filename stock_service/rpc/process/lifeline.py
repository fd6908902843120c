"""Programs that end when their starter ends, even by SIGKILL, after which it can stop nothing itself.

On Linux the kernel kills a process whose parent is gone, if the process has asked for it (``PR_SET_PDEATHSIG`` in
prctl(2)). So a starter starts this file instead of the program. It asks, and then becomes the program: execve(2) keeps
the wish, the process and its cores. That works for a program in any language, and takes some 20 ms. A program that
somebody starts by hand is not tied.

The kernel looks at the *thread* that started a program. Start programs from a thread that outlives them.

Left out: other systems, where a program stays; and what a program starts itself.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1

_LINUX = sys.platform == "linux"


def tied(command: Sequence[str]) -> list[str]:
    """What to start in place of a command, whose program is a path. Raises OSError where there is no such program."""
    os.stat(command[0])  # who starts it is told at once
    if not _LINUX:
        return list(command)
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def end_with_parent() -> None:
    """From now on this process is killed when its parent is gone; one that is gone already is not seen. OSError."""
    if not _LINUX:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)):
        raise OSError(ctypes.get_errno(), "cannot be tied to its parent")


def main(parent: str, *command: str) -> int:
    """Becomes the command, tied to the parent of that process id; gives the exit code where it cannot."""
    try:
        end_with_parent()
        if os.getppid() != int(parent):  # it was gone before
            return 1
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and would leave so to the program
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
