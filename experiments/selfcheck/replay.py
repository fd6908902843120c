"""Replay: the load client's record of every request is compared with the log of a server whose service times are known.

An open loop with Poisson arrivals loads a queue server to 0.7 of its capacity. The server logs the moment at which each
request's bytes were read. From these moments and the seeded service times, ``theory.lindley`` computes the moment when
every reply was due. The n-th request that the client sent on a connection is the n-th request that the server read on
this connection. The response time in the client's records must be near the computed time. The difference of the two
times is the time on the wire, plus the lateness of client and server. For a request with a large difference, the clock
readings of client and server show where the request was late.

The check runs twice. In the first run, other programs sometimes take a core for some milliseconds, and so lengthen the
times. In the second run server and client have real-time priority, if the system allows real-time priority. Only the
client's records, clock and schedule can then be the cause of an error.

The warm-up, in which connections are made, is replayed but not judged. Requests in moments in which the hypervisor took
a core (``steal.py``) are left out, and are counted. If more than a tenth of the requests are left out, the finding
fails, and says that steal is the reason.
"""

import tempfile
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clients.load.record.recorder import RawRecords
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import LoadFailed, found, lookups, no_real_time, queue_server, run
from experiments.selfcheck.queue_server import Log, Options, read_log, service_times_ns
from experiments.selfcheck.steal import StealWatch
from experiments.selfcheck.theory import Mmc, lindley

UTILISATION = 0.7

SERVICE_S = 0.001
"""Mean service time in seconds: long compared with the time on the wire and in the client, and short enough for 25,000
requests in half a minute."""

CONNECTIONS = 64

WARM_UP_S = 0.5

PARTS = ("sent late", "read late by the server", "answered late by it", "seen late by the client")
"""Parts of the lateness of a request, in order. Each part is the time between two moments: from the due time to the
send; from the send to the server's read; from the reply's due time to the reply's send; from the reply's send to the
client's read."""

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of the check. ``MINUTES`` is for minutes, ``OVERNIGHT`` is for a night."""

    requests: int
    within_share: float = 0.999
    """Smallest share of requests that must be near the computed time, with real-time priority."""
    within_share_else: float = 0.99
    """Smallest share of requests that must be near the computed time, without real-time priority."""
    off_ms: float = 1.0
    """Largest error of a response time that counts as near the computed time, in milliseconds."""
    median_us: float = 150.0
    """Largest median error, in microseconds."""
    left_out_max: float = 0.1
    """Largest share of requests that may be left out because of steal."""


MINUTES = Scale(25_000)
OVERNIGHT = Scale(100_000)


@dataclass(frozen=True, slots=True)
class Compared:
    """Requests of a run with their lateness, in order of arrival at the server. Times are in nanoseconds."""

    due_ns: Times
    done_ns: Times
    late_ns: Times
    """Lateness of the requests: a row for each of ``PARTS``."""

    @property
    def off_ns(self) -> Times:
        """Errors of the client's response times: each response time minus the computed time of waiting and service."""
        return np.asarray(self.late_ns.sum(axis=0))

    def due_after(self, passed_s: float) -> "Compared":
        """Copy without the requests of the first ``passed_s`` seconds. The first request's due time is the start."""
        late = self.due_ns >= self.due_ns.min(initial=2**62) + int(passed_s * 1e9)
        return Compared(self.due_ns[late], self.done_ns[late], self.late_ns[:, late])


def check(scale: Scale) -> list[Finding]:
    """Replays queues of one server and of four servers, each with and without real-time priority. The call takes two
    minutes with the scale ``MINUTES``. Raises KeyboardInterrupt."""
    runs = product((False, True), (1, 4))
    return [finding for real_time, servers in runs for finding in _check(servers, real_time, scale)]


def _check(servers: int, real_time: bool, scale: Scale) -> list[Finding]:
    name = f"replay, {servers} server{'s' if servers > 1 else ''}"
    name += ", at real-time priority" if real_time else ""
    scale = scale if real_time else replace(scale, within_share=scale.within_share_else)
    if real_time and (why := no_real_time()):
        return [Finding(name, why, must(scale), None)]
    return found(name, must(scale), lambda: [judge(name, *_replay(servers, real_time, scale), scale)])


