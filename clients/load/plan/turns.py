"""Turns: slices of time in which clients load one server after another.

A **load** is one arm of a comparison, that is, one measured setting: a ``LoadPlan`` with a server and a number of
clients. A **turn** is a slice of time in which one load sends. The moments of all turns are drawn before the run.
Client processes start once, keep their connections during all turns, and read one common clock. So the processes follow
the drawn moments without messages to each other. Left out: the random choice of the moments, and conclusions from the
records.
"""

from dataclasses import dataclass

from clients.load.plan.load_plan import LoadPlan


@dataclass(frozen=True, slots=True)
class Turn:
    """A slice of time in which one load sends. All moments are in nanoseconds, either on the clock or relative to a
    start. ``after`` converts relative moments to moments on the clock."""

    load: int
    """Index of the load in the sequence of all loads."""
    begin_ns: int
    """Moment at which the clients begin to send."""
    first_ns: int
    """Beginning of the counted part. A request sent between this moment and ``last_ns`` counts."""
    last_ns: int
    """End of the counted part. Clients then send uncounted requests until all counted requests are answered."""
    end_ns: int
    """End of the turn. If a counted request is answered later, the comparison has no pair with this turn."""

    def after(self, start_ns: int) -> "Turn":
        """Copy of the turn, with ``start_ns`` added to every moment."""
        return Turn(
            self.load,
            self.begin_ns + start_ns,
            self.first_ns + start_ns,
            self.last_ns + start_ns,
            self.end_ns + start_ns,
        )

    @property
    def stop_ns(self) -> int:
        """Moment at which sending stops. Requests under way can end in the time that is left: the last third of the
        time from ``last_ns`` to ``end_ns``.
        """
        return self.end_ns - (self.end_ns - self.last_ns) // 3


@dataclass(frozen=True, slots=True)
class TurnLoad:
    """A load of a comparison: a closed loop over kept connections. ``plan`` has the server, the clients, the mix and
    the kind of client."""

    plan: LoadPlan
    server_pids: tuple[int, ...] = ()
    """Ids of the server's processes. The first client reads the processor time of these processes before and after each
    turn of the load."""
    updates_interval_s: float | None = None
    """Mean time in seconds between two Updates of a price updater, which sends in this load's turns. None for a load
    without a price updater.
    """
