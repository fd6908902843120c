"""Index of studies: one page, in HTML and in Markdown, of each study's question and result.

For each study its question, its first answer, one figure and the verdicts of its card; then every claim of every
document. ``index.html.j2`` and ``index.md.j2`` are the two forms. The first form has all answers, and all numbers of a
claim. The second form links to the reports, which have them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from experiments.show import gallery
from experiments.show.content import Claim, ClaimVerdict, Content, card
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING
from experiments.show.report.rendering import html_of, markdown_of
from experiments.show.tables import Table

MARKDOWN, HTML = "index.md", "index.html"

TITLE = "The studies: what each asked, and what came out"


@dataclass(frozen=True, slots=True)
class Entry:
    """A study on the page. Paths are from the page; empty where there is no such file."""

    name: str
    question: str
    content: Content
    """Content of the study's main part."""
    claims: tuple[Claim, ...]
    """Claims of its document, decided by any part that was measured."""
    readme: str
    """Path from the project's root to the page of its factors, levels, metrics, tables and figures, with their
    commands."""
    lists: tuple[tuple[str, str], ...] = ()
    """Headings of that page with the way to each."""
    figures: str = ""
    """Folder of its figures."""
    report: str = ""
    page: str = ""
    """Paths of its report, in Markdown and in HTML."""

    @property
    def picture(self) -> Picture | None:
        """Figure of its first answer, or its first figure."""
        first = next((answer.figure for answer in self.content.answers if answer.figure), None)
        if first is not None:
            return self.content.picture(first)
        return next(iter(self.content.pictures), None)

    @property
    def state(self) -> str:
        """Sentences on the progress of its main part, and on the largest change of its ratios by a further run."""
        return " ".join(filter(None, (*self.content.state, self.content.reach)))

    @property
    def verdicts(self) -> str:
        """Number of claims by verdict: ``9 **CONFIRMED**, 2 **CONTRADICTED**``."""
        counts = Counter(claim.verdict for claim in self.claims)
        return ", ".join(f"{counts[verdict]} **{verdict}**" for verdict in get_args(ClaimVerdict) if counts[verdict])


@dataclass(frozen=True, slots=True)
class Missing:
    """A study without results here, and the reason where it is known."""

    name: str
    question: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """All studies."""

    entries: tuple[Entry, ...]
    missing: tuple[Missing, ...] = ()
    words: str = ""
    """Path from the page to the explanation of words and verdicts."""


def merged(main: Content, further: Sequence[Content]) -> tuple[Claim, ...]:
    """The main part's claims. A claim that was not measured there is that of another part which measured it."""
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
    """The page in Markdown, figures and reports by their paths."""
    return markdown_of("index.md.j2", **_given(index), claims=_claims(index.entries, is_short=True).markdown)


def html(index: Index) -> str:
    """The page in HTML, with the figures inside. Draws them, which takes seconds."""
    drawn = {
        entry.name: gallery.svg_texts([entry.picture])[entry.picture.name] for entry in index.entries if entry.picture
    }
    pictures = {entry.name: replace(entry.picture, name=entry.name) for entry in index.entries if entry.picture}
    claims = _claims(index.entries).markdown
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
    """Number of claims of each study, by verdict."""
    verdicts = get_args(ClaimVerdict)
    lines = []
    for entry in entries:
        counts = Counter(claim.verdict for claim in entry.claims)
        numbers = (len(entry.claims), *(counts[each] or NOTHING for each in verdicts))
        lines.append((entry.name, entry.content.seen.version.words, *map(str, numbers)))
    return Table(("Study", "Servers", "Claims", *(each.capitalize() for each in verdicts)), tuple(lines), 2)


def _claims(entries: Sequence[Entry], *, is_short: bool = False) -> Table:
    """Every claim of every document; a short table has the first sentence on its numbers."""
    told = {entry.name: (_first(claim) if is_short else claim for claim in entry.claims) for entry in entries}
    cards = [(name, card(claims)) for name, claims in told.items()]
    lines = tuple((name, *line) for name, each in cards for line in each.lines)
    return Table(("Study", *card(()).head), lines, 4)


def _first(claim: Claim) -> Claim:
    """A claim with the first sentence on its numbers."""
    first, end, _ = claim.said.partition(". ")
    return replace(claim, said=f"{first}{end.strip()}")
