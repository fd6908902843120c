"""Sentences are made from what holds, and cannot be made otherwise."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.gates import refusals, verdict_refused
from experiments.gates.evidence import ComparisonEvidence, SentenceEvidence
from experiments.gates.predicates import BecauseOf, Cell, GrowsWith, NoDifference, Predicate, Shows
from experiments.gates.sentence import Sentence
from experiments.stats import Verdict
from tests.unit.experiments.gates.planted_evidence import closed_run, compared, transports

UNDECIDED = Shows(Verdict.INCONCLUSIVE)


def by_clients(values: Iterable[float]) -> tuple[Cell, ...]:
    """A value for each number of clients."""
    return tuple(Cell({"clients": clients}, value) for clients, value in enumerate(values, 1))


def few_blocks() -> ComparisonEvidence:
    """A comparison that is called FASTER from five blocks."""
    return compared(closed_run(), closed_run(transport="grpc"), blocks=5)


def gates(text: str, *claims: Predicate, of: ComparisonEvidence | None = None) -> set[int]:
    """By which gates a sentence is refused."""
    return {refusal.gate for refusal in refusals(SentenceEvidence(text, claims, (), () if of is None else (of,)))}


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=6))
def test_a_sentence_exists_just_where_its_table_bears_it_out(values: list[float]) -> None:
    """It says that it grows, from values that grow, and from no others."""
    evidence = SentenceEvidence("Latency grows with the clients.", (GrowsWith("clients"),), by_clients(values))
    if all(before < after for before, after in pairwise(values)):
        assert str(Sentence(evidence)) == evidence.text
    else:
        with pytest.raises(ValueError, match="gate 16"):
            Sentence(evidence)


def test_a_sentence_that_claims_nothing_is_none() -> None:
    """A text without a predicate is no result."""
    with pytest.raises(ValueError, match="claims nothing"):
        Sentence(SentenceEvidence("Sockets are quick.", ()))


def test_a_word_needs_its_predicate() -> None:
    """The verdict FASTER does not allow "always", nor the growth of a table "no difference"."""
    faster = Shows(Verdict.FASTER)
    assert gates("Sockets take less time.", faster, of=transports()) == set()
    assert gates("Sockets always take less time.", faster, of=transports()) == {16}
    assert gates("It grows with the clients.", faster, of=transports()) == {16}
    assert gates("It makes no difference.", faster, of=transports()) == {17}
    assert gates("Less time because of the transport.", faster, of=transports()) == {18}
    assert gates("Less time because of the transport.", faster, BecauseOf("transport"), of=transports()) == set()


def test_a_verdict_is_said_of_a_comparison_that_has_it() -> None:
    """Not of another, and not of none."""
    assert gates("Slower.", Shows(Verdict.SLOWER), of=transports()) == {16}
    assert gates("Faster.", Shows(Verdict.FASTER)) == {16}
    assert gates("No difference.", NoDifference()) == {17}
    assert gates("Faster because of it.", Shows(Verdict.FASTER), BecauseOf("size"), of=transports()) == {18}
    assert gates("Because of it.", BecauseOf("size")) == {18}


def test_the_same_is_said_of_what_is_equivalent() -> None:
    """By its verdict, or by the claim of no difference."""
    same = compared(closed_run(), closed_run(transport="grpc"), effect=1.0)
    same = replace(same, verdict=Verdict.EQUIVALENT)
    assert gates("They take the same time.", Shows(Verdict.EQUIVALENT), of=same) == set()
    assert gates("They take the same time.", NoDifference(), of=same) == set()
    assert gates("They take the same time.", NoDifference(), of=transports()) == {17}


def test_a_cause_may_bring_its_consequences() -> None:
    """The size of a message changes its bytes, and nothing else does."""
    large, small = closed_run(size=1000), closed_run(size=100)
    large = replace(large, seen={**large.seen, "request_bytes": 1000, "reply_bytes": 1000})
    comparison = replace(compared(large, small, "size", effect=2.0), verdict=Verdict.SLOWER)
    assert gates("Slower due to the size.", Shows(Verdict.SLOWER), BecauseOf("size"), of=comparison) == set()
    assert gates("Slower due to the bytes.", Shows(Verdict.SLOWER), BecauseOf("reply_bytes"), of=comparison) == {18}


def test_a_refused_comparison_lets_it_be_said_that_it_is_undecided() -> None:
    """And nothing else: no verdict is left of it but INCONCLUSIVE."""
    comparison = few_blocks()
    assert comparison.verdict is Verdict.FASTER
    assert verdict_refused(comparison)
    assert 9 in gates("Sockets take less time.", Shows(Verdict.FASTER), of=comparison)
    assert gates("It is not decided.", UNDECIDED, of=replace(comparison, verdict=Verdict.INCONCLUSIVE)) == set()
    assert verdict_refused(transports()) == []


def test_many_contradictions_are_counted() -> None:
    """Three are named."""
    (refusal,) = refusals(SentenceEvidence("It grows.", (GrowsWith("clients"),), by_clients([9, 8, 7, 6, 5, 4])))
    assert refusal.what.count("from clients") == 3
    assert refusal.what.endswith("(and 2 more)")


def test_one_claim_that_concludes_is_enough_to_need_sound_comparisons() -> None:
    """Undecided, and yet a cause: five blocks do not carry that."""
    unsettled = replace(few_blocks(), verdict=Verdict.INCONCLUSIVE)
    assert 9 in gates("It is undecided because of noise.", UNDECIDED, BecauseOf("transport"), of=unsettled)
    assert 17 in gates("No difference.", NoDifference(), Shows(Verdict.FASTER), of=transports())
