"""``python -m experiments``: what it lists, what it refuses, and a sweep that is interrupted and resumed."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import results
from experiments.__main__ import main
from experiments.studies import experiments

COMMAND = (sys.executable, "-m", "experiments")
FOUR_RUNS = ("run", "connection_policy", "--clients", "1", "--profile", "smoke", "--blocks", "1")


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "stok"), "'stok'"),
        (("run", "stock", "--profile", "fast"), "--profile"),
        (("run", "stock", "--clients", "0"), "--clients: got '0', allowed: a whole number from 1 to 64"),
        (("run", "stock", "--blocks", "none"), "--blocks"),
        ((), "list|run|plot|report"),
    ],
)
def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    """Naming what was given and what is allowed."""
    assert message in refused(capsys, *arguments)


def test_a_folder_without_results_is_neither_drawn_nor_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One line that names the file."""
    for command in ("plot", "report"):
        assert "results.csv" in refused(capsys, command, str(tmp_path))


def test_a_folder_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Here: a file stands in its place."""
    (tmp_path / "taken").write_text("")
    assert "taken" in refused(capsys, *FOUR_RUNS, "--out", str(tmp_path / "taken" / "results"))


@pytest.mark.slow
def test_a_sweep_is_interrupted_resumed_drawn_and_reported(tmp_path: Path) -> None:
    """Ctrl-C in a run prints the command that goes on; what was done is kept, the rest is done by that command; then
    the figures and the report are there, and the folder takes no second sweep.
    """
    command = [*COMMAND, *FOUR_RUNS, "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as sweep:
        assert sweep.stderr is not None
        assert "4 runs" in sweep.stderr.readline()
        sweep.send_signal(signal.SIGINT)
        said = sweep.stderr.read()
        assert sweep.wait(20) == 130
    assert said.count("\n") == 1
    _, found, going_on = said.partition("to go on: ")
    assert found
    done = len({row.run_id for row in results.load_rows(tmp_path)}) if (tmp_path / "results.csv").exists() else 0
    assert done < 4
    resumed = subprocess.run([sys.executable, *shlex.split(going_on)[1:]], capture_output=True, text=True, timeout=50)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{4 - done} runs" in resumed.stderr
    assert len({row.run_id for row in results.load_rows(tmp_path)}) == 4
    assert (tmp_path / "report.html").exists()
    assert list((tmp_path / "figures").glob("connection_policy.*"))
    again = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert again.returncode == 2
    assert "--resume" in again.stderr
