"""The report: one page that needs nothing else, a text for every figure, honest from few blocks, whole from many."""

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments import notebook, report
from experiments.report import ORIGINAL_PARTS
from experiments.report_html import page
from experiments.results import load_whole_runs
from experiments.stats import BLOCKS_MIN
from experiments.studies.stock.claims import CLAIMS
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.planted_stock import EXTENSIONS, MAIN_PARTS, World, rows_of, write_results

FIXTURE = notebook.FOLDERS[-1]
DECIDED = ("FASTER", "SLOWER", "EQUIVALENT")


@dataclass
class Page:
    """What a test looks at in a page."""

    pictures: list[dict[str, str | None]] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)
    unclosed: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """Reads a page, checking that what is opened is closed."""

    VOID = ("meta", "img", "br", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._in_verdict = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.page.tags[tag] = self.page.tags.get(tag, 0) + 1
        self.page.addresses += [value for name in ("src", "href", "action") if (value := given.get(name))]
        self._in_verdict = (given.get("class") or "").startswith("verdict")
        if tag == "img":
            self.page.pictures.append(given)
        if tag not in self.VOID:
            self.page.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        assert self.page.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._in_verdict:
            self.page.verdicts.append(data)
            self._in_verdict = False


def read(path: Path) -> Page:
    """What a page has in it."""
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    return reader.page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A planted study of 9 blocks, reported."""
    path = write_results(tmp_path_factory.mktemp("whole"), rows_of(World(), (*MAIN_PARTS, "dispatch")))
    report.write(path)
    return path


@pytest.mark.slow
def test_the_page_needs_nothing_else(folder: Path) -> None:
    """Every address in it is data, there is no script, and what is opened is closed."""
    found = read(folder / "report.html")
    assert found.addresses
    assert all(address.startswith(("data:image/svg+xml;base64,", "#")) for address in found.addresses)
    assert not {"script", "link", "iframe"} & found.tags.keys()
    assert "url(" not in (folder / "report.html").read_text(encoding="utf-8")
    assert found.unclosed == []


@pytest.mark.slow
def test_every_figure_has_a_text_alternative_and_a_caption(folder: Path) -> None:
    """The answers, the five figures, the locks and the extension: each picture says its numbers in words."""
    found = read(folder / "report.html")
    spoken = [picture["alt"] or "" for picture in found.pictures]
    assert len(spoken) == len(("answers", "locks", "extension", *ORIGINAL_PARTS))
    assert "sockets ÷ gRPC: 0." in spoken[0]
    assert all(" ms" in alternative for alternative in spoken[1:])
    assert found.tags["figure"] == found.tags["figcaption"] == len(found.pictures)


@pytest.mark.slow
def test_the_answers_come_first_and_the_card_is_whole(folder: Path) -> None:
    """The sections in order, and a line of the card for every claim."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    sections = [line for line in text.splitlines() if line.startswith("## ")]
    assert sections[:4] == [
        "## The four answers",
        "## The five figures",
        "## What the gates say",
        "## What the original claims",
    ]
    assert all(f"| {claim} |" in text for claim, _, _ in CLAIMS)
    assert text.count("*What may not be concluded.*") == 4
    assert "12.38 ms against 17.92 ms" in text


@pytest.mark.slow
def test_verdicts_are_marked_in_the_page(folder: Path) -> None:
    """A verdict in bold has its colour, beside the word that says the same."""
    assert {"FASTER", "CONFIRMED"} <= set(read(folder / "report.html").verdicts)


@pytest.mark.slow
def test_a_trial_run_decides_nothing_and_says_so(tmp_path: Path) -> None:
    """Two blocks: a warning at the top, INCONCLUSIVE everywhere, no endless or empty interval in print."""
    report.write(write_results(tmp_path, rows_of(World(blocks=2, sockets_factor=0.1))))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "**This is a trial run.**" in text
    assert "below 6 blocks no comparison" in text
    assert "one of a larger family needs more, as its refusal says." in text
    assert re.search(r"2 blocks, and a comparison that is one of a family of \d+ needs \d", text)
    assert not any(f"| **{verdict}**" in text for verdict in DECIDED)
    assert " inf" not in text
    assert " nan" not in text


@pytest.mark.slow
def test_one_block_can_be_reported(tmp_path: Path) -> None:
    """The first block of a sweep that was interrupted."""
    report.write(write_results(tmp_path, rows_of(World(blocks=1))))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "1 block, " in text
    assert " inf" not in text


@pytest.mark.slow
@pytest.mark.parametrize("parts", [("figure_2",), MAIN_PARTS, ("locks", "same"), ("same", "same_again")])
def test_nothing_is_shown_twice(parts: tuple[str, ...], tmp_path: Path) -> None:
    """Whatever was run: no heading and no figure; and what was run has a table."""
    text = report.markdown(write_results(tmp_path, rows_of(World(blocks=2), parts)))
    shown = [line.split("](")[-1] for line in text.splitlines() if line.startswith(("#", "!["))]
    assert len(shown) == len(set(shown))
    assert "| Mean, ms |" in text or "locks" in parts
    assert text.splitlines()[0] != "# Study stock: "


@pytest.mark.slow
def test_cells_that_the_load_side_limited_are_marked(tmp_path: Path) -> None:
    """They are called the latency of client and server together."""
    report.write(write_results(tmp_path, rows_of(World(blocks=2, load_limited=True), ("figure_2", "figure_4"))))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "†" in text
    assert "latency of client and server together" in text


@pytest.mark.slow
@pytest.mark.parametrize("part", EXTENSIONS)
def test_an_extension_alone_is_reported(part: str, tmp_path: Path) -> None:
    """Its figure and table are there, and of the four questions and the claims what it bears on, and no more."""
    report.write(write_results(tmp_path, rows_of(World(blocks=2), (part,))))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.startswith(f"# Study stock: {part}\n")
    assert f"](figures/{part}.svg)" in text
    for missing in ("not run here", "NOT TESTABLE", "The runs that this needs", "Faults of the original", "figure 1"):
        assert missing not in text


@pytest.mark.slow
def test_the_committed_results_can_be_reported(tmp_path: Path) -> None:
    """The small set that the notebooks read has its machine's parameters, and too few blocks to decide anything."""
    for name in ("results.csv", "environment.json"):
        (tmp_path / name).write_bytes((FIXTURE / name).read_bytes())
    report.write(tmp_path)
    assert "| Processor | " in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert len({row.block for row in load_whole_runs(FIXTURE)}) < BLOCKS_MIN


@pytest.mark.slow
def test_how_it_was_measured_says_only_what_holds_for_these_rows(tmp_path: Path) -> None:
    """A connection per request is in the latency; a study without comparisons has no family of them."""
    report.write(write_results(tmp_path / "policy", rows_of(World(blocks=2), ("connection_policy",))))
    text = (tmp_path / "policy" / "report.md").read_text(encoding="utf-8")
    assert "making it is part of the latency" in text
    assert "sign-flip" in text
    cost = [replace(row, study="server_cost", part="lookup") for row in rows_of(World(blocks=2), ("figure_2",))]
    report.write(write_results(tmp_path / "cost", cost))
    text = (tmp_path / "cost" / "report.md").read_text(encoding="utf-8")
    assert "sign-flip" not in text
    assert "making it is part of the latency" not in text
    assert "(idle) is run in the first block only" in text


def test_a_loop_is_described_only_where_its_runs_are(tmp_path: Path) -> None:
    """An open loop's times count from when a request was due, and none of its clients waits for a reply to send."""
    closed = rows_of(World(blocks=2), ("figure_2",))
    due = [
        replace(row, part="offered_load", loop="open", rate_hz=500.0, arrivals="poisson", n_over_x_us=None)
        for row in closed
    ]
    for name, rows, loops in (
        ("closed", closed, {"closed"}),
        ("open", due, {"open"}),
        ("both", [*closed, *due], {"closed", "open"}),
    ):
        text = report.markdown(write_results(tmp_path / name, rows))
        method = text[text.index("## How it was measured") :]
        assert ("sends again as soon as it is answered" in method) is ("closed" in loops)
        assert ("the time from sending" in method) is ("closed" in loops)
        assert ("**N/X**" in method) is ("closed" in loops)
        assert ("from when a request was due" in method) is ("open" in loops)
        assert "worth 1,000 independent ones" in method


def test_a_folder_without_a_whole_run_is_refused(tmp_path: Path) -> None:
    """There is nothing to report."""
    write_results(tmp_path, [])
    with pytest.raises(UsageError, match="no whole run"):
        report.write(tmp_path)


def test_markdown_cannot_bring_html_into_the_page(tmp_path: Path) -> None:
    """Whatever a results file holds is shown as text."""
    assert "<script>" not in page("<script>alert(1)</script>", "<b>", tmp_path)


@pytest.mark.slow
def test_a_notebook_shows_what_the_report_says() -> None:
    """An answer in a notebook is the report's, and its figure has the text alternative."""
    rows = notebook.load(FIXTURE)
    assert "**This is a trial run.**" in notebook.about(rows).markdown
    assert "| Ratio of mean latencies |" in notebook.answer(1, rows).markdown
    assert "gRPC, Lookup" in repr(notebook.figure("figure_2", rows))
