"""Comparison of our gRPC server ``grpc_static`` with other servers, for clients whose header blocks differ from call to
call.

The load program is on grpc-go. A load is 32 connections with one call at a time, or 4 connections with 16 calls at a
time. All calls of a load are of one kind. The kinds are equal calls, calls with a token, calls with a deadline of 2 s,
calls with a new W3C traceparent each, and calls with long metadata. A part of the long metadata changes from call to
call. Server and load have a core each.

In a closed loop the calls a second are the calls in flight ÷ the time of a call. So the ratio of two servers' times of
a call is the inverse ratio of their calls a second. The texts have our calls a second ÷ the other server's calls a
second. The other servers are a plain server on grpcio, and the same service on grpc-go and on tonic where these are
built.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from statistics import fmean

from experiments.design.arms import Arm, Comparison, Group, twins
from experiments.design.factors import GRPC_GO, SAME
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep
from experiments.judge.points import points
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ALL
from experiments.services import PLAIN
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import costs
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, number, ratio_with_ends
from experiments.show.sentences import to_decide
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, NO_BOUND, Table, bounded
from experiments.studies.server_cost.answers import NOT_MEASURED, goal_section
from experiments.studies.server_cost.goals import ratio_goals
from experiments.studies.server_cost.sweeps import HEADLINE, in_windows
from experiments.studies.study import Scale

PART = "real_clients"

LOADS: Mapping[str, tuple[int, int]] = {"32 × 1": (32, 1), "4 × 16": (4, 16)}
"""Loads by name: number of connections, and number of calls at a time on each connection."""

CALLS: Mapping[str, str] = {
    SAME: "all the same",
    "token": "a token",
    "deadline": "a deadline of 2 s",
    "traceparent": "a new traceparent",
    "2560B": "2.5 KiB of metadata",
}
"""Words for the kinds of call, by level of the factor ``headers``."""

DECIDING = (SAME, "deadline", "traceparent")
"""Levels of ``headers`` whose comparisons with grpcio are headlines. The sweep ends once the headlines are decided."""

OWN = setting(transport="grpc_static", client=GRPC_GO)
ON_GRPCIO = setting(transport="grpc", client=GRPC_GO, service=PLAIN)
SERVERS: Mapping[str, Setting] = {"grpc_static": OWN, "plain grpcio": ON_GRPCIO}

OTHERS: Mapping[str, Setting] = {
    "grpc-go": setting(transport="grpc", client=GRPC_GO, language="go"),
    "tonic": setting(transport="grpc", client=GRPC_GO, language="rust"),
}
"""Settings of the servers in other languages (peers), by name."""

COMPARED: Mapping[str, Setting] = {"a plain grpcio server": ON_GRPCIO, **OTHERS}

PEERS = ("go-stock", "rust-stock")

ROUNDS = 1
"""Number of rounds in a block. Each round has a window of every arm."""

GOALS = tuple(
    (f"{headers} at 4 × 16", f"calls with {CALLS[headers]} at 4 × 16, grpc_static ÷ plain grpcio", 4.0, math.inf)
    for headers in ("deadline", "traceparent")
)
"""Goals of the part. A goal has four fields: name of the comparison, text, least value, greatest value."""

QUESTION = "How many calls does grpc_static answer for clients on grpc-go, as a multiple of plain grpcio's calls?"


def sweep(scale: Scale) -> Sweep:
    """Sweep of the calls a second of ``grpc_static`` ÷ the calls a second of each other server, for each load and kind
    of call."""
    groups, comparisons = list[Group](), list[Comparison]()
    built = {name: each for (name, each), peer in zip(OTHERS.items(), PEERS, strict=True) if peer in scale.peers}
    others = {"plain grpcio": ON_GRPCIO, **built}
    for load, (headers, calls) in product(LOADS, CALLS.items()):
        own, arms = _arm(OWN, load, headers), []
        for name, server in others.items():
            arms.append(other := _arm(server, load, headers))
            differ = own.setting.unlike(other.setting)
            title = f"Lookup, {load}, {calls}: time on {name} ÷ time on grpc_static"
            family = HEADLINE if headers in DECIDING else "further"
            family = family if server is ON_GRPCIO else f"{name}, {load}"
            comparisons.append(Comparison(_name(load, headers, server), title, other, own, differ, family=family))
        groups.append(Group((own, *arms)))
    for server in SERVERS.values():
        comparisons.append(twins(_arm(server, next(iter(LOADS)), SAME).setting, "same")[0])
    return in_windows(PART, groups, comparisons, ROUNDS, scale)


def _arm(server: Setting, load: str, headers: str) -> Arm:
    connections, in_flight = LOADS[load]
    return Arm(server.but(connections=connections, in_flight=in_flight, headers=headers))


def _name(load: str, headers: str, server: Setting = ON_GRPCIO) -> str:
    """Name of the comparison of ``grpc_static`` with a server, for a load and a kind of call."""
    beside = "" if server is ON_GRPCIO else f", {server.text('language')}"
    return f"{headers} at {load}{beside}"


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answer with the least and the largest ratio of each load. The details have every ratio."""
    judged = seen.main.judged
    told = list(_least_to_most(seen.main))
    compared = [each for each in judged.values() if each.comparison.kind != "same"]
    deciding = [name for name, each in judged.items() if each.comparison.family == HEADLINE]
    return (
        Answer(
            QUESTION,
            " ".join(told) or NOT_MEASURED,
            tuple(each for each in compared if each.comparison.above.setting["language"] == OWN["language"]),
            tuple(each for each in compared if each.comparison.above.setting["language"] != OWN["language"]),
            tuple(line for name, server in COMPARED.items() for line in _told(seen.main, server, name)),
            estimand="calls a second of one closed loop by a client on grpc-go; server and load have a core each.",
            not_concluded=(
                "How many more calls a server could answer where the client is at its limit.",
                "The ratios for clients in other languages: their header blocks differ in other parts.",
            ),
            figure=PART if told else None,
            to_decide=to_decide(seen.main, deciding) if judged else None,
        ),
    )


