"""A pool that fills: a Lookup that waits for 10 ms, 5 threads, and 1 to 10 clients.

A dictionary lookup under Python's GIL never fills a pool. A request that waits fills the pool: each thread holds one
request for 10 ms. The part ``pool_fills`` measures both dispatch models on sockets, each with kept connections and with
a new connection for each request. The part also measures gRPC on a ``ThreadPoolExecutor`` of 5 threads. The part
``past_pool`` measures kept connections with a task for each request, only at 1, 5 and 10 clients. ``run stock`` runs
``past_pool`` for question 4.

All clients are connections of one load process. So the clients begin together, and a short window suffices. The load
process is far from its limit: 5 threads answer 500 requests a second. A client without a reply in a window (a starved
client) has no latency. Starved clients are counted in every window, and marked in the figure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep, Windows
from experiments.judge.points import Point
from experiments.judge.steps import steps
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.show.content import Answer, Seen
from experiments.show.figures import clients as over_clients
from experiments.show.figures.style import Picture
from experiments.show.numbers import number, ratio_words
from experiments.show.sentences import to_decide
from experiments.studies.stock.sweeps import GRPC, HEADLINE, POOL, SOCKETS, clients_of, groups_of, growth, in_windows
from experiments.studies.stock.wording import (
    by_clients,
    confidence,
    contrary,
    declared,
    found,
    grown,
    mean_us,
    points_of,
    step_by_step,
)
from experiments.studies.study import Scale

CLIENTS = tuple(range(1, 2 * POOL + 1))
"""Numbers of clients, unless the user gives others."""

ENDS = (1, POOL, 2 * POOL)
"""Numbers of clients that the answers need: one, the number of threads, and twice the number of threads."""

WAIT_MS = 10.0
"""Time in milliseconds that each Lookup waits, off the processor."""

REQUEST, ANEW, CONNECTION, CONNECTION_ANEW, ON_GRPC = "request", "anew", "connection", "connection_anew", "grpc"

TO_POOL, PAST_POOL = "to_pool_", "past_pool_"
"""Prefixes of the names of two kinds of comparisons. ``TO_POOL``: latency with as many clients as threads ÷ latency
with one client. ``PAST_POOL``: latency with twice as many clients as threads ÷ latency with as many clients as
threads."""

LINES: Mapping[str, Setting] = {
    REQUEST: SOCKETS.but(workers=POOL, io_ms=WAIT_MS),
    ANEW: SOCKETS.but(workers=POOL, io_ms=WAIT_MS, connection="per-request"),
    CONNECTION: SOCKETS.but(workers=POOL, io_ms=WAIT_MS, dispatch="connection"),
    CONNECTION_ANEW: SOCKETS.but(workers=POOL, io_ms=WAIT_MS, dispatch="connection", connection="per-request"),
    ON_GRPC: GRPC.but(workers=POOL, io_ms=WAIT_MS),
}
"""Settings of the figure's lines by name, without the number of clients."""

FLAT = (REQUEST, CONNECTION, ON_GRPC)
"""Names of the lines that are tested for constant latency up to the pool's size."""

RISING = (REQUEST, ANEW, CONNECTION_ANEW, ON_GRPC)
"""Names of the lines on which latency is tested for growth past the pool's size. The line ``CONNECTION`` is left out,
since there clients starve instead.
"""

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
"""Labels of the figure's lines, by the panel's title and the line's name."""

_WORK = f"Lookup with {WAIT_MS:g} ms of waiting in it, a pool of {POOL} threads"
TITLES: Mapping[str, str] = {"pool_fills": _WORK, "past_pool": f"Past the pool, on sockets: {_WORK}"}
"""Titles of the figures, by part."""

WINDOWS = Windows(warm_up_s=0.06, duration_s=0.16)
"""Windows of the sweeps. A request of the slowest arm takes 20 ms: three such requests fit into the warm-up, and eight
into the window."""

ROUNDS_SHARE = 5
"""Divisor of the scale's number of rounds. Few rounds suffice, since the latency of a request that waits varies by only
1 %."""


