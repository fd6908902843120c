"""Answers to the four questions of the study. Each answer has a sentence, a number and limits.

``sweeps`` declares the comparisons, and the verdicts on them choose the sentences. In a closed loop N clients have N
requests under way. So the mean latency is N ÷ throughput (Little's law). The answer on growth states this law. The cost
of the lock comes from the part ``lock_waits``, which is measured after the main part.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from experiments.design.arms import Arm
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.show.content import Answer, Seen
from experiments.show.numbers import number
from experiments.show.sentences import to_decide
from experiments.studies.stock import pool_fills
from experiments.studies.stock.locks import lock_details, trade_wait
from experiments.studies.stock.sweeps import COMPUTING, FIGURES, HEADLINE, POOL, clients_of
from experiments.studies.stock.wording import (
    at_work,
    confidence,
    declared,
    executors,
    found,
    grown,
    label,
    mean_us,
    points_of,
    told,
)

TRANSPORTS = (("grpc", "gRPC"), ("sockets", "sockets"))

LITTLE = (
    "That a server slows down. In a closed loop mean latency is the number of clients ÷ throughput (Little's law): on "
    "a full server latency grows by arithmetic alone."
)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to the four questions, in order."""
    judgement = seen.main
    return (
        _sockets_or_grpc(judgement),
        _growth(judgement),
        _trade_or_lookup(judgement, seen.after.get("lock_waits")),
        _past_the_pool(judgement, seen.after.get("past_pool"), seen.after.get("stages")),
    )


def _sockets_or_grpc(judgement: Judgement) -> Answer:
    sockets, grpc, few = "a Lookup on sockets", "one on gRPC", _few(judgement)
    names = ("as_started", "equal_executors", "plain", "protocol", "implementation")
    started_on, on_both = executors(judgement, "as_started"), executors(judgement, "equal_executors")[0]
    started = told(judgement, "as_started", f"on {' and '.join(started_on)}, {sockets}", grpc)
    equal = told(judgement, "equal_executors", f"with {on_both} on both sides, {sockets}", grpc)
    plain = told(judgement, "plain", sockets, "one on a plain grpcio server")
    ours = "our own gRPC server"
    protocol = _within(told(judgement, "protocol", sockets, f"one on {ours}"))
    implementation = _within(told(judgement, "implementation", f"a Lookup on {ours}", "one on grpcio"))
    own, usual = executors(judgement, "executor")
    executor = told(judgement, "executor", f"on gRPC {few}, a Lookup on {own}", f"one on {usual}")
    return Answer(
        question="Does a Lookup take longer on gRPC than on sockets, and is it the protocol or its implementation?",
        sentence=f"{equal} Protocol and client: {protocol} Implementation: {implementation}",
        deciding=found(judgement, *names),
        further=found(judgement, "executor", "our_code"),
        details=(
            f"As the servers were started: {started}",
            f"Beside a server that has none of our code: {plain}",
            f"The executor alone: {executor}",
            "Protocol: both servers are of our code, each with its own client. Implementation: both servers have the "
            "same client.",
            "The transport's own client sends each load, so these times include the client. grpcio's client loads both "
            "gRPC servers: their ratio is nearer to 1 than the ratio of the servers alone.",
            "`compare` sends its load by a lean client, and so gives other ratios. `python -m experiments run "
            "client_kind` measures both.",
        ),
        estimand=(
            f"mean latency of Lookup on one server ÷ on another, {few}. Connections are kept; locking, catalog and "
            f"messages are the same. The ratio is typical of pairs of slices. {confidence(judgement)}"
        ),
        not_concluded=(
            "That the lock makes the difference: both sides hold the same lock.",
            "That the ratio holds for other languages, other sizes of messages, or across a network: this is Python on "
            "one machine, over loopback.",
            "That the highest rates of both servers have this ratio: only an open loop measures capacity.",
        ),
        figure="answers",
        to_decide=to_decide(judgement, names),
    )


