"""Index of studies: every study has its question, answer, figure and verdicts; every claim has a line."""

import re
from dataclasses import replace

import pytest

from experiments.show.content import Claim, Content, Seen, content, not_measured
from experiments.show.report.index import Entry, Index, Missing, html, markdown, merged
from tests.unit.experiments.show.judgements import FakePart, judged
from tests.unit.experiments.show.test_report import Nesting


def entry(name: str, of: Content | None = None) -> Entry:
    """A study of that name, whose part is the usual one."""
    shown = of or content(FakePart(), Seen(judged()))
    return Entry(
        name=name,
        question=f"What does {name} ask?",
        content=shown,
        claims=tuple(replace(claim, said=f"{claim.said} It has more numbers.") for claim in shown.claims),
        readme=f"experiments/studies/{name}/README.md",
        guide=f"{name}/README.md",
        figures=f"{name}/figures",
        report=f"{name}/report.md",
        page=f"{name}/report.html",
    )


DOCUMENTED = replace(content(FakePart(), Seen(judged())), document="slides, “*Sorting*”")

TWO = Index(
    (entry("one"), entry("two", DOCUMENTED)),
    (Missing("three", "What is three?"), Missing("four", "And four?", "It broke.")),
)


@pytest.fixture(scope="module")
def page() -> str:
    """The index page in HTML."""
    return html(TWO)


def test_what_was_not_measured_is_said() -> None:
    """A study that was not measured is named with its command, or with the reason."""
    text = markdown(TWO)
    assert "- `three`: What is three? This measures it: `python -m experiments run three`" in text
    assert "- `four`: And four? It broke." in text
    assert "Not measured" not in markdown(replace(TWO, missing=())).replace("Not measured |", "")


def test_the_page_is_well_formed_and_needs_nothing_else(page: str) -> None:
    """Every tag closes, no id stands twice, every figure is within; only reports are linked."""
    nesting = Nesting()
    nesting.feed(page)
    assert (nesting.faults, nesting.open) == ([], [])
    assert len(set(nesting.ids)) == len(nesting.ids)
    assert page.count("<img") == page.count('src="data:image/svg+xml;base64,') == 2
    assert re.findall(r'href="([^#][^"]*)"', page) == ["one/report.html", "two/report.html"]
    assert "<script" not in page
    assert page.count("It has more numbers.") == 4, "all sentences of each claim"


def test_page_and_markdown_have_the_same_sections(page: str) -> None:
    """Page and Markdown have the same sections in the same order."""
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == re.findall(r"^## (.*)$", markdown(TWO), re.MULTILINE)


def test_a_study_says_which_document_it_reproduces(page: str) -> None:
    """A study names the document that it reproduces, or says that there is none."""
    assert "It reproduces no document." in page
    assert "It reproduces slides, “<em>Sorting</em>”." in page


def test_a_claim_is_decided_by_the_part_that_measured_it() -> None:
    """A claim that the main part did not measure has the numbers and the name of another part."""
    shown = content(FakePart(), Seen(judged()))
    open_ = not_measured("A read lock is faster.", "part")
    main = replace(shown, claims=(*shown.claims, open_))
    other = replace(
        shown, claims=(Claim(open_.text, "CONTRADICTED", "1.02."), Claim(shown.claims[0].text, "CONTRADICTED", ""))
    )
    found = merged(main, [other])
    assert found[:2] == shown.claims
    assert (found[2].verdict, found[2].said) == (
        "CONTRADICTED",
        "By the part `part`, of an earlier server, of an unknown day: 1.02.",
    )
    assert merged(main, []) == main.claims
