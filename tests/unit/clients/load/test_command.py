"""The load client as a program: exit codes, files, the search for a rate, and the effect of Ctrl-C."""

import csv
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from clients.load import command
from clients.load.record.result import LoadResult, from_json
from clients.load.run import fleet
from tests.conformance.running import until
from tests.end_to_end.process import Ended, Running
from tests.unit.clients.load.reports import closed_records, closed_run, open_run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warmed")]


def run(server: str, *options: str) -> int:
    """A short run, without measuring the floor."""
    times = ["--warm-up-s", "0.1", "--duration-s", "0.2", "--no-floor"]
    return command.main(["--transport", "sockets", "--address", server, *times, *options])


@pytest.mark.usefixtures("no_leaks")
def test_each_number_of_clients_has_its_run(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each number of clients has its run in turn. The files have all runs, and the screen has a summary of each."""
    files = {option: tmp_path / f"results.{option}" for option in ("json", "csv", "hlog")}
    options = [word for option, file in files.items() for word in (f"--{option}", str(file))]
    assert run(server, "--clients", "1", "2", "--mix", "lookup=0.5,trade=0.5", *options) == 0
    results = json.loads(files["json"].read_text())["results"]
    assert [result["plan"]["clients"] for result in results] == [1, 2]
    assert all(result["requests"].keys() == {"lookup", "trade", "all"} for result in results)
    assert [from_json(result["counted"]).started_clients for result in results] == [1, 2]
    with files["csv"].open(newline="") as file:
        assert [row["clients"] for row in csv.DictReader(file)] == ["1"] * 3 + ["2"] * 3
    assert files["hlog"].read_text().count("Tag=") == 6
    said = capsys.readouterr()
    assert said.out.count("request count") == 2
    assert "2 clients: measuring" in said.err


def test_the_floor_is_shown_unless_it_is_not_wanted(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The floor is measured first, and shown. Unknown stocks are outcomes with exit code 0 and a warning."""
    options = ["--transport", "sockets", "--address", server, "--warm-up-s", "0", "--duration-s", "0.1"]
    assert command.main(options) == 0
    assert "client's floor (times on" in capsys.readouterr().out
    assert run(server, "--stocks", "Nope") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "floor" not in said
    assert " replies were UNKNOWN_STOCK: the server does not have these stocks; give its own with --stocks" in said


def test_errors_are_exit_code_1(capsys: pytest.CaptureFixture[str], canned: Callable[..., None]) -> None:
    """Errors are exit code 1, with a warning. A limit that was not kept is exit code 4, also with errors."""
    canned(replace(closed_run(closed_records()), errors={"invalid_reply": 3}))
    assert run("127.0.0.1:1") == 1
    assert "ERRORS of the whole run, connecting included" in capsys.readouterr().out
    assert run("127.0.0.1:1", "--fail-if", "errors>0") == 4


def test_a_file_that_cannot_be_written_in_the_end_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], canned: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose place a folder has taken is exit code 2 and one line, after the summary. The other files are
    written."""
    taken, other = tmp_path / "results.json", tmp_path / "results.csv"

    def take(*_: object) -> LoadResult:
        taken.mkdir()
        return closed_run(closed_records())

    canned(closed_run(closed_records()))
    monkeypatch.setattr(fleet, "run", take)
    assert run("127.0.0.1:1", "--json", str(taken), "--csv", str(other)) == 2
    said = capsys.readouterr()
    assert "1 client · lean" in said.out
    assert said.err.splitlines()[-1].startswith(
        f"python -m clients.load: --json: got '{taken}', which cannot be written"
    )
    assert other.read_text().startswith("started_at,")


def test_the_highest_rate_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], canned: Callable[..., None]
) -> None:
    """A search prints a line for each trial, then the answer. The file has every trial."""
    file = tmp_path / "trials.json"
    words = f"--transport sockets --duration-s 2 --find-rate --p99-ms 60000 --fail-if starved>0 --json {file}".split()
    canned(open_run(count=200))
    assert command.main(words) == 4  # too few replies for a percentile
    said = capsys.readouterr()
    assert "no rate was shown to have a p99 of at most 60000 ms in 5 trials, from 38/s to 600/s; allow more" in said.out
    assert said.err.startswith("first rate 600/s, at which 2 s have the 1,000 replies")
    assert "cannot be told from" in said.err
    canned(open_run())
    assert command.main(words) == 0
    said = capsys.readouterr()
    assert "at least 1000000/s, the highest rate that is tried, with a p99 of at most 60000 ms" in said.out
    assert said.err.count(" 1,000,000/s  p99") == 2
    rates = [result["plan"]["rate_hz"] for result in json.loads(file.read_text())["results"]]
    assert rates == [*(600.0 * 2**number for number in range(11)), 1e6, 1e6]


def test_an_interrupt_ends_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], canned: Callable[..., None]
) -> None:
    """The trial that was under way is in the file, and no other trial follows."""
    file = tmp_path / "trials.json"
    canned(replace(open_run(), interrupted=True))
    words = f"--transport sockets --duration-s 60 --find-rate --p99-ms 60000 --json {file}"
    assert command.main(words.split()) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "python -m clients.load: interrupted"
    assert len(json.loads(file.read_text())["results"]) == 1


def test_results_can_be_piped(server: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Results on standard output come after the summary, whole, so that they can be piped."""
    assert run(server, "--csv", "/dev/stdout") == 0
    summary, heading, table = capfd.readouterr().out.partition("started_at,")
    assert "1 client · lean" in summary
    assert [row["request"] for row in csv.DictReader(io.StringIO(heading + table))] == ["lookup", "all"]


