"""Measurements of a part by name: comparisons and means of its own sweep and of the sweeps beside it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments.design.setting import Setting
from experiments.judge.cold import ColdJudged
from experiments.judge.points import Point, points
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.kinds.cold import ColdRow
from experiments.results.observed import ALL
from experiments.show.content import Seen
from experiments.show.sentences import listed, ratio_sentence

NO_GO = "Go's servers were not measured here: `make peers` builds them."

DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True)
class Measured:
    """Comparisons and points by name, over all sweeps; and the cold runs."""

    parts: Mapping[str, Judgement]
    judged: Mapping[str, Judged]
    points: Mapping[Setting, Point]
    cold: tuple[ColdRow, ...]
    cold_whole: bool
    """True where all planned blocks of the cold runs were measured."""

    @property
    def has_go(self) -> bool:
        """True where servers in Go were measured."""
        return any(arm.setting["language"] == "go" for each in self.parts.values() for arm in each.sweep.arms)

    def found(self, *names: str) -> tuple[Judged, ...]:
        """Comparisons of these names that have a value."""
        return tuple(self.judged[name] for name in names if name in self.judged)

    def told(self, name: str, above: str, below: str) -> str:
        """A comparison as its verdict has it; ``above`` and ``below`` are words within a sentence."""
        judged = self.judged.get(name)
        return f"Not known: {above} beside {below}." if judged is None else ratio_sentence(judged, above, below)

    def brief(self, *names: str) -> str:
        """Entries of a list: each comparison's title, numbers and verdict, or the reason for a missing verdict."""
        return (
            " ".join(listed(each) for each in self.found(*names)) or "No two windows of it were answered side by side."
        )

    def requests(self) -> int:
        """Number of requests counted in all sweeps, of the arms that have a point."""
        return sum(point.times.count for point in self.points.values())

    def errors(self) -> int:
        """Number of these requests without a valid reply, and of such calls in cold runs."""
        return sum(point.errors for point in self.points.values()) + sum(row.errors for row in self.cold)


def measured(seen: Seen) -> Measured:
    """All measurements of a part."""
    parts = {seen.main.sweep.part: seen.main, **seen.after}
    judged = {name: each for judgement in parts.values() for name, each in judgement.judged.items()}
    cold = seen.of(ColdJudged) or ColdJudged()
    return Measured(parts, judged, dict(_points(parts)), tuple(cold.rows), cold.is_whole)


def _points(parts: Mapping[str, Judgement]) -> Iterator[tuple[Setting, Point]]:
    for judgement in parts.values():
        for (arm, request), point in points(judgement.sweep, judgement.blocks).items():
            if request == ALL and not arm.copy:
                yield arm.setting, point
