"""Theory of response times at a server, in three cases.

- ``Mmc``: Poisson arrivals, exponential service times, and ``servers`` servers that serve requests in the order of
  arrival. The exact distribution follows from Erlang's C formula.
- ``lindley``: arrivals and service times that are given. The recursion of Kiefer and Wolfowitz computes each server's
  remaining work at every arrival, and so gives every response time. With one server this recursion is Lindley's
  recursion.
- ``stalled_quantile_s``: a server that answers at once, except in stalls at regular times.

Source: any textbook of queueing, such as Gross and Harris, *Fundamentals of Queueing Theory*, chapter 3 (M/M/c) and the
section on the general input and service of G/G/c.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import scipy


@dataclass(frozen=True, slots=True)
class Mmc:
    """M/M/c queue in its steady state. Times are in seconds."""

    servers: int
    utilisation: float
    """Utilisation of each server, over 0 and under 1."""
    service_s: float
    """Mean service time."""

    @property
    def rate_hz(self) -> float:
        """Arrivals a second."""
        return self.servers * self.utilisation / self.service_s

    @property
    def waiting_share(self) -> float:
        """Share of requests that find all servers busy: Erlang's C."""
        load = self.servers * self.utilisation
        blocked = 1.0  # Erlang's B, for 0 servers, then for 1, 2 and so on
        for servers in range(1, self.servers + 1):
            blocked = load * blocked / (servers + load * blocked)
        return blocked / (1 - self.utilisation * (1 - blocked))

    @property
    def mean_s(self) -> float:
        """Mean response time: service and waiting."""
        return self.service_s + self.waiting_share / self._leaving_hz

    def share_over(self, time_s: float) -> float:
        """Share of requests whose response time is longer than ``time_s``."""
        served, left = time_s / self.service_s, time_s * self._leaving_hz
        # a request that waits takes longer than time_s with the probability exp(-served) * (1 + served * factor)
        # with factor = exprel(served - left); exprel(x) is (exp(x) - 1) / x, and exp(x) * exprel(-x), which is finite
        slower = math.exp(-min(served, left)) * float(scipy.special.exprel(-abs(served - left)))
        return math.exp(-served) + self.waiting_share * served * slower

    def quantile_s(self, share: float) -> float:
        """Quantile of response times: the time that a share of the requests does not exceed. ``share`` is over 0 and
        under 1."""
        longest_s = self.service_s
        while self.share_over(longest_s) > 1 - share:
            longest_s *= 2
        return float(
            scipy.optimize.brentq(lambda time_s: self.share_over(time_s) - (1 - share), 0.0, longest_s, xtol=1e-12)
        )

    @property
    def _leaving_hz(self) -> float:
        """Rate at which the queue shrinks while all servers are busy."""
        return self.servers * (1 - self.utilisation) / self.service_s


def lindley(arrivals_ns: Iterable[int], services_ns: Iterable[int], servers: int) -> list[int]:
    """Response times of all requests in a first-come, first-served queue, in the order of arrival. Exact, in whole
    nanoseconds.

    ``arrivals_ns`` is ascending.
    """
    work_ns = [0] * servers  # remaining work of each server, in ascending order
    before_ns: int | None = None
    responses_ns = []
    for arrival_ns, service_ns in zip(arrivals_ns, services_ns, strict=False):
        passed_ns = 0 if before_ns is None else arrival_ns - before_ns
        before_ns = arrival_ns
        work_ns = [max(0, left_ns - passed_ns) for left_ns in work_ns]
        work_ns[0] += service_ns  # the server that is free first
        responses_ns.append(work_ns[0])
        work_ns.sort()
    return responses_ns


def stalled_quantile_s(share: float, stall_s: float, every_s: float) -> float:
    """Quantile of response times at a server that answers at once, except in stalls. A stall takes ``stall_s`` seconds,
    and one stall begins in every ``every_s`` seconds.

    Requests are due at regular times. A request that is due in a stall waits for the end of the stall. This wait is
    uniformly distributed from 0 to ``stall_s``.
    """
    return max(0.0, stall_s * (1 - (1 - share) * every_s / stall_s))
