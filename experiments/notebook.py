"""What notebooks show: figures, answers and tables of a folder of results, each ready to be the last line of a cell.

Rules: notebooks compute nothing and measure nothing; what they show comes from the functions that the report uses. An
object here displays itself in Jupyter (by ``_repr_svg_`` or ``_repr_markdown_``), and prints as text elsewhere. Left
out: writing files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import figures, report
from experiments.figures.style import svg_text
from experiments.results import Row, load_whole_runs
from experiments.studies.stock.comparisons import refused_rows
from experiments.studies.stock.questions import answers

_ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (_ROOT / "results" / "stock-quick", _ROOT / "tests" / "fixtures" / "stock_small")
"""Where results are looked for: what ``make bench`` wrote, and else a small set that is part of the project."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as SVG, with its text alternative."""

    svg: str
    alternative: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.alternative


@dataclass(frozen=True, slots=True)
class Text:
    """Text in Markdown."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return self.markdown


def load(folder: Path | None = None) -> list[Row]:
    """The rows of a folder of results; without one, of the first of ``FOLDERS`` that there is. UsageError."""
    return load_whole_runs(folder or next((known for known in FOLDERS if known.is_dir()), FOLDERS[-1]))


def about(rows: Sequence[Row]) -> Text:
    """How much was run, with a warning where that is too little to conclude anything."""
    return Text("\n\n".join(report.state(rows)))


def figure(part: str, rows: Sequence[Row]) -> Picture:
    """One figure. ValueError if it was not run."""
    refused = refused_rows(rows)
    return Picture(svg_text(figures.paint(part, rows, refused)), figures.alternative(part, rows, refused))


def answer(number: int, rows: Sequence[Row]) -> Text:
    """One of the four answers, with its table and what may not be concluded."""
    return Text("\n\n".join(section for section in report.answer(answers(rows)[number - 1]) if section))


def card(rows: Sequence[Row]) -> Text:
    """The replication card."""
    return Text("\n\n".join(report.replication_card(rows)))
