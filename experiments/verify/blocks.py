"""Faults of blocks: contradictions with the order that is drawn from the seed, with the machine's counts, and within a
block.

Somebody who edits a block can also recompute the block's digest. But some values of a block follow from other values,
and these values must still agree:

- The slices have the order that is drawn from the sweep's seed, the block's number and the number of the attempt.
- The sums of the slices equal the sums of the histograms.
- Each block begins after the end of the preceding block, and no two blocks are equal.
- The stolen time of all rounds agrees with the difference of the machine's counts before and after the sweep.
- A request on sockets does not have more bytes on the wire than an equal request on gRPC.

A **robbed** block lost too much time to other processes. Each function yields one sentence for each fault. Pure. Left
out: consistent edits, such as an edit that changes the times in slices and in histograms equally.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise, product
from statistics import median
from typing import Any

import numpy as np

from experiments.design.arms import Arm
from experiments.design.slots import order, seed_of, starts
from experiments.design.sweep import ROUNDS_MIN, Slices, Sweep
from experiments.judge.gates import wire_bytes
from experiments.judge.ratios import column, is_robbed_block, used_whole
from experiments.kinds.block import Block as KindBlock
from experiments.results.environment import Environment
from experiments.results.machine import TICK_S
from experiments.results.observed import ALL, Answered, Block

LABEL_S = 1.0
"""Precision of recorded times of day, in seconds. Recorded times are rounded down to whole seconds."""

LEANEST, HTTP_2 = "sockets", ("grpc", "grpc_static", "grpc_aio")
"""Transports that carry equal messages. ``LEANEST`` needs the fewest bytes, since the transports in ``HTTP_2`` add
headers and frames."""

WIRE_NEAR = 1.01
"""Smallest ratio of two numbers of bytes that is a fault. Long messages need almost equal numbers of bytes on both
transports, and the loopback's counter includes the bytes of other programs."""

UNLIKE = ("transport", "executor", "client", "workers", "clients", "dispatch", "locking")
"""Factors in which two arms with equal messages may differ. Among these factors, only the transport changes the number
of bytes on the wire."""


def shape_faults(sweep: Sweep, every: Sequence[Block]) -> Iterator[str]:
    """Faults of shape: columns of different lengths, or a wrong number of arms or servers in a block. No value can be
    computed from such a block."""
    for block in every:
        slices = block.slices
        columns = (slices.appearance, slices.arm, slices.fate, slices.counted_ns, slices.requests, slices.active_ns)
        others = (slices.server_cpu_ns, slices.client_cpu_ns, slices.wire_bytes)
        lengths = map(len, (*columns, *others, *slices.counts.values(), *slices.sums_ns.values()))
        if any(length != len(slices.round) for length in lengths):
            yield f"{_named(block)}: columns of several lengths"
        if not all(ALL in each for each in (slices.counts, slices.sums_ns, *(arm.answered for arm in block.arms))):
            yield f"{_named(block)}: no numbers of the type {ALL!r}"
        servers = len(sweep.servers)
        known = len(block.servers) in (0, servers) and all(0 <= place < servers for place in block.starts)
        if len(block.arms) != len(sweep.arms) or not known:
            yield f"{_named(block)}: other arms or servers than its sweep has"


def block_faults(sweep: Sweep, every: Sequence[Block]) -> Iterator[str]:
    """Faults of all blocks of a sweep. ``every`` has every attempt of every block, in the order of time. The blocks
    must have no ``shape_faults``."""
    yield from attempt_faults(sweep, every)
    yield from time_faults(every)
    for one, other in pairwise(sorted(every, key=_content)):
        if _content(one) == _content(other):
            yield f"{_named(one)} and {_named(other)} are the same"
    for block in every:
        yield from (f"{_named(block)}: {said}" for said in _faults(sweep, block))
    yield from _wire_faults(sweep, every)


def attempt_faults(sweep: Sweep, every: Sequence[Block]) -> Iterator[str]:
    """Faults of the attempts at blocks. A robbed block must be measured again, unless the sweep has no repeat left. A
    block must not be measured again for any other reason."""
    attempts: dict[int, list[Block]] = {}
    for block in every:
        attempts.setdefault(block.number, []).append(block)
    again = len(every) - len(attempts)
    for number, of_one in attempts.items():
        numbers = [block.attempt for block in of_one]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"block {number} has the attempts {', '.join(map(str, numbers))}, which do not count up from 1"
        if any(not is_robbed_block(sweep.limits, block) for block in of_one[:-1]):
            yield f"block {number} was run again, although it had not lost too much time"
        if len(of_one) == 1 and again < sweep.repeats_max and is_robbed_block(sweep.limits, of_one[0]):
            yield f"block {number} lost too much time, and was not run again"
    if again > sweep.repeats_max:
        yield f"{again} blocks were run again, allowed: {sweep.repeats_max}"