def _replay(servers: int, real_time: bool, scale: Scale) -> tuple[Compared, StealWatch]:
    """Loads a server, and compares the client's records with the server's log. Blocks. Raises LoadFailed."""
    rate_hz = Mmc(servers, UTILISATION, SERVICE_S).rate_hz
    with tempfile.TemporaryDirectory() as scratch, StealWatch() as steal:
        log_file = Path(scratch) / "log"
        options = Options(servers=servers, mean_s=SERVICE_S, seed=servers, real_time=real_time, log=log_file)
        with queue_server(options) as (_, address):
            result = run(
                replace(
                    lookups("sockets", address),
                    connections_per_client=CONNECTIONS,
                    rate_hz=rate_hz,
                    warm_up_s=WARM_UP_S,
                    duration_s=scale.requests / rate_hz,
                    seed=100 + servers,
                    keep_records=True,
                    real_time=real_time,
                )
            )
        log = read_log(log_file)
    assert result.raw is not None
    return compare(log, result.raw, options).due_after(WARM_UP_S), steal


def compare(log: Log, records: RawRecords, options: Options) -> Compared:
    """Matches every request of the server's log with the client's record of the same request.

    Raises LoadFailed if a request is missing in the log or in the records, or if log and records contradict each other.
    """
    services_ns = service_times_ns(options.mean_s, options.seed)
    responses_ns = np.array(lindley(log.arrival_ns.tolist(), services_ns, options.servers), dtype=np.int64)
    at_server = np.lexsort((log.call, log.connection))
    at_client = np.lexsort((records.sent_ns, records.connection))
    if not np.array_equal(log.connection[at_server], records.connection[at_client]):
        raise LoadFailed(f"the server had {len(at_server)} requests, the client's records {len(at_client)}")
    order = at_client[np.argsort(at_server)]  # for each request of the log: its index in the records
    due_ns, sent_ns, done_ns = (column[order] for column in (records.due_ns, records.sent_ns, records.done_ns))
    impossible = int(((sent_ns > log.arrival_ns) | (due_ns > sent_ns)).sum())
    if impossible:
        raise LoadFailed(f"{impossible} requests arrived before they were sent, or were sent before they were due")
    if not np.array_equal(log.departure_ns - log.arrival_ns, responses_ns):
        raise LoadFailed("the server's departures are not those of the recursion")
    late_ns = [sent_ns - due_ns, log.arrival_ns - sent_ns, log.sent_ns - log.departure_ns, done_ns - log.sent_ns]
    return Compared(due_ns, done_ns, np.array(late_ns))


def must(scale: Scale) -> str:
    """Requirement on a replay, in words."""
    return f"{scale.within_share:.1%} within {scale.off_ms:g} ms of the recursion, median within {scale.median_us:g} µs"


def judge(name: str, compared: Compared, steal: StealWatch, scale: Scale) -> Finding:
    """Finding on the errors of the client's response times."""
    left_out = steal.overlaps(compared.due_ns, compared.done_ns)
    off_us = np.abs(compared.off_ns[~left_out]) / 1000
    far = off_us > scale.off_ms * 1000
    early = far & (compared.off_ns[~left_out] < 0)
    most = np.bincount(compared.late_ns[:, ~left_out][:, far & ~early].argmax(axis=0), minlength=len(PARTS))
    requests, left = len(left_out), int(left_out.sum())
    if left > scale.left_out_max * requests:
        shown = f"{left:,} of {requests:,} requests fell into {steal.stolen_s:.2f} s of steal: too many for a finding"
        return Finding(name, shown, must(scale), False)
    within, median_us = 1 - float(far.mean()), float(np.median(off_us))
    shown = (
        f"{within:.2%} of {requests - left:,} within {scale.off_ms:g} ms, median off {median_us:.0f} µs, "
        f"p99.9 {np.percentile(off_us, 99.9):.0f} µs; of those farther off "
        f"{', '.join(f'{part} {count:,}' for part, count in zip(PARTS, most, strict=True))}, "
        f"too short {int(early.sum()):,}; "
        f"{left:,} left out, in {steal.stolen_s:.2f} s of steal"
    )
    return Finding(name, shown, must(scale), within >= scale.within_share and median_us <= scale.median_us)
