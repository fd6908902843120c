"""Writes pictures as files: SVG for pages, PNG for readers without SVG."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from experiments.results.files import write_at_once
from experiments.show.figures.style import Picture, data_of

FOLDER = "figures"
"""Name of the folder of figures in a folder of results."""


def draw(folder: Path, pictures: Iterable[Picture]) -> dict[str, str]:
    """Writes ``NAME.svg`` and ``NAME.png`` of each picture into a folder, which is made if it is not there. Gives the
    SVG texts. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for picture in pictures:
        figure = picture.draw()
        drawn[picture.name] = data_of(figure, "svg").decode()
        write_at_once(folder / f"{picture.name}.svg", drawn[picture.name].encode())
        write_at_once(folder / f"{picture.name}.png", data_of(figure, "png"))
    return drawn


def svg_texts(pictures: Iterable[Picture]) -> Mapping[str, str]:
    """SVG of each picture by its name, the same every time. Writes nothing."""
    return {picture.name: data_of(picture.draw(), "svg").decode() for picture in pictures}
