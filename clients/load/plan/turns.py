"""Turns: slices of time in which clients load one server after another. The moments are drawn before the run, on a
clock that all processes share.

A **load** is one arm of a comparison, that is, one measured setting: a ``LoadPlan`` with a server and a number of
clients. A **turn** is a slice of time in which one load sends. Client processes are started once, and keep their
connections through all turns. The processes follow the moments without messages to each other. Left out: the random
choice of the moments, and conclusions from the records.
"""

from dataclasses import dataclass

from clients.load.plan.load_plan import LoadPlan


@dataclass(frozen=True, slots=True)
class Turn:
    """A slice of time in which one load sends. Moments are in nanoseconds, on the clock or relative to a start.
    ``after`` adds the start."""

    load: int
    """Number of the load that sends in the turn."""
    begin_ns: int
    """Moment at which clients begin to send."""
    first_ns: int
    """Begin of the counted part. A request counts if it is sent between this moment and ``last_ns``."""
    last_ns: int
    """End of the counted part. Clients then send uncounted requests until all counted requests are answered."""
    end_ns: int
    """End of the turn. A counted request that is answered later spoils the turn."""

    def after(self, start_ns: int) -> "Turn":
        """Copy of the turn with every moment later by ``start_ns``."""
        return Turn(
            self.load,
            self.begin_ns + start_ns,
            self.first_ns + start_ns,
            self.last_ns + start_ns,
            self.end_ns + start_ns,
        )

    @property
    def stop_ns(self) -> int:
        """Moment at which sending stops. Requests under way then have a third of the time between ``last_ns`` and
        ``end_ns`` to end."""
        return self.end_ns - (self.end_ns - self.last_ns) // 3


@dataclass(frozen=True, slots=True)
class TurnLoad:
    """A load of a comparison: a closed loop over kept connections. ``plan`` has the server, the clients, the mix and
    the kind of client."""

    plan: LoadPlan
    server_pids: tuple[int, ...] = ()
    """Server processes. The first client reads the processor clocks of these processes before and after each turn."""
    updates_interval_s: float | None = None
    """Mean pause of a price updater that also sends in this load's turns, in seconds; None for a load without an
    updater."""
