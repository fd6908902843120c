"""Runs a peer's own load client: a new process that connects, makes calls one after another, and reports the times.

A peer is a server of another language or project. At its end the client prints a line of JSON for each measured time:
``{"what":"connect","ns":…}``, ``{"what":"first call",…}``, and ``{"what":"call",…}`` for each later call. Each client
of the program has its own ``connect`` and ``first call``. The line of a call may have ``at_ns``, the time from the
first send to the call's send. The program may also report sums over the calls after the first call:
``{"what":"client",…}`` for each client, and ``{"what":"total",…}`` for all clients. Sums have ``calls``, ``wall_ns``
and ``processor_ns``. In the total, ``processor_ns`` is the processor time of the whole program. A line of JSON with
another ``what`` is ignored. The clients check every reply, and exit with a code other than 0 after a wrong reply.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from experiments.design.setting import Setting
from experiments.measure.programs import ProgramFailed, finished
from experiments.peers import client_command, peer_of
from stock_service.rpc.transports import Address

EXTRA_S = 60.0
"""Longest time in seconds that a client may take in addition to the planned time. The client needs this time to start,
to connect and to send late."""

CALL_S_MAX = 0.1
"""Longest mean time of a call in a closed loop, in seconds."""

LATE_CALLS_MIN = 100
"""Smallest number of calls for which the 99th percentile of the lateness of sends is computed."""


class Line(msgspec.Struct):
    """A line in the report of a peer's client or server. A line has only some of these fields. Fields with other names
    are ignored."""

    what: str
    ns: int = 0
    at_ns: int | None = None
    calls: int = 0
    """Number of calls of one client; in the line ``total``, of all clients."""
    wall_ns: int = 0
    """Time from the common start of all clients to the last reply of the calls in ``calls``."""
    processor_ns: int = 0
    answer_ns: int = 0
    cycle_ns: int = 0
    messages: int = 0
    bytes: int = 0


def lines_of(command: Sequence[str], said: str) -> list[Line]:
    """Lines that a peer's program has printed. Raises ProgramFailed for a line that is not JSON of this form."""
    try:
        return msgspec.json.Decoder(Line).decode_lines(said)
    except msgspec.DecodeError as error:
        raise ProgramFailed(command, f"a line that is not JSON of a report: {error}", "") from error


@dataclass(frozen=True, slots=True)
class PeerRun:
    """Times that a peer's clients measured, in nanoseconds."""

    connect_ns: npt.NDArray[np.int64]
    """Time that each client took to connect."""
    first_ns: npt.NDArray[np.int64]
    """Time of each client's first call."""
    calls_ns: npt.NDArray[np.int64]
    """Times of all calls after each client's first call, in the order of the program's report."""
    clients: tuple[Line, ...] = ()
    """Sums over each client's later calls. Empty if the program does not report sums."""
    total: Line | None = None
    """Sums over the later calls of all clients. None if the program does not report sums."""
    sent_ns: npt.NDArray[np.int64] | None = None
    """Time from the first send to the send of each later call. None if the program does not report times of sends."""


def run(of: Setting, at: Address, calls: int, cpus: tuple[int, ...] | None) -> PeerRun:
    """Makes ``calls`` calls with each client of the setting's peer. The client's first call is included.

    Blocks until the program has ended. Raises Absent if the peer is not built. Raises ProgramFailed if the program
    fails, prints a line that is not JSON, or has made another number of calls.
    """
    name = peer_of(of.text("service"), of.text("language"), of.text("transport"))
    command = client_command(name, f"{at[0]}:{at[1]}", calls, dict(of.levels))
    rate_hz = of["rate_hz"]
    lasts_s = calls / float(rate_hz) if isinstance(rate_hz, float) else calls * CALL_S_MAX
    lines = lines_of(command, finished(command, cpus, lasts_s + EXTRA_S))
    times = {
        what: np.array([line.ns for line in lines if line.what == what], np.int64)
        for what in ("connect", "first call", "call")
    }
    clients = of.whole("clients")
    found = len(times["first call"]) + len(times["call"])
    expected = f"expected: {clients * calls} calls of {clients} clients"
    if len(times["first call"]) != clients or found != clients * calls:
        raise ProgramFailed(command, f"{found} calls of {len(times['first call'])} clients were made, {expected}", "")
    sums = [line for line in lines if line.wall_ns]
    each = tuple(line for line in sums if line.what == "client")
    total = next((line for line in sums if line.what == "total"), None)
    moments = [line.at_ns for line in lines if line.what == "call" and line.at_ns is not None]
    sent_ns = np.array(moments, np.int64) if len(moments) == len(times["call"]) else None
    return PeerRun(times["connect"], times["first call"], times["call"], each, total, sent_ns)


def on_schedule(sent_ns: npt.NDArray[np.int64], rate_hz: float) -> tuple[float, float | None]:
    """Two values: the number of calls sent per second, and the 99th percentile of the lateness of sends in µs.

    ``sent_ns`` has the time from the first send to the send of each later call. The first value is the number of these
    times divided by the last time. For fewer than 100 calls the percentile is None, since a single late call would
    determine it.
    """
    due_ns = np.arange(1, len(sent_ns) + 1) * (1e9 / rate_hz)
    late_ns = np.maximum(sent_ns - due_ns, 0)
    late_us = float(np.percentile(late_ns, 99)) / 1000 if len(sent_ns) >= LATE_CALLS_MIN else None
    return float(len(sent_ns) / sent_ns[-1] * 1e9), late_us
