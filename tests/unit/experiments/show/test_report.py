"""Report: questions first, equal content on the page and in Markdown, and a note on an unfinished sweep."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from experiments.results.environment import Busy, Environment, save
from experiments.results.files import SWEPT, append_block, write_plan
from experiments.show import gallery, notebook, report
from experiments.show.content import Content, Seen, content, read
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.blocks import World
from tests.unit.experiments.show.judgements import READ_WRITE, USUAL, FakePart, judged, mean_us

VOID = {"meta", "img", "br", "hr"}

BUSY = Busy("2026-01-01T00:00:00+00:00", 0.5, 10.0, 0.0, 1000.0, 2000.0, 50.0)
MACHINE = Environment(
    machine="x86_64",
    cpu_model="A processor <with> signs & all",
    cores=2,
    smt_siblings=None,
    hypervisor=True,
    governor="unknown",
    memory_mib=4096,
    system="Debian",
    kernel="Linux",
    clock="monotonic",
    python="CPython 3.11",
    gil=True,
    packages={"grpcio": "1"},
    commit="abc",
    dirty=False,
    before=BUSY,
    after=replace(BUSY, cpu_steal_s=1.5),
)


class Nesting(HTMLParser):
    """Collects open tags, and every tag that closes another one than the last."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes ids and links, too."""
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.targets += [(given["href"] or "")[1:]] if "href" in given else []
        if tag == "p" and "p" in self.open:
            self.faults.append("p in p")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag; the last one opened must close first."""
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")


def shown(number: int = 10, world: World = USUAL) -> Content:
    """The part's content for this number of blocks."""
    return content(FakePart(), Seen(judged(number, world), {"later_part": judged(1)}, environment=MACHINE))


def html(of: Content) -> str:
    """Page of this content, with stand-ins for the figures."""
    return report.html(of, {picture.name: "<svg/>" for picture in of.pictures})


@pytest.fixture(scope="module")
def page() -> str:
    """Page of ten blocks."""
    return html(shown())


@pytest.fixture(scope="module")
def text() -> str:
    """Report of ten blocks in Markdown."""
    return report.markdown(shown())


@pytest.mark.parametrize("number", [0, 3, 10])
def test_the_page_is_well_formed(number: int) -> None:
    """On the page every tag closes, every link has a target, and no id is there twice, for any content."""
    nesting = Nesting()
    nesting.feed(html(shown(number)))
    assert (nesting.faults, nesting.open) == ([], [])
    assert len(set(nesting.ids)) == len(nesting.ids)
    assert set(nesting.targets) <= set(nesting.ids)


def test_a_question_has_its_sentence_first_and_the_fold_last(page: str) -> None:
    """A question has, in this order: sentence, figure, table, and the meaning of the numbers."""
    question = page[page.index('id="question-1"') : page.index('id="card"')]
    places = [
        question.index(part)
        for part in ("Sockets take 0.301 of the time of gRPC", "<figure", "<table>", "What the numbers mean")
    ]
    assert places == sorted(places)
    assert "with &lt;one&gt; client" in question


def test_a_page_says_what_its_study_reproduces(page: str) -> None:
    """A page names the document that the study reproduces, if there is one."""
    assert "It reproduces slides, “<em>Sorting</em>”" in html(replace(shown(), document="slides, “*Sorting*”"))
    assert "It reproduces" not in page


def test_a_report_names_the_peers_that_were_left_out(text: str) -> None:
    """A report names the part's peers that no arm of the sweep has."""
    of = content(FakePart(peers=("go-entity", "rust-entity")), Seen(judged()))
    assert of.left_out == ("go-entity", "rust-entity")
    assert "are left out: `go-entity`, `rust-entity`." in report.markdown(of)
    assert "<code>go-entity</code>, <code>rust-entity</code>" in html(of)
    assert "left out: " not in text


def test_page_and_markdown_have_the_same_sections_and_figures() -> None:
    """Page and Markdown have the same sections and figures in the same order. A last section has the figures that no
    question or section shows."""
    of = shown()
    of = replace(of, pictures=(*of.pictures, replace(of.pictures[0], name="extra", alternative="An extra figure.")))
    page, text = html(of), report.markdown(of)
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == re.findall(r"^## (.*)$", text, re.MULTILINE)
    shown_in_words = re.findall(r"!\[(.*)\]\(figures/", text)
    assert list(map(unescape, re.findall(r'<img alt="(.*?)"', page))) == shown_in_words
    assert shown_in_words == [picture.alternative for picture in of.pictures]


