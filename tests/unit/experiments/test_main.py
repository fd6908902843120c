"""``python -m experiments``: what it lists, what it refuses, and a sweep that is interrupted and resumed."""

import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from experiments import report, results, verify
from experiments.__main__ import DIFFERS_EXIT, INTERRUPTED_EXIT, ONE_NUMBER, UNREAD_EXIT, _folder, _parser, main
from experiments.run_records import RUNS_FILE, counting, load_records
from experiments.runner import Sweep, Watch
from experiments.studies import STUDIES, experiments
from tests.unit.experiments.planted_stock import World, rows_of, write_results

COMMAND = (sys.executable, "-m", "experiments")
EIGHT_RUNS = ("run", "connection_policy", "--clients", "1", "--blocks", "1")
"""Four of the part's own, and those that are run beside it twice."""


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which arguments are refused."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_every_experiment_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(experiments())
    assert all(len(line.split()) > 3 for line in lines)
    (again,) = (line for line in lines if line.startswith("same_again"))
    assert "The same settings twice in each block" in again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "stok"), "'stok'"),
        (("run", "stock", "--profile", "fast"), "--profile"),
        (("run", "stock", "--clients", "0"), "--clients: got '0', allowed: a whole number from 1 to 64"),
        (("run", "stock", "--blocks", "none"), "--blocks"),
        (("run", "server_cost", "--clients", "2", "4"), "--clients: got '2 4', allowed: none, since server_cost"),
        (("run", "offered_load", "--clients", "3"), "--clients: got '3', allowed: none, since offered_load"),
        ((), "list|run|plot|report"),
    ],
)
def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    """Naming what was given and what is allowed."""
    assert message in refused(capsys, *arguments)


