"""The four questions of seed 004, answered from the rows: a number, its interval, a verdict, and what may not be said.

Rules: the comparisons are those declared in ``comparisons``; every sentence about a result is chosen by a predicate on
the data; where a part was not run, the answer says so. In a closed loop N clients have N requests under way, so by
Little's law latency is N ÷ throughput: growth with the clients is described with that beside it, never as a finding of
its own. Left out: the claims of the original, which are in ``claims``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments import stats
from experiments.figures.style import look
from experiments.gates.refusal import Refusal
from experiments.results import ALL, Row
from experiments.studies.stock.comparisons import Judged, by_block, judge, latency_by_block, runs_refused
from experiments.studies.stock.declared import Cell, Levels, clients_text, levels
from experiments.studies.stock.growth import growth_details
from experiments.studies.stock.wording import Phrases, interval_text, number, percent, refusal_text, sentence

NOT_RUN = "The runs that this needs are not in this folder of results."


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, answered."""

    number: int
    question: str
    estimand: str
    """What the number is a number of."""
    headline: str
    """The answer, in a sentence."""
    details: tuple[str, ...]
    """Further results, a sentence each."""
    comparisons: tuple[Judged, ...]
    deciding: tuple[Judged, ...]
    """Those of the comparisons that are the answer."""
    not_concluded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockCost:
    """What was waited for the lock under one strategy, in µs over runs, and as a share of the same runs' latency.

    Waits are skewed: theirs and the share's are geometric means, so typical; the latency's is arithmetic.
    """

    transport: str
    locking: str
    request: str
    clients: int
    wait_us: stats.Estimate | None
    """None: this request takes no lock under this strategy, so the measured waits are 0."""
    latency_us: stats.Estimate
    share: stats.Estimate | None
    refused: tuple[Refusal, ...]
    """What gates have against these runs."""
    load_limited: bool
    """In any of them the load side was the limit."""


def answers(rows: Sequence[Row]) -> tuple[Answer, ...]:
    """The four answers, in order."""
    judged, at = judge(rows), levels(rows)
    return (
        _sockets_or_grpc(judged, at),
        _growth(rows, judged, at),
        _trade_or_lookup(rows, judged, at),
        _beyond_the_pool(rows, judged, at),
    )


def _sockets_or_grpc(judged: Mapping[str, Judged], at: Levels) -> Answer:
    compared = _found(judged, *(f"sockets_to_grpc_{n}" for n in at.between))
    when = f"with {clients_text(at.few)}"
    phrases = Phrases(
        equivalent=f"Sockets and gRPC answer a Lookup in the same time {when}, to within 5 %",
        faster=f"Sockets answer a Lookup in less time than gRPC {when}",
        slower=f"Sockets answer a Lookup in more time than gRPC {when}",
        undecided=f"Whether sockets or gRPC answer a Lookup sooner {when} is not decided",
    )
    return Answer(
        1,
        "How does the latency of Lookup on sockets compare with gRPC?",
        "Mean latency of Lookup on sockets ÷ on gRPC, in the same block: same executor, pool size, locking, catalog "
        "and messages, connections kept. The answer is the ratio at the fewest clients; the others stand below it.",
        _headline(judged, f"sockets_to_grpc_{at.few}", phrases),
        tuple(_by_lean_client(judged)),
        compared,
        _found(judged, f"sockets_to_grpc_{at.few}"),
        (
            "That the lock makes the difference: both sides have the same lock.",
            "That the same holds for other languages, other gRPC implementations, messages of other sizes, or across a "
            "network: this is Python on one machine, over loopback.",
        ),
    )


def _by_lean_client(judged: Mapping[str, Judged]) -> Iterator[str]:
    """Where it was run: the same with a client that adds little of its own."""
    for name, one in judged.items():
        if name.startswith("lean_sockets_to_grpc_"):
            clients = clients_text(one.contrast.above.clients)
            phrases = Phrases(
                equivalent=f"Seen by the lean client, {clients}, the two take the same time, to within 5 %",
                faster=f"Seen by the lean client, {clients}, sockets take less time",
                slower=f"Seen by the lean client, {clients}, sockets take more time",
                undecided=f"Seen by the lean client, {clients}, it is not decided which takes less time",
            )
            yield sentence(one, phrases)


