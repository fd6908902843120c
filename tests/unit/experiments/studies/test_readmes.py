"""Every study's page has its lists, and commands that the parser accepts."""

import re
import shlex
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec

import pytest

from experiments.__main__ import parser
from experiments.commands.index import HERE
from experiments.show.report import MARKDOWN
from experiments.studies import STUDIES
from experiments.studies.study import ProfileName
from tests.test_docs import Document, split

PLACEHOLDERS = {"NAME": "all", "PART": "all", "STUDY": "all"}
"""Placeholders in commands, each with a name that can be run."""

LISTS = ("Factors and levels", "Metrics", "What may not be concluded")
"""Headings of every study's page."""

OF_A_DOCUMENT = ("Figures and tables", "Claims")
"""Further headings on the page of a study that reproduces a document, that is, of a study with claims."""

CLAIMING = [name for name in STUDIES if find_spec(f"experiments.studies.{name}.claims")]


def page(name: str) -> Document:
    """A study's page."""
    return Document(name, (HERE / name / "README.md").read_text(encoding="utf-8"))


def sections(text: str) -> dict[str, str]:
    """The text under each heading."""
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))


def commands(document: Document) -> Iterator[list[str]]:
    """The words of every command of ``experiments`` that stands as code, whole or as ``run NAME``."""
    for code in document.code:
        for line in code.splitlines():
            found = re.match(r"(?:\$ )?(?:python -m experiments (?=\w)|(?=run \w))(.*)", line.strip())
            if found:
                yield [PLACEHOLDERS.get(word, word) for word in split(found[1])]


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The parser's refusal of a command; empty where it accepts the command."""
    try:
        parser(words[0]).parse_args(words)
    except SystemExit:
        return f"{shlex.join(words)}: {capsys.readouterr().err}"
    return ""


@pytest.mark.parametrize("name", STUDIES)
def test_a_page_has_its_lists(name: str) -> None:
    """A page lists factors, metrics and limits. The page of a study with a document also lists figures and claims."""
    wanted = (*LISTS, *OF_A_DOCUMENT) if name in CLAIMING else LISTS
    assert [heading for heading in wanted if heading not in sections(page(name).text)] == []


@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if study.document])
def test_a_page_names_the_document(name: str) -> None:
    """A page names the document by its report's title."""
    (title,) = re.findall("“.*”", STUDIES[name].document)
    assert title in " ".join(page(name).text.split())


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_listed_has_its_command(name: str) -> None:
    """Figures, factors and claims say which part measures them; and no part of the study is left out."""
    found = sections(page(name).text)
    for heading in ("Factors and levels", *OF_A_DOCUMENT):
        if heading in found:
            assert any(words[0] == "run" for words in commands(Document(name, found[heading]))), heading
    run = {words[1] for words in commands(page(name)) if words[0] == "run"}
    assert set(STUDIES[name].parts) - run == set()


@pytest.mark.parametrize("name", [name for name in CLAIMING if STUDIES[name].document])
def test_every_claim_is_on_the_page(name: str) -> None:
    """Every claim is on the page in its words, beside its place in the document or the command that decides it."""
    of = vars(import_module(f"experiments.studies.{name}.claims"))
    for entry in of["ENTRIES"]:
        (line,) = (line for line in page(name).text.splitlines() if f"| {entry.text} |" in line)
        assert f"| {entry.place} |" in line if entry.place else f"`run {entry.part or name}`" in line


@pytest.mark.parametrize("name", ["stock", "sort", "greeter"])
def test_every_comparison_of_the_main_part_is_on_the_page(name: str) -> None:
    """Every comparison of the main part is on the page. The A/A pairs are named together."""
    sweep = STUDIES[name].parts[name].sweep(STUDIES[name].scales["quick"])
    named = {each.name for each in sweep.comparisons if each.kind != "same"}
    assert {each for each in named if f"`{each}`" not in page(name).text} == set()


@pytest.mark.parametrize(
    ("name", "profile", "factors"),
    [
        ("greeter", "quick", ("language", "clients", "call_style", "in_flight", "client")),
        ("pool_size", "paper", ("workers", "connections", "io_ms", "cpu_ms", "hash_ms")),
    ],
)
def test_every_level_is_on_the_page(name: str, profile: ProfileName, factors: Sequence[str]) -> None:
    """Every level of a closed loop stands on the page beside its factor. Waits of mixed work have their own line."""
    study, lines = STUDIES[name], page(name).text.splitlines()
    arms = [arm.setting for arm in study.parts[name].sweep(study.scales[profile]).arms]
    for factor in factors:
        (line,) = (line for line in lines if line.startswith(f"| `{factor}`"))
        levels = {
            each.text(factor) for each in arms if each["rate_hz"] is None and not (each["io_ms"] and each["cpu_ms"])
        }
        assert [level for level in levels if level not in line] == [], factor


@pytest.mark.parametrize("name", ["greeter", "pool_size", "sockets"])
def test_every_figure_and_table_is_on_the_page(name: str) -> None:
    """The page names every figure of the recording, apart from those of single questions. The tables that the page
    names are in the report."""
    recorded, text = HERE / name / "recorded" / "quick", page(name).text
    figures = {file.stem for file in recorded.glob("figures/*.svg") if not file.stem.startswith("question")}
    assert {each for each in figures if f"figure `{each}`" not in text} == set()
    report = (recorded / MARKDOWN).read_text(encoding="utf-8")
    assert [each for each in re.findall('table "(.+?)"', text) if f"\n## {each}" not in report] == []


@pytest.mark.parametrize("name", STUDIES)
def test_every_command_is_taken(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The parser accepts every command of a page."""
    assert list(filter(None, (refused(words, capsys) for words in commands(page(name))))) == []


@pytest.mark.parametrize(
    "planted", ["run stok", "python -m experiments run stock --profil quick", "run stock --blocks 0"]
)
def test_a_planted_command_is_refused(planted: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The parser refuses a wrong name, a wrong option and a wrong number."""
    (words,) = commands(Document("a.md", f"`{planted}`"))
    assert refused(words, capsys)
