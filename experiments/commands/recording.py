"""What the commands share: a folder of results, read and computed anew."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from experiments.results import foretold
from experiments.results.files import read_sweep
from experiments.results.foretold import FORETOLD_FILE
from experiments.show import content, gallery, report
from experiments.show.content import Content
from experiments.show.figures.style import Picture, data_of
from experiments.studies import PARTS
from stock_service.rpc.process.command_line import Parser

DIFFERS_EXIT = 1
"""Something is not as it should be."""


def add_results(parser: Parser, help_text: str = "a folder that 'run' wrote") -> None:
    """The folder that a command reads."""
    parser.add_argument("results", type=Path, metavar="RESULTS", help=help_text)


def read(folder: Path) -> Content:
    """A folder of results, and all that its part says of it. Raises UsageError."""
    found = content.read(folder, {name: part for name, (_, part) in PARTS.items()})
    study, _ = PARTS[found.judgement.sweep.part]
    return replace(found, document=study.document)


def computed(folder: Path) -> Mapping[str, str]:
    """What the report and the figures that a folder holds should say, computed anew; nothing for a comparison's."""
    if read_sweep(folder).part not in PARTS:
        return {}
    found = read(folder)
    texts: dict[str, Callable[[], str]] = {report.MARKDOWN: partial(report.markdown, found)}
    texts[FORETOLD_FILE] = partial(_foretold, folder, found)
    texts |= {f"{gallery.FOLDER}/{each.name}.svg": partial(_svg, each) for each in found.pictures}
    return {name: text() for name, text in texts.items() if (folder / name).exists()}


def _foretold(folder: Path, found: Content) -> str:
    """What its part foretells of its arms, from what was measured first."""
    _, part = PARTS[found.judgement.sweep.part]
    assert part.first is not None
    assert part.foretell is not None
    first = found.seen.after[part.first]
    told = [part.foretell(first, arm.setting) for arm in found.judgement.sweep.arms]
    written_at, kept = foretold.load(folder)
    text = foretold.text(told, written_at)
    if text == foretold.text(kept, written_at):  # as it is read: with the defaults of factors that came later
        return (folder / FORETOLD_FILE).read_text(encoding="utf-8")
    return text


def _svg(picture: Picture) -> str:
    return data_of(picture.draw(), "svg").decode()
