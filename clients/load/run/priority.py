"""Real-time priority (SCHED_FIFO, sched(7)): no program with normal priority can take the core of a process with
real-time priority.

Without real-time priority, a client that spins until the next due moment shares its core. Another program, or the
kernel, can get the core for some milliseconds. In these milliseconds the client sends requests late and sees replies
late. Only Linux has this priority. The process needs a permission: root, or CAP_SYS_NICE.

The load client has no option for this priority. A process that never sleeps keeps all other programs off its core, and
also the kernel's network thread. Linux reserves a twentieth of the time for other programs (``sched_rt_runtime_us``),
and pauses the process for up to 50 ms at a time. At high rates this pause would make requests later, not earlier.
"""

import os

PRIORITY = 1
"""The lowest real-time priority, above every normal priority."""


def take_real_time() -> None:
    """Gives real-time priority to this thread, and to all threads and processes that this thread starts. Raises OSError
    without the permission."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))


def allowed() -> bool:
    """True if this process may have real-time priority. To test this, the process takes the priority for a moment.
    Raises OSError if the process cannot go back to its normal priority."""
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
