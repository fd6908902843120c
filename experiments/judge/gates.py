"""Gates: checks of the collected data that can withhold a verdict. The functions are pure.

Twenty rules guard a conclusion (``experiments/README.md``). The code is so built that no sweep can break ten of the
rules. Nine rules are gates, and a gate has the number of its rule. Rule 14 is a note. A gate checks the arms of a
comparison; an arm is a server under a load. A refusal of an arm concerns only the comparisons with this arm. If a gate
refuses one block, the block is left out (``block_refusals``). If a gate refuses all blocks together, the verdict is
withheld.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.design.arms import Arm, Comparison
from experiments.design.factors import FACTORS
from experiments.design.faults import Watched
from experiments.design.limits import Limits
from experiments.design.sweep import Slices, Sweep
from experiments.judge import ratios
from experiments.judge.ratios import last_results
from experiments.judge.stats import Estimate, ratio_interval, trimmed_mean
from experiments.peers import PEER_CLIENT
from experiments.results.observed import ALL, FAILED, ArmSeen, Block

ACKNOWLEDGED_BYTES, CONNECTED_BYTES = 132.0, 1000.0
"""Bytes on the wire besides a request and its reply. ``ACKNOWLEDGED_BYTES``: two TCP acknowledgements, which Linux may
send up to 40 ms late. ``CONNECTED_BYTES``: opening and closing a connection."""

CHANCE = 4.0
"""Allowed error of the number of arrivals of a Poisson process, in standard deviations. By chance, the error is larger
in 6 of 100,000 runs."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refusal of a block or of a verdict by a gate, which is a check of the collected data."""

    gate: int
    """Number of the gate."""
    said: str
    """Sentence with the measured value. Most sentences also have the allowed value."""


NAMES = {
    2: "the arms differ on the wire",
    3: "a declared factor changed nothing",
    4: "errors",
    5: "the halves of the blocks contradict each other",
    6: "response and think times do not add up",
    7: "the load was not sent at its rate",
    8: "arrivals do not follow the declared process",
    20: "the difference is smaller than between equal arms",
}
"""Reason of a gate's refusals in a few words, by the gate's number. Gate 13 is missing because it refuses no
comparison: ``points`` uses gate 13 to leave out percentiles."""


def block_refusals(sweep: Sweep, block: Block, comparison: Comparison) -> Iterator[Refusal]:
    """Refusals of one block for one comparison. If there is a refusal, the block is left out of the comparison."""
    for arm in (comparison.above, comparison.below):
        yield from arm_refusals(sweep, block, arm)
    yield from wire_differs(sweep, block, comparison)


@last_results(2048)
def arm_refusals(sweep: Sweep, block: Block, arm: Arm) -> tuple[Refusal, ...]:
    """Refusals of one arm in one block. With a refusal, the block is left out of every comparison with this arm."""
    seen = block.arms[sweep.places[arm]]
    return (
        *nothing_changed(sweep, block, arm),
        *errors(sweep.limits, arm, seen),
        *laws(sweep.limits, arm, seen),
        *rate_off(sweep.limits, arm, seen),
        *failed(sweep, block, arm),
        *arrivals(arm, seen),
    )


def wire_differs(sweep: Sweep, block: Block, comparison: Comparison) -> Iterator[Refusal]:
    """Gate 2: a refusal if the arms have different numbers of bytes per request, but differ in no factor that may
    change the bytes."""
    if any(FACTORS[name].wire for name in comparison.differ):
        return
    arms = (comparison.above, comparison.below)
    above, below = (wire_bytes(sweep, block, arm) for arm in arms)
    if not above or not below or abs(above - below) <= max(_window_bytes(sweep, block, arm) for arm in arms):
        return
    if abs(above / below - 1) > sweep.limits.wire_share:
        yield Refusal(2, f"{above:.0f} and {below:.0f} bytes a request, allowed: within {sweep.limits.wire_share:.0%}")


def nothing_changed(sweep: Sweep, block: Block, arm: Arm) -> Iterator[Refusal]:
    """Gate 3: a refusal for each declared factor of an arm that had no effect. ``Factor.fault`` checks the effect."""
    seen = block.arms[sweep.places[arm]]
    server = block.servers[sweep.servers.index(arm.server)] if block.servers else None
    watched = Watched(
        threads=server.threads if server else None,
        processes=server.processes if server else None,
        connections=server.connections if server and not seen.windows else None,
        updates=seen.updates - seen.update_errors,
        at_work=server.at_work if server else None,
    )
    levels = dict(arm.setting.levels)
    for factor in FACTORS.values():
        if (fault := factor.fault(levels, watched)) is not None:
            yield Refusal(3, f"{arm.name}: {fault}")


