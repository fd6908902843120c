"""Trials of the advice: the criteria, the services, and the rows of the page."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.peers.python.shapes_server import SHAPES
from experiments.recommend.seen import Found, Level, Limit, Load
from tests.reliability import trials
from tests.reliability.trials import BEGIN, END, README, Tried, recorded, shown, summary


def levels(**rates_hz: float) -> tuple[Level, ...]:
    """Pools by name, such as ``of_4``."""
    return tuple(
        Level(int(name.removeprefix("of_")), (Load(128, hz, 0.1, None, 0.1),)) for name, hz in rates_hz.items()
    )


AFTERWARDS = levels(of_1=100, of_2=200, of_4=380, of_8=400, of_16=405)
FOUND = Found(4, 1, True, AFTERWARDS, 390.0, Limit.INSIDE, 4.0, 0.01, None)
TRIED = Tried(FOUND, AFTERWARDS, 15.0)


@pytest.mark.parametrize(("workers", "is_right"), [(2, False), (4, True), (8, True), (16, False)])
def test_an_advised_pool_is_enough_and_at_most_twice_the_smallest(workers: int, is_right: bool) -> None:
    """A pool of 4 reaches 94 % of the best rate and is enough. A pool of 2 is not enough, and a pool of more than 8 is
    too large."""
    tried = replace(TRIED, found=replace(FOUND, workers=workers))
    assert tried.smallest == 4
    assert tried.is_pool_right is is_right


@pytest.mark.parametrize(("said_hz", "is_right"), [(320, False), (330, True), (430, True), (440, False)])
def test_a_rate_is_found_again(said_hz: float, is_right: bool) -> None:
    """An advised rate counts as found again within 15 % of the 380/s that the advised pool reached afterwards."""
    assert replace(TRIED, found=replace(FOUND, highest_hz=said_hz)).is_rate_right is is_right


def test_a_service_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown service is refused with the names of the twelve known ones."""
    assert len(SHAPES) == 12
    with pytest.raises(SystemExit, match="2"):
        trials.main(["lock", "nothing"])
    assert "nothing" in (said := capsys.readouterr().err)
    assert all(name in said for name in SHAPES)


def test_the_page_gets_a_row_in_place_of_the_older_one() -> None:
    """A new row replaces the older one, in the order of the services, with a sentence on all of them. The text around
    stays."""
    page = f"before\n{BEGIN}{END}after\n"
    wrong = replace(TRIED, found=replace(FOUND, workers=16, highest_hz=1000.0))
    for name, tried in (("connections", TRIED), ("lock", wrong)):
        page = recorded(page, name, shown(name, tried, "now on abc"), "a machine")
    assert "a machine. Of 2 services 1 advised pools are right, and 1 rates." in page
    page = recorded(page, "lock", shown("lock", TRIED, "now on abc"), "a machine")
    assert "Of 2 services 2 advised pools are right, and 2 rates." in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row.split("|")[1].strip() for row in rows] == ["`lock`", "`connections`"]
    assert page.startswith("before\n")
    assert page.endswith("after\n")


def test_rows_of_another_machine_are_dropped() -> None:
    """Rows of another machine are dropped. One line names the machine of all rows."""
    page = f"{BEGIN}{END}"
    for name, machine in (("lock", "a machine"), ("documents", "a machine"), ("connections", "a machine, newer")):
        page = recorded(page, name, shown(name, TRIED, "now on abc"), machine)
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == ["connections"]
    assert "a machine, newer. Of 1 services" in page


def test_a_changed_source_anywhere_is_a_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A changed source outside the page's folder is a change, too. The page itself is not a source."""
    page, source = tmp_path / "folder/README.md", tmp_path / "another/source.py"
    for file in (page, source):
        file.parent.mkdir()
        file.write_text("one\n", encoding="utf-8")
    author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "One")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(trials, "README", page)
    page.write_text("two\n", encoding="utf-8")
    assert not trials.is_changed()
    source.write_text("two\n", encoding="utf-8")
    assert trials.is_changed()


@pytest.mark.slow
def test_the_trials_write_each_row_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each row is written at once, so that an interrupted run keeps its rows."""
    (tmp_path / "page.md").write_text(f"{BEGIN}{END}", encoding="utf-8")
    monkeypatch.setattr(trials, "tried", lambda *_: TRIED)
    rows = trials.run(("lock", "documents"), lambda _: None, tmp_path / "page.md")
    assert [next(rows) for _ in range(3)][2] in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "`documents`" not in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_the_recorded_trials_hold() -> None:
    """Of the twelve services in the README at least eleven have the right pool, and ten the right rate. Its sentence
    has the counts."""
    text = README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(SHAPES)
    assert summary(rows) in text
    assert sum("wrong" not in row.split("|")[3] for row in rows) >= 11
    assert sum("wrong" not in row.split("|")[6] for row in rows) >= 10


def number(text: str) -> float:
    """The first number of a cell."""
    return float(re.findall(r"[\d,.]+", text)[0].replace(",", ""))


def faults_of(text: str) -> list[str]:
    """Contradictions in rows of the page's table. The measured pools decide if an advice is enough and right."""
    table, faults = text.partition(BEGIN)[2].partition(END)[0], []
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in lines]
    for name, _, advised, smallest, of_best, said, found, did, *_ in rows:
        rates = {f"of_{pool}": number(hz) for pool, hz in re.findall(r"(\d+): ([\d.,]+)/s", did)}
        own = replace(FOUND, workers=int(number(advised)), highest_hz=number(said))
        tried = Tried(own, levels(**rates), 0.0)
        holds = [tried.own.throughput_hz == number(found), tried.smallest == int(smallest)]
        holds += [abs(number(of_best) - 100 * tried.of_best) < 1]  # rates have three digits
        holds += [tried.is_pool_right != ("wrong" in advised), tried.is_rate_right != ("wrong" in said)]
        faults += [] if all(holds) else [name]
    return faults + ["the sum"] * (summary(lines) not in table)


def test_the_table_of_the_page_agrees_with_itself() -> None:
    """A number of the table that was changed by hand is found, in a row or in the summary."""
    text = README.read_text(encoding="utf-8")
    assert faults_of(text) == []
    for written, other in (
        (r"services \d+ advised", "services 1 advised"),
        (r"(\| \d+) \| [\d.]+ %", r"\1 | 50.5 %"),
        (r" threads \| \d+ ", " threads | 3 "),
        (r"/s \| [\d,.]+/s \| 1:", "/s | 2.5/s | 1:"),
        (r" \| [\d,.]+/s(?= \| [\d,.]+/s \| 1:)", " | 2.5/s"),
    ):
        assert faults_of(re.sub(written, other, text, count=1)), written
