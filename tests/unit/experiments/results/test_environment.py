"""Environments: the record of the machine of a sweep."""

import shutil
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import pytest

from experiments.results import fingerprint
from experiments.results.environment import ENVIRONMENT_FILE, UNKNOWN, finish, load, look, save
from tests.unit.experiments.show.test_report import MACHINE


@pytest.mark.slow
def test_a_compiler_that_is_here_says_its_version() -> None:
    """An installed compiler gives its version line, by its language. Missing compilers are left out."""
    found = look().languages
    assert ("go" in found) == (shutil.which("go") is not None)
    assert all(any(letter.isdigit() for letter in said) and "\n" not in said for said in found.values())


@pytest.mark.slow
def test_a_file_from_before_a_field_reads_as_not_known(tmp_path: Path) -> None:
    """A field that an older file lacks is read as unknown, so that every recording stays readable."""
    old = asdict(look())
    for name in ("languages", "interfaces", "power", "processes", "sources"):
        del old[name]
    (tmp_path / ENVIRONMENT_FILE).write_bytes(msgspec.json.encode(old))
    read = load(tmp_path)
    assert (read.languages, read.interfaces, read.power, read.processes) == ({}, None, UNKNOWN, None)
    assert read.sources == {}


def test_sources_that_changed_meanwhile_are_marked(tmp_path: Path) -> None:
    """The first end of a measurement adds the machine's state. Every end marks the sources that have changed."""
    began = fingerprint.taken()
    row = "experiments/measure/catalog.toml"
    save(replace(MACHINE, after=None, sources=began | {row: "before"}), tmp_path)
    finish(tmp_path)
    ended = load(tmp_path)
    assert ended.sources == began | {row: f"before, then {began[row]}"}
    assert ended.after is not None
    finish(tmp_path)
    assert load(tmp_path) == ended
