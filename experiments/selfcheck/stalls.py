"""Stalls: the load client must measure the delay of requests that are due in a pause of the server.

The null server answers every request at once. SIGSTOP stops this server for 200 ms in every 10 s. This pause is a
stall. To a client a stall looks like a pause of a virtual machine or a long garbage collection. A signal comes at an
exact time; a sleep in the server would end late. Requests are due at a constant rate, for which the server needs under
2 % of its core. So a request is answered at once, or waits for the rest of a stall. The 2 % of requests that are due in
a stall wait from 0 to 200 ms, uniformly. Over whole periods of 10 s the p99 is then 100 ms, the p99.5 is 150 ms and the
p99.9 is 190 ms (``theory.stalled_quantile_s``). The position of the stall in its period does not matter.

A closed loop with one connection has only one request in each stall. The p99 of the closed loop is therefore the p99 of
a server that never stops. This error is called coordinated omission, and the check shows the error, too.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import found, known, lookups, null_server, run, times
from experiments.selfcheck.theory import stalled_quantile_s

STALL_S = 0.2

RATE_HZ = 100 + 1 / 60
"""Rate of the open loop, in requests a second. 20 requests are due in a stall, 10 ms apart. A period is not a multiple
of the time between two requests. So in six successive stalls, the requests are due at different times after the stall's
start. The server needs some 50 µs for each request, mostly to wake up."""

CONNECTIONS = 16

CLOSED_SHARE_MAX = 0.1
"""Limit for the p99 of a closed loop, as a share of the true p99. A p99 up to this limit shows coordinated omission."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of the check. ``MINUTES`` is for minutes, ``OVERNIGHT`` is for a night."""

    every_s: float
    """Seconds from the start of a stall to the start of the next stall."""
    periods: int
    closed_periods: int
    percentiles: tuple[float, ...]
    within: float
    utilisation_max: float = 0.02
    """Largest utilisation of the server's core. Above this utilisation, the service of requests that queue in a stall
    would lengthen their response times."""


MINUTES = Scale(every_s=10.0, periods=6, closed_periods=1, percentiles=(99.0, 99.5, 99.9), within=0.05)
OVERNIGHT = replace(MINUTES, periods=60, closed_periods=6)


def check(scale: Scale) -> list[Finding]:
    """Measures a server with stalls in an open loop and in a closed loop. The call takes 75 s with the scale
    ``MINUTES``. Raises KeyboardInterrupt.
    """
    expected = [stalled_quantile_s(each / 100, STALL_S, scale.every_s) * 1000 for each in scale.percentiles]
    must = ", ".join(f"p{percentile:g} {ms:.0f} ms" for percentile, ms in zip(scale.percentiles, expected, strict=True))
    return found("stalls", f"{must}, each within {scale.within:.0%}", lambda: _measure(scale, expected))


def _measure(scale: Scale, expected_ms: list[float]) -> list[Finding]:
    with null_server("sockets") as (server, address), stalls(server.pid, STALL_S, scale.every_s):
        plan = replace(lookups("sockets", address), duration_s=scale.every_s * scale.periods)
        began_s, before_s = time.perf_counter(), server.cpu_s()
        result = run(replace(plan, connections_per_client=CONNECTIONS, rate_hz=RATE_HZ, arrivals="constant"))
        utilisation = (server.cpu_s() - before_s) / (time.perf_counter() - began_s)
        closed = run(replace(plan, duration_s=scale.every_s * scale.closed_periods))
    findings = []
    for percentile, ms in zip(scale.percentiles, expected_ms, strict=True):
        measured_ms = times(result).response.get_value_at_percentile(percentile) / 1e6
        shown = f"open loop: {measured_ms:.1f} ms of {times(result).count:,} requests, {measured_ms / ms - 1:+.1%}"
        passed = abs(measured_ms / ms - 1) <= scale.within
        findings.append(Finding(f"stalls, p{percentile:g}", shown, f"{ms:.0f} ms within {scale.within:.0%}", passed))
    shown = f"{utilisation:.1%} of a core"
    must = f"at most {scale.utilisation_max:.0%}"
    findings.append(Finding("stalls, utilisation", shown, must, utilisation <= scale.utilisation_max))
    closed_ms = times(closed).response.get_value_at_percentile(scale.percentiles[0]) / 1e6
    shown = (
        f"p{scale.percentiles[0]:g} {closed_ms * 1000:.0f} µs where {expected_ms[0]:.0f} ms is true, "
        f"p50 {known(times(closed).p50_us):.0f} µs"
    )
    must = f"its error: under {CLOSED_SHARE_MAX:.0%} of the truth"
    findings.append(Finding("stalls, closed loop", shown, must, closed_ms < CLOSED_SHARE_MAX * expected_ms[0]))
    return findings


@contextmanager
def stalls(pid: int, stall_s: float, every_s: float) -> Iterator[None]:
    """Context in which a thread stops a process for ``stall_s`` seconds, once in every ``every_s`` seconds. The first
    stall comes after half a period. The process always runs again when the context has ended, also after an error."""
    stop = threading.Event()

    def stall() -> None:
        next_s = time.perf_counter() + every_s / 2
        while not stop.wait(max(0.0, next_s - time.perf_counter())):
            os.kill(pid, signal.SIGSTOP)
            stop.wait(stall_s)
            os.kill(pid, signal.SIGCONT)
            next_s += every_s

    thread = threading.Thread(target=stall, name="stalls")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
