"""Files of pictures: SVG for pages, and PNG for viewers that cannot show SVG."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from experiments.results.files import write_at_once
from experiments.show.figures.style import Picture, data_of

FOLDER = "figures"
"""Name of the folder with the figures, in a folder of results."""


def draw(folder: Path, pictures: Iterable[Picture]) -> dict[str, str]:
    """Write the files ``NAME.svg`` and ``NAME.png`` of each picture into a folder. Return the SVG texts by the
    pictures' names.

    A missing folder is made. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for picture in pictures:
        figure = picture.draw()
        drawn[picture.name] = data_of(figure, "svg").decode()
        write_at_once(folder / f"{picture.name}.svg", drawn[picture.name].encode())
        write_at_once(folder / f"{picture.name}.png", data_of(figure, "png"))
    return drawn


def svg_texts(pictures: Iterable[Picture]) -> Mapping[str, str]:
    """SVG text of each picture, by the picture's name. Equal data give equal texts. No file is written."""
    return {picture.name: data_of(picture.draw(), "svg").decode() for picture in pictures}
