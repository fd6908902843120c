"""Report: questions first, equal content on the page and in Markdown, and a note on an unfinished sweep."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep, Windows
from experiments.judge.verdicts import judge
from experiments.results.environment import Busy, Environment, save
from experiments.results.files import SWEPT, append_block, write_plan
from experiments.show import gallery, notebook, report
from experiments.show.content import Content, Seen, content, read
from experiments.show.figures.style import Picture
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
FAILING = World(mean_us, errors=lambda arm: 30 if arm == READ_WRITE else 0)


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


def test_the_level_of_the_intervals_is_explained(text: str) -> None:
    """The level of the intervals is explained once, where there are several looks, and so is every mark of the
    tables."""
    assert text.count("each has 0.05 ÷ 2 = 0.025. So the interval of a ratio is a 97.5 % interval.") == 1
    assert "- **–**: not measured" in text


def test_a_report_says_what_its_study_reproduces(text: str) -> None:
    """A report names the document of its claims. Without a document the claims are the study's own."""
    of = replace(shown(), document="slides, “*Sorting*”")
    for with_document in (report.markdown(of), html(of)):
        assert re.search(r"It reproduces slides, “(\*|<em>)Sorting", with_document)
        assert "What the original claims" in with_document
        assert "What the study claims beforehand" not in with_document
    assert "It reproduces" not in text


def test_a_report_names_the_peers_that_were_left_out(text: str) -> None:
    """A report names the part's peers that no arm of the sweep has."""
    of = content(FakePart(peers=("go-entity", "rust-entity")), Seen(judged()))
    assert of.left_out == ("go-entity", "rust-entity")
    assert "are left out: `go-entity`, `rust-entity`." in report.markdown(of)
    assert "<code>go-entity</code>, <code>rust-entity</code>" in html(of)
    assert "left out: " not in text


def test_page_and_markdown_have_the_same_sections(page: str, text: str) -> None:
    """Page and Markdown have the same sections in the same order."""
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == headings
    assert headings == [
        "Do sockets answer sooner than gRPC?",
        "What the study claims beforehand",
        "More clients",
        "Further comparisons",
        "What was refused or left out",
        "The machine",
        "How it was measured",
    ]


def test_an_unfinished_sweep_says_so(page: str) -> None:
    """An unfinished sweep is named before all else, with its blocks done and planned."""
    unfinished = html(shown(3))
    assert "it has 3 of 10 blocks. There are no verdicts." in unfinished
    assert 'class="state unfinished"' in unfinished
    assert "unfinished" not in page.split("</style>")[1]
    assert not re.search(r"\*\*(FASTER|SLOWER|EQUIVALENT)\*\*", report.markdown(shown(3)).split("## What the")[0])


def test_every_arm_is_in_a_fold(text: str) -> None:
    """Every arm is in a fold, also an arm of a sweep that was measured after it."""
    assert re.findall(r"<summary>(A.*|L.*)</summary>", text) == ["All arms", "Later part"]


def test_what_gates_refuse_is_said(text: str) -> None:
    """A refusal of a gate is named with the comparison and the gate's value."""
    assert "| Lookup, 5 clients: read-write ÷ mutex | 4: errors |" in report.markdown(shown(10, FAILING))
    assert "No gate refused a comparison." in text


def test_the_page_needs_nothing_else(page: str) -> None:
    """The page has no address and no script. Figures and styles are inside, and a policy forbids everything else."""
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    assert "default-src 'none'" in page


def test_every_figure_is_shown_once_with_its_words() -> None:
    """Every figure is shown once with its words: with its question or section, or in a section of its own."""
    extra = Picture("extra", "Extra", "An extra figure.", shown().pictures[0].draw)
    of = replace(shown(), pictures=(*shown().pictures, extra))
    page, text = html(of), report.markdown(of)
    assert page.count("<img") == 3
    assert "Further figures" in page
    for picture in of.pictures:
        assert f"![{picture.alternative}](figures/{picture.name}.svg)" in text


def test_the_method_is_ten_short_lines() -> None:
    """The method has ten lines, with at most 25 words a sentence. It names the verdicts on processor time."""
    lines = list(report.method(judged()))
    assert any("of processor time LESS and MORE" in line for line in lines)
    assert len(lines) == 10
    assert max(len(sentence.split()) for line in lines for sentence in line.split(". ")) <= 25


@pytest.mark.parametrize(
    ("clients", "words"),
    [
        (("lean",), "take turns of 0.5 s, in"),
        (("peer",), "take turns of 1,000 calls of each client of a peer, in"),
        (("lean", "peer"), "take turns of 0.5 s or 1,000 calls of each client of a peer, in"),
    ],
)
def test_the_method_says_how_long_a_window_is(clients: Sequence[str], words: str) -> None:
    """The method names the length of a window. A peer's own client makes a number of calls, of any duration."""
    arms = tuple(Arm(setting(service="greeter", transport="grpc", client=each)) for each in clients)
    sweep = Sweep("try", "try", (Group(arms),), (), 4, (2,), turns=Windows())
    assert any(words in line for line in report.method(judge(sweep, ())))


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
def test_a_notebook_shows_what_the_report_shows(folder: Path) -> None:
    """A notebook has figures as PNG, and answers and card as Markdown. A refusal lists the known names."""
    book = notebook.Notebook(read(folder, {"part": FakePart()}))
    assert "There are no verdicts" in str(book.state())
    figure = book.figure("answers")
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure == book.figure("answers"), "the same bytes"
    assert str(figure) == book.content.pictures[0].alternative
    assert "Sockets take" in book.answer(1)._repr_markdown_()
    assert "CONFIRMED" in str(book.card())
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