def test_a_folder_without_results_is_neither_drawn_nor_reported_nor_verified(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One line that names the file."""
    for command in ("plot", "report"):
        assert "results.csv" in refused(capsys, command, str(tmp_path))
    assert "runs.jsonl.gz" in refused(capsys, "verify", str(tmp_path))


def test_a_folder_without_a_whole_run_is_neither_drawn_nor_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As a sweep leaves it that was interrupted in its first run: nothing was drawn is no success."""
    file = write_results(tmp_path, rows_of(World(blocks=1), ("figure_2",))) / results.RESULTS_FILE
    file.write_text(file.read_text().splitlines(keepends=True)[0])
    for command in ("plot", "report"):
        assert "got 'no whole run', allowed: results of one run at least" in refused(capsys, command, str(tmp_path))


def test_results_that_no_figure_shows_are_said_to_be_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In a line that names their parts; it is no fault."""
    assert main(["plot", str(write_results(tmp_path, rows_of(World(blocks=1), ("same", "same_again"))))]) == 0
    assert capsys.readouterr().out == "no figures for: same, same_again\n"


def test_a_folder_that_is_not_there_is_said_with_those_that_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In words; a folder of folders is none of results either."""
    monkeypatch.chdir(tmp_path)
    for command in ("plot", "report", "verify"):
        said = refused(capsys, command, "/nope")
        assert "RESULTS: got '/nope', allowed: a folder of results, and there is no such folder; " in said
        assert "results here: none; " in said
    made = tmp_path / "results" / "stock-smoke"
    made.mkdir(parents=True)
    for file in (results.RESULTS_FILE, RUNS_FILE):
        (made / file).touch()
    for command in ("plot", "report", "verify"):
        assert "has no r" in (said := refused(capsys, command, "results"))
        assert "results here: results/stock-smoke" in said


def test_a_profile_that_a_study_lacks_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With those that it has."""
    smoke = {"smoke": STUDIES["stock"].profiles["smoke"]}
    monkeypatch.setitem(STUDIES, "workers", replace(STUDIES["stock"], name="workers", profiles=smoke))
    assert "--profile: got 'quick', allowed: for workers: smoke" in refused(capsys, "run", "workers")


def test_a_sweep_with_nothing_to_resume_says_that_it_begins_anew(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In one line, before its first run; where some runs are done it goes on without it."""

    def planned(done: int) -> str:
        def began_and_interrupted(sweep: Sweep, _: object, __: bool, watch: Watch) -> None:
            watch.began(sweep.design.runs()[done:])
            raise KeyboardInterrupt

        monkeypatch.setattr("experiments.__main__.run_sweep", began_and_interrupted)
        assert main([*EIGHT_RUNS, "--resume", "--out", str(tmp_path)]) == INTERRUPTED_EXIT
        return capsys.readouterr().err

    said = f"--resume: nothing to go on with in {tmp_path}, which is begun anew"
    assert said in planned(0)
    assert said not in planned(1)


def test_a_folder_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Here: a file stands in its place."""
    (tmp_path / "taken").write_text("")
    assert "taken" in refused(capsys, *EIGHT_RUNS, "--out", str(tmp_path / "taken" / "results"))


@pytest.mark.slow
def test_a_sweep_is_run_drawn_and_reported(tmp_path: Path) -> None:
    """The figures and the report are in the folder, which verifies, and takes no second sweep unasked."""
    command = [*COMMAND, *EIGHT_RUNS, "--profile", "smoke", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "8 runs, about" in done.stderr
    assert len({row.run_id for row in results.load_rows(tmp_path)}) == len(counting(load_records(tmp_path))) == 8
    assert (tmp_path / "report.html").exists()
    assert list((tmp_path / "figures").glob("connection_policy.*"))
    assert main(["verify", str(tmp_path)]) == 0
    again = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert again.returncode == 2
    assert "--resume" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_no_half_of_it_no_process_and_the_command_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    """By Ctrl-C, a service manager or a closed terminal, while clients send; the command is that given, --resume."""
    given = [*EIGHT_RUNS, "--profile", "paper", "--seed", "7", "--out", str(tmp_path)]
    with subprocess.Popen([*COMMAND, *given], stderr=subprocess.PIPE, text=True) as sweep:
        assert sweep.stderr is not None
        assert sweep.stderr.readline() == f"{ONE_NUMBER}\n"
        assert "8 runs" in sweep.stderr.readline()
        started = clients_of(sweep.pid)
        sweep.send_signal(number)
        said = sweep.stderr.read()
        assert sweep.wait(20) == INTERRUPTED_EXIT
    _, left = psutil.wait_procs(started, timeout=10)  # the fork server sees that its parent is gone
    assert left == []
    assert results.load_rows(tmp_path) == []
    assert said.count("\n") == 1
    going_on = _parser().parse_args(shlex.split(said.partition("to go on: ")[2])[3:])
    assert vars(going_on) == vars(_parser().parse_args([*given, "--resume"]))


@pytest.mark.slow
def test_a_killed_run_leaves_no_process(tmp_path: Path) -> None:
    """By SIGKILL, which nobody hears: server, clients and the fork server end all the same, in mid-window."""
    command = [*COMMAND, *EIGHT_RUNS, "--profile", "paper", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as sweep:
        started = clients_of(sweep.pid)
        sweep.kill()
    _, left = psutil.wait_procs(started, timeout=10)
    assert left == []


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    """As of ``list | head -1``."""
    with subprocess.Popen([*COMMAND, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.close()
        assert listing.stderr.read() == ""
        assert listing.wait(20) == UNREAD_EXIT


@pytest.mark.slow
def test_results_that_a_crash_tore_are_reported(tmp_path: Path) -> None:
    """Without the run that is not whole."""
    file = write_results(tmp_path, rows_of(World(blocks=1), ("figure_2",))) / results.RESULTS_FILE
    file.write_text(file.read_text()[:-30])
    assert main(["report", str(tmp_path)]) == 0


def clients_of(pid: int) -> list[psutil.Process]:
    """A sweep's processes, once a server and its client are among them: a client is a child of the fork server, which
    is a child of the sweep."""
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        children, found = psutil.Process(pid).children(), psutil.Process(pid).children(recursive=True)
        if len(found) > len(children) and any("stock_service" in each.cmdline() for each in children):
            return found
        threading.Event().wait(0.02)
    raise AssertionError("no client within 20 s")


def test_a_folder_is_verified_difference_by_difference(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """An exit code for those who ask by program, and the first twenty differences in words."""
    file = folder / results.RESULTS_FILE
    header, *lines = file.read_text().splitlines()
    file.write_text("\n".join([header, *(line.replace("stock", "shock", 1) for line in lines)]) + "\n")
    assert main(["verify", str(folder)]) == DIFFERS_EXIT
    *said, last = capsys.readouterr().out.splitlines()
    assert len(said) == 20
    assert said[0] == 'results.csv line 2: study is "shock", and "stock" by the run'
    assert last == f"{folder} does not verify: {len(lines)} differences, the first here"


@pytest.mark.slow
def test_verify_says_what_it_did_not_compare(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Where another matplotlib is here than drew the figures: that, and no word that they are what the runs give."""
    assert main(["verify", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder} verifies: every number, figure and sentence is what its runs give\n"
    monkeypatch.setattr(verify, "version", lambda _: "0.1")
    assert main(["verify", str(folder)]) == 0
    left_out, last = capsys.readouterr().out.splitlines()
    assert left_out.startswith("not compared: the figures, which matplotlib ")
    assert last == f"{folder} verifies: every number and sentence is what its runs give"
    (folder / report.HTML).write_text("nonsense\n")
    assert main(["verify", str(folder)]) == DIFFERS_EXIT
    assert f"{report.HTML} line 1: has " in capsys.readouterr().out


def test_results_are_never_written_over(tmp_path: Path) -> None:
    """A new run takes a new folder; ``--resume`` the latest, or the first where there is none."""
    first, second, third = (tmp_path / name for name in ("stock-quick", "stock-quick-2", "stock-quick-3"))
    assert _folder(tmp_path, "stock-quick", resume=False) == first
    assert _folder(tmp_path, "stock-quick", resume=True) == first
    for folder in (first, second):
        folder.mkdir()
        (folder / results.RESULTS_FILE).touch()
    assert _folder(tmp_path, "stock-quick", resume=False) == third
    assert _folder(tmp_path, "stock-quick", resume=True) == second
