"""The command ``record``: the recordings that it makes, their order, and its resumption after an interruption."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import main
from experiments.commands import pages, record
from experiments.commands.index import HERE
from experiments.commands.record import Recording, every, selected
from experiments.results import environment
from experiments.results.files import BLOCKS_FILE, SWEEP_FILE, held
from experiments.results.fingerprint import taken
from experiments.show import report, version
from experiments.studies import PARTS, STUDIES
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.commands.test_index import measured
from tests.unit.experiments.show.test_report import MACHINE

SOURCES = taken()

CHOSEN = ("stock/dispatch", "stock/updater")

INTERRUPTED = """
import sys
from experiments.commands import record
record.tied = lambda command: [sys.executable, "-c", sys.argv[1]]
record.measure(record.Recording("stock", "stock", "quick"))
"""
"""A program that calls ``measure``, with another program in place of ``run``."""

COUNTING = """
import signal, time
found = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: found.append(int(number)))
print("ready", flush=True)
while not found:
    time.sleep(0.01)
time.sleep(0.5)
print(found, flush=True)
"""
"""A program that ends half a second after a signal, and prints all signals that it got."""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    """Recordings that were measured, in a made-up project. A measurement only writes a planted folder."""
    found: list[Recording] = []

    def measure(recording: Recording) -> int:
        found.append(recording)
        folder = measured(recording.scratch, recording.part)
        environment.save(replace(MACHINE, sources=SOURCES), folder)
        for name in (report.MARKDOWN, report.HTML, "figure.png"):
            (folder / name).write_text(recording.name)
        recording.mark.touch()
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "HERE", tmp_path / "studies")
    monkeypatch.setattr(record, "measure", measure)
    monkeypatch.setattr(pages, "run", lambda _: print("pages"))
    return found


def called(*arguments: str) -> int:
    """The command's exit code."""
    return main(["record", *arguments])


def test_every_part_is_recorded_once() -> None:
    """Every part is recorded once, by itself or with another part. Each committed recording would be replaced."""
    all_of = list(every())
    assert [each.study for each in all_of if each.name == "quick"] == list(STUDIES)
    assert (all_of[-1].study, all_of[-1].name) == record.AGAIN
    inside = {name for _, part in PARTS.values() for name in (part.first, *part.also, *part.after)}
    assert {each.part for each in all_of} | inside >= PARTS.keys()
    kept = {f"{file.parts[-4]}/{file.parts[-2]}" for file in HERE.glob(f"*/recorded/*/{SWEEP_FILE}")}
    assert kept <= set(map(str, all_of))


def test_a_name_means_a_study_a_part_or_a_folder() -> None:
    """A name means a study, a part or a folder, in the order of all recordings."""
    assert {each.study for each in selected(["sort"])} == {"sort"}
    assert [str(each) for each in selected(["stock/quick-2", "dispatch", "pools"])] == [
        "stock/dispatch",
        "pools/quick",
        "stock/quick-2",
    ]
    with pytest.raises(UsageError, match="'stok'"):
        selected(["stok"])


@pytest.mark.slow
def test_recordings_take_their_place_when_all_are_whole(
    made: list[Recording], capsys: pytest.CaptureFixture[str]
) -> None:
    """Recordings replace the old ones when all are whole, without files that git does not keep. Then the pages are
    written."""
    assert called(*CHOSEN) == 0
    assert sorted(map(str, made)) == sorted(CHOSEN)
    for each in made:
        assert (each.folder / SWEEP_FILE).exists()
        assert sorted(file.name for file in each.folder.glob("*.[mhp]*")) == [report.MARKDOWN]
        assert not each.scratch.exists()
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("2 recordings, one after the other; about ")
    assert "not recorded" in said[1]
    assert said[-2:] == ["pages", "2 recordings replaced: `git add` and commit them"]


