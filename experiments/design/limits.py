"""Limits: by what a sweep is judged. They are written into its folder, and it is judged by them wherever it is read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Each is stated with the results. A recording judged by others than these defaults says so."""

    level: float = 0.05
    """Of all looks together: how often equal arms may be called different."""
    equivalent_low: float = 0.95
    """Between these two, a ratio counts as no difference …"""
    equivalent_high: float = 1.05
    trimmed: float = 0.2
    """The share of a block's pairs left out at either end."""
    wire_share: float = 0.05
    """Bytes a request may differ by this share between arms that are to be the same on the wire (gate 2)."""
    errors_share: float = 0.001
    """Of the requests, so many may end in errors (4)."""
    law_share: float = 0.02
    """Response and think times may miss the time that they fill by this share (6)."""
    rate_share: float = 0.02
    """An open loop's rate may be off by this share (7)."""
    late_share: float = 0.1
    """Of a percentile, so much may be late sends (7)."""
    load_share: float = 0.8
    """Of its core: over that, a closed loop's load side is a part of the latency (7)."""
    steal_ticks: int = 1
    """A round is left out where others, the hypervisor and foreign processes, took more ticks of 10 ms than this …"""
    steal_share: float = 0.1
    """… and than this share of its cores' time."""

    def robbed(self, lost_ticks: int, duration_s: float, cores: int) -> bool:
        """True where others took so much of a round that it is left out, whatever its times are."""
        return lost_ticks > max(self.steal_ticks, self.steal_share * duration_s * 100 * cores)


LIMITS = Limits()