def _growth(rows: Sequence[Row], judged: Mapping[str, Judged], at: Levels) -> Answer:
    servers = (("gRPC", "figure_2"), ("sockets", "figure_4"))
    sentences = [_headline(judged, f"growth_{part}_lookup", _growth_phrases(server, at)) for server, part in servers]
    compared = _found(judged, *(f"growth_{part}_lookup" for _, part in servers))
    run = [text for text in sentences if text != NOT_RUN]
    return Answer(
        2,
        "How does latency change as the number of clients grows?",
        f"Mean latency of Lookup with {clients_text(at.most)} ÷ with {clients_text(at.few)}, for each server; and the "
        "slope of a straight line through the means, per client. Clients send again as soon as they are answered.",
        " ".join(run) or NOT_RUN,
        tuple(
            text
            for server, part in servers
            for text in growth_details(rows, server, part, judged.get(f"growth_{part}_lookup"))
        ),
        compared,
        compared,
        (
            "That a server slows down under load. N waiting clients have N requests under way, so latency is N ÷ "
            "throughput (Little’s law): once throughput no longer grows, each further client adds its share by "
            "arithmetic, whatever the threads do.",
            "How long a request takes at a given rate of arrivals: that needs an open loop.",
        ),
    )


def _growth_phrases(server: str, at: Levels) -> Phrases:
    to = f"from {clients_text(at.few)} to {at.most}"
    return Phrases(
        equivalent=f"On {server} the latency of Lookup stays the same {to}, to within 5 %",
        faster=f"On {server} the latency of Lookup falls {to}",
        slower=f"On {server} the latency of Lookup grows {to}",
        undecided=f"Whether the latency of Lookup on {server} grows {to} is not decided",
    )


def _trade_or_lookup(rows: Sequence[Row], judged: Mapping[str, Judged], at: Levels) -> Answer:
    when = f"on gRPC with {clients_text(at.few)}"
    phrases = Phrases(
        equivalent=f"Trade and Lookup take the same time {when}, to within 5 %",
        faster=f"Trade takes less time than Lookup {when}",
        slower=f"Trade takes more time than Lookup {when}",
        undecided=f"Whether Trade takes longer than Lookup {when} is not decided",
    )
    return Answer(
        3,
        "How does Lookup compare with Trade, and what does the lock cost?",
        "Mean latency of Trade ÷ Lookup on gRPC, in the same block, same mutex; and the time from asking for the "
        "catalog’s lock to having it, measured inside the server under each locking strategy.",
        _headline(judged, f"trade_to_lookup_{at.few}", phrases),
        tuple(_lock_details(lock_costs(rows))),
        _found(judged, *(f"trade_to_lookup_{n}" for n in at.between)),
        _found(judged, f"trade_to_lookup_{at.few}"),
        (
            "That a difference between Trade and Lookup is the lock’s doing: their messages and their work differ too. "
            "The measured wait bounds what the lock can explain.",
            "That a wait was spent queueing for the lock alone: it ends when the thread runs again, so it holds time "
            "in which the interpreter or the machine ran something else. Timing it costs about 1 µs a request.",
        ),
    )


def lock_costs(rows: Sequence[Row], part: str = "locks") -> tuple[LockCost, ...]:
    """The lock wait of every strategy and request type in that part; waits and shares as geometric means over runs."""
    cells = sorted(
        {
            (row.transport, row.request, row.clients, row.locking)
            for row in rows
            if row.part == part and row.request != ALL
        }
    )
    found = []
    for transport, request, clients, locking in cells:
        cell = Cell(part, request, clients, transport=transport, locking=locking)
        own = [row for row in rows if cell.holds(row)]
        waits = by_block(own, cell, lambda row: row.lock_wait_us_mean or None)
        latencies = latency_by_block(own, cell)
        if not latencies:
            continue
        shares = [waits[block] / latencies[block] for block in waits.keys() & latencies.keys()]
        found.append(
            LockCost(
                transport,
                locking,
                request,
                clients,
                stats.geometric_interval(list(waits.values())) if waits else None,
                stats.mean_interval(list(latencies.values())),
                stats.geometric_interval(shares) if shares else None,
                runs_refused(rows, [own]),
                any(row.load_limited for row in own),
            )
        )
    return tuple(found)