def _least_to_most(judgement: Judgement) -> Iterator[str]:
    """Sentences, at most two for each load, on the least and the largest ratio of ``grpc_static`` to plain grpcio, over
    all kinds of call.

    A ratio is exact where the client did not reach its limit on either server. Where the client was at its limit on
    ``grpc_static`` alone, the measured ratio is a lower bound: the true ratio may be larger. Further ratios are not
    used. The least ratio is the least exact ratio, with "at most" before it if the true ratio of another kind of call
    may be smaller. The largest ratio is the largest of the exact ratios and the lower bounds, with "at least" before it
    unless all ratios are exact.
    """
    for load in LOADS:
        judged = {headers: one for headers in CALLS if (one := judgement.judged.get(_name(load, headers)))}
        ratios = {headers: one.typical.value for headers, one in judged.items()}
        limited = {headers: judgement.limited(one) for headers, one in judged.items()}
        exact = [headers for headers, arms in limited.items() if not any(arms)]
        lower = [headers for headers, arms in limited.items() if arms == (False, True)]
        if not (exact or lower):
            if ratios:
                yield f"{_at_once(load)}, the client was at its limit on grpcio: no ratio is exact or a lower bound."
            continue
        most = max((*exact, *lower), key=ratios.__getitem__)
        is_bound = len(exact) < len(ratios)
        told = f"{'at least ' * is_bound}{_ratio(judgement, load, most)}"
        ends = f"The highest ratio is with {_had(CALLS[most])}."
        if exact and (least := min(exact, key=ratios.__getitem__)) != most:
            is_open = any(ratios[each] < ratios[least] or each not in lower for each in ratios if each not in exact)
            told = f"{'at most ' * is_open}{_ratio(judgement, load, least)} to {told}"
            exactly = " exact" * is_bound
            ends = f"The lowest{exactly} ratio is with {_had(CALLS[least])}, the highest with {_had(CALLS[most])}."
        yield f"{_at_once(load)}, grpc_static answers {told} times the calls of plain grpcio."
        yield ends


def _told(judgement: Judgement, server: Setting, name: str) -> Iterator[str]:
    """Sentences, one for each load, with the ratios of ``grpc_static`` to one server for every kind of call. ``name``:
    name of the server in texts."""
    for load in LOADS:
        shown = [
            f"{bounded(judgement, one)} with {_had(calls)}"
            for headers, calls in CALLS.items()
            if (one := judgement.judged.get(_name(load, headers, server)))
        ]
        if shown:
            no_bound = f" {NO_BOUND}" * any(LIMITED_MARK in each for each in shown)
            yield f"{_at_once(load)}, as a multiple of the calls of {name}: {', '.join(shown)}.{no_bound}"


