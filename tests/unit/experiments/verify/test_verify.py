"""Verification: an edited, cut-short or prolonged recording is named."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.design.arms import Arm
from experiments.design.limits import LIMITS
from experiments.kinds import prediction
from experiments.results import files, rows
from experiments.results.observed import Block
from experiments.verify import Design, Expected, cut_short, differences
from experiments.verify.blocks import block_faults
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, ratio, sweep, with_slices
from tests.unit.experiments.verify.edited import measured, replaced

OF = sweep(looks=(10, 14))
FAR, EQUAL = {SOCKETS: 30.0, GRPC: 100.0}, {SOCKETS: 100.0, GRPC: 100.0}
DESIGNED = (Design(OF, (), ()),)


def nothing(_: Path) -> Expected:
    """No figures and no report."""
    return Expected({}, DESIGNED)


def recording(folder: Path, blocks: Sequence[Block]) -> Path:
    """A folder of these blocks."""
    return measured(folder, OF, blocks).folder


def blocks(number: int, means: Mapping[Arm, float] = FAR, noise: float = 0.02) -> list[Block]:
    """This number of blocks."""
    return [block(OF, means, each, noise) for each in range(1, number + 1)]


@pytest.mark.parametrize(
    ("number", "means", "said"),
    [
        (9, FAR, "cut short: 9 blocks"),
        (10, {SOCKETS: 95.1, GRPC: 100.0}, "cut short: undecided after 10 blocks"),
        (14, FAR, "went on: it was decided after 10 blocks"),
    ],
)
def test_a_sweep_ends_by_its_own_rule(tmp_path: Path, number: int, means: Mapping[Arm, float], said: str) -> None:
    """A sweep ends at the first look that decides, neither before nor after it."""
    noise = 0.02 if means is FAR else 0.4
    (found,) = differences(recording(tmp_path, blocks(number, means, noise)), nothing)
    assert said in found


def test_an_edited_row_is_named(tmp_path: Path) -> None:
    """An edited row is named with its line and the computed one."""
    folder = recording(tmp_path, blocks(10))
    table = folder / rows.ROWS_FILE
    lines = table.read_text(encoding="utf-8").splitlines()
    lines[3] = lines[3].replace("0", "1", 1)
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (found,) = differences(folder, nothing)
    assert "results.csv line 4" in found


@pytest.mark.parametrize(("factor", "fine"), [("language", True), ("transport", False)])
def test_a_recording_from_before_a_factor_passes(factor: str, fine: bool, tmp_path: Path) -> None:
    """A recording without a later factor passes. A removed column of an older factor is named."""
    table = recording(tmp_path, blocks(10)) / rows.ROWS_FILE
    table.write_text(rows.table(OF, blocks(10), without=(factor,)), encoding="utf-8")
    assert (list(differences(tmp_path, nothing)) == []) == fine


@pytest.mark.parametrize(
    ("level", "times", "fine"),
    [
        ({"executor": "thread-per-task"}, 1, True),
        ({"locking": "per-stock"}, 1, True),
        ({"executor": "leader-followers"}, 1, False),
        ({"executor": "thread-per-task"}, 2, False),
        ({"workers": 2}, 1, False),
    ],
)
def test_a_recording_may_lack_executors_and_locks_that_came_later(
    level: dict[str, str], times: int, fine: bool, tmp_path: Path
) -> None:
    """A recording may lack the executors and locks at the end of their tables, and no other. Every other arm stands as
    often in a round."""
    (group,) = OF.groups
    later = Arm(SOCKETS.setting.but(**level))
    compared = ratio(later, name="later", family="further")
    designed = replace(
        OF, groups=(replace(group, arms=(*group.arms, later), times=times),), comparisons=(*OF.comparisons, compared)
    )
    found = list(differences(recording(tmp_path, blocks(10)), lambda _: Expected({}, (Design(designed, (), ()),))))
    assert (found == []) is fine, found
    assert fine or "is designed with other groups" in found[0]


@pytest.mark.parametrize(
    ("written_at", "fine"), [("2025-12-31T23:59:59+00:00", True), ("2026-01-01T00:00:01+00:00", False)]
)
def test_what_was_foretold_is_older_than_the_first_block(written_at: str, fine: bool, tmp_path: Path) -> None:
    """A prediction that was written after the first block is named."""
    folder = recording(tmp_path, blocks(10))
    prediction.save(folder, (), written_at)
    found = list(differences(folder, nothing))
    assert [f"written at {written_at}" in each for each in found] == ([] if fine else [True])


def test_a_limit_of_the_load_ends_a_sweep() -> None:
    """A limit of the load decides a sweep: further blocks would bring no verdict on the server."""
    near = {SOCKETS: 95.1, GRPC: 100.0}
    every = [with_slices(each, client_cpu_ns=each.slices.counted_ns) for each in blocks(14, near, 0.4)]
    assert list(cut_short(OF, every)) == ["the sweep went on: it was decided after 10 blocks, and has 14"]
    assert list(cut_short(OF, blocks(14, near, 0.4))) == []


def test_a_sweep_of_an_earlier_edition_is_refused(tmp_path: Path) -> None:
    """A sweep of an earlier edition is refused in one line."""
    file = recording(tmp_path, blocks(10)) / files.SWEEP_FILE
    replaced(file, f'"edition": {files.EDITION}', '"edition": 1')
    with pytest.raises(UsageError, match=r"edition 1.*measure again"):
        list(differences(tmp_path, nothing))


def test_other_limits_are_named(tmp_path: Path) -> None:
    """A recording under other limits is judged by them, and they are named."""
    other = replace(OF, limits=replace(LIMITS, errors_share=0.5))
    (found,) = differences(measured(tmp_path, other, blocks(10)).folder, nothing)
    assert "judged by other limits: errors_share 0.5" in found


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """Rows and a report that are not UTF-8 are named, as other edited files are."""
    folder = recording(tmp_path, blocks(10))
    for name in (rows.ROWS_FILE, "report.md"):
        (folder / name).write_bytes(b"\xff\xfe")
    found = list(differences(folder, lambda _: Expected({"report.md": lambda: "# A report\n"}, DESIGNED)))
    assert [line.partition(" line 1: ")[0] for line in found] == [
        str(folder / name) for name in (rows.ROWS_FILE, "report.md")
    ]


@pytest.mark.parametrize(("factor", "is_seen"), [(0.9, False), (1.005, False), (1.02, True)])
def test_sockets_carry_fewer_bytes_than_grpc(factor: float, is_seen: bool) -> None:
    """Requests on sockets with more bytes than equal requests on gRPC are a fault. A difference under 1 % is no fault:
    long messages need almost the same number of bytes."""
    of = sweep(ratio())
    one = block(of, dict.fromkeys(of.arms, 100.0))
    each = [factor if of.arms[arm] == SOCKETS else 1.0 for arm in one.slices.arm]
    carried = [round(1000 * count * times) for count, times in zip(one.slices.requests, each, strict=True)]
    found = [said for said in block_faults(of, [with_slices(one, wire_bytes=carried)]) if "bytes a request" in said]
    assert bool(found) == is_seen