def _lock_details(costs: Sequence[LockCost]) -> Iterator[str]:
    for cost in costs:
        if cost.locking == "mutex" and cost.wait_us is not None and cost.share is not None:
            kind = cost.request.capitalize()
            where = f"Under the mutex ({cost.transport}, {clients_text(cost.clients)}, Lookup and Trade mixed)"
            if cost.refused:
                yield f"{where}, how long a {kind} waits is not decided ({refusal_text(cost.refused)})."
                continue
            yield (
                f"{where}, a {kind} typically waits {interval_text(cost.wait_us, 'µs')} for the lock, "
                f"{number(100 * cost.share.value)} % of its latency (geometric means over runs of each run’s mean)."
            )
    waited = [(cost.share, cost) for cost in costs if cost.share is not None]
    kept = [(share, cost) for share, cost in waited if not cost.refused]
    if kept:
        share, dearest = max(kept, key=lambda each: each[0].value)
        which = "all strategies" if len(kept) == len(waited) else "the strategies whose runs no gate refuses"
        yield (
            f"Of {which}, the largest typical share of latency that was waiting for a lock is "
            f"{interval_text(percent(share), '%')}: {dearest.locking}, {dearest.request.capitalize()}."
        )


def _beyond_the_pool(rows: Sequence[Row], judged: Mapping[str, Judged], at: Levels) -> Answer:
    to = f"from {at.at_pool} to {clients_text(at.farthest)} with {at.pool} threads"
    phrases = Phrases(
        equivalent=f"Latency grows in proportion to the clients {to}",
        faster=f"Latency grows by less than in proportion {to}",
        slower=f"Latency grows by more than in proportion {to}",
        undecided=f"Whether latency grows by more than in proportion {to} is not decided",
    )
    return Answer(
        4,
        "What happens when there are more clients than threads in the static pool?",
        f"Mean latency ÷ clients at {at.farthest} clients over the same at {at.at_pool}, sockets, pool of {at.pool}: 1 "
        "is growth in proportion to the clients, which the closed loop alone brings about; a cost of queueing for a "
        f"thread would lift it above 1, and a jump would show from {at.at_pool} to {clients_text(at.past_pool)}.",
        _headline(judged, "past_pool", phrases),
        tuple(_pool_details(rows, judged, at)),
        _found(judged, "past_pool", "pool_step", "pool_size"),
        _found(judged, "past_pool"),
        (
            "That requests do not queue: those beyond the pool wait, but in a closed loop each wait is part of N ÷ "
            "throughput.",
            "That the size of a pool never matters. A dictionary lookup holds Python’s interpreter lock all along, so "
            "more threads cannot answer faster; requests that wait for a disk or another server would differ.",
        ),
    )


def _pool_means(rows: Sequence[Row], judged: Mapping[str, Judged], at: Levels) -> Iterator[str]:
    """What a request takes up to the pool and past it, in plain numbers, as far as gates let them stand."""
    if "past_pool" not in judged:
        return
    contrast = judged["past_pool"].contrast
    arms = [[row for row in rows if cell.holds(row)] for cell in (contrast.below, contrast.above)]
    means = [stats.mean_interval([row.response_us_mean for row in arm if row.response_us_mean]) for arm in arms]
    texts = [
        f"{number(mean.value / 1000)} ms with {clients_text(clients)}"
        for mean, clients in zip(means, (at.at_pool, at.farthest), strict=True)
    ]
    refused = runs_refused(rows, arms)
    note = f"; not to be relied on ({refusal_text(refused)})" if refused else ""
    yield f"A Lookup takes {' and '.join(texts)} on average (means over runs){note}."


