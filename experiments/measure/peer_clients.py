"""A peer's own load client: a fresh process that connects, makes a number of calls in sequence, and reports each time.

At its end the client prints a line of JSON for each time: ``{"what":"connect","ns":…}``, ``{"what":"first call",…}``
and for every later call ``{"what":"call",…}``. Each of several clients has a connect and a first call. A call may have
the moment of its send, ``at_ns`` after the first send. The client may report sums over the calls after the first:
``{"what":"client",…}`` for each client, ``{"what":"total",…}`` for all. Both have ``calls``, ``wall_ns`` and
``processor_ns``. In the total, ``processor_ns`` is that of the whole program. Other lines are ignored here. The peers'
clients check every reply, and end with another code than 0 at a fault.
"""

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from experiments.design.setting import Setting
from experiments.measure.programs import ProgramFailed, finished
from experiments.peers import client_command, peer_of
from stock_service.rpc.transports import Address

EXTRA_S = 60.0
"""Seconds that a client may take beyond its schedule: to start, to connect, and for requests that it cannot send in
time."""

CALL_S_MAX = 0.1
"""Longest average time of a call in a closed loop."""

LATE_CALLS_MIN = 100
"""Fewer calls of a window have no 99th percentile of how late they were sent."""


class Line(msgspec.Struct):
    """A line of the report. Other fields than these are ignored. The last three are sums over the calls of one client,
    or of all clients."""

    what: str
    ns: int = 0
    at_ns: int | None = None
    calls: int = 0
    wall_ns: int = 0
    """From the common start to the last reply."""
    processor_ns: int = 0


@dataclass(frozen=True, slots=True)
class PeerRun:
    """Values that a client measured. Times are in nanoseconds."""

    connect_ns: npt.NDArray[np.int64]
    """Connect time of each client. The next field has a first call of each client, too."""
    first_ns: npt.NDArray[np.int64]
    calls_ns: npt.NDArray[np.int64]
    """Times of the calls after the first one, in their order."""
    clients: tuple[Line, ...] = ()
    """Sums over each client's calls after its first, where the program reports them."""
    total: Line | None = None
    """Sums over all clients; None where the program does not report them."""
    sent_ns: npt.NDArray[np.int64] | None = None
    """Time from the first send to the send of each later call; None where the program does not report it."""


def run(of: Setting, at: Address, calls: int, cpus: tuple[int, ...] | None) -> PeerRun:
    """Makes this number of calls with each client of the peer that ``of`` names. The first call is one of them.

    Blocks until the program has ended. Raises Absent where the peer is not built, and ProgramFailed where the program
    fails, prints other lines than these, or has made another number of calls.
    """
    name = peer_of(of.text("service"), of.text("language"), of.text("transport"))
    command = client_command(name, f"{at[0]}:{at[1]}", calls, dict(of.levels))
    rate_hz = of["rate_hz"]
    lasts_s = calls / float(rate_hz) if isinstance(rate_hz, float) else calls * CALL_S_MAX
    said = finished(command, cpus, lasts_s + EXTRA_S)
    try:
        lines = msgspec.json.Decoder(Line).decode_lines(said)
    except msgspec.DecodeError as error:
        raise ProgramFailed(command, f"a line that is no JSON of a time: {error}", "") from error
    times = {
        what: np.array([line.ns for line in lines if line.what == what], np.int64)
        for what in ("connect", "first call", "call")
    }
    clients = of.whole("clients")
    found = len(times["first call"]) + len(times["call"])
    if len(times["first call"]) != clients or found != clients * calls:
        raise ProgramFailed(command, f"{found} calls of {len(times['first call'])} clients were made, not all", "")
    sums = [line for line in lines if line.wall_ns]
    each = tuple(line for line in sums if line.what == "client")
    total = next((line for line in sums if line.what == "total"), None)
    moments = [line.at_ns for line in lines if line.what == "call" and line.at_ns is not None]
    sent_ns = np.array(moments, np.int64) if len(moments) == len(times["call"]) else None
    return PeerRun(times["connect"], times["first call"], times["call"], each, total, sent_ns)


def on_schedule(sent_ns: npt.NDArray[np.int64], rate_hz: float) -> tuple[float, float | None]:
    """Calls sent a second, and by how many µs they were late, at the 99th percentile.

    ``sent_ns`` has the time from the first send to the send of each later call. The rate is the number of these calls
    over the last of these times. The percentile is None for fewer than 100 calls, where it would be the latest call
    alone.
    """
    due_ns = np.arange(1, len(sent_ns) + 1) * (1e9 / rate_hz)
    late_ns = np.maximum(sent_ns - due_ns, 0)
    late_us = float(np.percentile(late_ns, 99)) / 1000 if len(sent_ns) >= LATE_CALLS_MIN else None
    return float(len(sent_ns) / sent_ns[-1] * 1e9), late_us
