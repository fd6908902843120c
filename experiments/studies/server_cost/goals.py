"""The goals of ``server_cost``, each with its measurement. Pure: from judgements to plain values.

A goal is met, or missed, where the whole interval says so. Where the interval reaches past the goal, it is open, and
the text says on which side the value is. Nothing is said of a goal that a gate refuses, or before a declared look.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from experiments.judge.standalone import LoneJudged
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement
from experiments.show.numbers import has_interval, number, percent, ratio_words, times_between

GRPC_OVER_SOCKETS_MIN = 8.0
"""Least gain from our own transport: processor time of a request on grpcio ÷ that on sockets."""

ABOVE_ECHO_MAX = 1.10
"""Most processor time with the service, as a multiple of that of a bare protobuf echo."""

OPTIONS_MAX = {"tls": 1.3, "token": 1.05, "metrics": 1.03}
"""Most processor time of a Lookup on sockets with an option, as a multiple of that without it."""

IDLE_SHARE_MAX = 0.001
"""Largest share of a core while nobody sends a request."""

READY_MS_MAX = 500.0

TOO_FEW = "too few values for an interval"
"""Words for a missing interval."""

ADDED_MIB_MAX, ADDED_BY = 20.0, 1_000
"""Most memory in MiB that the socket server may add for a number of idle connections, with that number."""

HELD_MIB_MAX, HELD_BY = 100.0, 10_000
"""Most memory in MiB that the socket server may take in all with a number of idle connections, with that number."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal with the measurement that decides it."""

    part: str
    bound: str
    """The bound in words."""
    at_least: float
    at_most: float
    seen: Estimate | None
    """Measurement of the goal; None where it was not measured."""
    unit: str = ""
    refused: str = ""
    """Reason why the goal is open; empty where it is decided."""

    @property
    def said(self) -> str:
        """State of the goal, in words."""
        if self.seen is None:
            return "not measured"
        if self.refused:
            return f"not concluded: {self.refused}"
        value, low, high = (self.at_least <= each <= self.at_most for each in (self.seen.value, *ends(self.seen)))
        word = "met" if value else "MISSED"
        if self.seen.n < 2:
            return f"{word}, by one value"
        if low != high or low != value:
            return f"open: {word} by its value, and the interval reaches past the goal"
        return word

    @property
    def shown(self) -> str:
        """The measurement with its interval."""
        return "" if self.seen is None else estimate(self.seen, self.unit)


def goals(judgement: Judgement, alone: Sequence[LoneJudged]) -> tuple[Goal, ...]:
    """Every goal, in the order of the table."""
    return (*_main_goals(judgement), *_alone_goals({each.server.setting.text("transport"): each for each in alone}))


def ends(of: Estimate) -> tuple[float, float]:
    """Both ends of the interval. For a value without an interval, the value twice."""
    return (of.low, of.high) if of.n > 1 else (of.value, of.value)


def estimate(of: Estimate, unit: str = "") -> str:
    """Text of an estimate: ``12.3 µs, 12.1 to 12.5``; a ratio has no unit."""
    if not unit:
        value, between = ratio_words(of)
        return f"{value}, {between}" if has_interval(of) else f"{value}, {TOO_FEW}"
    between = times_between(of, 1) if has_interval(of) else TOO_FEW
    return f"{number(of.value)} {unit}, {between}"


def ratio_with_ends(of: Estimate) -> str:
    """Text of a ratio: ``0.290 (0.280 to 0.300)``; the value alone where it has no interval."""
    value, ends = ratio_words(of)
    return f"{value} ({ends})" if has_interval(of) else value


def refusal(judgement: Judgement, name: str) -> str:
    """Reason why a comparison decides nothing; empty where its number counts."""
    if judgement.look is None:
        return "no verdict yet" if judgement.sweep.has_verdicts else "too few blocks for a verdict"
    refusals = judgement.judged[name].refusals if name in judgement.judged else ()
    return "; ".join(f"gate {each.gate}: {each.said}" for each in refusals)


def option_goals(judgement: Judgement) -> tuple[Goal, ...]:
    """Goals of the part ``options``."""
    return ratio_goals(judgement, [(name, _title(judgement, name), 0.0, most) for name, most in OPTIONS_MAX.items()])


def _title(judgement: Judgement, name: str) -> str:
    return next(each.title for each in judgement.sweep.comparisons if each.name == name)


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
    """Goals for the typical ratios of comparisons, from rows of name, words, least and greatest value."""
    found = []
    for name, part, at_least, at_most in rows:
        judged = judgement.judged.get(name)
        bound = f"at least {at_least:g}" if at_least else f"at most {at_most:.2f}"
        seen = None if judged is None else judged.typical
        found.append(Goal(part, bound, at_least, at_most, seen, refused=refusal(judgement, name)))
    return tuple(found)


def _alone_goals(alone: dict[str, LoneJudged]) -> Iterator[Goal]:
    for transport, lone in alone.items():
        bound = f"at most {READY_MS_MAX:g} ms"
        yield Goal(f"start-up to ready, {transport}", bound, 0, READY_MS_MAX, lone.ready_ms, "ms")
        for held in lone.holding:
            part = f"idle processor time, {transport}, {connections(held.connections)}"
            bound = f"under {percent(IDLE_SHARE_MAX)} of a core"
            yield Goal(part, bound, 0, IDLE_SHARE_MAX * 100, as_percent(held.idle_share), "% of a core")
    sockets = alone.get("sockets")
    added = sockets.with_connections(ADDED_BY) if sockets else None
    part, bound = f"{ADDED_BY:,} idle connections, sockets, added", f"at most {ADDED_MIB_MAX:g} MiB"
    yield Goal(part, bound, -math.inf, ADDED_MIB_MAX, added.added_mib if added else None, "MiB")
    held_most = sockets.with_connections(HELD_BY) if sockets else None
    part, bound = f"{HELD_BY:,} idle connections, sockets, the whole server", f"at most {HELD_MIB_MAX:g} MiB"
    yield Goal(part, bound, 0, HELD_MIB_MAX, held_most.resident_mib if held_most else None, "MiB")


def as_percent(of: Estimate) -> Estimate:
    """A share, in percent."""
    return Estimate(of.value * 100, of.low * 100, of.high * 100, of.n)


def connections(count: int) -> str:
    """``no connection``, ``1,000 connections``."""
    return f"{count:,} connections" if count else "no connection"
