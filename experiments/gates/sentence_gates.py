"""Gates 16, 17 and 18: whether a sentence says what its table, its tests and its design bear out.

A sentence is a text with the predicates that it claims. The predicates are evaluated on all cells and comparisons; and
a strong word in the text ("always", "grows with", "no difference", "because of") must have a predicate behind it, so
that the text cannot claim more than was evaluated.
"""

from collections.abc import Iterator

from experiments.gates.comparison_gates import FOLLOWS, differing
from experiments.gates.evidence import SentenceEvidence
from experiments.gates.predicates import BecauseOf, NoDifference, Shows, Strong, backs, contradictions, strong_words
from experiments.gates.refusal import Refusal, Scope
from experiments.stats import Verdict

_SHOWN = 3
"""Contradictions that are named; the others are counted."""


def contradicted(sentence: SentenceEvidence) -> Iterator[Refusal]:
    """Gate 16."""
    faults: list[str] = []
    for claim in sentence.claims:
        match claim:
            case Shows():
                faults += [
                    f"{comparison.name} is {comparison.verdict.value}, not {claim.verdict.value}"
                    for comparison in sentence.comparisons
                    if comparison.verdict is not claim.verdict
                ]
                faults += [] if sentence.comparisons else ["no comparison stands behind it"]
            case NoDifference() | BecauseOf():
                continue
            case _:
                faults += contradictions(claim, sentence.cells)
    if faults:
        more = f" (and {len(faults) - _SHOWN} more)" if len(faults) > _SHOWN else ""
        what = f"its own table contradicts it: {'; '.join(faults[:_SHOWN])}{more}"
        yield Refusal(16, sentence.text, what, "say in how many cells it holds", Scope.SENTENCE)
    for kind, word in strong_words(sentence.text):
        if kind in (Strong.UNIVERSAL, Strong.MONOTONE) and not _backed(sentence, kind):
            what = f"nothing was evaluated that allows it to say “{word}”"
            yield Refusal(16, sentence.text, what, "give it the predicate, or leave the word out", Scope.SENTENCE)


def no_equivalence_test(sentence: SentenceEvidence) -> Iterator[Refusal]:
    """Gate 17."""
    words = [word for kind, word in strong_words(sentence.text) if kind is Strong.ALIKE]
    claimed = any(isinstance(claim, NoDifference) for claim in sentence.claims)
    if not words and not claimed:
        return
    do = "test for equivalence within 0.95 to 1.05; a difference that was not found is INCONCLUSIVE"
    if words and not _backed(sentence, Strong.ALIKE):
        yield Refusal(17, sentence.text, f"it says “{words[0]}” without an equivalence test", do, Scope.SENTENCE)
    elif not sentence.comparisons:
        yield Refusal(17, sentence.text, "it claims no difference, and names no comparison", do, Scope.SENTENCE)
    else:
        others = [each for each in sentence.comparisons if each.verdict is not Verdict.EQUIVALENT]
        if others and claimed:
            listed = "; ".join(
                f"{each.name} is {each.verdict.value} ({each.interval.low:.3g} to {each.interval.high:.3g})"
                for each in others[:_SHOWN]
            )
            yield Refusal(17, sentence.text, f"it claims no difference, and {listed}", do, Scope.SENTENCE)


def ascribed_to_one_of_two(sentence: SentenceEvidence) -> Iterator[Refusal]:
    """Gate 18."""
    causes = [claim.factor for claim in sentence.claims if isinstance(claim, BecauseOf)]
    words = [word for kind, word in strong_words(sentence.text) if kind is Strong.CAUSE]
    do = "compare settings that differ in that factor alone"
    if words and not causes:
        yield Refusal(18, sentence.text, f"it says “{words[0]}” and names no factor to check", do, Scope.SENTENCE)
    for cause in causes:
        if not sentence.comparisons:
            what = f"it ascribes an effect to {cause}, and names no comparison"
            yield Refusal(18, sentence.text, what, do, Scope.SENTENCE)
        for comparison in sentence.comparisons:
            differ = differing(comparison)
            if cause not in differ:
                what = f"it ascribes an effect to {cause}, which is the same in both arms of {comparison.name}"
                yield Refusal(18, sentence.text, what, do, Scope.SENTENCE)
            elif len(_roots(differ, cause)) > 1:
                listed = "; ".join(f"{name}: {above} against {below}" for name, (above, below) in differ.items())
                what = f"it ascribes an effect to {cause}, and {comparison.name} differs in {listed}"
                yield Refusal(18, sentence.text, what, do, Scope.SENTENCE)


def _backed(sentence: SentenceEvidence, kind: Strong) -> bool:
    return any(backs(claim, kind) for claim in sentence.claims)


def _roots(differ: dict[str, tuple[str, str]], cause: str) -> set[str]:
    """What differs, but for what follows from the cause."""
    return differ.keys() - FOLLOWS.get(cause, frozenset())
