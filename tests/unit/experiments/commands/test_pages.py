"""The command ``pages``: the filled-in texts, and the check of pages that claim too much."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.commands import index, notebooks, pages, recording
from experiments.results import environment
from experiments.results.fingerprint import taken
from experiments.show import report, version
from experiments.studies import STUDIES
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.commands.test_index import measured
from tests.unit.experiments.show.test_report import MACHINE

PAGE = """# A page

It takes <!--= stock/quick as_started -->0.999<!--/--> of the time, in <!--= stock/quick runs --><!--/-->.
The servers: <!--= stock/quick version -->of this version<!--/-->.
"""

SOURCES = taken()

READ = cache(recording.read)
"""Reads and judges a folder once, until ``changed``."""

OF_SOCKETS = "stock_service/rpc/transports/sockets/*.py"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a page, and one recording of this version."""
    studies = tmp_path / "experiments" / "studies"
    for name in STUDIES:
        (studies / name).mkdir(parents=True)
        (studies / name / "README.md").write_text("# A study\n")
    folder = measured(studies / "stock" / "recorded" / "quick")
    environment.save(replace(MACHINE, sources=SOURCES), folder)
    (folder / report.MARKDOWN).write_text("# A report\n\n> Its state.\n\nText.\n")
    (tmp_path / "README.md").write_text(PAGE)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(pages, "HERE", studies)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "recordings", lambda: [folder])
    monkeypatch.setattr(pages, "read", READ)
    monkeypatch.setattr(index, "read", READ)
    return tmp_path


def called(*arguments: str) -> int:
    """The command's exit code."""
    return main(["pages", *arguments])


