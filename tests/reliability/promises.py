"""All that the service promises, by name: what tries it, and what is known to fall short."""

from dataclasses import dataclass

from tests.reliability import (
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
    renewals,
    restarts,
    sick_disk,
    steady,
    stopping,
    store,
)
from tests.reliability.rows import Check


@dataclass(frozen=True, slots=True)
class Promise:
    """What tries a promise."""

    checks: tuple[Check, ...]
    timed: bool = True
    """It asks how late something was, so nothing else runs meanwhile. Others run two at a time."""
    overnight: Check | None = None
    """Tried once overnight, in place of the ten rounds."""


PROMISES: dict[str, Promise] = {
    "linearizable": Promise((histories.check,), timed=False),
    "durable": Promise((store.check,), timed=False),
    "exactly-once": Promise((kills.check,), timed=False),
    "sick-disk": Promise((sick_disk.check,), timed=False),
    "fuzzed": Promise((frames_fuzz.check, guided_fuzz.check, grpc_fuzz.check), timed=False),
    "closed": Promise((closed.check, renewals.check), timed=False),
    "conformance": Promise((conformance.check,), timed=False),
    "overload": Promise((overload.check, overload_lookups.check)),
    "hostile-sockets": Promise((hostile_sockets.check,)),
    "hostile-http2": Promise((hostile_http2.check,)),
    "stops": Promise((stopping.check, restarts.check), timed=False),
    "fair": Promise((fair.check,)),
    "memory": Promise((held.check,)),
    "steady": Promise((steady.check,), overnight=steady.check_overnight),
}

_SETTLES = "twenty seconds are too short for a slope, which was under 0.2 MiB a minute; overnight has ten minutes"

_REFUSES = "of two requests one is read and refused, which takes the reading thread 10 to 15 µs beside a handler's 500"

_KERNEL = "how long a call waited in its client's kernel, or behind a flow-control window, no server sees"

_COSTS = (
    "to read and refuse a call takes 14 to 19 µs, to answer it 25: at twice the peak little is left for answers. A "
    "client that heeds the refusals offers less"
)

SHORT: dict[str, str] = {
    "sockets at 2 times its capacity: goodput": _REFUSES,
    "grpc_static at 2 times its capacity: goodput": _REFUSES,
    "grpc_static at 2 times its capacity: p99 of refusals": _KERNEL,
    "grpc_static at 10 times its capacity: p99 of what is answered": _KERNEL,
    "grpc_static: handlers that began after their deadline": _KERNEL,
    "grpc_static: all Lookups that one load offers: goodput": _COSTS,
    "grpc_static: all Lookups that one load offers: p99 of what is answered": _COSTS,
    "grpc_static: all Lookups that one load offers: requests of which nothing is heard": _COSTS,
    "sockets: reset in a reply": "a peer resets once the first of 500 replies has come, and comes again; by then 64 "
    "requests of each are begun. The p99 was 15 to 25 ms in six runs on a quiet machine",
    **{conformance.absent(tool): "the tool is not here" for tool in (conformance.H2SPEC, conformance.GO)},
    "sockets: memory under load": _SETTLES,
    "grpc_static: memory under load": _SETTLES,
}
"""Rows that are known to fall short, with the reason. Any other row that does fails the command."""