def _within(sentence: str) -> str:
    """Sentence with its first letter in lower case, for use after a colon."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def _growth(judgement: Judgement) -> Answer:
    names = ("growth_grpc", "growth_sockets")
    deciding = found(judgement, *names)
    return Answer(
        question="How does latency change as clients are added?",
        sentence=" ".join(grown(judgement, f"growth_{each}", f"on {name}") for each, name in TRANSPORTS),
        deciding=deciding,
        further=found(judgement, "growth_static"),
        details=(
            *(f"On {name}: {each}" for key, name in TRANSPORTS for each in _left(judgement, f"growth_{key}")),
            *_more_answered(deciding),
        ),
        estimand=(
            "mean latency of Lookup with the most clients ÷ with the fewest, on each server. A client sends its next "
            f"request at once after a reply. {confidence(judgement)}"
        ),
        not_concluded=(LITTLE, "How long a request takes at a given rate of arrivals: that needs an open loop."),
        figure="figure_2",
        to_decide=to_decide(judgement, names),
    )


def _left(judgement: Judgement, name: str) -> Iterator[str]:
    """Sentence on a comparison in which the load was the limit under the largest number of clients. The sentence names
    the largest number of clients with which the load was not the limit. If there is no such number, the sentence says
    that the load was the limit with fewer clients too.

    Empty for other comparisons, and where the sweep measured only the least and the largest number of clients.
    """
    judged = judgement.judged.get(name)
    if judged is None or not judged.together:
        return
    few, most = judged.comparison.below, judged.comparison.above.connections
    between = (Arm(few.setting.but(clients=each)) for each in range(few.connections + 1, most))
    measured = [point for point in points_of(judgement, between) if mean_us(judgement, point.arm) is not None]
    free, at_few = list(takewhile(lambda point: not point.load_limited, measured)), mean_us(judgement, few)
    if not measured or at_few is None:
        return
    if free:
        last = free[-1].arm
        times = number((mean_us(judgement, last) or 0.0) / at_few)
        yield (
            f"up to {clients_of(last.connections)} the load is not the limit. There the mean latency is {times} times "
            f"that with {clients_of(few.connections)}; this ratio has no verdict."
        )
    else:
        yield f"with {clients_of(measured[0].arm.connections)} the load is the limit too."


def _more_answered(deciding: tuple[Judged, ...]) -> Iterator[str]:
    """Sentences on servers whose latency grew by a smaller factor than the number of clients. By Little's law such a
    server answers more requests a second. Each sentence has the growth of the throughput."""
    for judged in deciding:
        rulings = judged.as_clients_see_it.rulings
        if rulings and rulings[-1].verdict is Verdict.SUBLINEAR:
            more = judged.comparison.clients_ratio / judged.typical.value
            times = f"{number(more)} times as many requests a second"
            yield f"So {label(judged.comparison.above)} answered about {times}."


def _trade_or_lookup(judgement: Judgement, waits: Judgement | None) -> Answer:
    deciding = found(judgement, "trade")
    apart = ("Another part measures the waits for the lock: `python -m experiments run lock_waits`.",)
    return Answer(
        question="Does a Trade take longer than a Lookup, and what does the lock cost?",
        sentence=" ".join(
            (
                told(judgement, "trade", f"on gRPC {_few(judgement)}, a Trade", "a Lookup"),
                *(() if waits is None else trade_wait(waits)),
            )
        ),
        deciding=deciding,
        details=apart if waits is None else lock_details(waits),
        estimand=(
            f"mean latency of Trade ÷ Lookup on gRPC, {_few(judgement)}, one locking for both. The wait is the time "
            f"from asking for the lock to having it, stamped in the server. {confidence(judgement)}"
        ),
        not_concluded=(
            "That the lock makes the difference between Trade and Lookup: their messages and their work differ too. "
            "The lock explains no more than the wait.",
            "That a wait was for the lock alone: a wait ends only when the thread runs again.",
        ),
        figure="figure_3",
        to_decide=to_decide(judgement, ("trade",)),
    )


def _past_the_pool(judgement: Judgement, waiting: Judgement | None, staged: Judgement | None) -> Answer:
    """Answer to question 4: more clients than threads. The answer is on a Lookup that computes, and on a Lookup that
    waits. With both, the load program is far from its limit.

    ``waiting``: judgement of the part ``past_pool``. ``staged``: judgement of the part ``stages``. Each is None where
    the part was not measured.
    """
    apart = ("Another part measures a Lookup that waits: `python -m experiments run past_pool`.",)
    computing = (
        grown(judgement, name, f"with computing Lookups on {label(Arm(base))}") for name, base in COMPUTING.items()
    )
    second = () if waiting is None else (pool_fills.waiting(waiting),)
    names = () if waiting is None else tuple(each.name for each in waiting.sweep.comparisons if each.family == HEADLINE)
    return Answer(
        question="What happens when there are more clients than threads in the pool?",
        sentence=" ".join((*computing, *second)),
        deciding=found(judgement, *COMPUTING),
        further=found(judgement, "past_pool"),
        details=(
            *(() if staged is None else _without_waiting(judgement, staged)),
            *_pool_means(judgement),
            grown(judgement, "past_pool", f"on a pool of {POOL} threads"),
            *(apart if waiting is None else pool_fills.details(waiting)),
        ),
        estimand=(
            f"mean latency of Lookup with {2 * POOL} clients ÷ with {POOL}, {POOL} threads. The ratio is compared with "
            f"2: queueing that costs further time makes the ratio larger. {confidence(judgement)}"
        ),
        not_concluded=(
            "That requests do not queue: in a closed loop every wait is part of clients ÷ throughput (Little's law).",
            "That a pool's size never matters: it can matter where requests wait for a disk or a server.",
            "That the ratio holds for other computing: passing the interpreter from thread to thread takes time, too.",
        ),
        figure="figure_5",
        to_decide=to_decide(judgement, [*COMPUTING]) or (to_decide(waiting, names) if waiting else None),
    )


def _without_waiting(judgement: Judgement, staged: Judgement) -> Iterator[str]:
    """Sentence on the average number of threads of the pool that work at the same time. Empty where the server stamped
    no stages, and where the comparison ``past_pool`` has no ruling.
    """
    judged = judgement.judged.get("past_pool")
    at_once = at_work(staged, Arm(FIGURES["figure_5"].but(clients=2 * POOL)))
    if judged is not None and judged.rulings and at_once is not None:
        fill = "never fill" if at_once < POOL - 1 else "nearly fill"
        kept = f"{clients_of(2 * POOL)} keep {at_once:.1f} of {POOL} threads at work"
        yield f"Lookups that do not wait {fill} the pool: {kept}."


def _pool_means(judgement: Judgement) -> Iterator[str]:
    """Sentence on two mean latencies: with as many clients as threads, and with twice as many clients. The means are
    over the blocks in which both latencies were measured.
    """
    judged = judgement.judged.get("past_pool")
    if judged is None:
        return
    of_ratio = replace(judgement, blocks=tuple(each for each in judgement.blocks if each.number in judged.log_ratios))
    means = [(n, mean_us(of_ratio, Arm(FIGURES["figure_5"].but(clients=n)))) for n in (POOL, 2 * POOL)]
    texts = [f"{number(mean / 1000)} ms with {clients_of(n)}" for n, mean in means if mean is not None]
    if len(texts) == len(means):
        yield f"On average a Lookup takes {' and '.join(texts)}."


def _few(judgement: Judgement) -> str:
    """Text on the fewest clients of the sweep: ``with 1 client``. Servers are compared under this load."""
    comparison = declared(judgement, "trade")
    return f"with {clients_of(comparison.below.connections if comparison else 1)}"