def changed(monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    """Changes the sources of a row, as after a change of a file."""
    monkeypatch.setattr(version, "taken", lambda: SOURCES | {row: "changed"})
    READ.cache_clear()


@pytest.mark.slow
def test_a_number_that_was_typed_is_found_and_written_anew(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A typed ratio and a typed word between markers are found and replaced. The text around the markers stays."""
    assert called("--check") == 1
    assert "README.md: not what the recordings give" in capsys.readouterr().out
    assert (root / "README.md").read_text() == PAGE
    assert called() == 0
    text = (root / "README.md").read_text()
    assert "<!--= stock/quick as_started -->0.999<" not in text
    assert "<!--= stock/quick runs -->1 run<!--/-->.\n" in text
    assert called("--check") == 0
    for page, begun in ((root / "README.md", "as_started -->"), (root / "experiments/studies/README.md", r"\(")):
        whole = page.read_text()
        page.write_text(re.sub(rf"({begun})\d\.\d+", r"\g<1>7.77", whole, count=1))
        assert page.read_text() != whole
        assert called("--check") == 1, page
        page.write_text(whole)


@pytest.mark.slow
def test_a_page_that_claims_freshness_after_a_change_is_found(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a change the front page, the index and the report are named. A change of sources that no arm runs does not
    count."""
    called()
    recorded = root / "experiments" / "studies" / "stock" / "recorded" / "quick" / report.MARKDOWN
    shown = (root / "README.md", root / "experiments" / "studies" / "README.md", recorded)
    assert all("of this version" in page.read_text() for page in shown)
    changed(monkeypatch, "stock_service/rpc/transports/http1/*.py")
    assert called("--check") == 0
    changed(monkeypatch, OF_SOCKETS)
    capsys.readouterr()
    assert called("--check") == 1
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "experiments/studies/README.md",
        "experiments/studies/stock/recorded/quick/report.md",
        "README.md",
    ]
    called()
    assert not any("of this version" in page.read_text() for page in shown)
    assert "These sources have changed since: stock_service/rpc/transports/sockets." in recorded.read_text()
    assert recorded.read_text().count(version.LABEL) == 1


def test_a_recording_that_is_still_to_come_is_said_to_be(root: Path) -> None:
    """A marker with a question mark has the text for a missing recording. Once the recording exists, the marker has its
    first answer."""
    page, marker = root / "README.md", "<!--= stock/{}? first --><!--/-->"
    assert ">not recorded yet<" in pages.filled(marker.format("paper"), page)
    assert "With the static pool on both sides, a Lookup on sockets" in pages.filled(marker.format("quick"), page)


def test_a_time_has_its_unit(root: Path) -> None:
    """The mean latency of an arm has a unit, and so has a stage that the server stamped."""
    filled = pages.filled("<!--= stock/quick latency of sockets --><!--/-->", root / "README.md")
    assert re.fullmatch(r".*-->\d+(\.\d+)? µs<.*", filled)
    staged = recording.read(Path(recording.__file__).parents[1] / "studies/stock/recorded/quick/stages").judgement
    assert re.fullmatch(r"\d\.\d+ µs", pages._time(staged, "lock_wait", "sockets workers=5 clients=5", root))


def test_what_is_recorded_nowhere_is_refused(root: Path) -> None:
    """A marker with an unknown folder, comparison, arm or stage is refused."""
    for marker, said in (
        ("stock/quik runs", "stock/quik"),
        ("stock runs", "got 'stock'"),
        ("/quick runs", "got '/quick'"),
        ("stock/quick growth", "growth of quick"),
        ("stock/quick latency of pigeons", "latency of pigeons"),
        ("stock/quick lock_wait of sockets", "lock_wait of sockets.*latency, queue_wait"),
    ):
        with pytest.raises(UsageError, match=said):
            pages.filled(f"<!--= {marker} -->1<!--/-->", root / "README.md")


@pytest.mark.slow
def test_a_ratio_that_a_run_lacks_is_not_of_all_runs(root: Path) -> None:
    """Where the gates left a run without a value of a comparison, the ratio has the number of the other runs."""
    folder = root / "experiments" / "studies" / "stock" / "recorded" / "quick"
    whole = READ(folder)
    judged = whole.judgement.judged["as_started"]
    lacking = replace(whole, seen=replace(whole.seen, main=replace(whole.judgement, judged={})))
    assert "(of" not in pages._in_all(judged, [(folder, whole)])
    assert pages._in_all(judged, [(folder, whole), (folder, lacking)]).endswith(" (of 1 run)")


@pytest.mark.slow
def test_what_a_recording_lacks_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The minutes of a recording without a record of the machine are refused, and the first answer of a part without
    answers."""
    page, folder = root / "README.md", root / "experiments" / "studies" / "stock" / "recorded" / "quick"
    (folder / environment.ENVIRONMENT_FILE).unlink()
    with pytest.raises(UsageError, match=r"got 'minutes', allowed: a recording with environment\.json"):
        pages.filled("<!--= stock/quick minutes --><!--/-->", page)
    monkeypatch.setattr(pages, "_read", lambda folder: replace(READ(folder), answers=()))
    with pytest.raises(UsageError, match="got 'first', allowed: a recording of a part with answers"):
        pages.filled("<!--= stock/quick first --><!--/-->", page)


def test_a_marker_begins_no_line_but_of_a_block() -> None:
    """Only a marker of several lines begins a line: a comment at the begin of a line ends the paragraph above it."""
    for page in pages.filled_pages():
        text = page.read_text(encoding="utf-8")
        begins = [each for each in pages.MARKED.finditer(text) if text[each.start() - 1] == "\n"]
        assert [each[0] for each in begins if not each[3].startswith("\n")] == [], page


NO_PROSE = re.compile(
    r"<!--= .*?<!--/-->|^```.*?^```$|`[^`]*`|\]\([^)]*\)|<!-- trials -->.*?<!-- end of trials -->",
    re.DOTALL | re.MULTILINE,
)
"""Parts of a page without typed figures: text written by a program, code, and targets of links."""

NOT_OURS = re.compile(
    r"^## (?:Claims|Known faults|Factors and levels|Goals|Figures and tables|Comparisons that answer)"
    r"(?:.(?!^## ))*",
    re.DOTALL | re.MULTILINE,
)
"""Sections on a document's figures, and on goals. Another test checks the claims."""

UNIT = r"(?:/s\b|\s(?:µs|ms|s|min|minutes|seconds|%|[KMG]i?B|times|\w+ a second)(?!\w))"

FIGURE = re.compile(
    rf"(?<![\w.,/-])(?<!Python )(?:\d[\d,]*(?:\.\d+)?(?=(?:\s(?:to|and)\s[\d.,]+)?{UNIT})"
    r"|\d+\.\d+(?![\w.])|\d+,\d{3})"
)
"""A number with a unit, one with a fraction, and one of a thousand or more. Versions are none."""


def typed(text: str) -> list[str]:
    """Measured figures of a page outside markers."""
    found = FIGURE.findall(NO_PROSE.sub("", NOT_OURS.sub("", text)))
    return [each for each in found if not is_chosen(each.replace(",", ""))]


def is_chosen(number: str) -> bool:
    """True for a setting or a bound: people choose round numbers, such as 20, 0.5, 25 or 95, and powers of two.

    So measured figures of these forms are not found: of one significant digit (``0.4``), of two that end in 5 (``4.5``,
    ``35``), and powers of two (``64``). Those in words (``twice``, ``half``) are no figures to ``FIGURE`` at all.
    """
    digits, whole = number.replace(".", "").strip("0"), float(number)
    return len(digits.removesuffix("5")) <= 1 or (whole.is_integer() and int(whole).bit_count() == 1)


@pytest.mark.parametrize("page", tuple(pages.filled_pages()), ids=lambda page: page.parent.name)
def test_no_measured_figure_is_typed(page: Path) -> None:
    """Every measured figure stands in a marker, or in a table that a program writes."""
    assert typed(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("said", "figures"),
    [
        ("takes 0.248 of the time", ["0.248"]),
        ("a Lookup takes 10.8 µs, or 88\nµs", ["10.8", "88"]),
        ("1.3 times as many; 12,040/s, 68,000 in all, 14 to 17 ms", ["1.3", "12,040", "68,000", "14", "17"]),
        (
            "every 20 ms, by over 5 %, of 2019, on Python 3.11 over HTTP/1.1, 0.25 ms, 40,000 requests, 1,024 waiting",
            [],
        ),
        ("`0.248` [a](b-0.248.md) <!--= stock/quick a -->0.248<!--/-->", []),
        ("## Claims\n\n| 17.92 ms |\n\n## How\n\nin 17.92 ms", ["17.92"]),
    ],
)
def test_a_planted_figure_is_found(said: str, figures: list[str]) -> None:
    """A planted figure is found with a unit, as a ratio, or as a count. A setting, year, version or code is not
    reported."""
    assert typed(f"# A page\n\n{said}\n") == figures
