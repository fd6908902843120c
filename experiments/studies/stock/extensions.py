"""Answers of the parts beyond the document: a function for each part, from its measurements to its answers.

An answer has a sentence for each comparison. The comparison's verdict chooses the sentence. An answer with over two
comparisons begins with the number of comparisons for each verdict, and with the largest decided difference. The answers
of the parts ``offered_load``, ``lock_waits`` and ``stages`` state numbers, and say that these parts ask for no verdict.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from statistics import fmean

from experiments.design.arms import Arm, Comparison
from experiments.judge.points import Point, points
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.observed import ALL
from experiments.show.content import Answer, Seen
from experiments.show.figures.offered_load import SATURATED
from experiments.show.numbers import counted, number
from experiments.show.sentences import to_decide
from experiments.studies.stock.locks import lock_details, lock_waits
from experiments.studies.stock.sweeps import GRPC, HEADLINE, SOCKETS, STAGED, clients_of
from experiments.studies.stock.wording import (
    by_transport,
    confidence,
    counted_stages,
    counted_windows,
    found,
    label,
    mean_us,
    server,
    told,
)

FEW = 2
"""Largest number of comparisons for which an answer has only the comparisons' sentences. An answer on more comparisons
begins with the count of verdicts."""

NO_VERDICT = "These numbers have no verdict."

ONE_MACHINE = "That the result holds for other work in a request, or on another machine."

CLOSED = "How long a request takes at a given rate of arrivals: in a closed loop latency is clients ÷ throughput."


Said = Callable[[Comparison], tuple[str, str]]
"""Function that gives two texts for a comparison: for its upper arm and for its lower arm. Both texts stand in the
middle of a sentence.
"""


def socket_trade(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the time of a Trade on sockets, compared with a Lookup on sockets and with a Trade on gRPC."""
    return (
        *told_of(
            seen.main,
            "Does a Trade take longer than a Lookup on sockets?",
            lambda of: (f"{where(of)}, a Trade", "a Lookup"),
            "That the lock makes the difference: messages and work differ too.",
            factor="mix",
        ),
        *told_of(
            seen.main,
            "Does a Trade take longer on gRPC than on sockets, with one executor on both?",
            lambda of: (
                f"with {clients_of(of.above.connections)} and the {of.above.setting.executor}, a Trade on sockets",
                "one on gRPC",
            ),
            "That the lock makes the difference: both sides hold the same lock.",
            factor="transport",
        ),
    )


def pool_by_clients(seen: Seen) -> tuple[Answer, ...]:
    """Answer on the effect of the pool's size on the latency of a Lookup."""
    return told_of(
        seen.main,
        "Does a larger pool answer a Lookup sooner?",
        lambda of: (f"{where(of)}, a Lookup with {_threads(of.above)}", f"one with {_threads(of.below)}"),
        "That a pool's size never matters: it can matter where requests wait for a disk or a server.",
    )


def updater(seen: Seen) -> tuple[Answer, ...]:
    """Answers on requests with and without the price updater."""
    return told_of(
        seen.main,
        "Does the price updater slow requests down on {}?",
        lambda of: (f"{where(of)}, a request beside the updater", "one without it"),
        "That updates cost as much at other rates: here one updater sends some fifty a second.",
    )


def lock_strategies(seen: Seen) -> tuple[Answer, ...]:
    """Answer on every locking strategy, compared with the mutex."""
    return told_of(
        seen.main,
        "Which locking strategy answers soonest?",
        lambda of: (f"{where(of)}, a request under {of.above.setting.text('locking')}", "one under the mutex"),
        ONE_MACHINE,
    )


