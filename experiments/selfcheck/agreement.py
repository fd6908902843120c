"""Agreement: the load client reads what clients that are none of ours read of the same server.

ghz for gRPC, the Go client and the C client for sockets (``peers.py``), each taking turns with our own on a server
process: the same requests on the same number of connections at the same constant rate, a quarter of what the server can
do with this load beside it. ghz and the Go client sleep until a request is due or a reply comes; the C client and our
own never do, so that waking up is in no time of theirs. Compared are the medians over the turns of the 50th and the
99th percentile; of the service time, from the send, since these clients know no other. What each client reads of a
server that does nothing, at the same rate, is shown beside it: a difference that is there too is the clients' own, and
no error of either. ``clients.py`` has the loads at full speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import found, known, lookups, null_server, run, stock_server, times
from experiments.selfcheck.peers import Absent, Ask, Peer, Reading, peers
from stock_service.rpc.transports import Address

CONNECTIONS = 8

CAPACITY_SHARE = 0.25
"""Of what a closed loop on as many connections reaches."""

RATE_HZ_MAX = 1000.0
"""Enough for a p99; ghz's pace is good to a millisecond, so that at higher rates it sends requests together."""

WITHIN: Mapping[str, tuple[float, float]] = {"p50": (0.05, 50.0), "p99": (0.10, 200.0)}
"""How far apart the two clients may be: a share of theirs, and µs on top."""

PACE = 0.02
"""How far a client may be off the rate that it is asked for."""

WITH: tuple[tuple[str, str], ...] = (("grpc", "ghz"), ("sockets", "go"), ("sockets", "c"))
"""Transports, and whom we are compared with there."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is asked of one version of the check."""

    turns: int
    duration_s: float
    warm_up_s: float
    capacity_s: float
    judged: bool = True
    """Whether to judge; otherwise it is enough that every client gave a reading."""


MINUTES = Scale(turns=9, duration_s=1.5, warm_up_s=0.5, capacity_s=1.0)
OVERNIGHT = replace(MINUTES, turns=101, duration_s=3.0)
SECONDS = Scale(turns=1, duration_s=0.7, warm_up_s=0.3, capacity_s=0.3, judged=False)


def check(overnight: bool = False, seconds: bool = False) -> list[Finding]:
    """Compares on every transport. Blocks: minutes' version two minutes; raises KeyboardInterrupt."""
    scale = OVERNIGHT if overnight else SECONDS if seconds else MINUTES
    findings = []
    with peers() as all_peers:
        for transport, name in WITH:
            peer = all_peers[name]
            title = f"agreement, {transport} with {name}"
            if isinstance(peer, Absent):
                findings.append(Finding(title, str(peer), _must(scale), None))
                continue

            def look(title: str = title, transport: str = transport, peer: Peer = peer) -> list[Finding]:
                return _compare(title, transport, peer, scale)

            findings += found(title, _must(scale), look)
    return findings


def _compare(title: str, transport: str, peer: Peer, scale: Scale) -> list[Finding]:
    ours, theirs = [], []
    with stock_server(transport) as (_, address):
        plan = replace(lookups(transport, address), connections_per_client=CONNECTIONS)
        capacity_hz = run(replace(plan, duration_s=scale.capacity_s)).throughput_hz
        rate_hz = float(round(min(RATE_HZ_MAX, CAPACITY_SHARE * capacity_hz)))
        ask = Ask(address, CONNECTIONS, scale.duration_s, scale.warm_up_s, rate_hz)
        for turn in range(scale.turns):
            if turn % 2:  # whoever is first has the server as the other left it
                theirs.append(peer.load(ask))
                ours.append(_own(transport, address, ask))
            else:
                ours.append(_own(transport, address, ask))
                theirs.append(peer.load(ask))
    with null_server(transport) as (_, address):
        ask = replace(ask, address=address)
        floors = (_own(transport, address, ask), peer.load(ask))
    return [
        pace(f"{title}, pace", rate_hz, (ours, theirs), scale),
        *(
            judge(f"{title}, {percentile} at {rate_hz:.0f}/s", percentile, (ours, theirs), floors, scale)
            for percentile in WITHIN
        ),
    ]


def pace(name: str, rate_hz: float, turns: tuple[list[Reading], list[Reading]], scale: Scale) -> Finding:
    """Whether both clients sent at the rate that was asked, without which their times are of different loads."""
    rates_hz = [median(each.throughput_hz for each in readings) for readings in turns]
    kept = all(abs(each - rate_hz) <= PACE * rate_hz for each in rates_hz)
    must = f"within {PACE:.0%} of {rate_hz:,.0f}/s" if scale.judged else "a reading"
    shown = f"ours {rates_hz[0]:,.0f}/s, theirs {rates_hz[1]:,.0f}/s"
    close = [each.close_share for each in turns[1] if each.close_share is not None]
    shown += f", {median(close):.0%} of theirs less than half as far apart as they should be" if close else ""
    return Finding(name, shown, must, kept or not scale.judged)


def judge(
    name: str,
    percentile: str,
    turns: tuple[list[Reading], list[Reading]],
    floors: tuple[Reading, Reading],
    scale: Scale,
) -> Finding:
    """Whether the medians of a percentile agree; ours come first."""
    share, us = WITHIN[percentile]
    our_us, their_us = (median(_us(each, percentile) for each in readings) for readings in turns)
    our_floor_us, their_floor_us = (_us(each, percentile) for each in floors)
    allowed_us = share * their_us + us
    shown = (
        f"ours {our_us:.0f} µs, theirs {their_us:.0f} µs: {our_us - their_us:+.0f} µs, "
        f"medians of {len(turns[0])} turns; "
        f"of a server that does nothing {our_floor_us:.0f} and {their_floor_us:.0f} µs"
    )
    agree = abs(our_us - their_us) <= allowed_us
    must = f"at most {allowed_us:.0f} µs apart" if scale.judged else "a reading"
    return Finding(name, shown, must, agree or not scale.judged)


def _own(transport: str, address: Address, ask: Ask) -> Reading:
    """The same load by the project's own client."""
    plan = replace(
        lookups(transport, address),
        connections_per_client=ask.connections,
        rate_hz=ask.rate_hz,
        arrivals="constant",
        warm_up_s=ask.warm_up_s,
        duration_s=ask.duration_s,
    )
    said = times(run(plan))
    return Reading(said.count, said.throughput_hz, known(said.service_us_p50), known(said.service_us_p99))


def _us(reading: Reading, percentile: str) -> float:
    return reading.p50_us if percentile == "p50" else reading.p99_us


def _must(scale: Scale) -> str:
    bounds = (f"{name} within {share:.0%} + {us:g} µs" for name, (share, us) in WITHIN.items())
    return ", ".join(bounds) if scale.judged else "a reading"
