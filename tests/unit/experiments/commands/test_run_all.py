"""``run all``: an answer for every study, also after a failure of another study, and no second measurement."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from experiments.commands import estimate, run, run_all
from experiments.commands.recording import read
from experiments.commands.run_all import Planned, check_new, is_whole
from experiments.design.setting import setting
from experiments.kinds import KINDS, unfinished
from experiments.kinds.cold import BLOCK_S, ColdCell, ColdPlan
from experiments.kinds.delivery import DeliveryCell, DeliveryPlan
from experiments.kinds.prediction import FORETOLD_FILE
from experiments.kinds.standalone import LoneServer, StandalonePlan
from experiments.measure.programs import ProgramFailed
from experiments.results.files import SWEEP_FILE, SWEPT, append_block, write_plan
from experiments.show.content import Content
from experiments.show.report import MARKDOWN
from experiments.studies import PARTS, STUDIES
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser
from tests.unit.experiments.apart_seen import keep
from tests.unit.experiments.blocks import blocks
from tests.unit.experiments.commands.test_index import measured
from tests.unit.experiments.studies.stock.judgements import SCALE, planted

COLD_FILE = KINDS["cold"].form.plan_file

SWEEP = STUDIES["stock"].parts["stock"].sweep(SCALE)

PLANNED = (Planned("stock", 60, 90, ("dispatch", "updater"), SWEEP), Planned("server_cost", 420, 420, ()))

AGAIN = "python -m experiments run all --resume"


class Studies:
    """Measurement of studies in the tests: the stock study is planted, and other studies raise their errors."""

    def __init__(self, errors: Mapping[str, BaseException]) -> None:
        self.errors = errors
        self.measured: list[str] = []

    def measure(self, name: str, folder: Path) -> Content:
        """Leaves the files of a measurement."""
        self.measured.append(name)
        if name in self.errors:
            raise self.errors[name]
        (measured(folder) / MARKDOWN).write_text("# A report\n")
        return content()


@cache
def content() -> Content:
    """Content of the planted study. It is judged once."""
    with TemporaryDirectory() as name:
        return read(measured(Path(name) / "stock"))


FAILURES = {
    "server_cost": (ProgramFailed(["server"], "it ended", "a\nb"), "server: it ended; its error output: a | b"),
    "sort": (UsageError("--out", "it", "another"), "--out: got 'it', allowed: another"),
    "pools": (KeyError("pool"), "KeyError: 'pool'"),
}
"""Errors of studies, each with its line."""


@pytest.mark.slow
def test_a_study_that_fails_loses_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each error is a line, at once and at the end. The exit code is 1. The index has the other studies and the
    reasons."""
    studies = Studies({name: error for name, (error, _) in FAILURES.items()})
    planned = [*(Planned(name, 420, 420, ()) for name in FAILURES), PLANNED[0]]
    assert run_all.run(planned, ["left out: the peer x"], tmp_path, studies.measure, AGAIN) == 1
    assert studies.measured == [*FAILURES, "stock"]
    printed = capsys.readouterr()
    missing = (tmp_path / "index.md").read_text().split("## Not measured")[1]
    for name, (_, said) in FAILURES.items():
        assert f"{name} failed: {said}\n" in printed.err
        assert f"{name}: failed: {said}\n" in printed.out
        assert said.split(" ")[0] in missing
    assert "\nstock: With the static pool on both sides, a Lookup on sockets" in printed.out
    assert f"To measure what failed: {AGAIN}" in printed.out
    assert printed.out.endswith(f"Index: {tmp_path / 'index.html'}\n")