def time_faults(every: Sequence[Block | KindBlock[Any]]) -> Iterator[str]:
    """Faults of times: a block began before the preceding block had ended."""
    for one, other in pairwise(every):
        if _ended_s(one) >= _began_s(other) + LABEL_S:
            yield f"block {other.number} began at {other.started_at}, before block {one.number} had ended"


def machine_faults(machine: Environment, every: Sequence[Block]) -> Iterator[str]:
    """Contradictions between the blocks and the machine's counts of busy and stolen time before and after the sweep."""
    if machine.after is None:
        yield "no record of the machine after the sweep"
        return
    began_s, ended_s = (datetime.fromisoformat(each.at).timestamp() for each in (machine.before, machine.after))
    if every and not (began_s < _began_s(every[0]) + LABEL_S and _ended_s(every[-1]) < ended_s + 2 * LABEL_S):
        yield f"blocks were measured outside the time from {machine.before.at} to {machine.after.at}"
    rounds = [each for block in every for each in block.rounds]
    stolen_s = sum(each.steal_ticks for each in rounds) * TICK_S
    account_s = machine.after.cpu_steal_s - machine.before.cpu_steal_s
    spare_s = TICK_S * machine.cores * (len(every) + 1)
    outside_s = machine.cores * max(0.0, ended_s - began_s + LABEL_S - sum(each.duration_s for each in rounds))
    if not stolen_s - spare_s <= account_s <= stolen_s + outside_s + spare_s:
        yield f"the hypervisor took {account_s:.2f} s by the machine's counters, {stolen_s:.2f} s by the blocks' rounds"
    own_s = sum(sum(block.slices.server_cpu_ns) + sum(block.slices.client_cpu_ns) for block in every) / 1e9
    used_s = own_s + sum(each.foreign_ticks or 0 for each in rounds) * TICK_S
    busy_s = machine.after.cpu_busy_s - machine.before.cpu_busy_s
    if busy_s < used_s - spare_s:
        said = f"cores were busy for {busy_s:.1f} s by the machine's counters"
        yield f"{said}, by the blocks' slices and rounds for {used_s:.1f} s"


def _faults(sweep: Sweep, block: Block) -> Iterator[str]:
    """Faults of a block's order, times, sums and histograms."""
    slices = block.slices
    yield from _order_faults(sweep, block)
    lasted_s = sum(each.duration_s for each in block.rounds)
    if lasted_s > block.duration_s + TICK_S:
        yield f"lasted {block.duration_s:.2f} s, and its rounds {lasted_s:.2f} s"
    for columns_of in (slices.counts, slices.sums_ns):
        parts = [column(each) for name, each in columns_of.items() if name != ALL]
        if parts and (np.sum(parts, axis=0) != column(columns_of[ALL])).any():
            yield "request types that do not add up to all"
    if (column(slices.requests) < column(slices.counts[ALL])).any():
        yield "a slice with more counted requests than requests"
    for place, arm in enumerate(sweep.arms):
        yield from (f"{arm.name}, {said}" for said in _sum_faults(sweep, block, place))


def _order_faults(sweep: Sweep, block: Block) -> Iterator[str]:
    """Faults of the order. Slices or starts of servers are not in the drawn order, or rounds are missing although there
    was time for another round."""
    rounds, slices = len(block.rounds), block.slices
    drawn = order(sweep, seed_of(sweep, block.number, block.attempt))
    seen = list(zip(slices.round, slices.appearance, slices.arm, strict=True))
    if seen != [each for each in drawn if each[0] < rounds]:
        yield f"its slices are not in the order that seed {sweep.seed} draws"
    started = starts(sweep, seed_of(sweep, block.number, block.attempt))
    if block.starts and [sweep.servers[place] for place in block.starts] != list(started):
        yield f"its servers did not start in the order that seed {sweep.seed} draws"
    if rounds < sweep.rounds and not (rounds >= ROUNDS_MIN and isinstance(sweep.turns, Slices)):
        yield f"{rounds} rounds of {sweep.rounds}"
    elif rounds < sweep.rounds and isinstance(sweep.turns, Slices):
        lasted_s = [each.duration_s for each in block.rounds]
        if sum(lasted_s) + max(lasted_s) < sweep.turns.block_s:
            yield f"{rounds} rounds of {sweep.rounds}, and there was time for another"


