"""Index of studies: one page, in HTML and in Markdown, with the question and the result of each study.

For each study the page has the question, the first answer, one figure, and the verdicts on the claims. A table at the
end has every claim of every study. ``index.html.j2`` and ``index.md.j2`` are the two templates. The HTML page has all
answers, and all numbers on a claim. The Markdown page has links to the reports, which have all answers and numbers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import get_args

from experiments.show import gallery
from experiments.show.content import Claim, ClaimVerdict, Content, card
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING
from experiments.show.report.rendering import html_of, markdown_of
from experiments.show.tables import Table

MARKDOWN, HTML = "index.md", "index.html"

TITLE = "The studies: their questions and results"


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a study in the index. Paths begin at the index, except ``readme``. A missing file has an empty path."""

    name: str
    question: str
    content: Content
    """Content of the study's main part."""
    claims: tuple[Claim, ...]
    """Claims of the study. Any measured part of the study may decide a claim."""
    readme: str
    """Path from the project's root to the study's page. The page has factors, levels, metrics, tables and figures, with
    commands."""
    guide: str = ""
    """Path from the index to the study's page."""
    figures: str = ""
    """Path of the folder with the study's figures."""
    report: str = ""
    """Path of the study's report in Markdown."""
    page: str = ""
    """Path of the study's report in HTML."""

    @property
    def picture(self) -> Picture | None:
        """Figure of the first answer with a figure, or else the study's first figure. None without figures."""
        shown = (self.content.picture(answer.figure) for answer in self.content.answers if answer.figure)
        return next(chain(shown, self.content.pictures), None)

    @property
    def state(self) -> str:
        """Sentences on the progress of the main part, and on the largest change that a further run may make to the
        ratios."""
        return " ".join(filter(None, (*self.content.state, self.content.reach)))

    @property
    def verdicts(self) -> str:
        """Number of claims with each verdict, as a text: ``9 **CONFIRMED**, 2 **CONTRADICTED**``."""
        counts = Counter(claim.verdict for claim in self.claims)
        return ", ".join(f"{counts[verdict]} **{verdict}**" for verdict in get_args(ClaimVerdict) if counts[verdict])


@dataclass(frozen=True, slots=True)
class Missing:
    """Study without results, with the reason if known."""

    name: str
    question: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """Content of the index: studies with results, and studies without results."""

    entries: tuple[Entry, ...]
    missing: tuple[Missing, ...] = ()
    words: str = ""
    """Path from the index to the page that explains words and verdicts."""


def merged(main: Content, further: Sequence[Content]) -> tuple[Claim, ...]:
    """Claims of the main part. A claim that the main part does not measure gets the verdict of a further part that
    measures the claim."""
    others = {
        claim.text: replace(
            claim, said=f"By the part `{each.judgement.sweep.part}`, {each.seen.version.words}: {claim.said}"
        )
        for each in further
        for claim in each.claims
        if claim.verdict != "NOT MEASURED"
    }
    return tuple(others.get(claim.text, claim) if claim.verdict == "NOT MEASURED" else claim for claim in main.claims)


def markdown(index: Index) -> str:
    """Index in Markdown, with paths to figures and reports."""
    return markdown_of("index.md.j2", **_given(index), claims=_claims(index.entries, is_short=True).markdown)


def html(index: Index) -> str:
    """Index in HTML, with the figures inside. Blocks for seconds, while the figures are drawn."""
    pictures = {entry.name: replace(entry.picture, name=entry.name) for entry in index.entries if entry.picture}
    drawn, claims = gallery.svg_texts(pictures.values()), _claims(index.entries).markdown
    return html_of("index.html.j2", drawn, **_given(index), claims=claims, pictures=pictures)


def _given(index: Index) -> dict[str, object]:
    return {
        "title": TITLE,
        "words": index.words,
        "entries": index.entries,
        "missing": index.missing,
        "glance": _glance(index.entries).markdown,
    }


def _glance(entries: Sequence[Entry]) -> Table:
    """Table of the number of claims of each study, by verdict."""
    verdicts = get_args(ClaimVerdict)
    lines = []
    for entry in entries:
        counts = Counter(claim.verdict for claim in entry.claims)
        numbers = (len(entry.claims), *(counts[each] or NOTHING for each in verdicts))
        lines.append((entry.name, entry.content.seen.version.words, *map(str, numbers)))
    return Table(("Study", "Servers", "Claims", *(each.capitalize() for each in verdicts)), tuple(lines), 2)


def _claims(entries: Sequence[Entry], *, is_short: bool = False) -> Table:
    """Table of every claim of every study. If ``is_short``, a line has only the first sentence on the numbers."""
    told = {entry.name: (_first(claim) if is_short else claim for claim in entry.claims) for entry in entries}
    cards = [(name, card(claims)) for name, claims in told.items()]
    lines = tuple((name, *line) for name, each in cards for line in each.lines)
    return Table(("Study", *card(()).head), lines, 4)


def _first(claim: Claim) -> Claim:
    """Copy of the claim with only the first sentence on the numbers."""
    first, end, _ = claim.said.partition(". ")
    return replace(claim, said=f"{first}{end.strip()}")
