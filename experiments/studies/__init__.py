"""The studies, and what can be run by name."""

from dataclasses import dataclass

from experiments.studies.server_cost import SERVER_COST
from experiments.studies.stock import STOCK
from experiments.study import Study

STUDIES: dict[str, Study] = {
    "stock": STOCK,
    "server_cost": SERVER_COST,
}
"""Every study by its name."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """What ``run NAME`` runs: parts of a study."""

    study: Study
    parts: tuple[str, ...]
    title: str


def experiments() -> dict[str, Experiment]:
    """Every experiment by its name: each study's main parts by the study's name, each other part by its own."""
    found: dict[str, Experiment] = {}
    for name, study in STUDIES.items():
        found[name] = Experiment(study, study.main, study.question)
    for study in STUDIES.values():
        for name, part in study.parts.items():
            if name not in study.main:
                found[name] = Experiment(study, (name,), part.title)
    return found