def errors(limits: Limits, arm: Arm, seen: ArmSeen) -> Iterator[Refusal]:
    """Gate 4: a refusal if over 0.1 % of the counted requests got no valid reply."""
    of_all = seen.answered[ALL]
    failed, answered = sum(of_all.errors.values()), of_all.times.count + of_all.times.out_of_range
    if failed > limits.errors_share * (failed + answered):
        kinds = ", ".join(f"{count} {kind}" for kind, count in of_all.errors.items())
        yield Refusal(4, f"{arm.name}: {kinds} of {failed + answered:,} requests, allowed: {limits.errors_share:.1%}")


def failed(sweep: Sweep, block: Block, arm: Arm) -> Iterator[Refusal]:
    """Gate 4: a refusal if an arm has a window in which no client could connect."""
    fates = ratios.column(block.slices.fate)[ratios.column(block.slices.arm) == sweep.places[arm]]
    if number := int((fates == FAILED).sum()):
        yield Refusal(4, f"{arm.name}: in {number} of {len(fates)} windows no client could connect")


def laws(limits: Limits, arm: Arm, seen: ArmSeen) -> Iterator[Refusal]:
    """Gate 6: a refusal if an arm's response times and think times do not add up to the time of its connections.

    The times must add up, since a connection always either waits for a reply or thinks. The gate also refuses an arm if
    the load client began a request, but never recorded this request.
    """
    if seen.unrecorded:
        yield Refusal(6, f"{arm.name}: {seen.unrecorded} requests were begun and never recorded")
    if not seen.span_ns:
        return
    filled = (seen.answered[ALL].times.sum_ns + seen.think_ns) / seen.span_ns
    if abs(filled - 1) > limits.law_share:
        yield Refusal(6, f"{arm.name}: response and think times are {filled:.1%} of the connections' time, not 100 %")


def rate_off(limits: Limits, arm: Arm, seen: ArmSeen) -> Iterator[Refusal]:
    """Gate 7: a refusal if the rate of an open loop, over all windows, differs from the declared rate by over 2 %. For
    Poisson arrivals, a larger difference is allowed, since the number of arrivals is random."""
    declared = sum(window.rate_hz or 0.0 for window in seen.windows)
    if not declared:
        return
    sent = sum(window.sent_hz for window in seen.windows)
    poisson = arm.setting["arrivals"] == "poisson" and arm.setting["client"] != PEER_CLIENT  # a peer sends regularly
    due = max(1.0, declared * sum(window.duration_s for window in seen.windows) / len(seen.windows))
    chance = CHANCE / math.sqrt(due) if poisson else 0.0
    if abs(sent / declared - 1) > limits.rate_share + chance:
        number = len(seen.windows)
        yield Refusal(7, f"{arm.name}: sent {sent / number:,.0f}/s where {declared / number:,.0f} were due")


def arrivals(arm: Arm, seen: ArmSeen) -> Iterator[Refusal]:
    """Gate 8: a refusal if the sends of an open loop do not follow the declared arrival process."""
    faults = [fault for window in seen.windows for fault in window.arrival_faults]
    if faults:
        yield Refusal(8, f"{arm.name}: {faults[0]}")


def halves_contradict(sweep: Sweep, blocks: Sequence[Block], comparison: Comparison) -> Iterator[Refusal]:
    """Gate 5: a refusal if the ratio in the first halves of the blocks contradicts the ratio in the second halves.

    Each of the two ratios has an interval over the blocks. ``_stand_against`` says when two intervals contradict each
    other.
    """
    halves: tuple[list[float], list[float]] = ([], [])
    for block in blocks:
        log_ratios, rounds = ratios.pair_log_ratios(sweep, block, comparison)
        later = rounds >= len(block.rounds) // 2
        for half, chosen in zip(halves, (~later, later), strict=True):
            if chosen.any():
                half.append(trimmed_mean(log_ratios[chosen].tolist(), sweep.limits.trimmed))
    if min(map(len, halves)) < 2:
        return
    first, second = (ratio_interval(half, 1 - sweep.level) for half in halves)
    if any(_stand_against(sweep.limits, *both) for both in ((first, second), (second, first))):
        yield Refusal(
            5,
            f"{first.low:.3g} to {first.high:.3g} in the blocks' first halves, "
            f"{second.low:.3g} to {second.high:.3g} in the second halves",
        )