@pytest.mark.slow
def test_it_goes_on_where_it_was_interrupted(
    made: list[Recording], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A complete recording is not measured again, unless its sources have changed. Until all are complete, no kept
    recording is replaced."""
    first = selected(CHOSEN[:1])[0]
    record.measure(first)
    called("--list", *CHOSEN)
    assert "stock/dispatch             measured already" in capsys.readouterr().out
    assert not first.folder.exists()
    assert called(*CHOSEN) == 0
    assert list(map(str, made)) == ["stock/dispatch", "stock/updater"]
    capsys.readouterr()
    called("--list", *CHOSEN)
    assert "of this version, " in capsys.readouterr().out
    monkeypatch.setattr(version, "taken", lambda: SOURCES | {"stock_service/trading/*.py": "changed"})
    called("--list", *CHOSEN)
    said = capsys.readouterr().out
    assert "of an earlier server, " in said
    assert " days ago: stock_service/trading\n" in said


@pytest.mark.slow
def test_what_failed_leaves_the_kept_recording(
    made: list[Recording], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording that failed leaves the kept one. The others are replaced. The failure is printed before the pages,
    which may be refused."""
    called(*CHOSEN)
    measuring = record.measure
    monkeypatch.setattr(record, "measure", lambda each: 1 if str(each) == CHOSEN[0] else measuring(each))
    before = {str(each): (each.folder / SWEEP_FILE).stat().st_ino for each in made}
    capsys.readouterr()
    assert called(*CHOSEN) == 1
    after = {str(each): (each.folder / SWEEP_FILE).stat().st_ino for each in selected(CHOSEN)}
    assert [name for name in CHOSEN if before[name] != after[name]] == ["stock/updater"]
    assert capsys.readouterr().out.splitlines()[-3:-1] == ["stock/dispatch failed, with exit code 1", "pages"]


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_an_interruption_while_a_recording_takes_its_place_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the measured folder is removed when Ctrl-C comes. The next command does not copy the other half."""
    (one,) = selected(CHOSEN[:1])
    record.measure(one)
    remove = shutil.rmtree

    def interrupted(folder: Path, **options: Any) -> None:
        if folder == one.scratch:
            (folder / BLOCKS_FILE).unlink()
            raise KeyboardInterrupt
        remove(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record.put(one)
    assert (one.folder / BLOCKS_FILE).exists()
    assert not record.is_done(one)


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_an_interrupted_copy_is_no_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """When Ctrl-C comes while a recording is copied, nothing of the copy stays. The next command copies it again."""
    (one,) = selected(CHOSEN[:1])
    record.measure(one)
    copy = shutil.copytree

    def interrupted(folder: Path, target: Path, ignore: Any) -> None:
        copy(folder, target, ignore=ignore)
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copytree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record.put(one)
    monkeypatch.setattr(shutil, "copytree", copy)
    assert list(one.folder.parents[1].rglob(SWEEP_FILE)) == []
    assert record.is_done(one)
    record.put(one)
    assert list(one.folder.parents[1].rglob(SWEEP_FILE)) == [one.folder / SWEEP_FILE]


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_what_cannot_be_read_is_recorded_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A recording of an earlier edition stops no command. It is listed, and its measurement is begun again."""
    (one,) = selected(CHOSEN[:1])
    for folder in (one.folder, one.scratch):
        file = measured(folder, one.part) / SWEEP_FILE
        assert '"edition": 2' in file.read_text()
        file.write_text(file.read_text().replace('"edition": 2', '"edition": 1'))
    one.mark.touch()
    assert called("--list", *CHOSEN[:1]) == 0
    assert "it cannot be read here" in capsys.readouterr().out
    assert not record.is_done(one)
    assert record._hindrance(one.scratch) == "it has no fingerprint"


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_a_second_record_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """While one ``record`` measures, a second is refused before it measures. It may still list."""
    with held(record.SCRATCH):
        with pytest.raises(SystemExit):
            called(*CHOSEN)
        assert "another run measures now" in capsys.readouterr().err
        assert called("--list", *CHOSEN) == 0


@pytest.mark.slow
def test_what_run_would_refuse_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording that was begun at another commit, with the same sources, is begun again. At this commit it is
    resumed."""
    monkeypatch.chdir(tmp_path)
    started: list[list[str]] = []

    def tied(command: list[str]) -> list[str]:
        started.append(command)
        return [sys.executable, "-c", "raise SystemExit(2)"]

    monkeypatch.setattr(record, "tied", tied)
    here = environment.look()
    one = selected(CHOSEN[:1])[0]
    for commit in (here.commit, "0123456789abcdef"):
        folder = measured(one.scratch, one.part)
        environment.save(replace(here, commit=commit), folder)
        assert record.measure(one) == 2
        assert folder.exists() == (commit == here.commit)
        if folder.exists():
            assert capsys.readouterr().out == ""
            folder.rename(tmp_path / "gone")
    assert ["--resume" in command for command in started] == [True, False]
    assert capsys.readouterr().out.startswith("begun again: it has blocks of commit 0123456789ab")


@pytest.mark.slow
@pytest.mark.parametrize("inside", ["", "lock_waits"])
def test_a_change_meanwhile_leaves_the_kept_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], inside: str
) -> None:
    """A recording whose sources were changed meanwhile, anywhere in its folder, is named and not kept. The next
    ``record`` measures it again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pages, "run", lambda _: None)
    one = selected(CHOSEN[:1])[0]
    mixed = {"stock_service/trading/*.py": "one, then another"}

    def tied(_: list[str]) -> list[str]:
        environment.save(replace(MACHINE, sources=SOURCES), measured(one.scratch, one.part))
        if inside:
            measured(one.scratch / inside, one.part)
        environment.save(replace(MACHINE, sources=SOURCES | mixed), one.scratch / inside)
        return [sys.executable, "-c", ""]

    monkeypatch.setattr(record, "tied", tied)
    assert called(*CHOSEN[:1]) == 1
    assert "stock/dispatch is to be measured again: its sources were changed meanwhile" in capsys.readouterr().out
    assert not record.is_done(one)


@pytest.mark.slow
def test_ctrl_c_reaches_run_once_and_waits_for_it(tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to the whole process group. ``run`` gets one SIGTERM, which is never inherited as
    ignored."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, COUNTING],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as measuring:
        assert measuring.stdout is not None
        assert measuring.stdout.readline() == "ready\n"
        os.killpg(measuring.pid, signal.SIGINT)
        assert measuring.wait(timeout=30) != 0
        assert measuring.stdout.read() == f"[{int(signal.SIGTERM)}]\n"
