"""What the commands share: a folder of results, read and computed anew."""

from collections.abc import Mapping
from pathlib import Path

from experiments.show import content, gallery, report
from experiments.show.content import Content
from experiments.show.figures.style import data_of
from experiments.studies import PARTS
from stock_service.rpc.process.command_line import Parser

DIFFERS_EXIT = 1
"""Something is not as it should be."""


def add_results(parser: Parser) -> None:
    """The folder that a command reads."""
    parser.add_argument("results", type=Path, metavar="RESULTS", help="a folder that 'run' has written")


def read(folder: Path) -> Content:
    """A folder of results, and all that its part says of it. Raises UsageError."""
    return content.read(folder, {name: part for name, (_, part) in PARTS.items()})


def computed(folder: Path) -> Mapping[str, str]:
    """What a folder's report says, and its figures where they were kept, as they are computed anew."""
    found = read(folder)
    texts = {report.MARKDOWN: report.markdown(found)}
    for picture in found.pictures:
        name = f"{gallery.FOLDER}/{picture.name}.svg"
        if (folder / name).exists():
            texts[name] = data_of(picture.draw(), "svg").decode()
    return texts
