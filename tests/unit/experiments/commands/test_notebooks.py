"""Notebooks with their outputs: cells that are run, their kept outputs, and pictures that are alike."""

import json
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter
from PIL import Image, ImageDraw

from experiments.commands.notebooks import LEVELS, MARKDOWN, PICTURE, WORDS, alike, filled
from experiments.show.notebook import Drawn, Told
from stock_service.rpc.errors import UsageError

DRAWN = """from io import BytesIO
from PIL import Image
from experiments.show.notebook import Drawn
picture = BytesIO()
Image.new("L", (100, 100), {level}).save(picture, "png")
Drawn(picture.getvalue(), "{words}")"""


def notebook(file: Path, *sources: str, outputs: list[object] | None = None) -> Path:
    """A notebook of these code cells, as an editor may leave it: counts, times, the version of Python."""
    cells = [
        {
            "cell_type": "code",
            "execution_count": 7,
            "id": f"cell-{number}",
            "metadata": {"execution": {"iopub.execute_input": "2026-11-26T04:00:00Z"}},
            "outputs": outputs or [],
            "source": source.splitlines(keepends=True),
        }
        for number, source in enumerate(sources)
    ]
    metadata = {"language_info": {"name": "python", "version": "3.11.2"}}
    file.write_text(json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}))
    return file


def outputs_of(text: str) -> list[dict[str, object]]:
    """Outputs of a notebook's cells, each by its kind."""
    return [output["data"] for cell in json.loads(text)["cells"] for output in cell["outputs"]]


def test_the_last_line_of_a_cell_is_shown(tmp_path: Path) -> None:
    """The last line of a cell is shown as Markdown or as text. A statement shows nothing. A cell has the names of
    earlier cells."""
    told = "from experiments.show.notebook import Told\nTold(f'**{a}**\\nb')"
    text = filled(notebook(tmp_path / "a.ipynb", "a = 1", told, "a + 1"))
    assert outputs_of(text) == [{MARKDOWN: ["**1**\n", "b"]}, {WORDS: ["2"]}]


def test_nothing_of_the_run_is_kept(tmp_path: Path) -> None:
    """No count, time or version of the run is kept, so that a second run gives the same file."""
    file = notebook(tmp_path / "a.ipynb", "1 + 1")
    text = filled(file)
    assert "iopub" not in text
    assert "3.11.2" not in text
    assert "7" not in text
    file.write_text(text)
    assert filled(file) == text


def test_cells_run_in_the_folder_of_their_notebook(tmp_path: Path) -> None:
    """Cells run in the folder of their notebook, as in Jupyter. Afterwards this process is in its old folder."""
    before = Path.cwd()
    text = filled(notebook(tmp_path / "a.ipynb", "from pathlib import Path\nPath('a.ipynb').exists()"))
    assert outputs_of(text) == [{WORDS: ["True"]}]
    assert Path.cwd() == before


def test_a_failure_names_the_notebook(tmp_path: Path) -> None:
    """A failure names the notebook."""
    fails = "from stock_service.rpc.errors import UsageError\nraise UsageError('b', 1, '2')"
    file = notebook(tmp_path / "a.ipynb", fails)
    with pytest.raises(UsageError, match=r"a\.ipynb: b: got 1, allowed: 2"):
        filled(file)


@pytest.mark.parametrize(
    ("level", "words", "is_kept"), [(255 - LEVELS, "white", True), (0, "white", False), (255, "black", False)]
)
def test_a_picture_is_kept_where_it_says_the_same(level: int, words: str, is_kept: bool, tmp_path: Path) -> None:
    """A picture is kept if its words are equal and its pixels nearly, so that another machine's picture changes no
    file."""
    file = tmp_path / "a.ipynb"
    before = json.loads(filled(notebook(file, DRAWN.format(level=255, words="white"))))["cells"][0]["outputs"]
    text = filled(notebook(file, DRAWN.format(level=level, words=words), outputs=before))
    assert (outputs_of(text) == [before[0]["data"]]) is is_kept
    assert outputs_of(text)[0][WORDS] == [words]


@pytest.mark.parametrize(("size", "moved", "is_alike"), [(100, 0, True), (100, 20, False), (101, 0, False)])
def test_pictures_are_alike(size: int, moved: int, is_alike: bool) -> None:
    """Pictures with equal content are alike. Pictures with a moved line or another size are not."""

    def with_line(width: int, at: int) -> bytes:
        image, file = Image.new("L", (width, 100), 255), BytesIO()
        ImageDraw.Draw(image).line((0, at, 99, at))
        image.save(file, "png")
        return file.getvalue()

    assert alike(with_line(size, 50 + moved), b64encode(with_line(100, 50)).decode()) is is_alike


@pytest.mark.slow  # IPython is loaded
def test_jupyter_shows_the_same() -> None:
    """Jupyter shows a figure as PNG and in words, and a text as Markdown."""
    formatter: Any = DisplayFormatter()
    shown, _ = formatter.format(Drawn(b"\x89PNG", "a line"))
    assert shown.keys() == {PICTURE, WORDS}
    assert shown[WORDS] == "a line"
    shown, _ = formatter.format(Told("**a**"))
    assert shown == {MARKDOWN: "**a**", WORDS: "**a**"}
