"""Theory of the time that a request spends at a server: three answers, found in three ways.

``Mmc``: arrivals by a Poisson process, exponential service, ``servers`` of them, first come, first served: the exact
distribution, from Erlang's C formula. ``lindley``: for given arrivals and service times every single response, by
Kiefer and Wolfowitz's recursion over the work that each server still has. With one server it is Lindley's.
``stalled_quantile_s``: a server that is otherwise idle and stops now and then.

Source: any textbook of queueing, such as Gross and Harris, *Fundamentals of Queueing Theory*, chapter 3 (M/M/c) and the
section on the general input and service of G/G/c.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import scipy

_SAME_RATE = 1e-9
"""Relative difference of two rates under which a formula would divide by nearly nothing: its limit is taken."""


@dataclass(frozen=True, slots=True)
class Mmc:
    """M/M/c in its steady state. ``utilisation`` is that of one server, over 0 and under 1. Times in seconds."""

    servers: int
    utilisation: float
    service_s: float
    """The mean service time."""

    @property
    def rate_hz(self) -> float:
        """Arrivals a second."""
        return self.servers * self.utilisation / self.service_s

    @property
    def waiting_share(self) -> float:
        """The share of requests that find every server busy: Erlang's C."""
        load = self.servers * self.utilisation
        blocked = 1.0  # Erlang's B, built up server by server
        for servers in range(1, self.servers + 1):
            blocked = load * blocked / (servers + load * blocked)
        return blocked / (1 - self.utilisation * (1 - blocked))

    @property
    def mean_s(self) -> float:
        """The mean response time: service, and waiting for the requests that wait."""
        return self.service_s + self.waiting_share / self._leaving_hz

    def share_over(self, time_s: float) -> float:
        """The share of requests whose response time is longer than ``time_s``."""
        service_hz, leaving_hz = 1 / self.service_s, self._leaving_hz
        at_once = math.exp(-service_hz * time_s)
        if abs(leaving_hz - service_hz) < _SAME_RATE * service_hz:
            after_waiting = (1 + service_hz * time_s) * at_once
        else:
            after_waiting = (leaving_hz * at_once - service_hz * math.exp(-leaving_hz * time_s)) / (
                leaving_hz - service_hz
            )
        return (1 - self.waiting_share) * at_once + self.waiting_share * after_waiting

    def quantile_s(self, share: float) -> float:
        """The response time that a share of the requests stays within; ``share`` is over 0 and under 1."""
        longest_s = self.service_s
        while self.share_over(longest_s) > 1 - share:
            longest_s *= 2
        return float(
            scipy.optimize.brentq(lambda time_s: self.share_over(time_s) - (1 - share), 0.0, longest_s, xtol=1e-12)
        )

    @property
    def _leaving_hz(self) -> float:
        """The rate at which the queue shrinks while all servers are busy."""
        return self.servers * (1 - self.utilisation) / self.service_s


def lindley(arrivals_ns: Iterable[int], services_ns: Iterable[int], servers: int) -> list[int]:
    """Every response time, first come, first served; arrivals in order. Exact: whole nanoseconds."""
    work_ns = [0] * servers  # what each server still has to do, in ascending order
    before_ns: int | None = None
    responses_ns = []
    for arrival_ns, service_ns in zip(arrivals_ns, services_ns, strict=False):
        passed_ns = 0 if before_ns is None else arrival_ns - before_ns
        before_ns = arrival_ns
        work_ns = [max(0, left_ns - passed_ns) for left_ns in work_ns]
        work_ns[0] += service_ns  # the one that is free first
        responses_ns.append(work_ns[0])
        work_ns.sort()
    return responses_ns


def stalled_quantile_s(share: float, stall_s: float, every_s: float) -> float:
    """The response time that this share of evenly due requests stays within, at a server that takes no time itself.

    A request that is due in a stall waits for the rest of it, which is uniform from 0 to ``stall_s``.
    """
    longer = 1 - share
    stalled = stall_s / every_s
    return max(0.0, stall_s * (1 - longer / stalled))