def _sum_faults(sweep: Sweep, block: Block, place: int) -> Iterator[str]:
    """Contradictions between the slices of an arm and the arm's histograms, and within the histograms."""
    own = used_whole(sweep.limits, block) & (column(block.slices.arm) == place)
    for name, answered in block.arms[place].answered.items():
        times = answered.times
        count, sum_ns = (
            int(column(of[name])[own].sum()) if name in of else 0 for of in (block.slices.counts, block.slices.sums_ns)
        )
        if count != times.count + times.out_of_range or (sum_ns != times.sum_ns and not times.out_of_range):
            yield (
                f"{name}: {count:,} requests of {sum_ns:,} ns in its slices, {times.count:,} of {times.sum_ns:,} ns in "
                "its histogram"
            )
        if not _is_whole(answered, isinstance(sweep.turns, Slices)):
            yield f"{name}: a histogram that is not of its count, sum, least and greatest"
    answered_by = block.arms[place].answered
    parts = [each.times.count for name, each in answered_by.items() if name != ALL]
    if parts and sum(parts) != answered_by[ALL].times.count:
        yield "request types that do not add up to all"


def _is_whole(answered: Answered, in_slices: bool) -> bool:
    """True if the buckets of a histogram agree with its count, sum, sum of squares, least time and greatest time.

    The histogram may have the times of errors in windows, but not in slices.
    """
    times = answered.times
    outcomes, errors = sum(answered.outcomes.values()), 0 if in_slices else sum(answered.errors.values())
    if outcomes and not outcomes <= times.count + times.out_of_range <= outcomes + errors:
        return False
    if not times.count:
        return not times.sum_ns
    low, high, counts = (each.astype(np.float64) for each in times.buckets())
    return bool(
        counts.sum() == times.count
        and (low * counts).sum() <= times.sum_ns <= (high * counts).sum()
        and (low**2 * counts).sum() <= times.squares * (1 + 1e-9)
        and times.squares <= (high**2 * counts).sum() * (1 + 1e-9)
        and low[0] <= times.min_ns <= high[0]
        and low[-1] <= times.max_ns <= high[-1]
    )


def _wire_faults(sweep: Sweep, every: Sequence[Block]) -> Iterator[str]:
    """Faults of bytes on the wire. Requests on sockets must not have more bytes than requests on gRPC with equal
    messages. A fault needs a ratio of ``WIRE_NEAR`` or more."""
    carried = {arm: bytes_ for arm in sweep.arms if (bytes_ := _wire_bytes(sweep, every, arm)) is not None}
    for lean, other in product(carried, carried):
        ours, theirs = (each.setting["transport"] for each in (lean, other))
        comparable = ours == LEANEST and theirs in HTTP_2 and _messages(lean) == _messages(other)
        if comparable and carried[lean] >= WIRE_NEAR * carried[other]:
            yield f"{lean.name} carried {carried[lean]:.0f} bytes a request, {other.name} {carried[other]:.0f}"


def _wire_bytes(sweep: Sweep, every: Sequence[Block], arm: Arm) -> float | None:
    """Bytes on the wire for each request of an arm: the median of ``gates.wire_bytes`` over the blocks. None if no
    block has recorded bytes."""
    found = [each for block in every if (each := wire_bytes(sweep, block, arm))]
    return median(found) if found else None


def _messages(arm: Arm) -> tuple[tuple[str, object], ...]:
    """Factors of an arm that change the number of bytes of messages, with the arm's levels."""
    return tuple((name, level) for name, level in arm.setting.levels if name not in UNLIKE)


def _content(block: Block) -> list[tuple[int, int, int]]:
    """Arm, number of counted requests and sum of times of each slice of a block, sorted. The result is equal for two
    blocks whose slices differ only in their order."""
    slices = block.slices
    return sorted(zip(slices.arm, slices.counts.get(ALL, ()), slices.sums_ns.get(ALL, ()), strict=False))


def _named(block: Block) -> str:
    return f"block {block.number}" if block.attempt == 1 else f"block {block.number}, attempt {block.attempt}"


def _began_s(block: Block | KindBlock[Any]) -> float:
    return datetime.fromisoformat(block.started_at).timestamp()


def _ended_s(block: Block | KindBlock[Any]) -> float:
    return _began_s(block) + block.duration_s