def sweep(scale: Scale) -> Sweep:
    """Sweep of the part ``pool_fills``: every line of the figure, at every number of clients of the scale, and at the
    numbers ``ENDS``."""
    return _sweep("pool_fills", LINES, sorted({*scale.clients, *ENDS}), scale)


def past_pool(scale: Scale) -> Sweep:
    """Sweep of the part ``past_pool``: the line ``REQUEST``, at the numbers of clients ``ENDS``."""
    return _sweep("past_pool", {REQUEST: LINES[REQUEST]}, ENDS, scale)


def _sweep(part: str, lines: Mapping[str, Setting], counts: Sequence[int], scale: Scale) -> Sweep:
    groups, comparisons = list[Group](), list[Comparison]()
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
    """Answers on the pool that fills, on the two dispatch models, and on gRPC. The part ``past_pool`` has only the
    answer on the pool."""
    judgement, question = seen.main, f"What happens with more clients than threads, if a Lookup waits {WAIT_MS:g} ms?"
    names = (f"{TO_POOL}{REQUEST}", f"{PAST_POOL}{REQUEST}", f"{PAST_POOL}{ANEW}")
    first = _answer(judgement, question, waiting(judgement), [each for each in names if declared(judgement, each)])
    if judgement.sweep.part == "past_pool":
        return (first,)
    return (
        first,
        _answer(
            judgement,
            "Is it better that a task is a request, or that a task is a connection?",
            " ".join(_starving(judgement)),
            (f"{TO_POOL}{CONNECTION}", f"{PAST_POOL}{CONNECTION_ANEW}"),
            "That clients without a thread wait longer where a connection is a task: without a reply there is no "
            "latency.",
        ),
        _answer(
            judgement,
            "Does gRPC on a ThreadPoolExecutor have the same latencies?",
            " ".join(_told(judgement, name) for name in (f"{TO_POOL}{ON_GRPC}", f"{PAST_POOL}{ON_GRPC}")),
            (f"{TO_POOL}{ON_GRPC}", f"{PAST_POOL}{ON_GRPC}"),
        ),
    )


def waiting(judgement: Judgement) -> str:
    """Sentences on the latency of a Lookup that waits, up to the pool's size and past the pool's size.

    If latency stays constant up to the pool's size and then rises, the text has the rise and its reason. Otherwise the
    text has the latencies, the steps that contradict a comparison, and the comparisons that are not decided. If a
    latency is missing, the text has both comparisons.
    """
    names = f"{TO_POOL}{REQUEST}", f"{PAST_POOL}{REQUEST}"
    means = [mean_us(judgement, Arm(LINES[REQUEST].but(connections=n))) for n in ENDS]
    texts = [number(mean / 1000) for mean in means if mean is not None]
    judged = {each.comparison.name: each for each in found(judgement, *names)}
    if len(texts) < len(means) or len(judged) < len(names):
        return " ".join(_told(judgement, name) for name in names)
    one, pool, past = texts
    takes, most = f"A Lookup on sockets that waits {WAIT_MS:g} ms takes", clients_of(2 * POOL)
    contrary = {name: _contrary(judgement, name) for name in names}
    if not _is_flat(judged[names[0]]) or not _rises(judged[names[1]]) or any(contrary.values()):
        told = (contrary[name] if judged[name].decided else f" {_told(judgement, name)}" for name in names)
        return f"{takes} {one} ms with 1 client, {pool} with {POOL}, {past} with {2 * POOL}.{''.join(told)}"
    at_pool = f"{one} ms with 1 client and {f'{pool} ms ' * (pool != one)}with {POOL}"
    value, ends = ratio_words(judged[names[1]].typical)
    return (
        f"{takes} {at_pool}. With {most} it takes {past} ms, {value} times as long as with {POOL} ({ends}): {POOL} are "
        f"served, and {POOL} wait."
    )


def details(judgement: Judgement) -> tuple[str, ...]:
    """Sentences on the two comparisons behind ``waiting``: up to the pool's size, and past the pool's size. Each
    sentence has the ratios of all steps from one number of clients to the next."""
    return tuple(_detailed(judgement, name) for name in (f"{TO_POOL}{REQUEST}", f"{PAST_POOL}{REQUEST}"))