def client_kind(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the client's share of the latency, and on sockets ÷ gRPC (question 1) under the lean client. This
    client adds little latency."""
    return (
        *told_of(
            seen.main,
            "How much of the latency is spent in the client?",
            lambda of: (f"{where(of)}, a Lookup by the lean client", "one by the transport's own client"),
            "That the rest is the server's: the lean client and the kernel take time too.",
            factor="client",
        ),
        *told_of(
            seen.main,
            "Does a Lookup take longer on gRPC than on sockets, seen by the lean client?",
            lambda of: (
                f"with {clients_of(of.above.connections)} of the lean kind, a Lookup on {server(of.above)}",
                f"one on {server(of.below)}",
            ),
            "What users of grpcio's own client see: that is question 1 of the main part.",
            factor="transport",
            further=tuple(_both_kinds(seen.main)),
        ),
    )


def _both_kinds(judgement: Judgement) -> Iterator[str]:
    """Sentence on sockets ÷ gRPC by each kind of client. The sentence gives the reason why ``compare`` and the main
    part have different ratios."""
    means = {
        kind: [mean_us(judgement, Arm(base.but(client=kind))) for base in (SOCKETS, GRPC)]
        for kind in ("library", "lean")
    }
    ratios = {kind: one / other for kind, (one, other) in means.items() if one and other}
    if len(ratios) == 2:
        own, lean = (number(ratios[kind]) for kind in ("library", "lean"))
        yield (
            f"With 1 client, servers as started, sockets ÷ gRPC is {own} by the transports' own clients, and {lean} "
            "by the lean client. The main part uses the transports' own clients, and `compare` uses the lean client: "
            "so their ratios differ."
        )


def dispatch(seen: Seen) -> tuple[Answer, ...]:
    """Answers on a task for each connection, compared with a task for each request. The details have the clients that
    got no reply."""
    return (
        *told_of(
            seen.main,
            "Is it better that a connection holds a thread, or that each request takes a thread?",
            lambda of: (
                f"{where(of)} and {_threads(of.above)}, a Lookup where a connection holds its thread",
                "one where each request is a task",
            ),
            "That Lookups are slow with more connections than threads: these times lack the clients without a reply.",
            factor="dispatch",
            further=tuple(_starved(seen.main)),
        ),
        *told_of(
            seen.main,
            "Where a connection holds its thread, does latency stay the same up to the pool's size?",
            lambda of: (
                f"{clients_of(of.above.connections)} on {_threads(of.above)}",
                clients_of(of.below.connections),
            ),
            CLOSED,
            factor="clients",
        ),
    )


def connection_policy(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the cost of a new connection for each request, compared with kept-alive connections."""
    return told_of(
        seen.main,
        "What does a new connection for each request cost on {}?",
        lambda of: (f"{where(of)}, a Lookup on a new connection", "one on a kept connection"),
        "What connecting costs across a network: over loopback a round trip takes microseconds.",
    )


def offered_load(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the highest rate that each server kept up with, and on the rate of replies at every rate that was
    tried."""
    every = points(seen.main.sweep, seen.main.blocks)
    return tuple(_offered(seen.main, arms, every) for arms in by_transport(seen.main.sweep.arms))


def lock_costs(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``lock_waits``: the time for which requests wait for the catalog's lock."""
    details = lock_details(seen.main)
    first = details[0] if lock_waits(seen.main) else f"Not known. {details[0]}"
    return (_shown("How long does a request wait for the catalog's lock?", first, details[1:]),)


def stages(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the time for which a Lookup waits for a thread."""
    return tuple(_queueing(seen.main, arms) for arms in by_transport(seen.main.sweep.arms))


def told_of(
    judgement: Judgement,
    question: str,
    said: Said,
    *not_concluded: str,
    factor: str | None = None,
    further: tuple[str, ...] = (),
) -> tuple[Answer, ...]:
    """Answers to a question, from the headline comparisons of the part. A question with ``{}`` is asked of each
    transport.

    ``said``: gives the texts for both arms of a comparison. ``factor``: a factor, such as ``clients``; only comparisons
    of arms that differ in this factor are used. ``further``: sentences at the end of the details of each answer.
    """
    asked: dict[str, list[Comparison]] = {}
    for each in judgement.sweep.comparisons:
        if each.family == HEADLINE and (factor is None or factor in each.differ):
            asked.setdefault(question.format(label(each.above)), []).append(each)
    answers = []
    for text, own in asked.items():
        names = [each.name for each in own]
        sentences = {each.name: told(judgement, each.name, *said(each)) for each in own}
        deciding = found(judgement, *names)
        sentence, details = " ".join(sentences.values()), further
        if len(own) > FEW:
            largest = [sentences[each.comparison.name] for each in _largest(deciding)]
            sentence = " ".join((_tally(judgement, names), *(f"The largest difference: {text}" for text in largest)))
            details = (*sentences.values(), *further)
        estimand = f"ratio of mean latencies, typical of pairs. {confidence(judgement)}"
        undecided = to_decide(judgement, names)
        answers.append(Answer(text, sentence, deciding, (), details, estimand, not_concluded, to_decide=undecided))
    return tuple(answers)


def _tally(judgement: Judgement, names: Sequence[str]) -> str:
    """Sentence that counts verdicts: ``Of 4 comparisons 2 are FASTER, 1 is EQUIVALENT, 1 is INCONCLUSIVE.``"""
    if judgement.look is None:
        return f"{len(found(judgement, *names))} of {len(names)} comparisons have numbers; none has a verdict yet."
    verdicts = Counter(
        judgement.judged[name].verdict if name in judgement.judged else Verdict.INCONCLUSIVE for name in names
    )
    counts = [f"{count} {'is' if count == 1 else 'are'} {verdict.value}" for verdict, count in verdicts.most_common()]
    return f"Of {len(names)} comparisons {', '.join(counts)}."


def _largest(deciding: Iterable[Judged]) -> tuple[Judged, ...]:
    """Of the comparisons with the verdict FASTER or SLOWER, the comparison with the ratio farthest from 1. Empty
    without such a comparison.
    """
    different = [each for each in deciding if each.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    return (max(different, key=lambda each: abs(math.log(each.typical.value))),) if different else ()


def where(of: Comparison) -> str:
    """Text on a comparison's transport and number of clients."""
    return f"on {label(of.above)} with {clients_of(of.above.connections)}"


def _threads(arm: Arm) -> str:
    return counted(arm.setting.whole("workers"), "thread")


def _starved(judgement: Judgement) -> Iterator[str]:
    for arm in judgement.sweep.arms:
        windows = counted_windows(judgement, arm)
        if windows and arm.connections > arm.setting.whole("workers"):
            starving = sum(window.starved_clients > 0 for window in windows)
            how = "A connection holds its thread" if arm.setting["dispatch"] == "connection" else "A request is a task"
            yield (
                f"{how}, {clients_of(arm.connections)}, {_threads(arm)}: in {starving} of {len(windows)} windows some "
                "client got no reply."
            )


def _offered(judgement: Judgement, arms: Sequence[Arm], every: Mapping[tuple[Arm, str], Point]) -> Answer:
    """Answer on one server in an open loop: the highest rate with which the server kept up. The server also kept up
    with every lower rate that was tried. ``every``: points of the arms.
    """
    details, kept_up = list[str](), dict[float, bool | None]()  # None: not known
    for rate_hz, arm in sorted({float(arm.setting.text("rate_hz")): arm for arm in arms}.items(), key=itemgetter(0)):
        windows, due = counted_windows(judgement, arm), f"{rate_hz:,.0f}"
        if not windows:
            details.append(f"At {due} a second no window counts.")
            kept_up[rate_hz] = None
            continue
        answered = fmean(window.answered_hz for window in windows)
        kept_up[rate_hz] = answered >= SATURATED * rate_hz
        point = every.get((arm, ALL))
        p99_us = point.percentile_us(99) if point is not None and kept_up[rate_hz] and not point.refusals else None
        tail = f", 99 % of them within {number(p99_us / 1000)} ms" if p99_us is not None else ""
        details.append(f"Of {due} requests due a second, {answered:,.0f} were answered{tail}.")
    name, kept = label(arms[0]), list(takewhile(kept_up.__getitem__, kept_up))
    sentence = "Not known: no block has been run." if not judgement.blocks else "Not known: no window counts."
    if kept:
        last = ", the highest of the rates tried" if len(kept) == len(arms) else ""
        sentence = f"{name} kept up with {kept[-1]:,.0f} requests a second{last}."
    elif next(iter(kept_up.values())) is False:
        sentence = f"{name} kept up with none of the rates."
    return _shown(
        f"How many requests a second does {name} keep up with?",
        sentence,
        details,
        "The highest rate that a server can serve: only these rates were tried, on 16 connections.",
    )


def _queueing(judgement: Judgement, arms: Sequence[Arm]) -> Answer:
    """Answer on the time that a Lookup waits for a thread, and on the whole time of a Lookup in the server."""
    sentences = []
    for arm in (each for each in STAGED if each in arms):
        if seen := counted_stages(judgement, arm, "lookup").values():
            wait_us = fmean(each.queue_wait.mean_us for each in seen)
            total_us = fmean(each.total.mean_us for each in seen)
            ran = counted(max(each.threads for each in seen), "thread")
            how = f"With {clients_of(arm.connections)} and {counted(arm.setting.whole('workers'), 'worker')}"
            waits = f"a Lookup waits {number(wait_us)} µs for a thread, of {number(total_us)} µs in the server."
            sentences.append(f"{how} {waits} At most {ran} ran Lookups in a block.")
    return _shown(
        f"How long does a Lookup wait for a thread on {label(arms[0])}?",
        sentences[-1] if sentences else "Not known: no stage was stamped.",
        sentences[:-1],
        "That the pool causes a wait: threads that share a core wait for each other, too.",
    )


def _shown(question: str, sentence: str, details: Iterable[str], *not_concluded: str) -> Answer:
    """Answer that states numbers and has no verdict."""
    return Answer(question, sentence, (), details=(*details, NO_VERDICT), not_concluded=not_concluded)
