"""Goals of the study ``server_cost``, each with its measurement. Pure functions, from judgements to plain values.

A goal is a bound on a measured value. The goal is met, or missed, where the whole interval of the value lies on one
side of the bound. Where the interval contains the bound, the goal is open, and the text names the side on which the
value lies. A value without an interval is compared with the bound itself. A goal has no state where a gate refuses its
comparison, or before the sweep is at a look (a declared number of blocks).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from experiments.judge.standalone import LoneJudged
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judged, Judgement
from experiments.show.numbers import has_interval, number, percent, ratio_words, times_between

GRPC_OVER_SOCKETS_MIN = 8.0
"""Least ratio that meets the goal: processor time of a request on grpcio ÷ processor time of a request on sockets."""

ABOVE_ECHO_MAX = 1.10
"""Largest ratio that meets the goal: processor time of a Lookup ÷ processor time of a bare protobuf echo."""

OPTIONS_MAX = {"tls": 1.3, "token": 1.05, "metrics": 1.03}
"""Largest ratios that meet the goals, by option: processor time of a Lookup on sockets with the option ÷ without the
option."""

IDLE_SHARE_MAX = 0.001
"""Largest share of a core that a server may take while no request comes."""

READY_MS_MAX = 500.0

TOO_FEW = "too few values for an interval"
"""Words in place of an interval that cannot be computed."""

ADDED_MIB_MAX, ADDED_BY = 20.0, 1_000
"""Largest memory in MiB that idle connections may add to the sockets server, and the number of these connections."""

HELD_MIB_MAX, HELD_BY = 100.0, 10_000
"""Largest memory in MiB of the whole sockets server with idle connections, and the number of these connections."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal, with the measurement that decides the goal."""

    part: str
    """Measured quantity in words."""
    bound: str
    """Bound in words."""
    at_least: float
    """Least value that meets the goal."""
    at_most: float
    """Greatest value that meets the goal."""
    seen: Estimate | None
    """Measurement that decides the goal; None where nothing was measured."""
    unit: str = ""
    """Unit of the measurement. Empty for a ratio."""
    refused: str = ""
    """Reason why the measurement decides nothing. Empty where the measurement counts."""

    @property
    def said(self) -> str:
        """State of the goal, in words."""
        seen = self.seen
        if seen is None:
            return "not measured"
        if self.refused:
            return f"not concluded: {self.refused}"
        word = "met" if self.at_least <= seen.value <= self.at_most else "MISSED"
        if seen.n < 2:
            return f"{word}, by one value without an interval"
        if len({self.at_least <= each <= self.at_most for each in (seen.value, seen.low, seen.high)}) > 1:
            return f"open: {word} by its value, but the interval reaches past the goal"
        return word

    @property
    def shown(self) -> str:
        """Text of the measurement with its interval; empty without a measurement."""
        return "" if self.seen is None else estimate(self.seen, self.unit)


def goals(judgement: Judgement, alone: Sequence[LoneJudged]) -> tuple[Goal, ...]:
    """Goals of the part ``server_cost``, in the order of the table. ``alone``: judgements of the servers that were
    measured alone."""
    return (*_main_goals(judgement), *_alone_goals({each.server.setting.text("transport"): each for each in alone}))


def estimate(of: Estimate, unit: str = "") -> str:
    """Text of an estimate with its interval: ``12.3 µs, 12.1 to 12.5``. A ratio has no unit."""
    if not unit:
        value, between = ratio_words(of)
        return f"{value}, {between}" if has_interval(of) else f"{value}, {TOO_FEW}"
    between = times_between(of, 1) if has_interval(of) else TOO_FEW
    return f"{number(of.value)} {unit}, {between}"


def option_goals(judgement: Judgement) -> tuple[Goal, ...]:
    """Goals of the part ``options``."""
    titles = {each.name: each.title for each in judgement.sweep.comparisons}
    return ratio_goals(judgement, [(name, titles[name], 0.0, most) for name, most in OPTIONS_MAX.items()])