def _is_flat(judged: Judged) -> bool:
    """True where the latencies of a comparison are decided to differ by under 5 %."""
    low, high = judged.equivalent
    return judged.decided and low < judged.typical.low and judged.typical.high < high


def _rises(judged: Judged) -> bool:
    """True where the latency is decided to be higher with more clients, by over 5 %."""
    return judged.decided and judged.typical.low > judged.equivalent[1]


def _told(judgement: Judgement, name: str) -> str:
    """Sentence on a comparison, and on the steps that contradict the comparison. A step is the change from one number
    of clients to the next, such as from 4 clients to 5."""
    return grown(judgement, name, WORDS[_line(name)]) + _contrary(judgement, name)


def _detailed(judgement: Judgement, name: str) -> str:
    """Sentences on a comparison, and on every step up to the pool's size, or past the pool's size. A step is the change
    from one number of clients to the next."""
    own = steps(judgement, _arms(judgement, name))
    return f"{_told(judgement, name)} {step_by_step(own)}" if own else _told(judgement, name)


def _contrary(judgement: Judgement, name: str) -> str:
    """Sentences on the steps that contradict a comparison, and on steps without a value. Empty without such steps.

    A step is the change from one number of clients to the next. Up to the pool's size every step must be flat to within
    5 %; past the pool's size every step must rise.
    """
    arms, limits = _arms(judgement, name), judgement.sweep.limits
    own = steps(judgement, arms)
    if name.startswith(TO_POOL):
        others = [each for each in own if not each.is_small(limits)]
    else:
        others = [each for each in own if each.verdict(judgement) is not Verdict.GROWS]
    return contrary(judgement, others, len(arms) - 1 - len(own))


def _arms(judgement: Judgement, name: str) -> list[Arm]:
    """Arms of a comparison's line in ascending order of clients, from the comparison's fewest clients to the most. For
    ``TO_POOL``, the fewest and the most are 1 and the pool's size; for ``PAST_POOL``, the pool's size and twice this
    size.
    """
    least, most = (1, POOL) if name.startswith(TO_POOL) else (POOL, 2 * POOL)
    own = by_clients(judgement, LINES[_line(name)], "connections")
    return [arm for arm in own if least <= arm.connections <= most]


def _line(name: str) -> str:
    return name.removeprefix(TO_POOL).removeprefix(PAST_POOL)


def _starving(judgement: Judgement) -> Iterator[str]:
    """Sentences on the clients that got no reply. The first sentence is on kept connections that hold a thread. The
    last sentence is on all other lines of the figure.
    """
    kept = _points(judgement, CONNECTION)
    if not any(point.windows for point in kept):
        yield "Not known: no window has been run."
        return
    starving, served = [point for point in kept if point.starved_clients], ""
    if starving:
        means = sorted(point.mean_us.value / 1000 for point in starving if point.mean_us)
        ends = " to ".join(dict.fromkeys(number(each) for each in (*means[:1], *means[-1:])))
        served = f" The other clients wait {ends} ms on average." if means else ""
    yield f"On kept connections {_without_reply(starving)}{served}"
    others = [each for line in LINES if line != CONNECTION for each in _points(judgement, line) if each.starved_clients]
    yield f"Where a request is a task, or each request has a new connection, {_without_reply(others)}"


def _without_reply(starving: Sequence[Point]) -> str:
    """Text on the mean number of clients without a reply in a window: ``1 of 6, 2 of 7 clients get no reply.``"""
    texts = [f"{point.starved_each:.3g} of {point.arm.connections}" for point in starving]
    if not texts:
        return "every client is served."
    return f"{', '.join(texts) if len(texts) <= 2 else f'from {texts[0]} to {texts[-1]}'} clients get no reply."


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
            "That the same holds for requests that compute: threads of one interpreter compute one at a time.",
            *not_concluded,
        ),
        figure=judgement.sweep.part,
        to_decide=to_decide(judgement, names),
    )


def pictures(seen: Seen) -> Sequence[Picture]:
    """Figure with a panel for each dispatch model, and a line for each connection policy and for gRPC. The figure marks
    starved clients."""
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
    """Measured points of a line, in ascending order of clients."""
    return points_of(judgement, by_clients(judgement, LINES[line], "connections"))