def _pool_details(rows: Sequence[Row], judged: Mapping[str, Judged], at: Levels) -> Iterator[str]:
    yield from _pool_means(rows, judged, at)
    step = Phrases(
        equivalent=f"The step from {at.at_pool} to {clients_text(at.past_pool)} is in proportion, to within 5 %",
        faster=f"The step from {at.at_pool} to {clients_text(at.past_pool)} is smaller than in proportion",
        slower=f"The step from {at.at_pool} to {clients_text(at.past_pool)} is larger than in proportion",
        undecided=f"Whether latency jumps from {at.at_pool} to {clients_text(at.past_pool)} is not decided",
    )
    size = Phrases(
        equivalent=f"With {at.farthest} clients, {at.pool} threads serve as fast as {2 * at.pool}, to within 5 %",
        faster=f"With {at.farthest} clients, {at.pool} threads serve faster than {2 * at.pool}",
        slower=f"With {at.farthest} clients, {at.pool} threads serve slower than {2 * at.pool}",
        undecided=f"Whether {at.pool} threads serve {at.farthest} clients slower than {2 * at.pool} is not decided",
    )
    for name, phrases in (("pool_step", step), ("pool_size", size)):
        if name in judged:
            yield sentence(judged[name], phrases)
    held = [row for row in rows if row.part == "dispatch" and row.dispatch == "connection" and row.request == ALL]
    counts = sorted({row.clients for row in held if row.clients > row.workers})
    if counts:
        starved = ", ".join(f"{_starved(held, clients)} of {clients}" for clients in counts)
        yield f"Where a connection holds its thread, clients that got no reply in the window: {starved}."
    yield from _queueing(rows)


def _queueing(rows: Sequence[Row]) -> Iterator[str]:
    """Where the stages were stamped: how long a request waits for a thread, with the fewest and the most clients."""
    own = [row for row in rows if row.part == "stages" and row.request == "lookup"]
    counts = sorted({row.clients for row in own})
    for transport in sorted({row.transport for row in own}, reverse=True):
        said = []
        for clients in dict.fromkeys((*counts[:1], *counts[-1:])):
            runs = [row for row in own if (row.transport, row.clients) == (transport, clients)]
            waits = [row.stage_queue_us_mean for row in runs if row.stage_queue_us_mean is not None]
            totals = [row.stage_total_us_mean for row in runs if row.stage_total_us_mean]
            refused = runs_refused(rows, [runs])
            if waits and totals and refused:
                said.append(f"not decided with {clients_text(clients)} ({refusal_text(refused)})")
            elif waits and totals:
                whole = f"{number(stats.geometric_interval(totals).value)} µs in the server"
                said.append(f"{_wait_text(waits)} of {whole} with {clients_text(clients)}")
        if said:
            server = look(transport).label
            yield (
                f"On {server}, with {own[0].workers} threads, what a Lookup typically waits for a thread (geometric "
                f"means): {'; '.join(said)}."
            )


def _wait_text(waits: Sequence[float]) -> str:
    """The geometric mean of waits, which are skewed; where one of them is none, the mean, which has no interval."""
    if min(waits) > 0:
        return interval_text(stats.geometric_interval(waits), "µs")
    return f"{number(stats.mean_interval(waits).value)} µs (arithmetic mean; some are 0: no interval)"


def _starved(held: Sequence[Row], clients: int) -> str:
    starved = [row.starved_clients for row in held if row.clients == clients]
    return f"{min(starved)}" if min(starved) == max(starved) else f"{min(starved)} to {max(starved)}"


def _headline(judged: Mapping[str, Judged], name: str, phrases: Phrases) -> str:
    return sentence(judged[name], phrases) if name in judged else NOT_RUN


def _found(judged: Mapping[str, Judged], *names: str) -> tuple[Judged, ...]:
    return tuple(judged[name] for name in names if name in judged)