def test_an_unfinished_sweep_says_so(page: str) -> None:
    """An unfinished sweep is named before all else, with its blocks done and planned."""
    unfinished = html(shown(3))
    assert "it has 3 of 10 blocks. There are no verdicts." in unfinished
    assert 'class="state unfinished"' in unfinished
    assert "unfinished" not in page.split("</style>")[1]
    assert not re.search(r"\*\*(FASTER|SLOWER|EQUIVALENT)\*\*", report.markdown(shown(3)).split("## What the")[0])


def test_what_gates_refuse_is_said() -> None:
    """A refusal of a gate is named with the comparison. A comparison without a value has the reason."""
    failing = World(mean_us, errors=lambda arm: 30 if arm == READ_WRITE else 0)
    refused = r"^\| Lookup, 5 clients: read-write ÷ mutex \| 4: errors \| .* \| no value in any block \|$"
    assert re.search(refused, report.markdown(shown(10, failing)), re.MULTILINE)


def test_the_page_needs_nothing_else(page: str) -> None:
    """The page has no address and no script. Figures and styles are inside, and a policy forbids everything else."""
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    assert "default-src 'none'" in page


def test_the_method_is_ten_short_lines() -> None:
    """The method has ten lines, with at most 25 words a sentence."""
    lines = list(report.method(judged()))
    assert len(lines) == 10
    assert max(len(sentence.split()) for line in lines for sentence in line.split(". ")) <= 25


def test_the_markdown_is_markdown(text: str) -> None:
    """The Markdown's tables are tables, and it has no three empty lines."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type == "table_open" for token in tokens) >= 6
    assert "\n\n\n" not in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of results, as a sweep leaves it."""
    judgement = judged(3)
    write_plan(tmp_path, SWEPT, judgement.sweep)
    for block in judgement.blocks:
        append_block(tmp_path, block)
    save(MACHINE, tmp_path)
    for name in ("beside", "later"):
        (tmp_path / name).mkdir()
        write_plan(tmp_path / name, SWEPT, judgement.sweep)
    return tmp_path


@pytest.mark.slow
def test_a_folder_is_read_and_reported(folder: Path) -> None:
    """The files have the report's texts, with the figures that lie beside them."""
    of = read(folder, {"part": FakePart()})
    of = replace(of, pictures=of.pictures[:1], sections=())
    assert of.seen.environment == MACHINE
    assert list(of.seen.after) == ["beside", "later"]
    report.write(folder, of)
    drawn = {each.name: (folder / "figures" / f"{each.name}.svg").read_text(encoding="utf-8") for each in of.pictures}
    assert (folder / report.MARKDOWN).read_text(encoding="utf-8") == report.markdown(of)
    assert (folder / report.HTML).read_text(encoding="utf-8") == report.html(of, drawn)
    for name, text in drawn.items():
        assert "<svg" in text
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_of_another_study_is_refused(folder: Path) -> None:
    """A folder of another study is refused with the parts that exist."""
    with pytest.raises(UsageError, match="no part of a study here"):
        read(folder, {"other": FakePart()})


@pytest.mark.slow
def test_a_notebook_shows_figures_and_refuses_unknown_names(folder: Path) -> None:
    """A figure is a PNG, with equal bytes each time. The points are a table. A refusal lists the known names."""
    book = notebook.Notebook(read(folder, {"part": FakePart()}))
    figure = book.figure("answers")
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure == book.figure("answers"), "the same bytes"
    assert str(figure) == book.content.pictures[0].alternative
    assert "| gRPC |" in str(book.points())
    with pytest.raises(UsageError, match="answers, latency"):
        book.figure("none")
    with pytest.raises(UsageError, match="1 to 1"):
        book.answer(2)


def test_the_markdown_is_the_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption before the last file leaves a folder without the Markdown, by which ``run all`` knows a whole
    one."""
    names: list[str] = []
    monkeypatch.setattr(report, "write_at_once", lambda file, _: names.append(file.name))
    monkeypatch.setattr(gallery, "draw", lambda *_: {})
    monkeypatch.setattr(report, "html", lambda *_: "")
    report.write(tmp_path, shown(1))
    assert names == [report.HTML, report.MARKDOWN]
