"""A row of the table of promises, and the function that tries a promise in each module: ``check(minutes, seed)``. A row
without a goal only states the figure of a program outside this project.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

NO_GOAL = "–"


@dataclass(frozen=True, slots=True)
class Row:
    """A promise, its goal, its figure, and the result."""

    promise: str
    goal: str
    figure: str
    passed: bool
    measured: float | None = None
    """The figure as a number, for a comparison with the bound of a known shortfall."""

    @classmethod
    def stated(cls, promise: str, figure: str) -> Self:
        """A row without a goal, which cannot fall short."""
        return cls(promise, NO_GOAL, figure, passed=True)

    def if_promised(self, is_promised: bool) -> "Row":
        """This row, or a row without a goal, which only states the figure."""
        return self if is_promised else Row.stated(self.promise, self.figure)

    @property
    def states(self) -> bool:
        """True if the row has no goal."""
        return self.goal == NO_GOAL

    def __str__(self) -> str:
        kept = NO_GOAL if self.states else "yes" if self.passed else "NO"
        return f"{self.promise} | {self.goal} | {self.figure} | {kept}"


def absent(tool: str) -> str:
    """The text of the row on an absent tool."""
    return f"{tool} is here to try it"


Check = Callable[[bool, int], list[Row]]
"""Function that tries a promise for minutes, or else for seconds, from a seed. Blocks. Leaves no program running, and
no file."""


def worst(rounds: Sequence[Sequence[Row]], excused: Callable[[Row], bool] = lambda _: False) -> list[Row]:
    """For each row of several rounds, the first failure, or else the last row; with the number of rounds that kept the
    row. A failure without an excuse goes before failures with an excuse."""
    if len(rounds) == 1:
        return list(rounds[0])
    by_promise: dict[str, list[Row]] = {}
    for rows in rounds:
        for row in rows:
            by_promise.setdefault(row.promise, []).append(row)
    found = []
    for promise, rows in by_promise.items():
        fallen = [row for row in rows if not row.passed]
        chosen = next((row for row in fallen if not excused(row)), (fallen or rows[-1:])[0])
        kept = sum(row.passed for row in rows)
        told = "stated" if chosen.states else "kept"
        figure = f"{chosen.figure} ({told} in {kept} of {len(rounds)} rounds)"
        found.append(Row(promise, chosen.goal, figure, kept == len(rounds), chosen.measured))
    return found
