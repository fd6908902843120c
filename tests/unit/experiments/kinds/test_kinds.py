"""Kinds of run: files are read back as written and known where they were edited; a line adds a kind."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec
import pytest

from experiments.design.limits import Limits
from experiments.design.setting import Setting, setting
from experiments.kinds import KINDS, Kind, Plan, kept, kind_of
from experiments.measure.bench import CATALOG, Bench, bench
from experiments.measure.runner import run_beside
from experiments.results import apart
from experiments.results.environment import ENVIRONMENT_FILE
from experiments.show import content
from experiments.studies.study import Part
from experiments.verify import unfinished
from stock_service.rpc.errors import UsageError
from tests.unit.experiments import cells_seen, stress_seen
from tests.unit.experiments.apart_seen import ALONE, COLD, cold_block, cold_run, repetition
from tests.unit.experiments.verify import edited

STANDALONE = KINDS["standalone"]

RUNS: Sequence[tuple[Plan, Sequence[object]]] = (
    (ALONE, [repetition(number, 130.5, (15, 17.25, 29), 0.0001) for number in (1, 2)]),
    (COLD, [cold_block(1, [(0, cold_run(1)), (2, cold_run(100, errors={"unavailable": 3}))])]),
    (cells_seen.plan(), [cells_seen.block(number, cells_seen.plan()) for number in (1, 2)]),
    (stress_seen.PLAN, [stress_seen.repetition(1), stress_seen.repetition(2)]),
)


@pytest.mark.parametrize(("plan", "blocks"), RUNS, ids=[kind_of(plan).name for plan, _ in RUNS])
def test_a_run_is_read_back_as_it_was_written(tmp_path: Path, plan: Plan, blocks: Sequence[Any]) -> None:
    """The plan, with every setting and ratio, and every block."""
    kind_of(plan).save(tmp_path, plan, blocks)
    assert kept(tmp_path) == {kind_of(plan).name: (plan, tuple(blocks))}


@pytest.mark.parametrize(
    ("written", "instead"), [('"ready_ms": 130.5', '"ready_ms": 99.5'), ('"idle_s": 5.0', '"idle_s": 6.0')]
)
def test_an_edited_file_is_refused(tmp_path: Path, written: str, instead: str) -> None:
    """In what was seen, and in what was planned; another layout is no edit."""
    STANDALONE.save(tmp_path, ALONE, [repetition(1, 130.5, (15, 17, 29), 0.0)])
    file = tmp_path / STANDALONE.file
    text = file.read_text()
    file.write_bytes(msgspec.json.format(text.encode(), indent=4))
    assert STANDALONE.load(tmp_path)[0] == ALONE
    assert text.count(written) == 1
    file.write_text(text.replace(written, instead))
    with pytest.raises(UsageError, match="edited"):
        STANDALONE.load(tmp_path)


def test_a_setting_of_an_older_file_has_new_factors_at_their_defaults(tmp_path: Path) -> None:
    """As sweeps read theirs."""
    STANDALONE.save(tmp_path, ALONE, [])
    file = tmp_path / STANDALONE.file
    kept_: dict[str, Any] = msgspec.json.decode(file.read_bytes())["content"]
    for server in kept_["servers"]:
        del server["levels"]["cpu_ms"]
    apart.write(file, kept_)
    assert STANDALONE.load(tmp_path) == (ALONE, ())


@pytest.mark.parametrize("lacking", [{}, {"study": "s", "seen": []}, {"seen": 3}])
def test_a_file_that_lacks_what_a_plan_has_is_refused(tmp_path: Path, lacking: object) -> None:
    """By its name."""
    apart.write(tmp_path / "cold.json", lacking)
    with pytest.raises(UsageError, match=r"cold\.json"):
        KINDS["cold"].load(tmp_path)


@pytest.mark.parametrize("written", [b'{"format": 2}', b"{}", b"nothing", b'{"format": 1, "content": 3}'])
def test_what_is_no_such_file_is_refused(tmp_path: Path, written: bytes) -> None:
    """Another version, and other things."""
    (tmp_path / "cold.json").write_bytes(written)
    with pytest.raises(UsageError, match=r"cold\.json"):
        KINDS["cold"].load(tmp_path)


def test_a_folder_without_one_says_so(tmp_path: Path) -> None:
    """By the folder's name."""
    with pytest.raises(UsageError, match=r"no alone\.json"):
        STANDALONE.load(tmp_path)


@dataclass(frozen=True, slots=True)
class Ping:
    """One block of the kind that a newcomer adds."""

    number: int
    started_at: str
    duration_s: float
    pings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pings:
    """The plan of that kind."""

    servers: tuple[Setting, ...]
    blocks: int

    @property
    def lasts_s(self) -> float:
        """A second a block."""
        return float(self.blocks)

    def order(self, number: int) -> tuple[int, ...]:
        """The servers as they stand."""
        return tuple(range(len(self.servers)))


@dataclass(frozen=True, slots=True)
class Pinged:
    """Every ping of all blocks."""

    pings: int


def observed(plan: Pings, number: int, _: Bench) -> Ping:
    """A block of as many pings as its number, for each server."""
    return Ping(number, f"2026-01-01T00:01:{10 * number:02}+00:00", 1.0, (number,) * len(plan.servers))


def judged(_: Pings, blocks: Sequence[Ping], __: Limits) -> Pinged:
    """Their sum."""
    return Pinged(sum(sum(each.pings) for each in blocks))


@pytest.mark.slow
def test_a_line_adds_a_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind is run, resumed, kept, judged for a study's part, and verified, by its line in the table."""
    for room, name, does in (("measure", "measure", observed), ("judge", "judged", judged)):
        module = ModuleType(f"experiments.{room}.pings")
        setattr(module, name, does)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    line = Kind("pings", "pings.json", "pings", Pings, Ping, "pings")
    monkeypatch.setitem(cast(dict[str, Kind[Any, Any]], KINDS), line.name, line)
    folder, plan, on = tmp_path / "try", Pings((setting(transport="sockets"),), 2), bench(CATALOG)
    part = Part("A part", edited.try_sweep, edited.answers, runs=lambda _: (plan,))
    sweep = part.sweep(edited.STUDY.scales["quick"])
    edited.measured(folder, sweep, edited.of_two_attempts(sweep))
    (folder / ENVIRONMENT_FILE).unlink()  # of another machine
    told: list[int] = []
    run_beside(plan, folder, False, on, told.append)
    run_beside(plan, folder, True, on, told.append)
    assert told == [0, 1]
    assert content.read(folder, {sweep.part: part}).seen.of(Pinged) == Pinged(3)
    assert not list(unfinished(folder))
    line.save(folder, plan, [observed(plan, 1, on)])
    assert list(unfinished(folder)) == [f"{folder / 'pings.json'}: broken off after 1 of 2 blocks"]
