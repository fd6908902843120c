"""Limits of the judgement of a sweep. The sweep's folder keeps the limits, so that every later judgement uses the same
limits.

A **sweep** is a measurement in blocks. A **block** starts all servers again, and then measures every arm in rounds.
"""

from dataclasses import dataclass

BLOCKS_MAX = 40
"""Largest number of blocks of a sweep. The exact sign-flip test takes some 0.2 s for 40 blocks."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the judgement. The report of a recording names each limit that is not at its default."""

    level: float = 0.05
    """Significance level: the largest probability, over all looks together, that equal arms are called different. A
    look is a judgement after a declared number of blocks."""
    equivalent_low: float = 0.95
    """Significance level of all looks together: the largest probability that equal arms are called different. A look is
    a judgement after a declared number of blocks."""
    equivalent_high: float = 1.05
    """Upper end of the range of ratios that count as no difference."""
    trimmed: float = 0.2
    """Share of a block's pairs that the trimmed mean leaves out at each end."""
    wire_share: float = 0.05
    """Largest relative difference in a request's bytes between arms that send equal requests (gate 2)."""
    errors_share: float = 0.001
    """Largest share of requests with errors (gate 4)."""
    law_share: float = 0.02
    """Largest relative error (gate 6) of an equation: response times + think times = elapsed time. Each of the three
    times is a sum over all connections."""
    rate_share: float = 0.02
    """Largest relative error of an open loop's rate (gate 7)."""
    late_share: float = 0.1
    """Largest ratio of two 99th percentiles in an open loop: the lateness of the sends ÷ the response time (gate 7)."""
    load_share: float = 0.8
    """Share of a core that the client of a closed loop may use. If the client uses more, client and server together
    determine the latency, and the server gets no verdict (gate 7)."""
    steal_ticks: int = 1
    """Number of ticks of 10 ms that the hypervisor and foreign processes may take from a round. A round is left out
    only if they take more than ``steal_ticks``, and also more than ``steal_share`` of the cores' time."""
    steal_share: float = 0.1
    """Share of the cores' time that the hypervisor and foreign processes may take from a round."""

    def robbed(self, lost_ticks: int, duration_s: float, cores: int) -> bool:
        """True if a round is left out because the hypervisor and foreign processes took too much time.

        ``lost_ticks`` is the number of ticks of 10 ms that were taken. ``cores`` is the number of cores for servers and
        load together. The decision does not depend on the measured response times.
        """
        return lost_ticks > max(self.steal_ticks, self.steal_share * duration_s * 100 * cores)


LIMITS = Limits()
