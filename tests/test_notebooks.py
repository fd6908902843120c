"""The notebooks show the values of the recordings. Their cells are run in this process.

Only one notebook's pictures are drawn, since drawing all takes as long as all else here. A changed drawing is seen in
``test_recorded.py``, which compares every figure of the recordings; ``pages`` then draws the notebooks' pictures anew.
One notebook is run as Jupyter does, too, in a kernel of its own (``testpaths`` in ``pyproject.toml``); ``pytest
notebooks`` runs all of them so.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from experiments.commands import notebooks, recording
from experiments.results.fingerprint import taken
from experiments.show import notebook as pieces
from experiments.show import version

LARGEST_BYTES = 3_000_000
"""Most bytes of all notebooks together, since a clone of the project has every version of them."""


@pytest.fixture(scope="module", autouse=True)
def _read_once() -> Iterator[None]:
    """Each recording is read and judged once for all notebooks, and the sources once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "read", cache(recording.read))
        patch.setattr(version, "taken", cache(taken))
        yield


DRAWN = "five_figures"
"""Notebook with pictures that are drawn anew here. Its figures are those of the front page."""


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sorted(notebooks.NOTEBOOKS.glob("*.ipynb")), ids=lambda file: file.stem)
def test_a_notebook_shows_what_the_recordings_give(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's texts and the numbers of its figures are exactly those of the recordings. ``pages`` writes them."""
    if notebook.stem != DRAWN:
        monkeypatch.setattr(pieces, "small_png", lambda _: b"")
        monkeypatch.setattr(notebooks, "alike", lambda *_: True)
    is_as_written = notebooks.filled(notebook) == notebook.read_text(encoding="utf-8")
    assert is_as_written


def test_every_notebook_says_how_to_show_a_run_of_ones_own() -> None:
    """The first cell of every notebook says how to show one's own run."""
    files = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))
    firsts = ["".join(json.loads(file.read_text(encoding="utf-8"))["cells"][0]["source"]) for file in files]
    said = re.compile(r"\*\*Your own run:\*\* `python -m experiments run \w+`[^*]*`\"\.\./results/")
    assert files
    assert [file.name for file, first in zip(files, firsts, strict=True) if not said.search(first)] == []


def test_the_notebooks_are_small() -> None:
    """The size of all notebooks together is bounded."""
    assert sum(file.stat().st_size for file in notebooks.NOTEBOOKS.glob("*.ipynb")) < LARGEST_BYTES
