"""Real-time priority: while a process has it, no program without it may take its core (SCHED_FIFO, sched(7)).

A client that waits awake for the next moment is otherwise a program like any other. Whatever else wakes on its core is
given some milliseconds of it, the kernel's own work too. In these requests are sent late, and replies seen late. The
priority is Linux's, and asks for the right to it: root, or CAP_SYS_NICE.

It is no option. A process that never sleeps keeps all else off its core, the kernel's network thread too. Linux keeps a
twentieth of the time for the others (``sched_rt_runtime_us``), in one piece of up to 50 ms. At high rates that makes a
client later and not sooner.
"""

import os

PRIORITY = 1
"""The lowest of them: higher than all programs without."""


def take_real_time() -> None:
    """Gives it to this thread, and to all threads and processes that it starts. Raises OSError without the right."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))


def allowed() -> bool:
    """True where this process has the right to it, seen by taking it for a moment. Raises OSError if it cannot go
    back."""
    if not hasattr(os, "sched_setscheduler"):
        return False
    before, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        take_real_time()
        return True
    except OSError:
        return False
    finally:
        if os.sched_getscheduler(0) != before:
            os.sched_setscheduler(0, before, parameter)
