"""Start of programs that end when their starter ends, even if SIGKILL ends the starter, which then cannot stop its
programs.

On Linux a process can ask the kernel to kill it when its parent ends (``PR_SET_PDEATHSIG`` in prctl(2)). So a starter
starts this file instead of the program. This file asks the kernel, and then becomes the program: execve(2) keeps the
setting, the process and its cores. This works for a program in any language, and takes some 20 ms. A program that a
person starts is not tied to its parent.

The kernel kills a program when the *thread* that started it ends. So start programs from a thread that lives longer
than the programs.

Left out: other systems, where a program stays; and programs that a program starts itself.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1

_LINUX = sys.platform == "linux"


def tied(command: Sequence[str]) -> list[str]:
    """The command to start in place of ``command``, whose first word is the path of a program. Raises OSError if the
    program does not exist.
    """
    os.stat(command[0])  # so that the starter gets the error at once
    if not _LINUX:
        return list(command)
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def end_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends. Has no effect if the parent has already ended. Raises
    OSError.
    """
    if not _LINUX:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)):
        raise OSError(ctypes.get_errno(), "cannot be tied to its parent")


def main(parent: str, *command: str) -> int:
    """Replaces this process by the command, tied to the parent with the process id ``parent``. Returns the exit code if
    this fails.
    """
    try:
        end_with_parent()
        if os.getppid() != int(parent):  # it was gone before
            return 1
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, and the program would inherit that
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
