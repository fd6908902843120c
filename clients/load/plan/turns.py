"""Turns: moments at which clients load one server after the other, drawn beforehand on the clock that all share.

A **load** is what one arm of a comparison is: a ``LoadPlan`` with its own server and number of clients. A **turn** is a
slice of time in which one load sends. Client processes are made once, hold their connections through all turns, and
follow the moments without a message between them. Left out: who draws the moments, and what is concluded.
"""

from dataclasses import dataclass

from clients.load.plan.load_plan import LoadPlan


@dataclass(frozen=True, slots=True)
class Turn:
    """One slice of one load, in nanoseconds on the clock, or from a start that ``after`` adds."""

    load: int
    """Its place among the loads."""
    begin_ns: int
    """Clients begin to send."""
    first_ns: int
    """From here on a request that is sent counts …"""
    last_ns: int
    """… up to here; clients send on, uncounted, until all counted requests are answered."""
    end_ns: int
    """A counted request that is answered later spoils the turn."""

    def after(self, start_ns: int) -> "Turn":
        """The same turn, so much later."""
        return Turn(
            self.load,
            self.begin_ns + start_ns,
            self.first_ns + start_ns,
            self.last_ns + start_ns,
            self.end_ns + start_ns,
        )

    @property
    def stop_ns(self) -> int:
        """When nothing more is sent, answered or not: what is under way has a third of the reserve left to end."""
        return self.end_ns - (self.end_ns - self.last_ns) // 3


@dataclass(frozen=True, slots=True)
class TurnLoad:
    """One load: a closed loop over kept connections. ``plan`` says its server, clients, mix and kind of client."""

    plan: LoadPlan
    server_pids: tuple[int, ...] = ()
    """Of which processes the first client reads the processor clocks before and after each turn."""
    updates_interval_s: float | None = None
    """The mean pause of a price updater that sends in this load's turns beside the clients; None: there is none."""
