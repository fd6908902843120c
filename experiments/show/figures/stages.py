"""Stages of a request inside the server, as parts of the mean time in the server.

Means are over all requests, so that the means of the stages add up to the mean time in the server. A server that
records stages needs 1 to 3 µs more for each request (``stock_service/rpc/timeline.py``). These values have no verdicts.
"""

from collections.abc import Mapping, Sequence

from experiments.results.stages import StageSummary
from experiments.show.figures import shares
from experiments.show.figures.style import Picture
from experiments.show.numbers import number, time_unit

STAGES = {
    "queue_wait": "until a thread runs it: wake-up, GIL",
    "preparation": "decoding, checks; on gRPC its library, too",
    "lock_wait": "waits for the lock",
    "service": "the work itself",
    "reply": "sends the reply",
}
"""Labels of the stages, in the order of a request."""

VIOLATIONS = 0.001
"""Limit of the share of requests whose stages do not add up. Above the limit, the label of the bar has a warning."""


def picture(name: str, title: str, settings: Mapping[str, Sequence[StageSummary]]) -> Picture:
    """Picture with a bar for each setting. ``settings``: the summaries of the blocks, by setting. A setting without
    summaries has no bar."""
    means = {label: {stage: _mean(blocks, stage) for stage in STAGES} for label, blocks in settings.items() if blocks}
    unit, factor = time_unit(sum(each.values()) for each in means.values())
    waits = [each["lock_wait"] for each in means.values()] or [0.0]
    lock = f" ({number(min(waits))} to {number(max(waits))} µs)"
    names = {stage: text + lock * (stage == "lock_wait") for stage, text in STAGES.items()}
    bars = [
        shares.Bar(label + _warning(settings[label]), {names[stage]: each[stage] / factor for stage in STAGES})
        for label, each in means.items()
    ]
    return shares.picture(name, title, f"Mean time in the server, {unit}", bars)


def _mean(blocks: Sequence[StageSummary], stage: str) -> float:
    """Mean of a stage in µs, over all requests of all blocks."""
    total = sum(each.count for each in blocks)
    return sum(each.count * getattr(each, stage).mean_us for each in blocks) / total if total else 0.0


def _warning(blocks: Sequence[StageSummary]) -> str:
    """Words on the share of requests whose stages do not add up. Empty for a share up to ``VIOLATIONS``."""
    total = sum(each.count for each in blocks)
    share = sum(each.violations for each in blocks) / total if total else 0.0
    return f", {share:.1%} do not add up" if share > VIOLATIONS else ""
