"""Answers of the further parts, beyond the document: a function for each part, from its measurements to its answers.

An answer has a sentence for each comparison, by its verdict. With many comparisons it begins with the count of each
verdict and the largest decided difference. Parts without verdicts (``offered_load``, ``lock_waits``, ``stages``) state
their numbers, and that they have no verdict.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from experiments.design.arms import Arm, Comparison
from experiments.judge import points
from experiments.judge.gates import arm_refusals
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.observed import ALL
from experiments.results.stages import StageSummary
from experiments.show.content import Answer, Seen
from experiments.show.numbers import counted, number
from experiments.show.sentences import to_decide
from experiments.studies.stock.locks import lock_details, lock_waits
from experiments.studies.stock.sweeps import GRPC, SOCKETS, STAGED, clients_of
from experiments.studies.stock.wording import confidence, counted_windows, found, label, mean_us, server, told

FEW = 2
"""Most comparisons that an answer tells one by one; with more the count of verdicts comes first."""

NO_VERDICT = "No verdict is asked of these numbers."

KEPT_UP = 0.98
"""Share of the due requests that a server must answer to have kept up."""

ONE_MACHINE = "That it holds for other work in a request, or on another machine."

CLOSED = "How long a request takes at a given rate of arrivals: in a closed loop latency is clients ÷ throughput."


Said = Callable[[Comparison], tuple[str, str]]
"""Words for the two sides of a ratio, within a sentence."""


def socket_trade(seen: Seen) -> tuple[Answer, ...]:
    """Answers on Trade on sockets: beside Lookup, and beside Trade on gRPC."""
    return (
        _answer(
            seen.main,
            "Does a Trade take longer than a Lookup on sockets?",
            _headline(seen.main, "mix"),
            lambda of: (f"{where(of)}, a Trade", "a Lookup"),
            ("That the lock makes the difference: messages and work differ too.",),
        ),
        _answer(
            seen.main,
            "Does a Trade take longer on gRPC than on sockets, with one executor on both?",
            _headline(seen.main, "transport"),
            lambda of: (
                f"with {clients_of(of.above.connections)} and the {of.above.setting.executor}, a Trade on sockets",
                "one on gRPC",
            ),
            ("That the lock makes the difference: both sides hold the same one.",),
        ),
    )


def pool_by_clients(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the pool's size."""

    def said(of: Comparison) -> tuple[str, str]:
        return f"{where(of)}, a Lookup with {_threads(of.above)}", f"one with {_threads(of.below)}"

    question = "Does a larger pool answer a Lookup sooner?"
    not_concluded = "That a pool's size never matters: requests that wait for a disk or another server differ."
    return (_answer(seen.main, question, _headline(seen.main), said, (not_concluded,)),)


