"""The four questions of seed 004, answered from the rows: a number, its interval, a verdict, and what may not be said.

Rules: the comparisons are those declared in ``comparisons``; every sentence about a result is chosen by a predicate on
the data; where a part was not run, the answer says so. In a closed loop N clients have N requests under way, so by
Little's law latency is N ÷ throughput: growth with the clients is described with that beside it, never as a finding of
its own. Left out: the claims of the original, which are in ``claims``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments import stats
from experiments.figures.style import look
from experiments.results import ALL, Row
from experiments.studies.stock.comparisons import Judged, by_block, judge, latency_by_block
from experiments.studies.stock.declared import Cell, Levels, clients_text, levels
from experiments.studies.stock.wording import Phrases, interval_text, number, sentence

NOT_RUN = "The runs that this needs are not in this folder of results."

FLAT = 0.05
"""Throughput within this share of its value at the most clients counts as no longer growing."""

LITTLE_MARGIN = 0.02
"""Little's law counts as violated where the two sides differ by more."""


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
        tuple(text for server, part in servers for text in _growth_details(rows, server, part)),
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


def _growth_details(rows: Sequence[Row], server: str, part: str) -> Iterator[str]:
    own = [row for row in rows if row.part == part and row.request == "lookup"]
    if len({row.clients for row in own}) < 2:
        return
    latency = slope_us_per_client(own, lambda row: row.response_us_mean)
    law = slope_us_per_client(own, lambda row: row.n_over_x_us)
    yield (
        f"{server}: each further client adds {interval_text(latency, 'µs')} to the mean latency; to N ÷ throughput it "
        f"adds {interval_text(law, 'µs')}."
    )
    apart = [abs(row.response_us_mean / row.n_over_x_us - 1) for row in own if row.response_us_mean and row.n_over_x_us]
    if apart:
        size = f"at most {100 * max(apart):.1f} %" if max(apart) >= 0.001 else "less than 0.1 %"
        yield (
            f"{server}: latency and N ÷ throughput differ by {size} in any run; the client’s own time between two "
            "requests is in the second only."
        )
    off = sum(violates_littles_law(row) for row in own)
    if off:
        yield (
            f"{server}: Little’s law does not hold to within 2 % in {off} of {len(own)} runs: the report marks what "
            "rests on them."
        )
    yield f"{server}: {_fullness(own)}"


def violates_littles_law(row: Row) -> bool:
    """Whether throughput × (latency + think time) is not the connections that send: clock or counting are in doubt."""
    return row.little_ratio is not None and abs(row.little_ratio - 1) > LITTLE_MARGIN


def _fullness(rows: Sequence[Row]) -> str:
    """How throughput goes on with the clients, of one server at two numbers of them at least."""
    flat = flat_from(rows)
    if flat is not None:
        return (
            f"from {clients_text(flat)} on, mean throughput stays within 5 % of its value at the most clients; from "
            "there latency grows in proportion to the clients, by arithmetic."
        )
    *_, before, most = mean_rates(rows).values()
    if most < before:
        return "throughput falls by over 5 % at the most clients."
    grows = "throughput still grows by over 5 % at the most clients"
    if any(row.load_limited for row in rows):
        return f"{grows}; the clients were the limit in some run, so that it says nothing of the server’s capacity."
    return f"{grows}, so the server may not be full yet."


def slope_us_per_client(rows: Sequence[Row], measure: Callable[[Row], float | None]) -> stats.Estimate:
    """The slope of a straight line over the clients, fitted in each block, and its interval over the blocks.

    The rows are of one request type and server. ValueError if no block has two numbers of clients.
    """
    slopes = []
    for block in sorted({row.block for row in rows}):
        values = {row.clients: value for row in rows if row.block == block and (value := measure(row)) is not None}
        if len(values) > 1:
            slopes.append(float(np.polyfit(list(values), list(values.values()), deg=1)[0]))
    return stats.mean_interval(slopes)


def flat_from(rows: Sequence[Row]) -> int | None:
    """The fewest clients from which throughput stays within 5 % of that at the most; None if only there."""
    rates = mean_rates(rows)
    counts = list(rates)
    flat = counts[-1]
    for clients in reversed(counts):
        if abs(rates[clients] / rates[counts[-1]] - 1) > FLAT:
            break
        flat = clients
    return flat if flat < counts[-1] else None


def mean_rates(rows: Sequence[Row]) -> dict[int, float]:
    """Mean throughput over runs by number of clients, ascending."""
    counts = sorted({row.clients for row in rows})
    return {n: float(np.mean([row.throughput_all_hz for row in rows if row.clients == n])) for n in counts}


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
        waits = by_block(rows, cell, lambda row: row.lock_wait_us_mean or None)
        latencies = latency_by_block(rows, cell)
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
            )
        )
    return tuple(found)


def _lock_details(costs: Sequence[LockCost]) -> Iterator[str]:
    for cost in costs:
        if cost.locking == "mutex" and cost.wait_us is not None and cost.share is not None:
            yield (
                f"Under the mutex ({cost.transport}, {clients_text(cost.clients)}, Lookup and Trade mixed), a "
                f"{cost.request.capitalize()} typically waits {interval_text(cost.wait_us, 'µs')} for the lock, "
                f"{number(100 * cost.share.value)} % of its latency (geometric means)."
            )
    waited = [cost for cost in costs if cost.wait_us is not None and cost.share is not None]
    if waited:
        dearest = max(waited, key=lambda cost: cost.share.value if cost.share else 0.0)
        yield (
            f"Of all strategies, the largest typical share of latency that is waiting for a lock is "
            f"{number(100 * dearest.share.value) if dearest.share else '0'} %: {dearest.locking}, "
            f"{dearest.request.capitalize()}."
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


def _pool_details(rows: Sequence[Row], judged: Mapping[str, Judged], at: Levels) -> Iterator[str]:
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
            totals = [row.stage_total_us_mean for row in runs if row.stage_total_us_mean is not None]
            if waits and totals:
                wait, total = stats.mean_interval(waits), stats.mean_interval(totals)
                whole = f"{number(total.value)} µs in the server with {clients_text(clients)}"
                said.append(f"{interval_text(wait, 'µs')} of {whole}")
        if said:
            server = look(transport).label
            yield f"On {server}, with {own[0].workers} threads, a Lookup waits for a thread {'; '.join(said)}."


def _starved(held: Sequence[Row], clients: int) -> str:
    starved = [row.starved_clients for row in held if row.clients == clients]
    return f"{min(starved)}" if min(starved) == max(starved) else f"{min(starved)} to {max(starved)}"


def _headline(judged: Mapping[str, Judged], name: str, phrases: Phrases) -> str:
    return sentence(judged[name], phrases) if name in judged else NOT_RUN


def _found(judged: Mapping[str, Judged], *names: str) -> tuple[Judged, ...]:
    return tuple(judged[name] for name in names if name in judged)
