"""Result of the claims of several documents on one theme. Their verdicts and sides decide the sentence. Pure.

A claim that says so and is CONFIRMED speaks for its theme, as does one that denies it and is CONTRADICTED. The other
way round it speaks against it. Every other verdict leaves the claim open. A claim that says more than its theme carries
a side of its own, which is taken in place of its verdict. Left out: how much each claim weighs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments.show.content import Claim, Side, Theme
from experiments.show.numbers import NOTHING, enumeration
from experiments.show.tables import Table


@dataclass(frozen=True, slots=True)
class Stance:
    """A theme, with the numbers of claims of each study that speak for it, against it, or are open."""

    theme: Theme
    for_it: Mapping[str, int]
    against: Mapping[str, int]
    open: Mapping[str, int]

    @property
    def sentence(self) -> str:
        """Sentence on the result of the studies together."""
        if self.for_it and self.against:
            return f"They do not agree: for it {enumeration(self.for_it)}, against it {enumeration(self.against)}."
        if not self.for_it and not self.against:
            return "No claim about it is decided."
        decided, words = (self.for_it, "for it") if self.for_it else (self.against, "against it")
        if len(decided) > 1:
            return f"{enumeration(decided)} agree: their data speak {words}."
        return f"Only {enumeration(decided)} decides it: its data speak {words}."


def card(claims: Iterable[Claim]) -> Table:
    """The replication card."""
    lines = tuple((claim.text, f"**{claim.verdict}**", claim.said) for claim in claims)
    return Table(("What the original says", "Our data", "Our numbers"), lines, 3)


def stances(claims: Mapping[str, Sequence[Claim]]) -> tuple[Stance, ...]:
    """Every theme that any claim is about; ``claims`` are each study's, by its name."""
    return tuple(_stances(claims))


def table(found: Iterable[Stance]) -> Table:
    """A line for each theme."""
    lines = tuple(
        (each.theme.value, each.sentence, *(_counted(of) for of in (each.for_it, each.against, each.open)))
        for each in found
    )
    return Table(("Theme", "What the studies say together", "For it", "Against it", "Open"), lines, 5)


def _stances(claims: Mapping[str, Sequence[Claim]]) -> Iterator[Stance]:
    for theme in Theme:
        sides: dict[Side, Counter[str]] = {"for": Counter(), "against": Counter(), "open": Counter()}
        for study, of_one in claims.items():
            for claim in of_one:
                if claim.theme is theme:
                    sides[_side(claim)][study] += 1
        if any(sides.values()):
            yield Stance(theme, sides["for"], sides["against"], sides["open"])


def _side(claim: Claim) -> Side:
    if claim.side is not None:
        return claim.side
    if claim.verdict not in ("CONFIRMED", "CONTRADICTED"):
        return "open"
    return "for" if (claim.verdict == "CONFIRMED") is not claim.denies else "against"


def _counted(studies: Mapping[str, int]) -> str:
    return ", ".join(f"{study} {count}" for study, count in studies.items()) or NOTHING
