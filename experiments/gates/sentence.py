"""Sentences for a report: each made from predicates that hold, and not to be had otherwise.

``Sentence`` cannot be constructed where a gate refuses it, so a report that prints nothing else cannot contradict its
tables.
"""

from dataclasses import dataclass

from experiments.gates import refusals
from experiments.gates.evidence import SentenceEvidence


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that every gate let pass. ValueError, with the refusals, for any other."""

    evidence: SentenceEvidence

    def __post_init__(self) -> None:
        if not self.evidence.claims:
            raise ValueError(f"{self.evidence.text!r} claims nothing: a text that states no result needs no Sentence")
        if refused := refusals(self.evidence):
            raise ValueError("; ".join(map(str, refused)))

    def __str__(self) -> str:
        return self.evidence.text
