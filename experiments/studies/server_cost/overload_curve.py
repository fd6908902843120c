"""Overload: calls that a server answers in time, at rates from half of its capacity to ten times its capacity.

Each call computes for 0.5 ms, and its client gives up after 90 ms. Calls are due at a constant rate, whether or not
earlier calls were answered (an open loop). A client on grpc-go loads the servers on gRPC, and the lean client loads the
server on sockets. Server and load have a core each.

A server's peak is its throughput in the same block with 16 calls at a time in a closed loop. The offered load is the
rate of the calls that were sent. Answers give two rates as multiples of the peak: the offered load, and the rate of
calls answered within 90 ms. A call computes until its thread has used 0.5 ms of processor time. So each server's
capacity is under 2,000 calls a second on every machine, and the due rates are constants. The sweep has no comparisons.
The sweep has no gates either, since refused and abandoned calls are measured too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from experiments.design.arms import Arm, Group
from experiments.design.factors import GRPC_GO
from experiments.design.setting import Setting, setting
from experiments.design.sweep import BLOCKS_MIN, Sweep, Windows
from experiments.judge.gates import rate_off
from experiments.judge.points import CONFIDENCE
from experiments.judge.stats import Estimate, positive_interval
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ArmSeen
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import curves
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, enumeration, number, percent, value_words
from experiments.show.tables import Table
from experiments.studies.server_cost.answers import NOT_MEASURED
from experiments.studies.server_cost.split import NAMES
from experiments.studies.study import Scale

PART = "overload_curve"

DEADLINE_MS = 90.0

COMPUTES_MS = 0.5

TIMES = (0.5, 0.8, 1.0, 1.4, 2.0, 5.0, 10.0)
"""Due rates of the open loop, as multiples of ``CAPACITIES_HZ``."""

CAPACITIES_HZ: Mapping[str, float] = {"sockets": 1_700.0, "grpc_static": 1_550.0, "grpc": 1_400.0}
"""Approximate capacities of the servers in calls a second, by transport. A call costs a little more than the 500 µs
that the call computes."""

CLOSED = 16
"""Number of connections of the closed loop. A connection has one call under way at a time."""

_BASE = setting(cpu_ms=COMPUTES_MS, deadline_ms=DEADLINE_MS, arrivals="constant")

_SOCKETS = _BASE.but(transport="sockets", executor="static-pool", client="lean", connections=CLOSED)
_OWN = _BASE.but(transport="grpc_static", executor="leader-followers", client=GRPC_GO, connections=32, in_flight=256)
_GRPC = _OWN.but(transport="grpc", executor="thread-pool")

SERVERS = (_SOCKETS, _OWN, _GRPC)
"""Settings of the servers as started, with the connections of the open loop. On gRPC there are 32 connections. Our
servers allow at most 64 calls at a time on a connection. The client on grpc-go holds further calls back.
"""

LATE_MARK, LATE_NOTE = "†", "† The load was sent late at this rate: the number says less about the server."

QUESTION = "What share of its peak does a server still answer in time, if the load is above its capacity?"


@dataclass(frozen=True, slots=True)
class Overload:
    """Measurement of a server at one due rate, over the blocks. Measured rates are multiples of the server's peak."""

    times: float
    """Due rate as a multiple of the capacity: a value of ``TIMES``."""
    offered: Estimate
    """Rate of the calls that were sent."""
    in_time: Estimate
    """Rate of the calls that were answered within the deadline."""
    is_late: bool
    """True where the load sent calls late, or not at the due rate."""


def sweep(scale: Scale) -> Sweep:
    """Sweep of every due rate, and of a closed loop, on each server. The sweep has as many blocks as the scale's first
    look, and no verdicts."""
    groups = tuple(
        Group((peak(server), *(offered(server, each) for each in rates)))
        for server in SERVERS
        for rates in (TIMES[:3], TIMES[3:])
    )
    turns = Windows(0.3, 0.6) if scale.looks[0] >= BLOCKS_MIN else Windows(0.2, 0.3)
    return Sweep("server_cost", PART, groups, (), 1, scale.looks[:1], scale.seed, turns)


def peak(server: Setting) -> Arm:
    """Arm of the closed loop that measures a server's peak. An arm is a server under a load."""
    return Arm(server.but(connections=CLOSED, in_flight=1))


def offered(server: Setting, times: float) -> Arm:
    """Arm of the open loop on a server. ``times``: due rate as a multiple of the server's capacity."""
    return Arm(server.but(rate_hz=times * CAPACITIES_HZ[server.text("transport")]))


def overloads(judgement: Judgement, server: Setting) -> Iterator[Overload]:
    """Measurements of a server, one for each due rate that was measured together with a peak in at least one block."""
    places = judgement.sweep.places
    for times in TIMES:
        arm = offered(server, times)
        if arm not in places:
            continue
        found = [
            (fmean(window.sent_hz for window in seen.windows) / peak_hz, in_time_hz(seen) / peak_hz)
            for block in judgement.blocks
            for seen in (block.arms[places[arm]],)
            if (peak_hz := in_time_hz(block.arms[places[peak(server)]])) and seen.windows
        ]
        if found:
            sent, good = (positive_interval(each, CONFIDENCE) for each in zip(*found, strict=True))
            yield Overload(times, sent, good, _is_late(judgement, arm))


