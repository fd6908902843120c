"""Start of a program that must end with its parent process: the kernel kills the program even if SIGKILL ends the
parent.

On Linux a process can make a request to the kernel: to kill the process when its parent ends (``PR_SET_PDEATHSIG`` in
prctl(2)). So the parent starts this file instead of the program. This file makes the request, and then replaces itself
by the program (execve(2)). execve keeps the process, its cores and the request. The method works for a program in any
language, and takes some 20 ms.

The kernel kills a program when the *thread* that started the program ends. So start a program from a thread that lives
longer than the program.

Left out: processes that the program itself starts, and systems other than Linux. On another system a program continues
after its parent's end.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1

_LINUX = sys.platform == "linux"


def tied(command: Sequence[str]) -> list[str]:
    """Returns the command to start instead of ``command``, whose first word is the path of a program. Raises OSError if
    the program does not exist.
    """
    os.stat(command[0])  # so that the parent gets the error
    if not _LINUX:
        return list(command)
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def end_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends. Has no effect if the parent has ended before. Raises
    OSError.
    """
    if not _LINUX:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)):
        raise OSError(ctypes.get_errno(), "cannot be tied to its parent")


def main(parent: str, *command: str) -> int:
    """Replaces this process by ``command``, which the kernel will kill when the process with the id ``parent`` ends.
    Returns 1, as the exit code, only if the replacement fails.
    """
    try:
        end_with_parent()
        if os.getppid() != int(parent):  # the parent has ended before ``end_with_parent``
            return 1
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores both signals; the program must not ignore them
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
