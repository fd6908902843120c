"""Throughput of each executor on sockets ÷ throughput of a server in C, at 1, 16 and 64 connections.

An executor decides which thread runs a request, here a Lookup. The server in C uses epoll. The load program is
``load.c``. Server and load have a core each. In a closed loop the time of a request is the number of connections ÷ the
throughput. So the C server's time ÷ an executor's time is the executor's throughput ÷ the C server's throughput.
"""

import math

from experiments.design.arms import Arm, Comparison, Group, twins
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep
from experiments.judge.points import Point, points
from experiments.results.observed import ALL
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import costs
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, number, value_words
from experiments.show.sentences import to_decide
from experiments.show.tables import Table
from experiments.studies.server_cost.answers import NOT_MEASURED, goal_section, panels_of_times
from experiments.studies.server_cost.goals import ratio_goals
from experiments.studies.server_cost.sweeps import HEADLINE, in_windows
from experiments.studies.study import Scale
from stock_service.rpc.concurrency import EXECUTORS

PART = "who_runs"

CONNECTIONS = (1, 16, 64)

DECIDING = 16
"""Number of connections whose comparisons are headlines. The sweep ends once the headlines are decided."""

PEER = "c-stock"

CLIENT = "load.c"
"""Load program in C. On each connection the program sends the next request once the reply to the last request has
come."""

EXECUTOR = "static-pool"
"""Executor of the two servers of the A/A pair. The two servers are compared only with the largest number in
``CONNECTIONS``."""

TOGETHER = 4
"""Number of executors in a group. The server in C and the second server of the A/A pair take the other two places of a
group. The comparisons of each further executor form a separate family, since ten blocks could decide no larger family.
"""

ROUNDS = 3
"""Number of rounds in a block. Each round has a window of every arm."""

TAIL = 99.9

GOALS = (("leader-followers at 16", "throughput of leader-followers with 16 connections ÷ C's", 0.44, math.inf),)
"""Goals of the part. A goal has four fields: name of the comparison, text, least value, greatest value."""

QUESTION = "What share of a C server's throughput does each executor reach on sockets?"


def sweep(scale: Scale) -> Sweep:
    """Sweep that compares the throughput of a Lookup with each executor to the C server's throughput."""
    groups, comparisons = list[Group](), list[Comparison]()
    for connections in CONNECTIONS:
        epoll = Arm(_server(connections, language="c"))
        ours = {each: Arm(_server(connections, executor=each)) for each in EXECUTORS}
        every, beside = tuple(ours.values()), (epoll,) if PEER in scale.peers else ()
        groups += [Group((*every[at : at + TOGETHER], *beside)) for at in range(0, len(every), TOGETHER)]
        for executor, arm in ours.items() if PEER in scale.peers else ():
            title = f"Lookup, {_of(connections)}: time in C with epoll ÷ time with {executor}"
            family = HEADLINE if connections == DECIDING else "further"
            family = family if executor in list(EXECUTORS)[:TOGETHER] else executor
            differ = ("language", "executor")
            comparisons.append(Comparison(_name(executor, connections), title, epoll, arm, differ, family=family))
    comparisons.append(twins(_server(max(CONNECTIONS), executor=EXECUTOR), "same")[0])
    return in_windows(PART, groups, comparisons, ROUNDS, scale)


def _server(connections: int, **levels: str) -> Setting:
    return setting(transport="sockets", connections=connections, client="c").but(**levels)


def _name(executor: str, connections: int) -> str:
    return f"{executor} at {connections}"


def _of(connections: int) -> str:
    return counted(connections, "connection")


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answer with each executor's share of C's throughput, in a sentence for each number of connections."""
    judged, told = seen.main.judged, list[str]()
    asked = [each.name for each in seen.main.sweep.comparisons if each.kind != "same"]
    for connections in CONNECTIONS:
        names = {each: _name(each, connections) for each in EXECUTORS}
        shares = [f"{each} {value_words(judged[name].typical)}" for each, name in names.items() if name in judged]
        if shares:
            told.append(f"With {_of(connections)}, shares of a C server's throughput: {', '.join(shares)}.")
    return (
        Answer(
            QUESTION,
            " ".join(told) or NOT_MEASURED,
            tuple(judged[name] for name in asked if name in judged),
            estimand="throughput of one closed loop by a load program in C; server and load have a core each.",
            not_concluded=(
                "What an executor gains where requests wait or compute: a Lookup neither waits nor computes.",
                "What an executor reaches on a Python without a GIL, or on several cores.",
            ),
            figure=PART if told else None,
            to_decide=to_decide(seen.main, asked) if judged else None,
        ),
    )


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections with the table of goals, and with the table of each executor's share and tail."""
    return goal_section(ratio_goals(seen.main, GOALS)), Section("Who runs a Lookup", table(seen))


def table(seen: Seen) -> str:
    """Table with a row for each executor. Each number of connections has two columns: the executor's share of C's
    throughput, and the p99.9 ÷ the median of the executor's response times."""
    lines, found = [], points(seen.main.sweep, seen.main.blocks)
    for executor in EXECUTORS:
        cells = [executor]
        for connections in CONNECTIONS:
            judged = seen.main.judged.get(_name(executor, connections))
            point = found.get((Arm(_server(connections, executor=executor)), ALL))
            cells += [NOTHING if judged is None else value_words(judged.typical), _tail(point)]
        if Arm(_server(max(CONNECTIONS), executor=executor)) in seen.main.sweep.arms:  # not in older recordings
            lines.append(tuple(cells))
    heads = [f"{what}, {_of(each)}" for each in CONNECTIONS for what in ("share of C", "p99.9 ÷ median")]
    return Table(("executor", *heads), tuple(lines), texts=1).markdown


def _tail(point: Point | None) -> str:
    """Text of a ratio at a point: the 99.9th percentile of the response times ÷ their median."""
    median_us, tail_us = (None, None) if point is None else (point.percentile_us(50), point.percentile_us(TAIL))
    return NOTHING if not median_us or tail_us is None else number(tail_us / median_us)


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the time of a Lookup with each executor and in C, with a panel for each number of connections."""
    titles = {each: f"{_of(each)}, client {CLIENT}" for each in CONNECTIONS}
    panels = panels_of_times(seen.main, seen.main.sweep.arms, "Mean time of a Lookup, µs", titles, _server_name)
    return (costs.picture(PART, "Who runs a Lookup on sockets: each executor beside a server in C", panels, log=True),)


def _server_name(arm: Arm) -> str:
    name = "C epoll" if arm.setting.text("language") == "c" else arm.setting.text("executor")
    return f"{name}, again" if arm.copy else name
