"""Cells of notebooks: state, figures, answers, tables and the replication card of a folder of results.

A notebook measures and computes nothing. A notebook displays a ``Drawn`` or ``Told`` that is the last line of a cell,
by the methods ``_repr_png_`` and ``_repr_markdown_``. In a terminal the object prints as text.
"""

from dataclasses import dataclass

from experiments.show import content, tables
from experiments.show.content import card
from experiments.show.figures.style import small_png
from stock_service.rpc.errors import UsageError


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """Figure as PNG, which every viewer of notebooks shows, with a description of its content in words."""

    png: bytes
    alternative: str

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return self.alternative


@dataclass(frozen=True, slots=True, repr=False)
class Told:
    """Text in Markdown, which a notebook renders."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return self.markdown


@dataclass(frozen=True, slots=True)
class Notebook:
    """Content of a folder of results, for the cells of a notebook."""

    content: content.Content

    def state(self) -> Told:
        """Title, progress and version of the sweep."""
        return Told(f"**{self.content.title}.** {' '.join(self.content.state)} {self.content.seen.version.sentence}")

    def figure(self, name: str) -> Drawn:
        """Figure with this name. Raises UsageError if no figure has this name."""
        picture = self.content.picture(name)
        return Drawn(small_png(picture.draw()), picture.alternative)

    def answer(self, number: int) -> Told:
        """Answer with this number, counted from 1: sentence, table of comparisons, further findings. Raises UsageError
        if no answer has this number."""
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
        """Replication card: the claims with their verdicts."""
        return Told(card(self.content.claims).markdown)

    def section(self, title: str) -> Told:
        """Section of the report with this title, without figures. Raises UsageError if no section has this title."""
        texts = {each.title: each.text for each in self.content.sections}
        if title not in texts:
            raise UsageError("a section", title, "; ".join(texts) or "none: this part has no sections")
        return Told(f"**{title}**\n\n{texts[title]}\n")

    def points(self) -> Told:
        """Table of the points of every arm; an arm is a server under a load."""
        return Told(tables.points(self.content.judgement).markdown)
