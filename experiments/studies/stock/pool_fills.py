"""A pool that fills: Lookup with 10 ms of waiting in it, 5 threads, clients from 1 to twice the threads.

A dictionary lookup under Python's GIL never fills a pool. A request that waits does: each thread holds one request for
10 ms. The part ``pool_fills`` has both dispatch models on sockets, each with a connection kept and with a connection
for each request; gRPC on a ``ThreadPoolExecutor`` of as many threads stands beside them. The part ``past_pool`` is its
first line alone, at 1 client, at the pool's size and at twice that: ``run stock`` measures it for question 4.

A client here is a connection of one load process. So all clients begin together, however many there are, and a window
is short. The load is far from its limit: 5 threads answer 500 requests a second. Clients that get no reply have no
latency: they are counted in every window, and drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep, Windows
from experiments.judge.points import Point, points
from experiments.judge.steps import steps
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.observed import ALL
from experiments.show.content import Answer, Seen
from experiments.show.figures import clients as over_clients
from experiments.show.figures.style import Picture
from experiments.show.numbers import counted, number, ratio_words
from experiments.show.sentences import to_decide
from experiments.studies.stock.sweeps import GRPC, HEADLINE, POOL, SOCKETS, clients_of, groups_of, growth, in_windows
from experiments.studies.stock.wording import (
    by_clients,
    confidence,
    contrary,
    found,
    mean_us,
    step_by_step,
    told,
)
from experiments.studies.study import Scale

CLIENTS = tuple(range(1, 2 * POOL + 1))
"""Numbers of clients, unless others are given."""

ENDS = (1, POOL, 2 * POOL)
"""Numbers of clients that the answers need: one, the pool's size, and twice that."""

WAIT_MS = 10.0
"""Wait in each Lookup, off the processor."""

REQUEST, ANEW, CONNECTION, CONNECTION_ANEW, ON_GRPC = "request", "anew", "connection", "connection_anew", "grpc"

TO_POOL, PAST_POOL = "to_pool_", "past_pool_"
"""Beginnings of comparisons' names: from one client to the pool's size, and from the pool's size to twice that."""

LINES: Mapping[str, Setting] = {
    REQUEST: SOCKETS.but(workers=POOL, io_ms=WAIT_MS),
    ANEW: SOCKETS.but(workers=POOL, io_ms=WAIT_MS, connection="per-request"),
    CONNECTION: SOCKETS.but(workers=POOL, io_ms=WAIT_MS, dispatch="connection"),
    CONNECTION_ANEW: SOCKETS.but(workers=POOL, io_ms=WAIT_MS, dispatch="connection", connection="per-request"),
    ON_GRPC: GRPC.but(workers=POOL, io_ms=WAIT_MS),
}
"""Settings of the figure's lines, without the clients."""

FLAT = (REQUEST, CONNECTION, ON_GRPC)
"""Lines that are tested for the same latency up to the pool."""

RISING = (REQUEST, ANEW, CONNECTION_ANEW, ON_GRPC)
"""Lines that are tested for growth of latency past the pool. Where a kept connection holds its thread, clients
starve."""

WORDS: Mapping[str, str] = {
    REQUEST: "where a request is a task",
    ANEW: "where a request is a task, on a new connection each",
    CONNECTION: "where a connection is a task",
    CONNECTION_ANEW: "where a connection is a task, and each request has a new one",
    ON_GRPC: "on gRPC",
}

PANELS: Mapping[str, Mapping[str, str]] = {
    "A task for each request": {
        REQUEST: "sockets, connection kept",
        ANEW: "sockets, a connection a request",
        ON_GRPC: "gRPC, ThreadPoolExecutor",
    },
    "A task for each connection": {
        CONNECTION: "sockets, connection kept",
        CONNECTION_ANEW: "sockets, a connection a request",
    },
}
"""Panels of the figure, with the labels of their lines."""

_WORK = f"Lookup with {WAIT_MS:g} ms of waiting in it, a pool of {POOL} threads"
TITLES: Mapping[str, str] = {"pool_fills": _WORK, "past_pool": f"Past the pool, on sockets: {_WORK}"}
"""Title of each part's figure."""

WINDOWS = Windows(warm_up_s=0.06, duration_s=0.16)
"""The warm-up is three requests of the slowest arm, the window eight: each takes 20 ms."""

ROUNDS_SHARE = 5
"""Divisor of the rounds of other parts in windows: a request that waits varies by 1 %."""


def sweep(scale: Scale) -> Sweep:
    """Every line, at every number of clients, and at the numbers that the answers need."""
    return _sweep("pool_fills", LINES, sorted({*scale.clients, *ENDS}), scale)


