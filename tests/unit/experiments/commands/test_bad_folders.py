"""Folders without results, damaged ones and those of another version: one line, with advice."""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from errno import ENOSPC
from os import strerror
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.commands import list_parts
from experiments.results import environment
from experiments.results.files import BLOCKS_FILE, SWEEP_FILE
from stock_service.rpc.process.command_line import USAGE_EXIT
from tests.unit.experiments.commands.test_index import measured
from tests.unit.experiments.show.test_report import MACHINE

Spoil = Callable[[Path], object]


def sweep_file(instead_of: str, given: str) -> Spoil:
    """Replaces a text in ``sweep.json``, and removes the blocks, whose digests would show the edit."""

    def spoil(folder: Path) -> None:
        (folder / BLOCKS_FILE).unlink()
        text = (folder / SWEEP_FILE).read_text()
        assert instead_of in text
        (folder / SWEEP_FILE).write_text(text.replace(instead_of, given))

    return spoil


def machine_file(part: str, name: str, value: str) -> Spoil:
    """Writes ``environment.json`` with this value in a part; the sources have no other value."""

    def spoil(folder: Path) -> None:
        environment.save(MACHINE, folder)
        whole = json.loads((folder / environment.ENVIRONMENT_FILE).read_text())
        whole["sources"] = {}
        whole[part][name] = value
        (folder / environment.ENVIRONMENT_FILE).write_text(json.dumps(whole))

    return spoil


SPOILT: dict[str, tuple[Spoil, str, str]] = {
    "empty": (lambda folder: (folder / SWEEP_FILE).unlink(), "a folder without sweep.json", "experiments run NAME"),
    "cut": (lambda f: (f / SWEEP_FILE).write_text('{"format": 1, "st'), "a damaged file (", "restore a copy"),
    "not text": (lambda f: (f / SWEEP_FILE).write_bytes(b"\xff\xfe"), "a damaged file (", "measure again"),
    "blocks": (lambda f: (f / BLOCKS_FILE).write_text("no gzip"), "damaged after line 0", "restore a copy"),
    "machine": (lambda f: (f / "environment.json").write_text("{"), "a damaged file (", "restore a copy"),
    "a moment": (machine_file("before", "at", "soon"), "a damaged file (Invalid isoformat", "restore a copy"),
    "sources": (machine_file("sources", "other", "1"), "lack the version of python", "restore a copy"),
    "factor": (sweep_file('"updater":', '"weather":'), "a setting weather", "in this version: these factors"),
    "an arm": (sweep_file('"arms": [', '"arms": [1,'), "a damaged file (", "restore a copy"),
    "level": (sweep_file('"sockets"', '"smoke"'), "transport smoke", "in this version: grpc"),
}
"""Damage of a folder; the given and the allowed value in the line."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A block of a part of a study."""
    return measured(tmp_path / "whole", "updater", 1)


def refused(capsys: pytest.CaptureFixture[str], command: str, folder: Path) -> str:
    """The line with which a command refuses a folder. There is only one line."""
    with pytest.raises(SystemExit) as ended:
        main([command, str(folder)])
    assert ended.value.code == USAGE_EXIT
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert str(folder) in line
    assert not printed.out
    assert not re.search(r"\w+Error\b|Errno|Traceback", line)
    return line


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_spoilt_folder_is_refused_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str], spoilt: str) -> None:
    """The line names the file, its fault, and a remedy."""
    spoil, given, allowed = SPOILT[spoilt]
    spoil(folder)
    line = refused(capsys, "report", folder)
    assert given in line.partition("allowed:")[0]
    assert allowed in line.partition("allowed:")[2]


@pytest.mark.parametrize("command", ["report", "verify", "plot", "index"])
def test_what_is_no_folder_of_results_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """A missing folder and a file are refused. A folder of several results is refused with their names, where one is
    wanted."""
    assert "got 'no such folder'" in refused(capsys, command, folder / "none")
    assert "got 'a file, no folder'" in refused(capsys, command, folder / SWEEP_FILE)
    if command not in ("index", "verify"):
        assert "got 'a folder that holds results in whole'" in refused(capsys, command, folder.parent)


def test_results_of_no_study_here_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results of no study here are refused by commands that need a study. They can still be verified."""
    sweep_file('"part": "updater"', '"part": "weather"')(folder)
    line = refused(capsys, "report", folder)
    assert "got 'results of weather, which is no part of a study here', allowed: those of a study that `list`" in line
    assert "`verify` reads any" in line
    assert main(["verify", str(folder)]) == 1
    assert "the sweep was cut short: 0 blocks" in capsys.readouterr().out


def test_verify_prints_what_it_found_before_a_damaged_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The differences of one folder are printed, though a folder after it cannot be read."""
    sweep_file('"part": "updater"', '"part": "weather"')(folder)
    damaged = folder.parent / "worse"
    damaged.mkdir()
    (damaged / SWEEP_FILE).write_text("{")
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(folder.parent)])
    assert ended.value.code == USAGE_EXIT
    said = capsys.readouterr()
    assert "the sweep was cut short: 0 blocks" in said.out
    assert str(damaged) in said.err


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of a write has no file's name, and is one line with its reason."""

    def run(_: Namespace) -> int:
        raise OSError(ENOSPC, strerror(ENOSPC))

    monkeypatch.setattr(list_parts, "run", run)
    with pytest.raises(SystemExit):
        main(["list"])
    assert f"a file: {strerror(ENOSPC)}, allowed: " in capsys.readouterr().err


REFUSED = {
    "run stock --blocks 6 --out seen": "6 blocks cannot decide it', allowed: more --blocks",
    "run sockets --clients 7 --out seen": "--clients: got '7', allowed: none with sockets: the programs of its peers",
    "agree a b --markdown --keep c": "not allowed with argument",
    "index --out a --markdown b": "not allowed with argument",
}
"""Commands with a number that cannot be, or with two options of which one would act nowhere; part of the refusal."""


@pytest.mark.parametrize("words", REFUSED)
def test_options_that_cannot_act_are_refused(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is refused before it starts or writes anything."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == USAGE_EXIT
    assert REFUSED[words] in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
