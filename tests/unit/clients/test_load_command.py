"""The load client as a program: its exit codes, its file, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clients.load import __main__ as command
from clients.load import fleet

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _warmed() -> None:
    """The fork server runs: what it keeps open is no test's doing."""
    fleet.warm()


def run(server: str, *options: str) -> int:
    """A short run."""
    times = ["--warm-up-s", "0.1", "--duration-s", "0.2"]
    return command.main(["--transport", "sockets", "--address", server, *times, *options])


@pytest.mark.usefixtures("no_leaks")
def test_each_number_of_clients_has_its_run(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In turn; the file has them all, and the screen a summary of each."""
    file = tmp_path / "results.json"
    assert run(server, "--clients", "1", "2", "--mix", "lookup=0.5,trade=0.5", "--json", str(file)) == 0
    results = json.loads(file.read_text())["results"]
    assert [result["plan"]["clients"] for result in results] == [1, 2]
    assert all(result["requests"].keys() == {"lookup", "trade", "all"} for result in results)
    said = capsys.readouterr()
    assert said.out.count("request count") == 2
    assert "2 clients: measuring" in said.err


def test_unknown_stocks_are_outcomes_said_aloud(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No errors, exit code 0; but nobody should take the numbers for those of a stock that is there."""
    assert run(server, "--stocks", "Nope") == 0
    assert "UNKNOWN_STOCK" in capsys.readouterr().out


def test_a_server_that_is_not_there_is_one_line(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, saying what to do; exit code 3."""
    host, _, _ = server.partition(":")
    assert run(f"{host}:1") == 3
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("python -m clients.load: UNAVAILABLE: ")
    assert last.endswith("start a server: python -m stock_service.socket_server")


def test_ctrl_c_keeps_what_was_measured(server: str, tmp_path: Path) -> None:
    """To the whole process group, as a terminal sends it: summary and file all the same, exit code 130."""
    file = tmp_path / "results.json"
    options = ["--transport", "sockets", "--address", server, "--clients", "2", "3", "--duration-s", "60"]
    with subprocess.Popen(
        [sys.executable, "-m", "clients.load", *options, "--warm-up-s", "0.1", "--json", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        while "measuring" not in process.stderr.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert "interrupted" in out
    (result,) = json.loads(file.read_text())["results"]
    assert result["interrupted"]
    assert result["errors"] == {}