def _at_once(load: str) -> str:
    connections, calls = LOADS[load]
    return f"With {connections} connections of {counted(calls, 'call')} each"


def _had(calls: str) -> str:
    return "equal calls" if calls == CALLS[SAME] else calls


def _ratio(judgement: Judgement, load: str, headers: str, server: Setting = ON_GRPCIO) -> str:
    one = judgement.judged.get(_name(load, headers, server))
    return NOTHING if one is None else ratio_with_ends(one.typical)


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections with the tables of goals, of servers in Python, and of servers in other languages."""
    told = [goal_section(ratio_goals(seen.main, GOALS)), Section("Clients whose calls differ", table(seen.main))]
    if any(arm.setting["language"] != OWN["language"] for arm in seen.main.sweep.arms):
        told.append(Section("Servers in other languages", others_table(seen.main)))
    return tuple(told)


def table(judgement: Judgement) -> str:
    """Table with a row for each load and kind of call: calls a second on ``grpc_static`` and on plain grpcio, the ratio
    of these two rates, and processor time a call on each server."""
    heads = (*(f"{each}, calls a second" for each in SERVERS), "ratio")
    heads += tuple(f"{each}, processor time a call, µs" for each in SERVERS)

    def cells(load: str, headers: str) -> tuple[str, ...]:
        measured = (_measured(judgement, _arm(server, load, headers)) for server in SERVERS.values())
        rates, costs_us = zip(*measured, strict=True)
        return (*rates, _ratio(judgement, load, headers), *costs_us)

    return _table(heads, cells)


def others_table(judgement: Judgement) -> str:
    """Table with a row for each load and kind of call. Each server in another language has three columns: the server's
    calls a second, the ratio of ``grpc_static`` to the server, and the server's processor time a call."""
    told = ("calls a second", "grpc_static ÷ it", "processor time a call, µs")
    heads = tuple(f"{name}, {what}" for name in OTHERS for what in told)

    def cells(load: str, headers: str) -> Iterator[str]:
        for server in OTHERS.values():
            rate, cost_us = _measured(judgement, _arm(server, load, headers))
            yield from (rate, _ratio(judgement, load, headers, server), cost_us)

    return _table(heads, cells)


def _table(heads: tuple[str, ...], cells: Callable[[str, str], Iterable[str]]) -> str:
    """Table with a row for each load and kind of call; these two are the first columns. ``cells``: gives the further
    cells of a row. ``heads``: heads of the further columns."""
    lines = tuple((load, calls, *cells(load, headers)) for load in LOADS for headers, calls in CALLS.items())
    limited = any(cell.endswith(LIMITED_MARK) for line in lines for cell in line)
    return Table(("connections × calls", "calls", *heads), lines, texts=2, notes=(LIMITED_NOTE,) * limited).markdown


def _measured(judgement: Judgement, arm: Arm) -> tuple[str, str]:
    """Texts of an arm's calls a second (mean over all windows) and of the server's processor time a call in µs."""
    point = points(judgement.sweep, judgement.blocks).get((arm, ALL))
    if point is None:
        return NOTHING, NOTHING
    place = judgement.sweep.arms.index(arm)
    rates = [window.answered_hz for block in judgement.blocks for window in block.arms[place].windows]
    rate = f"{fmean(rates):,.0f}" if rates else NOTHING
    cost = number(point.server_cpu_us.value) if point.server_cpu_us else NOTHING
    return rate + f" {LIMITED_MARK}" * point.load_limited, cost


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the processor time of a call on ``grpc_static`` and on plain grpcio, with a panel for each load."""
    return (costs.picture(PART, "What calls that differ cost a gRPC server", list(_panels(seen.main)), shared=True),)


def _panels(judgement: Judgement) -> Iterator[costs.Panel]:
    for load in LOADS:
        words = {
            _arm(server, load, headers): f"{name}, {calls}"
            for headers, calls in CALLS.items()
            for name, server in SERVERS.items()
        }
        connections, calls_at_once = LOADS[load]
        at_once = f"{connections} connections × {counted(calls_at_once, 'call')} at once"
        rows = costs.rows_of(judgement, words, words.__getitem__)
        yield costs.Panel(f"Processor time of the server for each call, {at_once}, µs", rows)
