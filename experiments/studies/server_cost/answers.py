"""What ``server_cost`` says: two questions answered, and the tables of goals, arms and servers by themselves. Pure."""

import math
from collections.abc import Iterable, Sequence

from experiments.judge import gates, ratios
from experiments.judge.alone import CONFIDENCE, Lone
from experiments.judge.stats import ratio_interval
from experiments.judge.verdicts import Judged, Judgement
from experiments.show.content import Answer, Section, Seen
from experiments.show.numbers import NOTHING, percent
from experiments.show.sentences import ratio_sentence
from experiments.show.tables import Table
from experiments.studies.server_cost.goals import Goal, estimate, goals
from experiments.studies.server_cost.sweeps import CONNECTIONS

ESTIMAND = (
    f"processor time of the server process, all its threads, for each request answered, {CONNECTIONS} kept connections "
    "in a closed loop; typical of pairs of neighbouring slices"
)

NOT_MEASURED = "Not measured."

NOT_CONCLUDED = (
    "What a request costs with fewer connections: a server that sleeps between requests is woken for each.",
    "What it costs on a machine with other cores or another kernel: half of gRPC's cost is switching threads.",
)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Both questions."""
    return _transport(seen.main), _service(seen.main)


def sections(seen: Seen) -> tuple[Section, ...]:
    """Goals, arms, and servers by themselves where they were looked at."""
    told = [Section("Goals", goal_table(goals(seen.main, seen.alone))), Section("Arms", arm_table(seen.main))]
    if seen.alone:
        told.append(Section("Servers by themselves", alone_table(seen.alone)))
    return tuple(told)


def goal_table(all_goals: Iterable[Goal]) -> str:
    """Each goal, what was measured, and how it stands."""
    lines = tuple((each.part, each.bound, each.shown, each.said) for each in all_goals)
    return Table(("what", "goal", "measured, with interval", "the goal is"), lines, texts=4).markdown


def arm_table(judgement: Judgement) -> str:
    """What a request costs on each arm: the geometric mean over blocks, 95 % intervals."""
    lines = []
    for place, arm in enumerate(judgement.sweep.arms):
        seen_us = (ratios.arm_cpu_us(judgement.sweep, block, place) for block in judgement.blocks)
        logs = [math.log(each) for each in seen_us if each]
        if logs:
            share = gates.load_share(judgement.sweep, judgement.blocks, arm)
            cost = estimate(ratio_interval(logs, CONFIDENCE), "µs")
            lines.append((arm.name, cost, f"{percent(share)} of its core"))
    return Table(("arm", "processor time a request", "load side"), tuple(lines), texts=1).markdown


def alone_table(alone: Sequence[Lone]) -> str:
    """Start-up, memory and idle processor time, 95 % intervals over repetitions."""
    lines = []
    for lone in alone:
        for held in lone.holding:
            ready = NOTHING if held.connections else estimate(lone.ready_ms, "ms")
            added = estimate(held.added_mib, "MiB") if held.connections else NOTHING
            resident = estimate(held.resident_mib, "MiB")
            idle = percent(held.idle_share.value)
            lines.append((str(lone.server.setting), f"{held.connections:,}", ready, resident, added, idle))
    head = ("server", "connections held", "ready after", "memory", "added by them", "idle, of a core")
    note = (
        "Memory is what is resident of the process, pages that it shares counted whole; what the kernel keeps for a "
        "socket is not in it. On each connection one call was answered before."
    )
    return Table(head, tuple(lines), notes=(note,)).markdown


def _transport(judgement: Judgement) -> Answer:
    question = "How much more processor time does a request cost the server on gRPC than on sockets?"
    equal, as_started, executor = map(judgement.judged.get, ("transport", "as_started", "executor"))
    if equal is None:
        return Answer(question, NOT_MEASURED, ())
    details = []
    if as_started is not None:
        details.append(ratio_sentence(as_started, "a Lookup on gRPC as it is started", "a Lookup on sockets"))
    if executor is not None:
        details.append(ratio_sentence(executor, "gRPC on the static pool", "gRPC on its thread pool"))
    return Answer(
        question,
        ratio_sentence(equal, "a Lookup on gRPC with sockets' executor", "a Lookup on sockets"),
        (equal,),
        tuple(each for each in (as_started, executor) if each is not None),
        tuple(details),
        ESTIMAND,
        NOT_CONCLUDED,
        to_decide=_to_decide((equal,)),
    )


def _service(judgement: Judgement) -> Answer:
    question = "What does the stock service cost above its transport?"
    judged = {name: judgement.judged.get(f"service_{key}") for key, name in (("sockets", "sockets"), ("grpc", "gRPC"))}
    deciding = {name: each for name, each in judged.items() if each is not None}
    if not deciding:
        return Answer(question, NOT_MEASURED, ())
    return Answer(
        question,
        " ".join(ratio_sentence(each, f"a Lookup on {on}", f"a bare echo on {on}") for on, each in deciding.items()),
        tuple(deciding.values()),
        estimand=ESTIMAND,
        not_concluded=("What a Trade costs, or a Lookup among very many stocks.",),
        to_decide=_to_decide(tuple(deciding.values())),
    )


def _to_decide(deciding: Sequence[Judged]) -> str | None:
    """The command that would decide what is open; None where nothing is."""
    return None if all(each.decided for each in deciding) else "python -m experiments run server_cost --profile paper"
