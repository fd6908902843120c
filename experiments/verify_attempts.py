"""Whether the attempts in a sweep's records are those that the rule of ``repetition`` gives: it is gone through again.

So no attempt that was written can be left out, nor chosen to count instead of the last. A run's attempts are written
when the last has ended: what an interruption cuts off is not there, and --resume begins that run anew. Older records do
not say how many attempts there were, since every run had one; nothing is said of them.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from experiments.repetition import ATTEMPTS_MAX, STEAL_SHARE_MAX, is_done_again, repetitions_max, stolen_too_much
from experiments.run_records import RUNS_FILE, RunRecord


def attempt_faults(records: Sequence[RunRecord], runs: int) -> Iterator[str]:
    """Every fault in a sweep's records, in the order of the file; ``runs``: how many the whole sweep has."""
    if all((record.attempt, record.attempts) == (1, None) for record in records):
        return
    left = repetitions_max(runs)
    for run_id, group in groupby(enumerate(records, start=1), key=lambda numbered: numbered[1].run.run_id):
        lines, attempts = zip(*group, strict=True)
        where = f"{RUNS_FILE} line {lines[0]}: run {run_id}"
        yield from (f"{where} {fault}" for fault in _faults(attempts, left))
        left -= len(attempts) - 1
        if len(attempts) > 1 and left < 0:
            yield f"{where} was done again, beyond the {repetitions_max(runs)} times in a sweep of {runs} runs"


def _faults(attempts: Sequence[RunRecord], left: int) -> Iterator[str]:
    """Of the attempts of one run; ``left``: repetitions that were left before it."""
    count, last = len(attempts), attempts[-1]
    found = [(record.attempt, record.attempts) for record in attempts]
    if found != [(number, count) for number in range(1, count + 1)]:
        named = ", ".join(f"{attempt} of {of}" for attempt, of in found)
        yield f"has attempts {named}, and {count} in the file"
    if any((record.study, record.run) != (last.study, last.run) for record in attempts):
        yield "has attempts of another setting"
    if count > ATTEMPTS_MAX:
        yield f"has {count} attempts (allowed {ATTEMPTS_MAX})"
    for number, record in enumerate(attempts[:-1], start=1):
        share = record.seen.steal_share
        if not stolen_too_much(share):
            yield f"was done again after attempt {number}, of which {_stolen(share)}"
        if record.raw_digest is not None:
            yield f"has requests' own times of attempt {number}, which does not count"
    if is_done_again(last.seen.steal_share, count, left - count + 1):
        yield f"was not done again after attempt {count}, of which {_stolen(last.seen.steal_share)}"


def _stolen(share: float | None) -> str:
    seen = "nobody counted the stolen time" if share is None else f"{share:.2%} were stolen"
    return f"{seen} (allowed {STEAL_SHARE_MAX:.0%})"
