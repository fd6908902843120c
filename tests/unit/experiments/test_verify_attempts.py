"""``verify`` on runs that were done again: as the rule has it, or named."""

import re
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from experiments import gallery, report, verify
from experiments.design import Design, Factor, Setting, cross
from experiments.run_records import RUNS_FILE
from tests.unit.experiments import planted_runs
from tests.unit.experiments.edited_folder import Document, documents_of, edit, first, found, keep, sealed
from tests.unit.experiments.planted_runs import Stolen

DESIGN = Design(cross(Setting("idle", 0.01, 0.02, clients=0), Factor("connections", (1, 2, 3))), blocks=10, seed=4)
"""30 runs, so that 2 repetitions are allowed, of a server that nobody calls, which take no time."""

IDS = [run.run_id for run in DESIGN.runs()]

AGAIN = 3
"""The line of the run that was done again, its first attempt; its second is on the next. One more is allowed."""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep in which one run was done again once, of the two times that are allowed."""
    folder = tmp_path_factory.mktemp("swept")
    Stolen({IDS[AGAIN - 1]: [0.05, 0.01]}).sweep(folder, DESIGN)
    return folder


@pytest.fixture
def repeated(swept: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return shutil.copytree(swept, tmp_path / "repeated")


Change = Callable[[list[Document]], list[Document]]
"""Of all lines of a sweep's records."""


def stolen(document: Document, share: float) -> Document:
    """A record of an attempt of which so much was stolen, with a digest of its own."""
    machine = document["seen"]["machine"] | {"steal_share": share}
    return sealed(document | {"seen": document["seen"] | {"machine": machine}})


def attempts(document: Document, *shares: float) -> list[Document]:
    """Attempts of one run, of which so much was stolen."""
    of = len(shares)
    return [stolen(document | {"attempt": n, "attempts": of}, share) for n, share in enumerate(shares, start=1)]


def without(line: int) -> Change:
    """One line less."""
    return lambda documents: documents[: line - 1] + documents[line:]


def instead(line: int, count: int, *shares: float) -> Change:
    """In place of so many lines: attempts of that run."""
    return lambda documents: [
        *documents[: line - 1],
        *attempts(documents[line - 1], *shares),
        *documents[line - 1 + count :],
    ]


def altered(line: int, **changes: Any) -> Change:
    """One line with other values, and a digest of its own."""
    return lambda documents: [*documents[: line - 1], sealed(documents[line - 1] | changes), *documents[line:]]


def two_before(documents: list[Document]) -> list[Document]:
    """The first two runs done again too, so that the third is once too often: it is on line 5 then."""
    return [each for document in documents[:2] for each in attempts(document, 0.05, 0.01)] + documents[2:]


def swapped(documents: list[Document]) -> list[Document]:
    """The attempts of the run in the other order."""
    return [*documents[: AGAIN - 1], documents[AGAIN], documents[AGAIN - 1], *documents[AGAIN + 1 :]]


def of_another_setting(documents: list[Document]) -> list[Document]:
    """An attempt with other requests than the run's."""
    run = documents[AGAIN - 1]["run"]
    return altered(AGAIN, run=run | {"seed": run["seed"] + 1})(documents)


def as_older(document: Document) -> Document:
    """A record that says nothing of attempts."""
    return sealed({name: value for name, value in document.items() if name not in ("attempt", "attempts")})


