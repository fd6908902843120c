"""Answers, tables and the figure of ``python_grpc_servers``: throughput, processor time a call, memory.

The functions are pure.
"""

from statistics import fmean

from experiments.judge.points import CONFIDENCE, Point, points
from experiments.judge.stats import Estimate, geometric_interval
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ALL
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import costs
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, number, value_words
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, NO_BOUND, Table, bounded
from experiments.studies.python_grpc_servers.sweep import (
    BLOCKS,
    CLIENTS,
    DECIDING,
    SERVERS,
    STUDY,
    arm_of,
    cost_name,
    loads,
    times_name,
)

NOT_MEASURED = "Not measured."

ESTIMAND = "calls a second of one closed loop; server and load have a core each, and the greeter does nothing else."


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers on two ratios. The first ratio is calls a second of every server ÷ calls a second of grpcio. The second
    ratio is processor time a call on ``grpc_static`` ÷ processor time a call on pygrpc-native.
    """
    judged = seen.main.judged
    told = {load: _times(seen.main, *load) for load in loads()}
    costs_of = {load: judged[cost_name(*load)] for load in loads() if cost_name(*load) in judged}
    headline = tuple(each for each in judged.values() if each.comparison.family == "headline")
    said = (
        ratio_sentence(costs_of[DECIDING], "on eight threads each, a call on grpc_static", "one on pygrpc-native")
        if DECIDING in costs_of
        else NOT_MEASURED
    )
    return (
        Answer(
            "How many calls do the gRPC servers for Python answer, as a multiple of grpcio's calls?",
            told[DECIDING] or NOT_MEASURED,
            tuple(each for each in headline if each.comparison.measure == "response"),
            details=(
                *(each for load, each in told.items() if each and load != DECIDING),
                *(NO_BOUND,) * any(LIMITED_MARK in each for each in told.values()),
            ),
            estimand=ESTIMAND,
            not_concluded=(
                "How many more calls a server could answer where the client is at its limit (†).",
                "What a service gains if its calls compute or wait: there the server is a small part of a call.",
                "How the servers compare on several cores.",
            ),
            figure=STUDY if any(told.values()) else None,
            to_decide=to_decide(seen.main, [each.comparison.name for each in headline]) if judged else None,
        ),
        Answer(
            "What processor time does an unchanged servicer take on grpc_static, compared with pygrpc-native?",
            said,
            tuple(each for load, each in costs_of.items() if load == DECIDING),
            tuple(each for load, each in costs_of.items() if load != DECIDING),
            estimand="processor time for each call, of all processes and threads of the server.",
        ),
    )


def _times(judgement: Judgement, connections: int, client: str) -> str:
    """Sentences on one load. The sentences name the load's connections and calls, and then give each server's calls a
    second ÷ grpcio's calls a second. Empty without comparisons.
    """
    shown = [
        f"With {server.replace(',', ' on', 1)}: {bounded(judgement, one)}."
        for server in SERVERS
        if (one := judgement.judged.get(times_name(server, connections, client)))
    ]
    load = f"The load: {counted(connections, 'connection')}, {BLOCKS[client]}."
    return " ".join((load, "Each number is a multiple of the calls of grpcio on threads.", *shown)) if shown else ""


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections with a table of calls for each load program, and with the table of the servers' memory."""
    tables = (Section(f"Under {client}: {BLOCKS[client]}", table(seen.main, client)) for client in CLIENTS)
    return (*tables, Section("Memory", memory(seen.main)))


def table(judgement: Judgement, client: str) -> str:
    """Table with a row for each server and number of connections: calls a second, processor time, percentiles."""
    found, lines = points(judgement.sweep, judgement.blocks), []
    for connections, _ in (load for load in loads() if load[1] == client):
        for server in SERVERS:
            point = found.get((arm_of(server, connections, client), ALL))
            if point is not None:
                mark = f" {LIMITED_MARK}" * point.load_limited
                tails_us = [point.percentile_us(percent) for percent in (50, 99)]
                tails = (NOTHING if us is None else number(us / 1000) for us in tails_us)
                calls = f"{_shown(_calls(judgement, point))}{mark}"
                lines.append((server, f"{connections}", calls, _shown(point.server_cpu_us), *tails))
    heads = ("server", "connections", "calls a second", "processor time a call, µs", "p50, ms", "p99, ms")
    limited = any(LIMITED_MARK in line[2] for line in lines)
    return Table(heads, tuple(lines), notes=(LIMITED_NOTE,) * limited).markdown


def _calls(judgement: Judgement, point: Point) -> Estimate | None:
    """Geometric mean over the blocks of the calls a second of a point's arm, with its interval."""
    place = judgement.sweep.arms.index(point.arm)
    windows = [block.arms[place].windows for block in judgement.blocks]
    return geometric_interval((fmean(each.answered_hz for each in own) for own in windows if own), CONFIDENCE)


def _shown(of: Estimate | None) -> str:
    return NOTHING if of is None else value_words(of)


def memory(judgement: Judgement) -> str:
    """Table of each server's memory in MiB after all loads of a block. A page of memory that several processes share is
    divided among these processes.
    """
    lines, blocks = [], judgement.blocks
    for server in SERVERS:
        key = arm_of(server, *DECIDING).server
        if key in judgement.sweep.servers:
            place = judgement.sweep.servers.index(key)
            seen = [each.memory_mib for block in blocks if (each := block.servers[place]) is not None]
            lines.append((server, _shown(geometric_interval(seen, CONFIDENCE))))
    return Table(("server", "MiB"), tuple(lines)).markdown


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the processor time of a call on every server, with a panel for each load program, on one scale."""
    quantity, panels = "Processor time of the server for each call, µs", []
    for client, calls in BLOCKS.items():
        names = {arm_of(server, DECIDING[0], client): server for server in SERVERS}
        rows = costs.rows_of(seen.main, names, names.__getitem__)
        panels.append(costs.Panel(quantity, rows, f"Client {client}: {calls}"))
    title = f"What a call costs gRPC servers in Python, {DECIDING[0]} connections"
    return (costs.picture(STUDY, title, panels, shared=True),)