def updater(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the price updater beside the clients."""
    return each_transport(
        seen,
        "Does the price updater slow requests down on {}?",
        lambda of: (f"{where(of)}, a request beside the updater", "one without it"),
        ("That updates cost as much at other rates: here some fifty a second, from one updater.",),
    )


def lock_strategies(seen: Seen) -> tuple[Answer, ...]:
    """Answers on every locking strategy beside the mutex."""

    def said(of: Comparison) -> tuple[str, str]:
        return f"{where(of)}, a request under {of.above.setting.text('locking')}", "one under the mutex"

    question = "Which locking strategy answers soonest?"
    return (_answer(seen.main, question, _headline(seen.main), said, (ONE_MACHINE,)),)


def client_kind(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the share of the client in the times, and question 1 by a client that adds little."""
    return (
        _answer(
            seen.main,
            "How much of the latency is the client's own?",
            _headline(seen.main, "client"),
            lambda of: (f"{where(of)}, a Lookup by the lean client", "one by the transport's own"),
            ("That the rest is the server's: the lean client and the kernel take time too.",),
        ),
        _answer(
            seen.main,
            "Does a Lookup take longer on gRPC than on sockets, seen by the lean client?",
            _headline(seen.main, "transport"),
            lambda of: (
                f"with {clients_of(of.above.connections)}, the lean one, a Lookup on {server(of.above)}",
                f"one on {server(of.below)}",
            ),
            ("What users of grpcio's own client see: that is question 1 of the main part.",),
            tuple(_both_kinds(seen.main)),
        ),
    )


def _both_kinds(judgement: Judgement) -> Iterator[str]:
    """Sentences on sockets ÷ gRPC by either kind of client, which say why ``compare`` and the main part have other
    ratios."""
    means = {
        kind: [mean_us(judgement, Arm(base.but(client=kind))) for base in (SOCKETS, GRPC)]
        for kind in ("library", "lean")
    }
    ratios = {kind: one / other for kind, (one, other) in means.items() if one and other}
    if len(ratios) == 2:
        own, lean = (number(ratios[kind]) for kind in ("library", "lean"))
        yield (
            f"With 1 client, servers as started, sockets ÷ gRPC is {own} by the transports' own clients. By the lean "
            f"one it is {lean}. The main part loads by the former, and `compare` by the latter: so their ratios differ."
        )


def dispatch(seen: Seen) -> tuple[Answer, ...]:
    """Answers on a task for each connection beside one for each request; past the pool, on clients without a reply."""
    answer = _answer(
        seen.main,
        "Is it better that a connection holds a thread, or that each request takes one?",
        _headline(seen.main, "dispatch"),
        lambda of: (
            f"{where(of)} and {_threads(of.above)}, a Lookup where a connection holds its thread",
            "one where each request is a task",
        ),
        ("That past the pool a connection's Lookup is slow: who gets no reply has no time in these numbers.",),
        tuple(_starved(seen.main)),
    )
    growth = _answer(
        seen.main,
        "Where a connection holds its thread, does latency stay the same up to the pool's size?",
        _headline(seen.main, "clients"),
        lambda of: (f"{clients_of(of.above.connections)} on {_threads(of.above)}", clients_of(of.below.connections)),
        (CLOSED,),
    )
    return answer, growth


def connection_policy(seen: Seen) -> tuple[Answer, ...]:
    """Answers on a new connection for each request."""
    return each_transport(
        seen,
        "What does a new connection for each request cost on {}?",
        lambda of: (f"{where(of)}, a Lookup on a new connection", "one on a kept connection"),
        ("What connecting costs across a network: over loopback a round trip takes microseconds.",),
    )


def offered_load(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the highest rate that each server kept up with, and on its replies past that."""
    transports = dict.fromkeys(arm.setting.text("transport") for arm in seen.main.sweep.arms)
    every = points.points(seen.main.sweep, seen.main.blocks)
    return tuple(_offered(seen.main, transport, every) for transport in transports)


def lock_costs(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``lock_waits``: the time for which requests wait for the catalog's lock."""
    details = lock_details(seen.main)
    first = details[0] if lock_waits(seen.main) else f"Not known. {details[0]}"
    return (_shown("How long does a request wait for the catalog's lock?", first, details[1:]),)


def stages(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the time for which a Lookup waits for a thread."""
    transports = dict.fromkeys(arm.setting.text("transport") for arm in seen.main.sweep.arms)
    return tuple(_queueing(seen.main, transport) for transport in transports)


def each_transport(seen: Seen, question: str, said: Said, not_concluded: tuple[str, ...]) -> tuple[Answer, ...]:
    """Answers to the same question for each transport."""
    own: dict[str, list[Comparison]] = {}
    for each in _headline(seen.main):
        own.setdefault(label(each.above), []).append(each)
    return tuple(_answer(seen.main, question.format(name), own[name], said, not_concluded) for name in own)


def _answer(
    judgement: Judgement,
    question: str,
    own: Sequence[Comparison],
    said: Said,
    not_concluded: tuple[str, ...],
    further: tuple[str, ...] = (),
) -> Answer:
    """The answer of some comparisons: all of them told, or the tally and the largest first."""
    names = [each.name for each in own]
    sentences = {each.name: told(judgement, each.name, *said(each)) for each in own}
    deciding = found(judgement, *names)
    sentence, details = " ".join(sentences.values()) or "Not known: the sweep has no comparison for it.", further
    if len(own) > FEW:
        largest = [sentences[each.comparison.name] for each in _largest(deciding)]
        sentence = " ".join((_tally(judgement, names), *(f"The largest: {text}" for text in largest)))
        details = (*sentences.values(), *further)
    return Answer(
        question=question,
        sentence=sentence,
        deciding=deciding,
        details=details,
        estimand=f"ratio of mean latencies, typical of pairs. {confidence(judgement)}",
        not_concluded=not_concluded,
        to_decide=to_decide(judgement, names),
    )


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
    """The ratio that is farthest from 1 among those with a verdict; None without a verdict."""
    different = [each for each in deciding if each.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    return (max(different, key=lambda each: abs(math.log(each.typical.value))),) if different else ()


def _headline(judgement: Judgement, factor: str | None = None) -> list[Comparison]:
    """Headline comparisons. With a factor given, only comparisons whose arms differ in it."""
    own = [each for each in judgement.sweep.comparisons if each.family == "headline"]
    return [each for each in own if factor is None or factor in each.differ]


def where(of: Comparison) -> str:
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


def _offered(judgement: Judgement, transport: str, every: Mapping[tuple[Arm, str], points.Point]) -> Answer:
    arms = [arm for arm in judgement.sweep.arms if arm.setting["transport"] == transport]
    kept_up: list[Arm] = []
    details, tried, open_still = [], 0, True
    for arm in sorted(arms, key=_rate_hz):
        windows, due = counted_windows(judgement, arm), f"{_rate_hz(arm):,.0f}"
        if not windows:
            details.append(f"Nothing is said of {due} a second: no window of it counts.")
            continue
        tried += 1
        answered = sum(window.answered_hz for window in windows) / len(windows)
        keeps_up = answered >= KEPT_UP * _rate_hz(arm)
        open_still = open_still and keeps_up
        kept_up += [arm] if open_still else []
        point = every.get((arm, ALL))
        p99_us = point.percentile_us(99) if point is not None and keeps_up and not point.refusals else None
        tail = f", 99 % of them within {number(p99_us / 1000)} ms" if p99_us is not None else ""
        details.append(f"Of {due} due a second {answered:,.0f} were answered{tail}.")
    name = label(arms[0])
    sentence = "Not known: no block has been run." if not judgement.blocks else "Not known: no window of it counts."
    if kept_up:
        last = ", the highest of the rates tried" if len(kept_up) == len(arms) else ""
        sentence = f"{name} kept up with {_rate_hz(kept_up[-1]):,.0f} requests a second{last}."
    elif tried:
        sentence = f"{name} kept up with none of the rates."
    return _shown(
        f"How many requests a second does {name} keep up with?",
        sentence,
        details,
        "The highest rate that a server can serve: only these rates were tried, by 16 connections.",
    )


def _rate_hz(arm: Arm) -> float:
    level = arm.setting["rate_hz"]
    return float(level) if isinstance(level, int | float) else 0.0


def _queueing(judgement: Judgement, transport: str) -> Answer:
    """Answer on a Lookup's wait for a thread, beside its whole time in the server."""
    sentences = []
    arms = sorted(
        (arm for arm in STAGED if arm in judgement.sweep.arms and arm.setting["transport"] == transport),
        key=lambda arm: arm.connections,
    )
    for arm in arms:
        seen = [lookups for each in _stages(judgement, arm) if (lookups := each.get("lookup")) is not None]
        waits = [(each.queue_wait.mean_us, each.total.mean_us) for each in seen]
        if waits:
            wait, total = (sum(each) / len(waits) for each in zip(*waits, strict=True))
            ran = counted(max(each.threads for each in seen), "thread")
            workers = counted(arm.setting.whole("workers"), "worker")
            sentences.append(
                f"With {clients_of(arm.connections)} and {workers} a Lookup waits {number(wait)} µs for a thread, of "
                f"{number(total)} µs in the server. Up to {ran} ran them in a block."
            )
    return _shown(
        f"How long does a Lookup wait for a thread on {label(arms[0])}?",
        sentences[-1] if sentences else "Not known: no stage was stamped.",
        sentences[:-1],
        "That a wait is the pool's doing: threads that share a core wait for each other.",
    )


def _stages(judgement: Judgement, arm: Arm) -> Iterator[Mapping[str, StageSummary]]:
    place = judgement.sweep.arms.index(arm)
    for block in judgement.blocks:
        if not any(arm_refusals(judgement.sweep, block, arm)):
            yield block.arms[place].stages


def _shown(question: str, sentence: str, details: Iterable[str], not_concluded: str | None = None) -> Answer:
    """Answer with numbers and without a verdict."""
    return Answer(
        question=question,
        sentence=sentence,
        deciding=(),
        details=(*details, NO_VERDICT),
        not_concluded=() if not_concluded is None else (not_concluded,),
    )
