"""Tamperings, by their names: each is found, though its rows and digests are computed again, and no text shows it."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from experiments.commands import recording, verify
from experiments.commands.verify import expected
from experiments.design.sweep import Sweep
from experiments.kinds import prediction
from experiments.results import environment, files, rows
from experiments.results.observed import Block
from experiments.verify import differences
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, with_histograms
from tests.unit.experiments.verify.edited import (
    COLD,
    MEANS,
    STUDY,
    ColdEdit,
    Recording,
    answered,
    column,
    edit_cold,
    numbers,
    of_places,
    recorded,
    replaced,
    slower,
    with_arms,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A recording without edits."""
    with pytest.MonkeyPatch.context() as patch:
        for command in (recording, verify):
            patch.setattr(command, "PARTS", {name: (STUDY, part) for name, part in STUDY.parts.items()})
        yield recorded(tmp_path_factory.mktemp("whole") / "try")


@pytest.fixture(scope="module")
def whole_texts(whole: Path) -> Mapping[str, Callable[[], str]]:
    """Report and figures of the recording without edits."""
    return {name: cache(text) for name, text in verify.texts(whole).items()}


@pytest.fixture
def opened(
    whole: Path, whole_texts: Mapping[str, Callable[[], str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Recording:
    """A copy of the recording to be edited. Its texts are drawn once: no edit of its blocks is seen by them."""
    monkeypatch.setattr(verify, "texts", lambda _: whole_texts)
    folder = Path(shutil.copytree(whole, tmp_path / "try"))
    return Recording(folder, files.read_sweep(folder), list(files.read_blocks(folder)))


def seen(folder: Path) -> list[str]:
    """The sentences of ``verify`` on a folder and the folders inside; a refusal counts."""
    try:
        return [each for file in sorted(folder.rglob("sweep.json")) for each in differences(file.parent, expected)]
    except UsageError as error:
        return [str(error)]


Tampering = Callable[[Recording], object]

NAMED: dict[str, Tampering] = {}
"""Tamperings by their names. The parts that they leave can no longer agree."""


def tampering(text: str, edit: Tampering) -> None:
    """Adds a tampering to the table. Its rows and digests are computed again."""

    def whole_edit(of: Recording) -> None:
        edit(of)
        of.written()

    NAMED[text] = whole_edit


def on_disk(text: str, edit: Callable[[Path], object]) -> None:
    """Adds a tampering that edits files, without new rows and digests."""
    NAMED[text] = lambda of: edit(of.folder)


def of_block(text: str, number: int, edit: Callable[[Sweep, Block], Block]) -> None:
    """Adds a tampering of a block's last attempt, by the block's number."""

    def edited(of: Recording) -> None:
        place = max(place for place, each in enumerate(of.blocks) if each.number == number)
        of.blocks[place] = edit(of.sweep, of.blocks[place])

    tampering(text, edited)


def of_sweep(text: str, edit: Callable[[Sweep], Sweep]) -> None:
    """Adds a tampering of the sweep."""
    tampering(text, lambda of: setattr(of, "sweep", edit(of.sweep)))


def of_machine(text: str, **after: float) -> None:
    """Adds a tampering of the machine's counts after the sweep."""

    def edit(of: Recording) -> None:
        kept = environment.load(of.folder)
        assert kept.after is not None
        changed = {name: getattr(kept.after, name) + more for name, more in after.items()}
        environment.save(replace(kept, after=replace(kept.after, **changed)), of.folder)

    tampering(text, edit)


def of_cold(text: str, edit: ColdEdit) -> None:
    """Adds a tampering of the cold runs."""
    tampering(text, lambda of: edit_cold(of.folder, edit))


# texts
on_disk("the report edited", lambda folder: replaced(folder / "report.md", "See.", "Sockets."))
on_disk("a figure edited", lambda folder: replaced(folder / "figures/question_1.svg", "<path", "<path "))
on_disk("all rows deleted", lambda folder: (folder / rows.ROWS_FILE).unlink())


def _fewer_rows(folder: Path) -> None:
    lines = (folder / rows.ROWS_FILE).read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / rows.ROWS_FILE).write_text("".join(lines[:-4]), encoding="utf-8")


on_disk("a block of rows deleted", _fewer_rows)


# the machine
of_machine("fewer seconds stolen in the machine's account", cpu_steal_s=-4.0)
of_machine("more seconds stolen in the machine's account", cpu_steal_s=400.0)
of_machine("fewer busy seconds in the machine's account", cpu_busy_s=-189.0)
on_disk("the machine's account deleted", lambda folder: (folder / environment.ENVIRONMENT_FILE).unlink())


on_disk(
    "the machine's account after the sweep deleted",
    lambda folder: environment.save(replace(environment.load(folder), after=None), folder),
)


def _another_day(of: Recording) -> None:
    of.blocks = [replace(each, started_at=each.started_at.replace("2026-01-01", "2026-01-09")) for each in of.blocks]


tampering("all blocks moved to another day", _another_day)
of_block("stolen ticks taken out of rounds that were left out", 3, lambda _, one: replace(
    one, rounds=[replace(each, steal_ticks=0) for each in one.rounds]
))  # fmt: skip

# attempts
tampering("a second attempt without the first", lambda of: of.blocks.pop(1))
tampering("the second attempt dropped, and the robbed first one kept", lambda of: of.blocks.pop(2))
tampering("a block that pleased nobody measured again", lambda of: of.blocks.insert(
    5, block(of.sweep, MEANS | {SOCKETS: 20.0}, of.blocks[4].number, attempt=2)
))  # fmt: skip


def _only_second(of: Recording) -> None:
    of.blocks[1:3] = [replace(of.blocks[2], attempt=1)]


tampering("the second attempt told as the first, and that dropped", _only_second)


# blocks
def _equal(of: Recording) -> None:
    of.blocks[5:7] = [block(of.sweep, MEANS, number) for number in (5, 6)]


tampering("a block cloned, its slices put into the order of the next number", _equal)
of_block("a block that begins before the one before it has ended", 7, lambda _, one: replace(one, duration_s=30.0))
of_block("a slice's time edited", 5, lambda _, one: slower(one, 8, -500_000))
of_block("a slice given to another arm", 5, lambda of, one: with_histograms(of, column(one, "arm", 4, 1)))
of_block("the fastest reply told as faster", 5, lambda _, one: answered(
    one, lambda each: numbers(each, min_ns=each.times.min_ns // 2)
))  # fmt: skip
of_block("refusals told as answers", 5, lambda _, one: answered(one, lambda each: replace(each, outcomes={"OK": 999})))
of_block("answers told as errors", 5, lambda _, one: answered(
    one, lambda each: replace(each, outcomes={"OK": 1}, errors={"closed": each.times.count - 1})
))  # fmt: skip


def _without_last_round(of: Sweep, one: Block) -> Block:
    kept = [place for place, each in enumerate(one.slices.round) if each < of.rounds - 1]
    return with_histograms(of, of_places(replace(one, rounds=one.rounds[:-1]), kept))


of_block("a round cut off", 5, _without_last_round)

# the sweep
of_sweep("the seed changed", lambda of: replace(of, seed=2))
of_sweep("looks cut", lambda of: replace(of, looks=(10,)))
of_sweep("the arms of the headline exchanged", lambda of: replace(of, comparisons=(
    replace(of.comparisons[0], above=of.comparisons[0].below, below=of.comparisons[0].above), *of.comparisons[1:]
)))  # fmt: skip
of_sweep("transports relabelled", lambda of: with_arms(of, lambda arm: replace(
    arm, setting={"sockets": GRPC, "grpc": SOCKETS}[arm.setting.text("transport")].setting
)))  # fmt: skip

# what is measured apart
of_cold("a block of cold runs cloned", lambda plan, every: (
    plan, [*every[:2], replace(every[1], number=3, started_at=every[2].started_at)]
))  # fmt: skip
of_cold("cold runs sorted", lambda plan, every: (
    plan, [replace(each, runs=tuple(sorted(each.runs, key=lambda run: run.place))) for each in every]
))  # fmt: skip
of_cold("a block of cold runs dropped", lambda plan, every: (plan, every[:2]))
of_cold(
    "a block of cold runs dropped, and the plan shortened", lambda plan, every: (replace(plan, blocks=2), every[:2])
)
on_disk("the cold runs deleted", lambda folder: (folder / COLD.plan_file).unlink())

# folders inside
on_disk("the folder inside deleted", lambda folder: shutil.rmtree(folder / "try_after"))


def _other_part(folder: Path) -> None:
    sweep = replace(files.read_sweep(folder), part="try")
    Recording(folder, sweep, list(files.read_blocks(folder))).written()


on_disk("another part put into the folder inside", lambda folder: _other_part(folder / "try_after"))


@pytest.mark.slow
def test_a_whole_recording_passes(whole: Path) -> None:
    """A whole recording passes, with the measurements before, after and beside it, and a block that was run again."""
    assert seen(whole) == []


@pytest.mark.slow
def test_predictions_without_their_measurements_are_not_computed(whole: Path, tmp_path: Path) -> None:
    """A folder may have predictions though its part makes none. Then ``verify`` computes none, and ends."""
    folder = Path(shutil.copytree(whole, tmp_path / "try"))
    prediction.save(folder, [], "2026-01-01T00:00:00+00:00")
    assert prediction.FORETOLD_FILE not in verify.texts(folder)


def test_a_part_that_nobody_knows_is_named(opened: Recording) -> None:
    """Of an unknown part only the blocks can be checked, and a line says so."""
    opened.sweep = replace(opened.sweep, part="stok")
    opened.written()
    said = "no design of stok is known here: report and design are not checked"
    assert f"{opened.folder}: {said}" in differences(opened.folder, expected)


@pytest.mark.parametrize("name", NAMED)
def test_a_tampering_is_seen(opened: Recording, name: str) -> None:
    """A tampering is found, though its rows and digests were computed again."""
    NAMED[name](opened)
    assert seen(opened.folder) != []
