"""Turns: moments at which clients load one server after the other, drawn beforehand on the clock that all share.

A **load** is one arm of a comparison: a ``LoadPlan`` with its own server and number of clients. A **turn** is a slice
of time in which one load sends. Client processes are made once, hold their connections through all turns, and follow
the moments without a message between them. Left out: the draw of the moments, and conclusions.
"""

from dataclasses import dataclass

from clients.load.plan.load_plan import LoadPlan


@dataclass(frozen=True, slots=True)
class Turn:
    """One slice of one load, in nanoseconds on the clock, or from a start that ``after`` adds."""

    load: int
    """Place of the load among the loads."""
    begin_ns: int
    """Moment at which clients begin to send."""
    first_ns: int
    """Begin of the counted part: requests that are sent from here on count …"""
    last_ns: int
    """… up to this moment. After it clients send on, uncounted, until all counted requests are answered."""
    end_ns: int
    """End of the turn. A counted request that is answered later spoils the turn."""

    def after(self, start_ns: int) -> "Turn":
        """The same turn, moved by this time."""
        return Turn(
            self.load,
            self.begin_ns + start_ns,
            self.first_ns + start_ns,
            self.last_ns + start_ns,
            self.end_ns + start_ns,
        )

    @property
    def stop_ns(self) -> int:
        """Moment at which sending stops. Requests under way have a third of the reserve left to end."""
        return self.end_ns - (self.end_ns - self.last_ns) // 3


@dataclass(frozen=True, slots=True)
class TurnLoad:
    """One load: a closed loop over kept connections. ``plan`` has its server, clients, mix and kind of client."""

    plan: LoadPlan
    server_pids: tuple[int, ...] = ()
    """Processes whose processor clocks the first client reads before and after each turn."""
    updates_interval_s: float | None = None
    """Mean pause of a price updater that sends beside the clients in this load's turns; None: no updater."""
