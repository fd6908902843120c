"""Cells of notebooks: state, figures, answers, tables and the replication card of a folder of results.

A notebook measures and computes nothing. ``open_folder`` judges a folder. Everything here displays itself as the last
line of a cell (by ``_repr_svg_`` or ``_repr_markdown_``). It prints as text elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.judge.points import points
from experiments.show import content, tables
from experiments.show.content import card
from experiments.show.figures.style import data_of
from stock_service.rpc.errors import UsageError


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure as SVG, with its words."""

    svg: str
    alternative: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.alternative


@dataclass(frozen=True, slots=True)
class Told:
    """A text in Markdown."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __str__(self) -> str:
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
        return Drawn(data_of(picture.draw(), "svg").decode(), picture.alternative)

    def answer(self, number: int) -> Told:
        """An answer, from 1: its sentence, the comparisons that decide it, and further findings."""
        answers = self.content.answers
        if not 1 <= number <= len(answers):
            raise UsageError("an answer", str(number), f"1 to {len(answers)}")
        answer = answers[number - 1]
        table = tables.comparisons(self.content.judgement, (*answer.deciding, *answer.further))
        details = "\n".join(f"- {each}" for each in answer.details)
        return Told(f"**{answer.question}**\n\n{answer.sentence}\n\n{table.markdown}\n{details}\n")

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


def open_folder(folder: Path, parts: Mapping[str, content.Shows]) -> Notebook:
    """A folder of results of one of these parts. Takes seconds; UsageError as ``content.read``."""
    return Notebook(content.read(folder, parts))
