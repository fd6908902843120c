"""Durable trades on sockets: a store on the disk, compared with the same server in memory and with a bare fdatasync.

The load program is ``load.c``. Its traders (connections) wait for each reply, all trade the same stock, and send no
request ids. Server and load have a core each. The stores' files lie in the working folder.

The server with a bare fdatasync is ``epoll_server --fdatasync``, one thread of Python. For each request this server
writes two pages of a file to the disk, as the commit of one trade does, and then answers. The server does nothing else.
So this server is faster than any server with one commit for each trade. The file lies in the working folder, too.

In a closed loop the time of a request is the number of traders ÷ the throughput. So A's time ÷ B's time is B's
throughput ÷ A's throughput.
"""

import math
from collections.abc import Iterator

from experiments.design.arms import Arm, Comparison, Group, twins
from experiments.design.factors import SQLITE
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep
from experiments.judge.points import points
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ALL
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import costs
from experiments.show.figures.style import Picture
from experiments.show.numbers import counted, number, ratio_with_ends
from experiments.show.sentences import to_decide
from experiments.studies.server_cost.answers import NOT_MEASURED, goal_section, panels_of_times
from experiments.studies.server_cost.goals import ratio_goals
from experiments.studies.server_cost.sweeps import HEADLINE, in_windows
from experiments.studies.study import Scale

PART = "durable"

TRADERS = (1, 16, 64)

SYNC = "time with a bare fdatasync"

_OTHER = ("service", "store")

SYNCS = ".venv/bin/python -m experiments.peers.python.epoll_server --port 0 --fdatasync"
"""Command that starts the server with a bare fdatasync, in the project's folder. Recordings keep the command. Its paths
are relative, and so are equal on every machine.
"""

QUESTION = "What does a store on the disk cost a trade?"

GOALS = (
    ("64 in memory", "throughput of 64 traders, on the disk ÷ in memory", 0.5, math.inf),
    ("64 syncs", "throughput of 64 traders, on the disk ÷ one fdatasync a request", 10.0, math.inf),
    ("16 syncs", "throughput of 16 traders, on the disk ÷ one fdatasync a request", 5.0, math.inf),
    ("1 syncs", "time of one trader, on the disk ÷ one fdatasync and the round trip", 0.0, 1.2),
)
"""Goals of the part. A goal has four fields: name of the comparison, text, least value, greatest value."""

SAID = {
    "64 in memory": "With 64 traders, the server on disk answers {} times the trades of the server in memory.",
    "64 syncs": "These trades are {} times the requests of a server that syncs the disk for each request.",
    "16 syncs": "For 16 traders the factor is {}.",
    "1 syncs": "A lone trader waits {} times as long as the client of a bare request that syncs.",
}

TAIL, ROUNDS = 99.0, 3


def server(traders: int, **levels: str) -> Setting:
    """Setting of a server on sockets under this number of traders. ``levels``: levels of its other factors."""
    return setting(transport="sockets", mix="trade", connections=traders, client="c").but(**levels)


def sweep(scale: Scale) -> Sweep:
    """Sweep that compares trades on the disk with two other servers: with a bare fdatasync, for 1, 16 and 64 traders,
    and with trades in memory, for 64 traders.
    """
    kept = {each: Arm(server(each, store=SQLITE)) for each in TRADERS}
    syncs = {each: Arm(server(each, service=SYNCS)) for each in TRADERS}
    memory = Arm(server(64))
    groups = [Group((kept[each], syncs[each], *([memory] if each == 64 else []))) for each in TRADERS]
    pairs = (
        ("64 in memory", "Trade, 64 traders: time in memory ÷ on the disk", memory, kept[64], ("store",)),
        *(
            (f"{each} syncs", f"Trade, {each} traders: {SYNC} ÷ on the disk", syncs[each], kept[each], _OTHER)
            for each in (64, 16)
        ),
        ("1 syncs", f"Trade, 1 trader: time on the disk ÷ {SYNC}", kept[1], syncs[1], _OTHER),
    )
    comparisons = (*(Comparison(*each, family=HEADLINE) for each in pairs), twins(server(16, store=SQLITE), "same")[0])
    return in_windows(PART, groups, comparisons, ROUNDS, scale)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answer on the cost of a store on the disk, with a sentence for each measured comparison."""
    judged = {name: seen.main.judged[name] for name in SAID if name in seen.main.judged}
    told = [SAID[name].format(ratio_with_ends(each.typical)) for name, each in judged.items()]
    return (
        Answer(
            QUESTION,
            " ".join(told) or NOT_MEASURED,
            tuple(judged.values()),
            details=tuple(_tail(seen.main)),
            estimand="throughput, and time of one trader, of one closed loop by a load program in C; server and load "
            "have a core each.",
            not_concluded=(
                "What a trade costs on another disk: the disk's fdatasync decides most of the cost.",
                "What traders of several stocks get: here all trade one stock.",
            ),
            figure=PART if told else None,
            to_decide=to_decide(seen.main, tuple(judged)) if judged else None,
        ),
    )


def _tail(judgement: Judgement) -> Iterator[str]:
    """Sentence on a ratio of two times: the 99th percentile with 16 traders ÷ the median of a lone request with an
    fdatasync. Empty where one of the two times is unknown.
    """
    found = points(judgement.sweep, judgement.blocks)
    kept, syncs = (found.get((Arm(each), ALL)) for each in (server(16, store=SQLITE), server(1, service=SYNCS)))
    tail_us, sync_us = kept and kept.percentile_us(TAIL), syncs and syncs.percentile_us(50)
    if tail_us and sync_us:
        times = number(tail_us / sync_us)
        yield f"The p99 of 16 traders is {times} times the median of a lone request that syncs; the goal is at most 6."


def sections(seen: Seen) -> tuple[Section, ...]:
    """Section with the table of goals."""
    return (goal_section(ratio_goals(seen.main, GOALS)),)


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the time of a trade on each server, with a panel for each number of traders."""
    titles = {traders: counted(traders, "trader") for traders in TRADERS}
    arms = [arm for arm in seen.main.sweep.arms if not arm.copy]
    panels = panels_of_times(seen.main, arms, "Time of a request, µs", titles, _name)
    return (costs.picture(PART, "What a store on the disk costs a trade", panels),)


def _name(arm: Arm) -> str:
    """Words for a request on an arm, which name the arm in the figure."""
    if arm.setting["service"] == SYNCS:
        return "an fdatasync for each request, no trade"
    return "trade in SQLite: traders share a sync" if arm.setting["store"] == SQLITE else "trade in memory: no sync"