@pytest.mark.slow
def test_what_is_whole_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is resumed after Ctrl-C begins with the interrupted study. The index is written even if the reader of
    the output has gone."""
    with pytest.raises(KeyboardInterrupt):
        run_all.run(PLANNED, [], tmp_path, Studies({"server_cost": KeyboardInterrupt()}).measure, AGAIN)
    assert not (tmp_path / "index.html").exists()
    again = Studies({"server_cost": ProgramFailed(["server"], "no", "")})

    def unread(*_: object) -> list[str]:
        monkeypatch.setattr("builtins.print", broken)
        return []

    def broken(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(run_all, "concluded", unread)
    with pytest.raises(BrokenPipeError):
        run_all.run(PLANNED, [], tmp_path, again.measure, AGAIN)
    assert again.measured == ["server_cost"]
    assert "stock          measured already" in capsys.readouterr().out
    assert (tmp_path / "index.html").exists()


def test_it_says_what_it_will_do() -> None:
    """Before the start the studies, the durations of each and of all, and the left-out parts are printed."""
    text = "\n".join(run_all.announced(PLANNED, Path("results/all"), {"stock"}))
    assert "2 studies into results/all, one after the other; about 7:00 min in all:" in text
    assert "  server_cost    about 7:00 min" in text
    assert "  stock          dispatch, updater" in text
    assert "python -m experiments run dispatch" in text
    assert "about 1:00 min to 1:30 min" in "\n".join(run_all.announced(PLANNED, Path("a"), set()))


@pytest.mark.slow
def test_a_study_is_whole_at_a_look_with_its_report(tmp_path: Path) -> None:
    """A study is whole at a look with its report: not between looks, not before the report, and not for another
    sweep."""
    write_plan(tmp_path, SWEPT, SWEEP)
    for number, each in enumerate(blocks(SWEEP, 10, planted()), 1):
        append_block(tmp_path, each)
        if number == 9:
            (tmp_path / MARKDOWN).write_text("# A report\n")
            assert not is_whole(tmp_path, PLANNED[0])
    assert is_whole(tmp_path, PLANNED[0])
    beside = replace(PLANNED[0], beside=(COLD_FILE,))
    assert not is_whole(tmp_path, beside)
    keep(tmp_path, ColdPlan("stock", "stock", (ColdCell(setting(transport="sockets"), 100),), blocks=2), [])
    assert not is_whole(tmp_path, beside)
    assert list(unfinished(tmp_path)) == [f"{tmp_path / COLD_FILE}: broken off after 0 of 2 blocks"]
    (tmp_path / COLD_FILE).unlink()
    assert not is_whole(tmp_path, replace(PLANNED[0], sweep=replace(SWEEP, seed=2)))
    (tmp_path / MARKDOWN).unlink()
    assert not is_whole(tmp_path, PLANNED[0])


def test_a_folder_with_results_is_not_begun_anew(tmp_path: Path) -> None:
    """A folder with results is not begun again: of one study, of all, or of a part before a study's own."""
    check_new(tmp_path)
    first = tmp_path / "pool_size" / "first"
    first.mkdir(parents=True)
    write_plan(first, SWEPT, SWEEP)
    for folder in (tmp_path, *first.parents[:1], first):
        with pytest.raises(UsageError, match="--resume to go on"):
            check_new(folder)


def options_of(*words: str) -> Namespace:
    """Options of ``run``."""
    parser = Parser("run", "Measures.")
    run.add_options(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize("begun", [True, False])
def test_an_interrupted_run_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], begun: bool
) -> None:
    """Ctrl-C leaves a line with the command that goes on, if a folder was begun, and reaches the caller."""

    def measure(_name: str, _options: Namespace, folder: Path, _resume: bool) -> Content:
        if begun:
            folder.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_measured", measure)
    with pytest.raises(KeyboardInterrupt):
        run.run(options_of("updater", "--seed", "7", "--out", str(tmp_path / "seen")))
    again = f"run updater --profile quick --seed 7 --out {tmp_path / 'seen'} --resume"
    assert (again in capsys.readouterr().err) is begun


def test_a_damaged_prediction_does_not_end_the_plan_of_other_studies(tmp_path: Path) -> None:
    """The folder of a study's first part is damaged. Its plan has no sweep, and measuring it prints the reason."""
    first = PARTS["pool_size"][1].first
    assert first is not None
    (tmp_path / first).mkdir()
    (tmp_path / first / SWEEP_FILE).write_text("{")
    (tmp_path / FORETOLD_FILE).write_text("{")
    assert run.planned("pool_size", options_of("pool_size", "--seed", "1"), tmp_path).sweep is None


def test_what_is_measured_after_a_part_takes_time_too() -> None:
    """The estimate counts sweeps without verdicts, servers alone, cold runs, and deliveries."""
    one = setting(transport="sockets")
    alone = StandalonePlan("s", "p", (LoneServer(one, (10,)),), blocks=5, idle_s=5)
    cold = ColdPlan("s", "p", (ColdCell(one, 100, runs=3),), blocks=10)
    nothing = estimate.after_s({})
    assert estimate.after_s({}, [alone]) - nothing > 5 * 2 * 5
    assert estimate.after_s({}, [cold]) - nothing > 10 * BLOCK_S
    peer = setting(service="echo", language="c", transport="berkeley", client="peer")
    received = DeliveryPlan("s", "p", (DeliveryCell(peer, 3),), blocks=4)
    assert estimate.after_s({}, [received]) - nothing > 3 * 4
    assert estimate.after_s({"later": SWEEP}) - nothing == SWEEP.looks[-1] * estimate.block_s(SWEEP)


def test_a_part_of_peers_alone_asks_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to build peers where none is built, and ``record --list`` goes on to the next part."""
    monkeypatch.setattr(run, "is_built", lambda _name: False)
    for name in ("sockets", "socket_patterns"):
        options = options_of(name, "--seed", "1", "--out", str(tmp_path / name))
        with pytest.raises(UsageError, match="run make peers"):
            run.run(options)
        assert run.planned(name, options, tmp_path).least_s == 0
