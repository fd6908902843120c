"""A planted sweep that is drawn and reported, and what is done to a copy of it: edited, digests made anew or not."""

import gzip
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import verify
from experiments.run_records import RUNS_FILE
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.planted_runs import DESIGN

Document = dict[str, Any]

RUN_IDS = [run.run_id for run in DESIGN.runs()]


def found(folder: Path) -> list[str]:
    """Every difference."""
    return list(verify.differences(folder))


def first(folder: Path) -> str:
    """The first difference, or the line with which the folder is refused. Figures and report are not made for it."""
    try:
        return next(verify.differences(folder), "")
    except UsageError as refused:
        return str(refused)


def run_of(part: str, **factors: object) -> int:
    """The number of a run, from 1, of that part and factors."""
    for number, run in enumerate(DESIGN.runs(), start=1):
        if run.setting.part == part and all(getattr(run.setting, name) == value for name, value in factors.items()):
            return number
    raise AssertionError(part)


def documents_of(folder: Path) -> list[Document]:
    """The lines of its runs."""
    return [json.loads(line) for line in gzip.decompress((folder / RUNS_FILE).read_bytes()).splitlines()]


def keep(folder: Path, documents: list[Document]) -> None:
    """Writes runs as the runner does, with the digests that they have."""
    lines = [json.dumps(document, separators=(",", ":")) + "\n" for document in documents]
    (folder / RUNS_FILE).write_bytes(b"".join(gzip.compress(line.encode(), mtime=0) for line in lines))


def sealed(document: Document) -> Document:
    """With the digest that its content has now: what whoever knows how it is made can do."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(rest, separators=(",", ":"))
    return rest | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def edit(folder: Path, number: int, change: Callable[[Document], object], seal: bool = False) -> None:
    """Changes one run's record."""
    documents = documents_of(folder)
    change(documents[number - 1])
    if seal:
        documents[number - 1] = sealed(documents[number - 1])
    keep(folder, documents)


def other(text: str, rng: random.Random) -> str:
    """The text with one digit changed, or one letter where it has no digit, or something where it has nothing."""
    places = [place for place, sign in enumerate(text) if sign.isdigit()]
    places = places or [place for place, sign in enumerate(text) if sign.isalpha()]
    if not places:
        return text + "1"
    place = rng.choice(places)
    sign = rng.choice([new for new in ("0123456789" if text[place].isdigit() else "abcxyz") if new != text[place]])
    return text[:place] + sign + text[place + 1 :]
