"""The replication card: what seed 004 claims, and whether the data bears it out.

Each claim has a predicate over the rows, which gives one of four statuses and says with which numbers. A claim is
CONFIRMED or CONTRADICTED only by a verdict of ``stats`` (so never from fewer than six blocks), INCONCLUSIVE where its
runs are there and do not decide or a gate refuses them, NOT TESTABLE where they are not there or no measurement could
decide. The original's milliseconds are context: they come from another machine and another program.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from experiments import stats
from experiments.gates.refusal import Refusal
from experiments.results import ALL, Row
from experiments.stats import BLOCKS_MIN, EQUIVALENCE, Verdict
from experiments.studies.stock.comparisons import Judged, by_block, judge, latency_by_block, runs_refused
from experiments.studies.stock.declared import Cell, Levels, clients_text, levels
from experiments.studies.stock.questions import LockCost, lock_costs
from experiments.studies.stock.wording import brief, interval_text, number, percent, refusal_text

GRPC_MS, SOCKETS_MS = 17.92, 12.38
"""The original's mean latency of Lookup at one client."""

FIGURES = ("figure_1", "figure_2", "figure_3", "figure_4", "figure_5")

SMALL_SHARE = 0.1
"""A lock wait under this share of a difference does not explain it."""


class Status(Enum):
    """What became of a claim."""

    CONFIRMED = "CONFIRMED"
    CONTRADICTED = "CONTRADICTED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_TESTABLE = "NOT TESTABLE"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a predicate may look at."""

    rows: tuple[Row, ...]
    judged: Mapping[str, Judged]
    at: Levels
    costs: tuple[LockCost, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the card."""

    claim: str
    original: str
    """What the original has for it."""
    status: Status
    evidence: str


Finding = tuple[Status, str]

_ABSENT: Finding = (Status.NOT_TESTABLE, "The runs that this needs are not in this folder of results.")


def card(rows: Sequence[Row]) -> tuple[Entry, ...]:
    """Every claim with its status, in the order of the original."""
    evidence = Evidence(tuple(rows), judge(rows), levels(rows), lock_costs(rows))
    entries = []
    for claim, original, predicate in CLAIMS:
        status, text = predicate(evidence)
        entries.append(Entry(claim, original, status, text))
    return tuple(entries)


def _sockets_are_faster(evidence: Evidence) -> Finding:
    judged = evidence.judged.get(f"sockets_to_grpc_{evidence.at.few}")
    if judged is None:
        return _ABSENT
    return _by_verdict(judged, confirming={Verdict.FASTER}), _named([judged])


def _the_lock_is_why(evidence: Evidence) -> Finding:
    """Contradicted: with one lock on both sides the difference stays, and the wait is too short to make it."""
    at = evidence.at
    judged = evidence.judged.get(f"sockets_to_grpc_{at.few}")
    cost = next((c for c in evidence.costs if (c.locking, c.request) == ("mutex", "lookup")), None)
    if judged is None or cost is None or cost.wait_us is None:
        return _ABSENT
    cell = Cell("locks", "lookup", cost.clients, transport=cost.transport, locking="mutex")
    waits = by_block(evidence.rows, cell, lambda row: row.lock_wait_us_mean)
    wait_us = stats.mean_interval(list(waits.values()))
    grpc = latency_by_block(evidence.rows, Cell("figure_2", "lookup", at.few))
    sockets = latency_by_block(evidence.rows, Cell("figure_4", "lookup", at.few))
    gap_us = stats.mean_interval([grpc[block] - sockets[block] for block in grpc.keys() & sockets.keys()])
    text = (
        f"With the same mutex on both sides: {brief(judged)}. A Lookup waits {interval_text(wait_us, 'µs')} for the "
        f"mutex ({cost.transport}, {clients_text(cost.clients)}), as the arithmetic mean over runs of each run’s mean; "
        f"their geometric mean, the typical run’s, is {number(cost.wait_us.value)} µs. gRPC takes "
        f"{interval_text(gap_us, 'µs')} longer than sockets."
    )
    if cost.refused:
        return _refused(text, cost.refused)
    verdict = judged.result.verdict
    if verdict is Verdict.FASTER and wait_us.high < SMALL_SHARE * gap_us.low:
        return Status.CONTRADICTED, text
    return Status.INCONCLUSIVE, text


def _latency_rises(evidence: Evidence) -> Finding:
    names = (
        "figure_1_lookup",
        "figure_1_trade",
        "figure_2_lookup",
        "figure_3_trade",
        "figure_4_lookup",
        "figure_5_lookup",
    )
    found = [evidence.judged[f"growth_{name}"] for name in names if f"growth_{name}" in evidence.judged]
    if not found:
        return _ABSENT
    text = _named(found)
    if len(found) < len(names):
        text += f" {len(names) - len(found)} of {len(names)} lines were not run."
    status = _all_or_any(found, confirming={Verdict.SLOWER})
    falls, steps = _falling_steps(evidence.rows)
    if falls:
        text += f" In {falls} of {steps} steps between neighbouring numbers of clients the mean falls."
    borne_out = len(found) == len(names) and not falls
    return (status if borne_out or status is Status.CONTRADICTED else Status.INCONCLUSIVE), text


def _falling_steps(rows: Sequence[Row]) -> tuple[int, int]:
    """How often a line of figures 1 to 5 goes down from one number of clients to the next, and of how many steps."""
    figures = [row for row in rows if row.part in FIGURES and row.request != ALL]
    falls = steps = 0
    for part, request in sorted({(row.part, row.request) for row in figures}):
        own = [row for row in figures if (row.part, row.request) == (part, request)]
        found = (
            latency_by_block(own, Cell(part, request, clients)) for clients in sorted({row.clients for row in own})
        )
        means = [sum(blocks.values()) / len(blocks) for blocks in found if blocks]
        falls += sum(after < before for before, after in pairwise(means))
        steps += len(means) - 1
    return falls, steps


def _constant_up_to_the_pool(evidence: Evidence) -> Finding:
    judged = evidence.judged.get("held_threads")
    if judged is None:
        return _ABSENT
    return _by_verdict(judged, confirming={Verdict.EQUIVALENT}), _named([judged])


def _surplus_waits(evidence: Evidence) -> Finding:
    """Kept connections hold their threads to the end of a run, so the surplus waits for all of it: it starves."""
    held = [
        row
        for row in evidence.rows
        if row.part == "dispatch" and row.dispatch == "connection" and row.request == ALL and row.clients > row.workers
    ]
    if not held:
        return _ABSENT
    starving = sum(row.starved_clients > 0 for row in held)
    text = f"Clients starved in {starving} of {len(held)} runs with more clients than threads."
    arms = [[row for row in held if row.clients == clients] for clients in sorted({row.clients for row in held})]
    if refused := runs_refused(evidence.rows, arms, "throughput"):
        return _refused(text, refused)
    if len({row.block for row in held}) < BLOCKS_MIN:
        return Status.INCONCLUSIVE, text
    if starving == len(held):
        return Status.CONFIRMED, text
    return (Status.CONTRADICTED if starving == 0 else Status.INCONCLUSIVE), text


def _trade_is_like_lookup(evidence: Evidence) -> Finding:
    names = [f"trade_to_lookup_{clients}" for clients in evidence.at.between]
    found = [evidence.judged[name] for name in names if name in evidence.judged]
    if not found:
        return _ABSENT
    text = _named(found)
    if any(_clearly_different(judged) for judged in found):
        return Status.CONTRADICTED, text
    alike = all(judged.result.verdict is Verdict.EQUIVALENT for judged in found)
    return (Status.CONFIRMED if alike else Status.INCONCLUSIVE), text


def _lock_costs_both_the_same(evidence: Evidence) -> Finding:
    """The difference between the two waits, as a share of the latency, against the margin of equivalence."""
    most = max((row.clients for row in evidence.rows if row.part == "locks"), default=0)
    lookup = Cell("locks", "lookup", most, transport="sockets", locking="mutex")
    trade = Cell("locks", "trade", most, transport="sockets", locking="mutex")
    waits = [by_block(evidence.rows, cell, lambda row: row.lock_wait_us_mean) for cell in (lookup, trade)]
    latency = latency_by_block(evidence.rows, lookup)
    blocks = waits[0].keys() & waits[1].keys() & latency.keys()
    if not blocks:
        return _ABSENT
    share = stats.mean_interval([(waits[1][block] - waits[0][block]) / latency[block] for block in blocks])
    text = f"Under the mutex, wait of Trade − wait of Lookup, of the latency: {interval_text(percent(share), '%')}."
    arms = [[row for row in evidence.rows if cell.holds(row)] for cell in (lookup, trade)]
    if refused := runs_refused(evidence.rows, arms):
        return _refused(text, refused)
    margin = EQUIVALENCE[1] - 1
    if share.n >= BLOCKS_MIN and -margin < share.low and share.high < margin:
        return Status.CONFIRMED, text
    if share.n >= BLOCKS_MIN and (share.low > margin or share.high < -margin):
        return Status.CONTRADICTED, text
    return Status.INCONCLUSIVE, text


def _read_lock_helps(evidence: Evidence) -> Finding:
    judged = evidence.judged.get("strategy_read-write_lookup")
    if judged is None:
        return _ABSENT
    return _by_verdict(judged, confirming={Verdict.FASTER}), _named([judged])


def _no_jump(evidence: Evidence) -> Finding:
    found = [evidence.judged[name] for name in ("pool_step", "past_pool") if name in evidence.judged]
    if not found:
        return _ABSENT
    text = _named(found)
    return _all_or_any(found, confirming={Verdict.EQUIVALENT, Verdict.FASTER}), text


def _milliseconds(evidence: Evidence) -> Finding:
    cells = (("gRPC", "figure_2"), ("sockets", "figure_4"))
    means = []
    for server, part in cells:
        found = latency_by_block(evidence.rows, Cell(part, "lookup", evidence.at.few))
        if found:
            means.append(f"{server} {number(sum(found.values()) / len(found) / 1000)} ms")
    beside = f" Here, with {clients_text(evidence.at.few)}: {', '.join(means)}." if means else ""
    return Status.NOT_TESTABLE, f"Another machine and another program: the times are context.{beside}"


def _no_lock_needed(_: Evidence) -> Finding:
    return Status.NOT_TESTABLE, (
        "A matter of correctness, not of latency. It holds while nothing writes; this service also trades and updates."
    )


def _refused(text: str, refused: Sequence[Refusal]) -> Finding:
    """Whatever the numbers: what gates have against their runs leaves the claim open."""
    why = refusal_text(refused)
    return Status.INCONCLUSIVE, f"{text} {why[:1].upper()}{why[1:]}."


def _by_verdict(judged: Judged, confirming: set[Verdict]) -> Status:
    """Contradicted only by what rules the claim out: no difference is, by more than the margin of equivalence; a
    direction is not by a small difference that is too sure to be none, and goes that way."""
    verdict, ratio = judged.result.verdict, judged.result.ratio
    if verdict in confirming:
        return Status.CONFIRMED
    that_way = (Verdict.FASTER in confirming and ratio.high < 1) or (Verdict.SLOWER in confirming and ratio.low > 1)
    too_close = Verdict.EQUIVALENT in confirming and not _clearly_different(judged)
    if verdict is Verdict.INCONCLUSIVE or that_way or too_close:
        return Status.INCONCLUSIVE
    return Status.CONTRADICTED


def _all_or_any(found: Sequence[Judged], confirming: set[Verdict]) -> Status:
    """Confirmed by all of them, contradicted by any."""
    statuses = {_by_verdict(judged, confirming) for judged in found}
    if Status.CONTRADICTED in statuses:
        return Status.CONTRADICTED
    return Status.INCONCLUSIVE if Status.INCONCLUSIVE in statuses else Status.CONFIRMED


def _clearly_different(judged: Judged) -> bool:
    """Beyond the margin of equivalence, not merely other than 1."""
    ratio, verdict = judged.result.ratio, judged.result.verdict
    beyond = ratio.high < EQUIVALENCE[0] or ratio.low > EQUIVALENCE[1]
    return verdict in (Verdict.FASTER, Verdict.SLOWER) and beyond


def _named(found: Sequence[Judged]) -> str:
    return "; ".join(f"{judged.contrast.text}: {brief(judged)}" for judged in found) + "."


_SAME_COST = (
    "The lock costs Trade and Lookup the same. (Here: the mean waits differ by under "
    f"{100 * (EQUIVALENCE[1] - 1):.0f} % of the latency.)"
)

CLAIMS: tuple[tuple[str, str, Callable[[Evidence], Finding]], ...] = (
    (
        "With one client, Lookup takes less time on sockets than on gRPC.",
        f"{SOCKETS_MS} ms against {GRPC_MS} ms, a ratio of {SOCKETS_MS / GRPC_MS:.2f}; no interval",
        _sockets_are_faster,
    ),
    ("The lock on the gRPC side may be the reason.", "supposed; transport and lock changed together", _the_lock_is_why),
    ("Without writes, the sockets side needs no lock.", "argued", _no_lock_needed),
    ("Latency rises with the clients in every figure.", "figures 1 to 5, single means", _latency_rises),
    (
        "With a thread per connection, latency would stay constant while the pool has threads left.",
        "expected; never measured",
        _constant_up_to_the_pool,
    ),
    ("Trade takes about as long as Lookup.", "figures 2 and 3, two similar means", _trade_is_like_lookup),
    (_SAME_COST, "argued from one lock for both", _lock_costs_both_the_same),
    ("A read lock for Lookup would be faster.", "expected; never measured", _read_lock_helps),
    ("Past the pool of 5 threads, latency does not jump.", "figure 5, single means", _no_jump),
    (
        "With a thread per connection, clients past the pool would wait far longer.",
        "expected; never measured",
        _surplus_waits,
    ),
    (f"Lookup takes {GRPC_MS} ms on gRPC and {SOCKETS_MS} ms on sockets.", "at one client", _milliseconds),
)
"""What is claimed, what the original has for it, and the predicate."""
