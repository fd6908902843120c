"""Limits by which a sweep is judged. They are written into its folder, so that every reader judges it by them."""

from dataclasses import dataclass

BLOCKS_MAX = 40
"""Most blocks of a sweep: the exact sign-flip test then takes some 0.2 s."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits, each stated with the results. A recording that was judged by limits other than these defaults says so."""

    level: float = 0.05
    """Probability, over all looks together, that equal arms are called different."""
    equivalent_low: float = 0.95
    """Between these two limits a ratio counts as no difference …"""
    equivalent_high: float = 1.05
    trimmed: float = 0.2
    """The share of a block's pairs left out at either end."""
    wire_share: float = 0.05
    """Largest difference, as a share, of the bytes of a request between arms that are to be the same on the wire (gate
    2)."""
    errors_share: float = 0.001
    """Share of the requests that may end in errors (gate 4)."""
    law_share: float = 0.02
    """Largest share by which response and think times together may miss the time that they fill (6)."""
    rate_share: float = 0.02
    """Largest share by which an open loop's rate may be off (7)."""
    late_share: float = 0.1
    """Largest share of a percentile that may be late sends (7)."""
    load_share: float = 0.8
    """Share of its core from which a closed loop's load side is a part of the latency (7)."""
    steal_ticks: int = 1
    """A round is left out where the hypervisor and foreign processes took more ticks of 10 ms than this …"""
    steal_share: float = 0.1
    """… and than this share of its cores' time."""

    def robbed(self, lost_ticks: int, duration_s: float, cores: int) -> bool:
        """True where other processes took so much of a round that it is left out, without a look at its times."""
        return lost_ticks > max(self.steal_ticks, self.steal_share * duration_s * 100 * cores)


LIMITS = Limits()