def past_pool(scale: Scale) -> Sweep:
    """The first line, at the numbers of clients that the answers need."""
    return _sweep("past_pool", {REQUEST: LINES[REQUEST]}, ENDS, scale)


def _sweep(part: str, lines: Mapping[str, Setting], counts: Sequence[int], scale: Scale) -> Sweep:
    groups: list[Group] = []
    comparisons: list[Comparison] = []
    for line, base in lines.items():
        arms = {count: Arm(base.but(connections=count)) for count in counts}
        one, pool, past = asked = tuple(arms[count] for count in ENDS)
        groups += [Group(asked), *groups_of([arm for arm in arms.values() if arm not in asked])]
        if line in FLAT:
            name, title = f"{TO_POOL}{line}", f"Up to the pool, {WORDS[line]}"
            comparisons.append(growth(name, title, (one, pool), HEADLINE, ("connections",)))
        if line in RISING:
            name, title = f"{PAST_POOL}{line}", f"Past the pool, {WORDS[line]}"
            grown = growth(name, title, (pool, past), HEADLINE, ("connections",))
            comparisons.append(replace(grown, kind="per client"))
    fewer = replace(scale, rounds=max(1, scale.rounds // ROUNDS_SHARE))
    return in_windows(part, groups, comparisons, fewer, WINDOWS)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the pool that fills, the two dispatch models, and gRPC."""
    judgement = seen.main
    return (
        _answer(
            judgement,
            f"What happens past the pool's size, where a Lookup waits {WAIT_MS:g} ms?",
            waiting(judgement),
            (f"{TO_POOL}{REQUEST}", f"{PAST_POOL}{REQUEST}", f"{PAST_POOL}{ANEW}"),
        ),
        _answer(
            judgement,
            "Is it better that a task is a request, or that a task is a connection?",
            " ".join(_starving(judgement)),
            (f"{TO_POOL}{CONNECTION}", f"{PAST_POOL}{CONNECTION_ANEW}"),
            "That clients past the pool wait longer where a connection is a task: who gets no reply has no latency.",
        ),
        _answer(
            judgement,
            "Does gRPC on a ThreadPoolExecutor do the same?",
            " ".join(_told(judgement, name) for name in (f"{TO_POOL}{ON_GRPC}", f"{PAST_POOL}{ON_GRPC}")),
            (f"{TO_POOL}{ON_GRPC}", f"{PAST_POOL}{ON_GRPC}"),
        ),
    )


def past_pool_answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers of the part ``past_pool``."""
    names = (f"{TO_POOL}{REQUEST}", f"{PAST_POOL}{REQUEST}")
    question = f"What happens past the pool's size, where a Lookup waits {WAIT_MS:g} ms?"
    return (_answer(seen.main, question, waiting(seen.main), names),)


def waiting(judgement: Judgement) -> str:
    """Sentences on latency up to the pool and past it: one sentence where latency stays constant and then rises, else a
    sentence for each verdict."""
    names = f"{TO_POOL}{REQUEST}", f"{PAST_POOL}{REQUEST}"
    judged = found(judgement, *names)
    holds = len(judged) == len(names) and _is_flat(judged[0]) and _rises(judged[1])
    holds = holds and not any(_contrary(judgement, name) for name in names)
    means = [mean_us(judgement, Arm(LINES[REQUEST].but(connections=n))) for n in ENDS]
    texts = [f"{number(mean / 1000)} ms" for mean in means if mean is not None]
    if not holds or len(texts) < len(means):
        return " ".join(_told(judgement, name) for name in names)
    one, pool, past = texts
    at_pool = f"{one} with 1 client and with {POOL}" if one == pool else f"{one} with 1 client and {pool} with {POOL}"
    times, ends = ratio_words(judged[1].typical)
    return (
        f"A Lookup on sockets that waits {WAIT_MS:g} ms takes {at_pool}. "
        f"With {clients_of(2 * POOL)} it takes {past}, {times} times as long ({ends}): {POOL} are served, and "
        f"{POOL} wait."
    )


def details(judgement: Judgement) -> tuple[str, ...]:
    """The verdicts behind ``waiting``, with every step."""
    return tuple(_detailed(judgement, name) for name in (f"{TO_POOL}{REQUEST}", f"{PAST_POOL}{REQUEST}"))


def _is_flat(judged: Judged) -> bool:
    """True where latency is the same with more clients, to within 5 %."""
    low, high = judged.equivalent
    return judged.decided and low < judged.typical.low and judged.typical.high < high


def _rises(judged: Judged) -> bool:
    """True where latency is higher with more clients, by over 5 %; decided."""
    return judged.decided and judged.typical.low > judged.equivalent[1]


def _told(judgement: Judgement, name: str) -> str:
    line = _line(name)
    few, most = (clients_of(count) for count in (ENDS[:2] if name.startswith(TO_POOL) else ENDS[1:]))
    return told(judgement, name, f"{most} {WORDS[line]}", few) + _contrary(judgement, name)


def _detailed(judgement: Judgement, name: str) -> str:
    """The verdict on both ends of a line, and every step between them."""
    own = steps(judgement, _arms(judgement, name))
    return f"{_told(judgement, name)} {step_by_step(own)}" if own else _told(judgement, name)


def _contrary(judgement: Judgement, name: str) -> str:
    """Sentences on the steps that are not flat to within 5 % up to the pool, or do not rise past it; empty for none."""
    arms, limits = _arms(judgement, name), judgement.sweep.limits
    own = steps(judgement, arms)
    up_to = name.startswith(TO_POOL)
    others = [
        each for each in own if not (each.is_small(limits) if up_to else each.verdict(judgement) is Verdict.GROWS)
    ]
    missing = max(0, len(arms) - 1) - len(own)
    lacks = f" Of {counted(missing, 'step')} the gates left no block." if missing and judgement.blocks else ""
    return contrary(judgement, others) + lacks


def _arms(judgement: Judgement, name: str) -> list[Arm]:
    """Arms of a comparison's line, by ascending clients."""
    own = by_clients(judgement, LINES[_line(name)], "connections")
    return [arm for arm in own if (arm.connections <= POOL if name.startswith(TO_POOL) else arm.connections >= POOL)]


def _line(name: str) -> str:
    return name.removeprefix(TO_POOL).removeprefix(PAST_POOL)


def _starving(judgement: Judgement) -> Iterator[str]:
    """Numbers of clients that got no reply on a kept connection, beside these where each request has a new
    connection."""
    kept = _points(judgement, CONNECTION)
    if not any(point.windows for point in kept):
        yield "Not known: no window has been run."
        return
    starving = [point for point in kept if point.starved_clients]
    if starving:
        means = sorted(point.mean_us.value / 1000 for point in starving if point.mean_us)
        ends = " to ".join(dict.fromkeys(number(each) for each in (*means[:1], *means[-1:])))
        served = f" The others are served in {ends} ms." if means else ""
        kept_words = f"{_without_reply(starving)} clients get no reply.{served}"
        yield f"On kept connections {kept_words}"
    else:
        yield "On kept connections every client is served."
    others = [
        point for line in LINES if line != CONNECTION for point in _points(judgement, line) if point.starved_clients
    ]
    yield (
        "Where a request is a task, or each request has a new connection, "
        + ("every client is served." if not others else f"{_without_reply(others)} clients get no reply.")
    )


def _without_reply(starving: Sequence[Point]) -> str:
    """Mean number of clients without any reply in a window, beside the number of clients: ``1 of 6, 2 of 7``."""
    texts = [f"{point.starved_each:.3g} of {point.arm.connections}" for point in starving]
    return ", ".join(texts) if len(texts) <= 2 else f"from {texts[0]} to {texts[-1]}"


def _answer(judgement: Judgement, question: str, sentence: str, names: Sequence[str], *not_concluded: str) -> Answer:
    return Answer(
        question=question,
        sentence=sentence,
        deciding=found(judgement, *names),
        details=tuple(_detailed(judgement, name) for name in names),
        estimand=(
            f"mean latency of Lookup with {WAIT_MS:g} ms of waiting in it, {POOL} threads, a closed loop. "
            f"{confidence(judgement)}"
        ),
        not_concluded=(
            "That it is so where a request computes: threads of one interpreter compute one at a time.",
            *not_concluded,
        ),
        figure=judgement.sweep.part,
        to_decide=to_decide(judgement, names),
    )


def pictures(seen: Seen) -> Sequence[Picture]:
    """A panel for each dispatch model, a line for each connection policy, gRPC beside them; starved clients drawn."""
    panels = []
    for title, lines in PANELS.items():
        drawn = [
            over_clients.Line(label, LINES[line].text("transport"), own)
            for line, label in lines.items()
            if (own := _points(seen.main, line))
        ]
        if drawn:
            panels.append(over_clients.Panel(title, drawn, POOL))
    part = seen.main.sweep.part
    return [over_clients.picture(part, TITLES[part], panels)]


def _points(judgement: Judgement, line: str) -> list[Point]:
    """Points of a line, by ascending clients."""
    found, arms = points(judgement.sweep, judgement.blocks), by_clients(judgement, LINES[line], "connections")
    return [found[arm, ALL] for arm in arms if (arm, ALL) in found]