@pytest.mark.slow
def test_a_sweep_in_which_runs_were_done_again_verifies(tmp_path: Path) -> None:
    """Its figures, its report and its requests' own times are of the attempts that count."""
    runs = planted_runs.DESIGN.runs()
    Stolen({runs[3].run_id: [0.05, 0.03, 0.01]}, keep_records=True).sweep(tmp_path, planted_runs.DESIGN)
    gallery.draw(tmp_path)
    report.write(tmp_path)
    assert found(tmp_path) == []
    assert len(gallery.read(tmp_path).records) == len(runs)
    assert "1 run was done again at once" in (tmp_path / report.MARKDOWN).read_text()


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (without(AGAIN), AGAIN, r"has attempts 2 of 2, and 1 in the file"),
        (without(AGAIN + 1), AGAIN, r"has attempts 1 of 2, and 1 in the file"),
        (swapped, AGAIN, r"has attempts 2 of 2, 1 of 2, and 2 in the file"),
        (altered(AGAIN, attempt=2), AGAIN, r"has attempts 2 of 2, 2 of 2, and 2 in the file"),
        (altered(AGAIN + 1, attempts=3), AGAIN, r"has attempts 1 of 2, 2 of 3, and 2 in the file"),
        (lambda documents: [as_older(documents[0]), *documents[1:]], 1, r"has attempts 1 of None, and 1 in the file"),
        (of_another_setting, AGAIN, "has attempts of another setting"),
        (altered(AGAIN, raw_digest="0" * 64), AGAIN, "has requests' own times of attempt 1, which does not count"),
        (instead(AGAIN, 2, 0.02, 0.01), AGAIN, r"was done again after attempt 1, of which 2\.00% were stolen"),
        (instead(AGAIN, 2, 0.05, 0.01, 0.0), AGAIN, r"was done again after attempt 2, of which 1\.00% were stolen"),
        (instead(AGAIN, 2, 0.05), AGAIN, r"was not done again after attempt 1, of which 5\.00% were stolen"),
        (instead(AGAIN, 2, 0.05, 0.03), AGAIN, r"was not done again after attempt 2, of which 3\.00% were stolen"),
        (instead(1, 1, 0.0201), 1, r"was not done again after attempt 1, of which 2\.01% were stolen"),
        (instead(AGAIN, 2, 0.05, 0.05, 0.05, 0.05), AGAIN, r"has 4 attempts \(allowed 3\)"),
        (two_before, 5, "was done again, beyond the 2 times in a sweep of 30 runs"),
    ],
)
def test_attempts_that_the_rule_does_not_give_are_named(
    repeated: Path, change: Change, line: int, message: str
) -> None:
    """Left out, chosen, renumbered, too many, or without reason, and sealed again: with the line and the run."""
    keep(repeated, change(documents_of(repeated)))
    should = f"line {line}: run {IDS[min(line, AGAIN) - 1]} {message}"
    differences = list(islice(verify.differences(repeated), 3))
    assert any(re.search(should, difference) for difference in differences), differences


@pytest.mark.parametrize(
    "change",
    [
        lambda documents: documents,
        instead(AGAIN, 2, 0.05, 0.05, 0.01),
        instead(AGAIN, 2, 0.05, 0.05, 0.05),
        instead(1, 1, 0.05, 0.01),
        lambda documents: instead(len(documents), 1, 0.05)(instead(AGAIN, 2, 0.05, 0.05, 0.01)(documents)),
        lambda documents: instead(len(documents), 1, 0.05, 0.05)(documents),
    ],
)
def test_attempts_that_the_rule_gives_are_not_named(repeated: Path, change: Change) -> None:
    """More attempts, another run, and a run that counts as it is since the bound was reached before it or with it."""
    keep(repeated, change(documents_of(repeated)))
    assert not first(repeated).startswith((RUNS_FILE, "run "))


@pytest.mark.parametrize(
    ("line", "which"), [(AGAIN, f"{IDS[AGAIN - 1]}, attempt 1"), (AGAIN + 1, IDS[AGAIN - 1])], ids=["first", "last"]
)
def test_an_edited_attempt_is_named(repeated: Path, line: int, which: str) -> None:
    """Also one that does not count, and of which no row is made."""
    edit(repeated, line, lambda document: document["seen"].update(server_memory_mib=1.5))
    assert first(repeated).startswith(f"run {which}: its record in ")


def test_of_older_records_it_is_not_asked_how_often_they_were_done(repeated: Path) -> None:
    """They do not say it, and much was stolen from some."""
    older = [stolen(as_older(document), 0.3) for document in without(AGAIN)(documents_of(repeated))]
    keep(repeated, older)
    assert first(repeated).startswith("results.csv line ")
