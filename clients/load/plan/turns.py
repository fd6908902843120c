"""Turns: moments at which clients load one server after the other, drawn beforehand, on a clock that all processes
share.

A **load** is one arm of a comparison: a ``LoadPlan`` with its own server and number of clients. A **turn** is a slice
of time in which one load sends. Client processes are made once, hold their connections through all turns, and follow
the moments without a message between them. Left out: the random choice of the moments, and conclusions from the
records.
"""

from dataclasses import dataclass

from clients.load.plan.load_plan import LoadPlan


@dataclass(frozen=True, slots=True)
class Turn:
    """A slice of time in which one load sends. Moments are in nanoseconds on the clock, or relative to a start, which
    ``after`` adds."""

    load: int
    """Place of the load among the loads."""
    begin_ns: int
    """Moment at which clients begin to send."""
    first_ns: int
    """Begin of the counted part. A request sent between this moment and ``last_ns`` counts."""
    last_ns: int
    """End of the counted part. Clients then send uncounted requests until all counted requests are answered."""
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
    """A load of a comparison: a closed loop over kept connections. ``plan`` has its server, clients, mix and kind of
    client."""

    plan: LoadPlan
    server_pids: tuple[int, ...] = ()
    """Processes whose processor clocks the first client reads before and after each turn."""
    updates_interval_s: float | None = None
    """Mean pause of a price updater that sends beside the clients in this load's turns; None for a load without an
    updater."""
