"""What claims of several documents say together follows from their verdicts and sides alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from experiments.show.content import Claim, ClaimVerdict, Side, Theme
from experiments.show.themes import stances, table

POOL = Theme.POOL


def claim(verdict: ClaimVerdict, denies: bool = False, theme: Theme | None = POOL) -> Claim:
    """A claim about the pool."""
    return Claim("A claim.", verdict, "Numbers.", theme, denies)


FOR, AGAINST, OPEN = claim("CONFIRMED"), claim("CONTRADICTED"), claim("NOT MEASURED")


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"a": [FOR], "b": [FOR, FOR]}, "a and b agree: their data speak for it."),
        ({"a": [AGAINST], "b": [AGAINST], "c": [AGAINST]}, "a, b and c agree: their data speak against it."),
        ({"a": [FOR], "b": [AGAINST]}, "They do not agree: for it a, against it b."),
        ({"a": [FOR, AGAINST]}, "They do not agree: for it a, against it a."),
        ({"a": [FOR], "b": [OPEN]}, "Only a decides it: its data speak for it."),
        ({"a": [OPEN], "b": [claim("INCONCLUSIVE"), claim("NOT TESTABLE")]}, "No claim about it is decided."),
        ({"a": [claim("CONFIRMED", denies=True)], "b": [AGAINST]}, "a and b agree: their data speak against it."),
        ({"a": [claim("CONTRADICTED", denies=True)], "b": [FOR]}, "a and b agree: their data speak for it."),
    ],
)
def test_the_sentence_follows_from_the_verdicts(claims: Mapping[str, Sequence[Claim]], sentence: str) -> None:
    """A claim that denies its theme counts the other way round; what is open counts for neither side."""
    (found,) = stances(claims)
    assert found.sentence == sentence


@pytest.mark.parametrize("verdict", ["CONFIRMED", "CONTRADICTED", "INCONCLUSIVE"])
@pytest.mark.parametrize("side", ["for", "against", "open"])
def test_a_side_of_its_own_goes_before_the_verdict(verdict: ClaimVerdict, side: Side) -> None:
    """A claim may say more than its theme: its verdict is then not the theme's."""
    own = replace(claim(verdict, denies=True), side=side)
    (found,) = stances({"a": [own]})
    counts = {"for": found.for_it, "against": found.against, "open": found.open}
    assert {name for name, of in counts.items() if of} == {side}


def test_claims_without_a_theme_say_nothing() -> None:
    """Nor has a theme that no claim is about a line."""
    assert stances({"a": [claim("CONFIRMED", theme=None)]}) == ()


def test_the_table_counts_each_study() -> None:
    """On each side."""
    (line,) = table(stances({"a": [FOR, FOR, OPEN], "b": [AGAINST]})).lines
    assert line[2:] == ("a 2", "b 1", "a 1")