def load_share(sweep: Sweep, blocks: Sequence[Block], arm: Arm) -> float | None:
    """Share of one core that the load of an arm used during the arm's slices or windows (gate 7). None if the load's
    processor time is unknown."""
    spent = active = 0
    for block in blocks:
        own = ratios.of_arm(sweep, block, sweep.places[arm])
        spent += int(ratios.column(block.slices.client_cpu_ns)[own].sum())
        active += int(ratios.column(block.slices.active_ns)[own].sum())
    return spent / active if spent and active else None


def limiting_load(sweep: Sweep, blocks: Sequence[Block], comparison: Comparison) -> float | None:
    """Larger of the two arms' load shares, if the larger share is over 80 % of a core (gate 7). Otherwise None.

    Open loops do not count. Over 80 %, response times and rates depend on client and server together. None also for an
    A/A pair, which does not judge a server, and for a comparison of processor times, which depend only on the server.
    """
    if comparison.kind == "same" or comparison.measure == "cpu":
        return None
    closed = (arm for arm in (comparison.above, comparison.below) if arm.setting["rate_hz"] is None)
    most = max((load_share(sweep, blocks, arm) or 0.0 for arm in closed), default=0.0)
    return most if most > sweep.limits.load_share else None


def is_load_limited(sweep: Sweep, blocks: Sequence[Block], arm: Arm) -> bool:
    """True if the times of an arm depend on client and server together (gate 7).

    In a closed loop: the load took over 80 % of its core. An unknown share counts as under 80 %. In an open loop: the
    sends were too late in some block (``_is_late``).
    """
    if arm.setting["rate_hz"] is None:
        return (load_share(sweep, blocks, arm) or 0.0) > sweep.limits.load_share
    seen = [block.arms[sweep.places[arm]] for block in blocks]
    return any(_is_late(sweep.limits, each) for each in seen)


def _is_late(limits: Limits, seen: ArmSeen) -> bool:
    """True if sends of an open loop were too late (gate 7). Sends are too late if the 99th percentile of a window's
    lateness is over a tenth of the 99th percentile of the block's response times."""
    response_us = seen.answered[ALL].times.distribution().p99_us
    late_us = [window.late_us_p99 for window in seen.windows if window.late_us_p99 is not None]
    return response_us is not None and bool(late_us) and max(late_us) > limits.late_share * response_us


def far_end(of: Estimate) -> float:
    """Distance from 1 to the farther end of a ratio's interval, as a logarithm: the larger of ``abs(log(low))`` and
    ``abs(log(high))``."""
    return max(abs(math.log(of.low)), abs(math.log(of.high)))


def too_small(of: Estimate, against: float, end: float) -> Refusal | None:
    """Gate 20: a refusal if the effect ``of`` ÷ ``against`` is smaller than the largest difference between equal arms.

    ``end`` is this largest difference, as a log-ratio. The result is None if the effect is not smaller.
    """
    if abs(math.log(of.value / against)) >= end:
        return None
    return Refusal(20, f"equal servers of this transport differ by up to {math.expm1(end):.1%}")


@last_results(512)
def wire_bytes(sweep: Sweep, block: Block, arm: Arm) -> float:
    """Bytes of a request on the wire: the 10th percentile over slices. 0 if no bytes were read.

    The bytes are from the loopback's counter, which also counts the traffic of other programs. Their traffic only adds
    bytes, so a low percentile is disturbed least.
    """
    own = ratios.of_arm(sweep, block, sweep.places[arm])
    requests, carried = ratios.column(block.slices.requests)[own], ratios.column(block.slices.wire_bytes)[own]
    sending = (requests > 0) & (carried > 0)
    return float(np.percentile(carried[sending] / requests[sending], 10)) if sending.any() else 0.0


def _window_bytes(sweep: Sweep, block: Block, arm: Arm) -> float:
    """Number of bytes per request by which two arms may differ in windows. The reasons are connections and late
    acknowledgements. 0 for a sweep in slices."""
    requests = ratios.column(block.slices.requests)[ratios.of_arm(sweep, block, sweep.places[arm])]
    if isinstance(sweep.turns, Slices) or not requests.any():
        return 0.0
    return ACKNOWLEDGED_BYTES + CONNECTED_BYTES * arm.connections / float(requests.mean())


def _stand_against(limits: Limits, one: Estimate, other: Estimate) -> bool:
    """True if the interval ``one`` contradicts the interval ``other`` in one of two ways.

    - ``one`` lies wholly under 1, and ``other`` lies wholly over 1.
    - ``one`` lies inside 0.95 to 1.05, and ``other`` lies wholly outside.
    """
    low, high = limits.equivalent_low, limits.equivalent_high
    sides = one.high < 1 < other.low
    sizes = low < one.low and one.high < high and (other.high < low or other.low > high)
    return sides or sizes