def _main_goals(judgement: Judgement) -> tuple[Goal, ...]:
    least, most = GRPC_OVER_SOCKETS_MIN, ABOVE_ECHO_MAX
    rows = (
        ("transport", "a request's processor time, gRPC ÷ sockets, one executor on both", least, math.inf),
        ("as_started", "a request's processor time, gRPC ÷ sockets, as started", least, math.inf),
        ("service_sockets", "a request's processor time, Lookup ÷ echo, sockets", 0.0, most),
        ("service_grpc", "a request's processor time, Lookup ÷ echo, gRPC", 0.0, most),
    )
    return ratio_goals(judgement, rows)


def ratio_goals(judgement: Judgement, rows: Iterable[tuple[str, str, float, float]]) -> tuple[Goal, ...]:
    """Goals for the typical ratios of comparisons. ``rows``: name of the comparison, words, least value, greatest
    value."""
    found = []
    for name, part, at_least, at_most in rows:
        judged = judgement.judged.get(name)
        bound = f"at least {at_least:g}" if at_least else f"at most {at_most:.2f}"
        refusals = [f"gate {each.gate}: {each.said}" for each in judged.refusals] if judged else []
        if (
            judged is not None
            and judged.load_share is not None
            and not _is_decided(judgement, judged, at_least, at_most)
        ):
            refusals.append("gate 7: client and server together determine the ratio")
        if judgement.look is None:
            refusals = ["no verdict yet" if judgement.sweep.has_verdicts else "too few blocks for a verdict"]
        seen = judged.typical if judged else None
        found.append(Goal(part, bound, at_least, at_most, seen, refused="; ".join(refusals)))
    return tuple(found)


def _is_decided(judgement: Judgement, judged: Judged, at_least: float, at_most: float) -> bool:
    """True where a ratio meets or misses its goal, although the load was the limit on one of the two arms.

    The measured time of a limited arm is too long. If the upper arm alone is limited, the true ratio is the measured
    ratio or less. If the lower arm alone is limited, the true ratio is the measured ratio or more.
    """
    above, below = judgement.limited(judged)
    seen = judged.typical
    if above == below:
        return False
    if above:
        return seen.high < at_least or (at_least == 0 and seen.high <= at_most)
    return seen.low > at_most or (math.isinf(at_most) and seen.low >= at_least)


def _alone_goals(alone: dict[str, LoneJudged]) -> Iterator[Goal]:
    """Goals of servers alone: start-up time, idle processor time, and memory of idle connections. ``alone``: judgements
    of the servers, by transport."""
    for transport, lone in alone.items():
        bound = f"at most {READY_MS_MAX:g} ms"
        yield Goal(f"start-up to ready, {transport}", bound, 0, READY_MS_MAX, lone.ready_ms, "ms")
        for held in lone.holding:
            part = f"idle processor time, {transport}, {connections(held.connections)}"
            bound = f"under {percent(IDLE_SHARE_MAX)} of a core"
            yield Goal(part, bound, 0, IDLE_SHARE_MAX * 100, held.idle_share.over(0.01), "% of a core")
    sockets = alone.get("sockets")
    added = sockets.with_connections(ADDED_BY) if sockets else None
    part, bound = f"{ADDED_BY:,} idle connections, sockets, added", f"at most {ADDED_MIB_MAX:g} MiB"
    yield Goal(part, bound, -math.inf, ADDED_MIB_MAX, added.added_mib if added else None, "MiB")
    held_most = sockets.with_connections(HELD_BY) if sockets else None
    part, bound = f"{HELD_BY:,} idle connections, sockets, the whole server", f"at most {HELD_MIB_MAX:g} MiB"
    yield Goal(part, bound, 0, HELD_MIB_MAX, held_most.resident_mib if held_most else None, "MiB")


def connections(count: int) -> str:
    """Text of a number of connections: ``no connection``, ``1,000 connections``."""
    return f"{count:,} connections" if count else "no connection"
