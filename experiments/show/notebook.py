"""Cells of notebooks: state, figures, answers, tables and the replication card of a folder of results.

A notebook measures and computes nothing. Its values display themselves as the last line of a cell (by ``_repr_png_`` or
``_repr_markdown_``). Elsewhere they print as text.
"""

from dataclasses import dataclass

from experiments.judge.points import points
from experiments.show import content, tables
from experiments.show.content import card
from experiments.show.figures.style import small_png
from stock_service.rpc.errors import UsageError


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """A figure as PNG, which every viewer of notebooks shows, with its numbers in words."""

    png: bytes
    alternative: str

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return self.alternative


@dataclass(frozen=True, slots=True, repr=False)
class Told:
    """A text in Markdown."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return self.markdown


@dataclass(frozen=True, slots=True)
class Notebook:
    """A folder of results, to be shown piece by piece."""

    content: content.Content

    def state(self) -> Told:
        """Progress of the sweep."""
        return Told(f"**{self.content.title}.** {' '.join(self.content.state)} {self.content.seen.version.sentence}")

    def figure(self, name: str) -> Drawn:
        """A figure. UsageError for a name that no figure has."""
        picture = self.content.picture(name)
        return Drawn(small_png(picture.draw()), picture.alternative)

    def answer(self, number: int) -> Told:
        """An answer, from 1: its sentence, the comparisons that decide it, and further findings."""
        answers = self.content.answers
        if not 1 <= number <= len(answers):
            raise UsageError("an answer", str(number), f"1 to {len(answers)}")
        answer = answers[number - 1]
        compared = (*answer.deciding, *answer.further)
        table = tables.comparisons(self.content.judgement, compared).markdown if compared else ""
        details = "\n".join(f"- {each}" for each in answer.details)
        told = (f"**{answer.question}**", answer.sentence, table.rstrip("\n"), details)
        return Told("\n\n".join(filter(None, told)) + "\n")

    def card(self) -> Told:
        """The replication card."""
        return Told(card(self.content.claims).markdown)

    def section(self, title: str) -> Told:
        """A further part of the report, without its figures. UsageError for a title that no part has."""
        texts = {each.title: each.text for each in self.content.sections}
        if title not in texts:
            raise UsageError("a section", title, "; ".join(texts) or "none: this part has no sections")
        return Told(f"**{title}**\n\n{texts[title]}\n")

    def points(self) -> Told:
        """Table of the points of every arm."""
        judgement = self.content.judgement
        return Told(tables.points(tuple(points(judgement.sweep, judgement.blocks).values())).markdown)