def _is_late(judgement: Judgement, arm: Arm) -> bool:
    """True where the load sent calls late, or at another rate than the due rate. Calls are late where the mean of the
    windows' 99th percentiles of lateness is over a set share of the deadline (``Limits.late_share``).
    """
    limits, place = judgement.sweep.limits, judgement.sweep.arms.index(arm)
    seen = [block.arms[place] for block in judgement.blocks]
    late_us = [window.late_us_p99 or 0.0 for each in seen for window in each.windows]
    is_off = any(refusal for each in seen for refusal in rate_off(limits, arm, each))
    return is_off or fmean(late_us) > 1000 * DEADLINE_MS * limits.late_share


def in_time_hz(seen: ArmSeen) -> float:
    """Mean over windows of the calls a second that were answered within the deadline. 0 without windows."""
    return fmean(window.answered_hz for window in seen.windows) if seen.windows else 0.0


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answer with a sentence for each server, on the due rates above the server's capacity."""
    past = [times for times in TIMES if times > 1]
    told = []
    for server, found in _found(seen.main).items():
        shares = {each.times: percent(each.in_time.value) for each in found}
        if found:
            every = enumeration([shares.get(each, NOTHING) for each in past])
            told.append(f"Of its peak, {NAMES[server]} answers {every} in time.")
    if told:
        told.insert(0, f"Each server is offered {enumeration([f'{times:g}' for times in past])} times its capacity.")
    return (
        Answer(
            QUESTION,
            " ".join(told) or NOT_MEASURED,
            (),
            details=(*_peaks(seen.main), *_late(seen.main)) if told else (),
            estimand=f"calls answered within {DEADLINE_MS:g} ms of their due time ÷ calls answered in a closed loop of "
            f"{CLOSED} calls at once, in the same block; server and load have a core each.",
            not_concluded=(
                "What clients that retry get: here each call is sent once.",
                f"What a server does where a call takes far less than {COMPUTES_MS:g} ms: then a refusal costs "
                "relatively more.",
            ),
            figure=PART if told else None,
        ),
    )


def _peaks(judgement: Judgement) -> Iterator[str]:
    """Sentences, one for each server, on the server's peak."""
    for server in (each for each in SERVERS if peak(each) in judgement.sweep.arms):
        place = judgement.sweep.arms.index(peak(server))
        peak_hz = fmean(in_time_hz(block.arms[place]) for block in judgement.blocks)
        yield f"The peak of {NAMES[server.text('transport')]} is {peak_hz:,.0f} calls a second."


def _late(judgement: Judgement) -> Iterator[str]:
    """Sentences, one for each server, on the due rates at which the load itself was late."""
    for server, found in _found(judgement).items():
        if times := [f"{each.times:g}" for each in found if each.is_late]:
            yield f"On {NAMES[server]} the load was sent late at {enumeration(times)} times the capacity."


def sections(seen: Seen) -> tuple[Section, ...]:
    """Section with the table of all due rates."""
    return (Section("Overload", table(seen.main)),)


def table(judgement: Judgement) -> str:
    """Table with a row for each due rate, and two columns for each server: offered load ÷ peak, and calls answered in
    time ÷ peak."""
    found = {server: {each.times: each for each in own} for server, own in _found(judgement).items()}
    lines = [(f"{times:g}", *(cell for own in found.values() for cell in _cells(own.get(times)))) for times in TIMES]
    heads = (f"{NAMES[server]}: {what} ÷ peak" for server in found for what in ("offered", "in time"))
    is_late = any(each.is_late for own in found.values() for each in own.values())
    return Table(("times capacity", *heads), tuple(lines), texts=0, notes=(LATE_NOTE,) * is_late).markdown


def _cells(one: Overload | None) -> tuple[str, str]:
    if one is None:
        return NOTHING, NOTHING
    return number(one.offered.value), value_words(one.in_time) + f" {LATE_MARK}" * one.is_late


def _found(judgement: Judgement) -> Mapping[str, tuple[Overload, ...]]:
    """Measurements of each server at its due rates, by the server's transport."""
    return {server.text("transport"): tuple(overloads(judgement, server)) for server in SERVERS}


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the calls answered in time over the offered load, with a line for each server."""
    scale = curves.Scale(
        x="Offered ÷ peak, as it was sent",
        y="Answered in time ÷ peak",
        ticks=[(times, f"{times:g}") for times in TIMES],
    )
    lines = [
        curves.Line(
            "grpcio" if server == "grpc" else "",
            server,
            [(float(f"{each.offered.value:.3g}"), each.in_time) for each in found],
        )
        for server, found in _found(seen.main).items()
    ]
    title = f"Calls that compute for {COMPUTES_MS:g} ms, with a deadline of {DEADLINE_MS:g} ms"
    return (curves.picture(PART, "Answered in time under overload", scale, [curves.Panel(title, lines)]),)
