"""Files of a sweep: reading back, refusals of edited files, and the rest of a crash."""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path

import msgspec
import pytest

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.factors import FACTORS
from experiments.design.limits import LIMITS
from experiments.design.setting import read
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.judge.verdicts import judge
from experiments.results import files
from experiments.results.observed import Block
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, ratio, same

FIVE = Arm(read("sockets clients=5 arrivals=constant"))

WHOLE = Sweep(
    "stock",
    "main",
    (Group((SOCKETS, GRPC), times=4), Group((SOCKETS, FIVE), every=2), Group((same().above, SOCKETS))),
    (
        ratio(),
        Comparison("growth", "5 ÷ 1", FIVE, SOCKETS, ("clients", "arrivals"), "growth", "cpu", "trade", "growth"),
        same(),
    ),
    rounds=7,
    looks=(10, 14),
    seed=3,
    limits=replace(LIMITS, trimmed=0.1),
    apart_from=0.25,
)

MEANS = dict.fromkeys(WHOLE.arms, 100.0)


def seen(one: Block) -> str:
    """Text of a block. Equal blocks have equal texts, but histograms have no equality."""
    return str(msgspec.json.encode(one, enc_hook=files._encoded))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sweep with two blocks."""
    files.write_plan(tmp_path, files.SWEPT, WHOLE)
    for number in (1, 2):
        files.append_block(tmp_path, block(WHOLE, MEANS, number))
    return tmp_path


@pytest.mark.parametrize("turns", [Slices(0.05, 0.004, 0.01), Windows(0.2, 3.0)])
def test_a_sweep_reads_back(tmp_path: Path, turns: Slices | Windows) -> None:
    """Reading a sweep gives an equal sweep, with its limits and copies of arms."""
    sweep = replace(WHOLE, turns=turns, timeline=True)
    files.write_plan(tmp_path, files.SWEPT, sweep)
    assert files.read_sweep(tmp_path) == sweep


def test_blocks_read_back(folder: Path) -> None:
    """Reading blocks gives equal blocks in order, with an equal judgement."""
    blocks = files.read_blocks(folder)
    assert [seen(each) for each in blocks] == [seen(block(WHOLE, MEANS, number)) for number in (1, 2)]
    before = judge(WHOLE, [block(WHOLE, MEANS, number) for number in (1, 2)])
    assert (
        judge(files.read_sweep(folder), blocks).judged["sockets ÷ gRPC"].typical
        == before.judged["sockets ÷ gRPC"].typical
    )


def test_a_factor_that_an_old_file_does_not_have_is_at_its_default(folder: Path) -> None:
    """A factor that an older file lacks is read with its default, which may depend on the transport."""
    file = folder / files.SWEEP_FILE
    document = json.loads(file.read_text(encoding="utf-8"))
    for arm in document["arms"]:
        for name in ("executor", "connection", "choice"):
            del arm["levels"][name]
    file.write_text(json.dumps(document), encoding="utf-8")
    assert files.read_sweep(folder) == WHOLE
    assert set(document["arms"][0]["levels"]) < set(FACTORS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document | {"format": 2}, "got 'format 2', allowed: format 1: measure again"),
        (lambda document: {k: v for k, v in document.items() if k != "format"}, "got 'no format'"),
        (lambda document: document | {"arms": []}, "the file names an arm that is missing in the file"),
        (lambda document: document | {"looks": [14, 10]}, "ascending"),
        (lambda document: document | {"rounds": "many"}, "rounds"),
        (lambda document: [document], "got"),
        (lambda document: document | {"arms": [{"levels": {"colour": "red"}}, *document["arms"]]}, "colour"),
        (lambda document: document | {"arms": [{"levels": {"workers": 0}}, *document["arms"]]}, "workers"),
    ],
)
def test_a_sweep_that_cannot_be_read_is_refused_in_one_line(
    folder: Path, change: Callable[[dict[str, object]], object], said: str
) -> None:
    """A sweep that cannot be read is refused in one line. Another version is refused with its number."""
    file = folder / files.SWEEP_FILE
    file.write_text(json.dumps(change(json.loads(file.read_text(encoding="utf-8")))), encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        files.read_sweep(folder)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_without_a_sweep_is_refused(tmp_path: Path) -> None:
    """A folder without a sweep is refused with the name of the missing file. A folder without blocks has no blocks."""
    with pytest.raises(UsageError, match=r"a folder without sweep\.json"):
        files.read_sweep(tmp_path)
    assert files.read_blocks(tmp_path) == ()


def test_an_edited_line_is_refused(folder: Path) -> None:
    """A block with an edited digit is refused with its line."""
    first, second = gzip.decompress((folder / files.BLOCKS_FILE).read_bytes()).splitlines(keepends=True)
    edited = second.replace(b'"calibration_us":2000.0', b'"calibration_us":1000.0')
    assert edited != second
    (folder / files.BLOCKS_FILE).write_bytes(gzip.compress(first) + gzip.compress(edited))
    with pytest.raises(UsageError, match="line 2: got 'a block that was edited'"):
        files.read_blocks(folder)


def test_a_block_of_another_sweep_is_refused(folder: Path) -> None:
    """An edited plan is refused with the edited limits, since every line has a digest of the plan."""
    files.write_plan(folder, files.SWEPT, replace(WHOLE, limits=replace(LIMITS, errors_share=0.5)))
    with pytest.raises(UsageError, match="got 'a plan that was edited after block 1, with errors_share"):
        files.read_blocks(folder)


def test_what_a_crash_cut_off_is_dropped(folder: Path) -> None:
    """A crash at any byte keeps all whole blocks. The next block follows these blocks."""
    file = folder / files.BLOCKS_FILE
    content = file.read_bytes()
    files.append_block(folder, block(WHOLE, MEANS, 3))
    third = file.read_bytes()[len(content) :]
    for cut in (1, 2, 9, 10, 11, len(third) // 2, len(third) - 9, len(third) - 1):
        file.write_bytes(content + third[:cut])
        assert [each.number for each in files.read_blocks(folder)] == [1, 2]
        files.drop_torn(folder)
        files.append_block(folder, block(WHOLE, MEANS, 4))
        assert [each.number for each in files.read_blocks(folder)] == [1, 2, 4]


def test_damage_before_the_end_is_no_torn_end(folder: Path) -> None:
    """Damage before the last block is refused, and the file stays unchanged."""
    file = folder / files.BLOCKS_FILE
    content = bytearray(file.read_bytes())
    content[len(content) // 4] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(UsageError, match="damaged after line 0"):
        files.read_blocks(folder)
    with pytest.raises(UsageError, match="damage"):
        files.drop_torn(folder)
    assert file.read_bytes() == content


def test_the_last_attempt_of_a_block_counts(folder: Path) -> None:
    """Only the last attempt of each block counts, in the order of the blocks."""
    files.append_block(folder, block(WHOLE, MEANS, 1, attempt=2))
    blocks = files.read_blocks(folder)
    assert [(each.number, each.attempt) for each in blocks] == [(1, 1), (2, 1), (1, 2)]
    assert [(each.number, each.attempt) for each in files.counting(blocks)] == [(1, 2), (2, 1)]


@pytest.mark.parametrize("error", [OSError(ENOSPC, "no space"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """A full disk or Ctrl-C during a write leaves the old file, and no other file: a run can begin in the folder."""

    def fails(_: int) -> None:
        raise error

    file = tmp_path / "environment.json"
    files.write_at_once(file, b"old")
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(type(error)):
        files.write_at_once(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    """A pipe, such as a shell's ``>(command)``, gets the content and is not replaced."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_at_once(pipe, b"seen")
    assert os.read(reader, 10) == b"seen"
    os.close(reader)
    assert [each.is_fifo() for each in tmp_path.iterdir()] == [True]
