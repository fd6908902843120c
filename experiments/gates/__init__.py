"""Gates: when the tool refuses to conclude. Twenty, in one table, each pure functions from evidence to refusals.

A gate looks at a run, a comparison, an interval, a family, a sentence or a machine: at one or several of them. What it
looks at is plain values (``evidence``); what it says is what is wrong, with the numbers, what to do, and how far the
refusal reaches (``refusal``). ``refusals`` runs every gate on a piece of evidence and on all that it rests on;
``verdict_refused`` is what leaves a comparison no verdict. Nothing here measures, reads a file or knows a study.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import assert_never

from experiments.gates.comparison_gates import (
    arms_differ_otherwise,
    factor_changed_nothing,
    order_confounded,
    too_few_blocks,
)
from experiments.gates.evidence import (
    ComparisonEvidence,
    Evidence,
    FamilyEvidence,
    IntervalEvidence,
    MachineEvidence,
    RunEvidence,
    SentenceEvidence,
)
from experiments.gates.inference_gates import (
    dependent_blocks,
    dependent_requests,
    family_uncorrected,
    interval_of_comparison,
    no_interval,
    uncorrected,
)
from experiments.gates.law_gates import laws_broken
from experiments.gates.load_gates import arrivals_not_as_declared, load_not_kept
from experiments.gates.machine_gates import effect_too_small, no_passing_aa
from experiments.gates.predicates import Shows
from experiments.gates.refusal import Conclusion, Refusal, forbidding
from experiments.gates.run_gates import (
    disturbed,
    fewer_connections_than_declared,
    not_steady,
    percentiles_beyond_the_sample,
    replies_in_doubt,
    timer_includes_idling,
    wrong_clock_or_unit,
)
from experiments.gates.sentence_gates import ascribed_to_one_of_two, contradicted, no_equivalence_test
from experiments.stats import Verdict


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate, and how it looks at each kind of evidence; None: it does not."""

    number: int
    name: str
    run: Callable[[RunEvidence], Iterable[Refusal]] | None = None
    comparison: Callable[[ComparisonEvidence], Iterable[Refusal]] | None = None
    interval: Callable[[IntervalEvidence], Iterable[Refusal]] | None = None
    family: Callable[[FamilyEvidence], Iterable[Refusal]] | None = None
    sentence: Callable[[SentenceEvidence], Iterable[Refusal]] | None = None
    machine: Callable[[MachineEvidence], Iterable[Refusal]] | None = None

    def look(self, evidence: Evidence) -> list[Refusal]:
        """Its refusals of this evidence, and not of what that rests on."""
        match evidence:
            case RunEvidence():
                found = self.run(evidence) if self.run else ()
            case ComparisonEvidence():
                found = self.comparison(evidence) if self.comparison else ()
            case IntervalEvidence():
                found = self.interval(evidence) if self.interval else ()
            case FamilyEvidence():
                found = self.family(evidence) if self.family else ()
            case SentenceEvidence():
                found = self.sentence(evidence) if self.sentence else ()
            case MachineEvidence():
                found = self.machine(evidence) if self.machine else ()
            case _:
                assert_never(evidence)
        return list(found)


GATES: tuple[Gate, ...] = (
    Gate(1, "the timer includes idle waiting", run=timer_includes_idling),
    Gate(2, "the arms differ in more than the declared factor", comparison=arms_differ_otherwise),
    Gate(
        3,
        "a declared factor changed nothing that it should change",
        run=fewer_connections_than_declared,
        comparison=factor_changed_nothing,
    ),
    Gate(4, "replies not validated, too many errors, or errors left out", run=replies_in_doubt),
    Gate(5, "the window is not steady: a trend, connecting, or first calls in it", run=not_steady),
    Gate(6, "a law that always holds is broken", run=laws_broken),
    Gate(7, "the load was late, off its rate, or at its own limit", run=load_not_kept),
    Gate(8, "arrivals do not follow the declared process", run=arrivals_not_as_declared),
    Gate(9, "too few blocks, or one process start per cell", comparison=too_few_blocks),
    Gate(10, "order confounded with an arm", comparison=order_confounded),
    Gate(
        11,
        "autocorrelated samples treated as independent",
        comparison=dependent_blocks,
        interval=dependent_requests,
    ),
    Gate(
        12,
        "an interval that is none, or crosses zero where it cannot",
        comparison=interval_of_comparison,
        interval=no_interval,
    ),
    Gate(13, "a percentile beyond what the sample carries", run=percentiles_beyond_the_sample),
    Gate(14, "steal or calibration drift over the limit", run=disturbed, machine=disturbed),
    Gate(15, "many comparisons without correction", comparison=uncorrected, family=family_uncorrected),
    Gate(16, "a sentence contradicted by its own table", sentence=contradicted),
    Gate(17, "no difference, without an equivalence test", sentence=no_equivalence_test),
    Gate(18, "an effect ascribed to one factor while two differ", sentence=ascribed_to_one_of_two),
    Gate(19, "a wrong clock or unit", run=wrong_clock_or_unit),
    Gate(
        20,
        "no passing A/A run here, or an effect too small for the instrument",
        comparison=effect_too_small,
        machine=no_passing_aa,
    ),
)


def refusals(evidence: Evidence, gates: Iterable[Gate] = GATES) -> list[Refusal]:
    """Every refusal of a piece of evidence, and of what it rests on: none if all may be concluded.

    A comparison rests on its runs and its machine. A sentence rests on its comparisons; of those it gets what forbids
    their verdicts, and nothing where it says no more than that they are INCONCLUSIVE.
    """
    gates = tuple(gates)
    found = [refusal for gate in gates for refusal in gate.look(evidence)]
    match evidence:
        case ComparisonEvidence():
            below: list[Evidence] = list(evidence.runs)
            if evidence.machine is not None:
                below.append(evidence.machine)
            found += [refusal for each in below for refusal in refusals(each, gates)]
        case SentenceEvidence():
            if any(claim != Shows(Verdict.INCONCLUSIVE) for claim in evidence.claims):
                found += [
                    refusal for each in evidence.comparisons for refusal in verdict_refused(each, refusals(each, gates))
                ]
        case RunEvidence() | IntervalEvidence() | FamilyEvidence() | MachineEvidence():
            pass
        case _:
            assert_never(evidence)
    return list(dict.fromkeys(found))


def verdict_refused(comparison: ComparisonEvidence, found: Iterable[Refusal] | None = None) -> list[Refusal]:
    """Those refusals that forbid the comparison's verdict; ``found`` may add its family's. None: all of its own."""
    rests_on = {comparison.family, *(run.run_id for run in comparison.runs)} - {""}
    if comparison.machine is not None:
        rests_on.add(comparison.machine.machine)
    conclusion = Conclusion("verdict", comparison.name, frozenset(rests_on), comparison.measure, comparison.rank)
    return forbidding(refusals(comparison) if found is None else found, conclusion)
