"""All promises of the service, by name: the check that tries each, and the known shortfalls."""

from dataclasses import dataclass
from math import inf

from tests.reliability import (
    balancers,
    closed,
    conformance,
    fair,
    frames_fuzz,
    grpc_fuzz,
    guided_fuzz,
    held,
    histories,
    hostile_http2,
    hostile_sockets,
    kills,
    overload,
    overload_lookups,
    real_clients,
    renewals,
    replicas,
    restarts,
    sick_disk,
    steady,
    stopping,
    store,
)
from tests.reliability.guided_fuzz import ATHERIS
from tests.reliability.rows import Check, Row, absent


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise's check."""

    checks: tuple[Check, ...]
    timed: bool = True
    """True for a promise about lateness, which runs alone. Other promises run several at a time."""
    overnight: Check | None = None
    """Check that is tried once overnight, in place of the ten rounds."""


PROMISES: dict[str, Promise] = {
    "linearizable": Promise((histories.check,), timed=False),
    "durable": Promise((store.check,), timed=False),
    "exactly-once": Promise((kills.check,), timed=False),
    "replicas": Promise((replicas.check,), timed=False),
    "sick-disk": Promise((sick_disk.check,), timed=False),
    "fuzzed": Promise((frames_fuzz.check, guided_fuzz.check, grpc_fuzz.check), timed=False),
    "closed": Promise((closed.check, renewals.check), timed=False),
    "conformance": Promise((conformance.check,), timed=False),
    "judges": Promise((histories.check_judges,), timed=False),
    "metadata": Promise((real_clients.check_metadata,), timed=False),
    "stops": Promise((stopping.check, restarts.check), timed=False),
    "overload": Promise((overload.check, overload_lookups.check)),
    "real-clients": Promise((real_clients.check,)),
    "hostile-sockets": Promise((hostile_sockets.check,)),
    "hostile-http2": Promise((hostile_http2.check,)),
    "fair": Promise((fair.check,)),
    "memory": Promise((held.check,)),
    "balancers": Promise((balancers.check,), overnight=balancers.check_overnight),
    "steady": Promise((steady.check,), overnight=steady.check_overnight),
}
"""All promises by name. Of the promises without timing the longest come first, so that all slots are busy to the end.
Restarts come last, when few other promises run: a client retries only five times, and may use up the retries on a busy
machine."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A known shortfall of a row: the reason, and the worst excused figure."""

    reason: str
    at_least: float = -inf
    at_most: float = inf

    def excuses(self, row: Row) -> bool:
        """True if a row is not worse than its bound. A row without a number counts as worse, unless nothing was
        tried."""
        if (self.at_least, self.at_most) == (-inf, inf):
            return True
        return row.measured is not None and self.at_least <= row.measured <= self.at_most

    def __str__(self) -> str:
        least = f"; under {self.at_least:g} is not excused" if self.at_least > -inf else ""
        most = f"; over {self.at_most:g} is not excused" if self.at_most < inf else ""
        return self.reason + least + most


_SETTLES = "twenty seconds are too short for a slope; overnight has ten minutes"

_REFUSES = "of two requests one is read and refused, which takes the reading thread a part of what a handler computes"

_KERNEL = "how long a call waited in its client's kernel, or behind a flow-control window, no server sees"

_NO_MORE = "one load in Python hardly offers more than the peak, which is no overload"

_COSTS = (
    "to read and refuse a call takes time that answers then lack, and one load in Python hardly offers more than the "
    "peak. A client that heeds the refusals offers less"
)

SHORT: dict[str, Shortfall] = {
    "sockets at 2 times its capacity: goodput": Shortfall(_REFUSES, at_least=85),
    "grpc_static at 2 times its capacity: goodput": Shortfall(_REFUSES, at_least=75),
    "grpc_static at 2 times its capacity: p99 of refusals": Shortfall(_KERNEL, at_most=100),
    "grpc_static at 10 times its capacity: p99 of what is answered": Shortfall(_KERNEL, at_most=100),
    "grpc_static: handlers that began after their deadline": Shortfall(_KERNEL, at_most=500),
    "sockets: all Lookups that one load in Python offers: goodput": Shortfall(_NO_MORE, at_least=70),
    "grpc_static: all Lookups that one load in Python offers: goodput": Shortfall(_COSTS, at_least=40),
    "grpc_static: all Lookups that one load in Python offers: p99 of what is answered": Shortfall(_COSTS, at_most=100),
    "sockets: reset in a reply": Shortfall(
        "a peer resets once the first of 500 replies has come, and comes again; by then 64 requests of each are begun. "
        "The p99 was 15 to 25 ms in six runs on a quiet machine",
        at_most=40,
    ),
    **{
        absent(tool): Shortfall("the tool is not here")
        for tool in (conformance.H2SPEC, conformance.GO, ATHERIS, real_clients.GO_LOAD, *balancers.LACKING)
    },
    "sockets: memory under load": Shortfall(_SETTLES, at_most=10),
    "grpc_static: memory under load": Shortfall(_SETTLES, at_most=10),
}
"""Rows with known shortfalls. Any other row that falls short fails the command, and so does a row that is worse than
its bound. Shares are in percent, times in milliseconds, and growth in MiB a minute."""


def excused(row: Row) -> bool:
    """True if a row's shortfall is known, and within its bound."""
    return row.promise in SHORT and SHORT[row.promise].excuses(row)
