"""The twenty gates: each refuses its bad fixture and accepts its good one, and a broken gate is noticed."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.gates import GATES, Gate, refusals
from experiments.gates.evidence import Evidence, SentenceEvidence
from experiments.gates.predicates import strong_words
from experiments.gates.refusal import Refusal, Scope
from tests.unit.experiments.gates.fixtures import FIXTURES, Fixture

PAGE = Path(__file__).resolve().parents[4] / "experiments" / "README.md"


def faults(fixture: Fixture, gates: Iterable[Gate] = GATES) -> list[str]:
    """What is wrong with the gates, as this fixture shows; nothing if they do as they should."""
    gates = tuple(gates)
    wrong = []
    if (found := {refusal.gate for refusal in refusals(fixture.bad, gates)}) != {fixture.gate} | fixture.also:
        wrong.append(f"the bad fixture of gate {fixture.gate} is refused by {sorted(found)}")
    wrong += [f"the good fixture of gate {fixture.gate}: {refusal}" for refusal in refusals(fixture.good, gates)]
    return wrong


def mutated(number: int, found: list[Refusal]) -> tuple[Gate, ...]:
    """The table with that gate always giving ``found``."""

    def look(_: Evidence) -> list[Refusal]:
        return found

    return tuple(
        gate
        if gate.number != number
        else Gate(
            gate.number,
            gate.name,
            run=look if gate.run else None,
            comparison=look if gate.comparison else None,
            interval=look if gate.interval else None,
            family=look if gate.family else None,
            sentence=look if gate.sentence else None,
            machine=look if gate.machine else None,
        )
        for gate in GATES
    )


def test_there_are_twenty_gates_and_forty_fixtures_in_order() -> None:
    """Numbers as in the measurement rules, one name each."""
    assert [gate.number for gate in GATES] == list(range(1, 21))
    assert [fixture.gate for fixture in FIXTURES] == list(range(1, 21))
    assert len({gate.name for gate in GATES}) == 20


def test_every_gate_is_in_the_instruments_page_by_its_number() -> None:
    """A report that names a gate sends its reader there."""
    text = PAGE.read_text(encoding="utf-8")
    missing = [gate.number for gate in GATES if f"| {gate.number} | {gate.name} |" not in text]
    assert missing == []


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: f"gate-{fixture.gate}")
def test_a_gate_refuses_its_bad_fixture_and_no_gate_its_good_one(fixture: Fixture) -> None:
    """The bad one by that gate and those that it names; the good one by none."""
    assert faults(fixture) == []


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: f"gate-{fixture.gate}")
def test_a_gate_that_never_refuses_is_noticed(fixture: Fixture) -> None:
    """Its bad fixture is let pass, and the check says so."""
    assert faults(fixture, mutated(fixture.gate, []))


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: f"gate-{fixture.gate}")
def test_a_gate_that_always_refuses_is_noticed(fixture: Fixture) -> None:
    """Its good fixture is refused, and the check says so."""
    assert faults(fixture, mutated(fixture.gate, [Refusal(fixture.gate, "x", "x", "x", Scope.RUN)]))


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: f"gate-{fixture.gate}")
def test_a_refusal_says_what_is_wrong_with_a_number_and_what_to_do_in_one_line(fixture: Fixture) -> None:
    """Clear without this source."""
    for refusal in refusals(fixture.bad):
        assert refusal.what
        assert refusal.do
        assert "\n" not in str(refusal)
        assert str(refusal).startswith(f"gate {refusal.gate}, ")
        assert str(refusal).endswith(".")
        assert isinstance(fixture.bad, SentenceEvidence) or not list(strong_words(refusal.what))


def test_the_gates_are_pure() -> None:
    """The same evidence gives the same refusals, in the same order."""
    assert all(refusals(fixture.bad) == refusals(replace(fixture).bad) for fixture in FIXTURES)