# ---- interrupts


def test_the_first_interrupt_is_raised_and_no_other() -> None:
    """Later interrupts do not cut the work after the first one."""
    interrupts = command._Interrupts()
    with interrupts.listened_to():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_held_is_done_whole() -> None:
    """A held block runs to its end. The interrupt is then raised once."""
    interrupts = command._Interrupts()
    done: list[bool] = []

    def work() -> None:
        with interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    with interrupts.listened_to():
        with pytest.raises(KeyboardInterrupt):
            work()
        work()
    assert done == [True, True]


def test_an_ignored_interrupt_stays_ignored() -> None:
    """An ignored interrupt stays ignored, as for a program in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with command._Interrupts().listened_to():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


# ---- as a process


class Program(Running):
    """The program in a new process group, as a terminal's foreground job has."""

    def __init__(self, server: str, *options: str) -> None:
        words = ("--transport", "sockets", "--address", server, *options)
        super().__init__("clients.load", *words, program=("setsid", sys.executable, "-m"))

    def press(self) -> None:
        """Ctrl-C: the whole group gets it, as from a terminal."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGINT)

    def press_on(self) -> None:
        """Sends Ctrl-C until the program has ended."""
        while self.runs():
            self.press()

    def ended(self) -> Ended:
        """The end of the program, when no process of the group runs."""
        ended = super().ended()
        until(self._gone, "every process of the group has ended")
        return ended

    def _gone(self) -> bool:
        """True if no process of the group runs. A zombie counts as ended: the system's first process may reap it some
        seconds later."""
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getpgid(process.pid) == self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    return False
        return True


Start = Callable[..., Program]


@pytest.fixture
def start(server: str) -> Iterator[Start]:
    """Starts the program with some options."""
    with ExitStack() as started:
        yield lambda *options: started.enter_context(Program(server, *options))


def until_measuring(program: Program) -> None:
    """Waits for the line at the begin of the window."""
    until(lambda: "measuring" in program.said(), "the measuring")


LONG = ("--clients", "2", "3", "--connections-per-client", "2", "--duration-s", "60", "--warm-up-s", ".1", "--no-floor")


@pytest.mark.parametrize("how", ["SIGTERM", "Ctrl-C again and again"])
def test_an_interrupt_keeps_what_was_measured(start: Start, tmp_path: Path, how: str) -> None:
    """Any number of interrupts leave the summary and the file, no lost request, no traceback, and exit code 130."""
    file = tmp_path / "results.json"
    program = start(*LONG, "--json", str(file))
    until_measuring(program)
    if how == "SIGTERM":
        program.signal(signal.SIGTERM)
    else:
        program.press_on()
    ended = program.ended()
    assert "Traceback" not in ended.stderr
    assert ended.code == 130 or (how != "SIGTERM" and ended.code == -signal.SIGINT)  # after the files were written
    assert "interrupted" in ended.stdout
    (result,) = json.loads(file.read_text())["results"]
    assert result["interrupted"]
    assert 0 <= result["unanswered"] == result["counted"]["unanswered"] <= 8
    assert result["errors"] == {}
    assert result["counted"]["began"] == result["counted"]["recorded"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere clients send on to the end of the window")
def test_a_killed_program_leaves_no_process(start: Start) -> None:
    """After SIGKILL its clients and the fork server end, with a minute's load before them."""
    program = start(*LONG)
    until_measuring(program)
    program.signal(signal.SIGKILL)
    assert program.ended().code == -signal.SIGKILL


@pytest.mark.parametrize("when", ["it is loaded", "clients start"])
def test_ctrl_c_in_the_first_second_is_quiet(start: Start, when: str) -> None:
    """Ctrl-C in the first second leaves no traceback of any process, and no process."""
    program = start("--clients", "8")
    maps, process = Path(f"/proc/{program.pid}/maps"), psutil.Process(program.pid)
    until(lambda: "numpy" in maps.read_text() if when == "it is loaded" else len(process.children(True)) >= 4, when)
    program.press()
    ended = program.ended()
    assert ended.code in (130, -signal.SIGINT)
    assert set(ended.stderr.splitlines()) <= {"python -m clients.load: interrupted"}
    assert ended.stdout == "" or "interrupted" in ended.stdout


def test_a_pipe_that_nobody_reads_can_be_left(start: Start, tmp_path: Path) -> None:
    """Ctrl-C ends the wait for a pipe's reader. The other files are written by then."""
    pipe, file = tmp_path / "pipe", tmp_path / "results.json"
    os.mkfifo(pipe)
    options = ("--warm-up-s", "0", "--duration-s", "0.1", "--no-floor")
    program = start(*options, "--csv", str(pipe), "--json", str(file))
    until(file.exists, "it has measured and written")
    program.press_on()
    ended = program.ended()
    assert (ended.code, ended.stderr.count("Traceback")) == (-signal.SIGINT, 0)
    assert "1 client" in ended.stdout
    assert len(json.loads(file.read_text())["results"]) == 1
