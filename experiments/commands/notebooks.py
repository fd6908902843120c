"""Notebooks with their outputs: every cell is run, and the output of its last line is kept in Jupyter's form.

The cells run in this process, which takes seconds; a kernel for each would take minutes. Left out of the files: counts
of executions, times, the version of Python. A picture stays as it is if it differs by no more than drawings of two
machines. Its numbers stand beside it in words, and these are compared exactly.
"""

import ast
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import chdir
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from experiments.commands import recording
from experiments.commands.index import ROOT
from experiments.show.notebook import Drawn, Notebook, Told
from stock_service.rpc.errors import UsageError

NOTEBOOKS = ROOT / "notebooks"

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

PICTURE, WORDS, MARKDOWN = "image/png", "text/plain", "text/markdown"

LEVELS, SHARE = 48, 1 / 1000
"""Levels of 255 by which a pixel counts as different; share of such pixels from which a picture does."""


def open_folder(folder: str) -> Notebook:
    """A folder of results, to be shown piece by piece in a notebook. Takes seconds. Raises UsageError."""
    return Notebook(recording.read(Path(folder).resolve()))


def written() -> Iterator[tuple[Path, str]]:
    """Every notebook with the text that it should have. Blocks for a minute. Raises UsageError."""
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        yield file, filled(file)


def filled(file: Path) -> str:
    """Text of a notebook with its outputs. Raises UsageError, with the notebook's name, as its cells do."""
    notebook = json.loads(file.read_text(encoding="utf-8"))
    notebook["metadata"] = METADATA
    names: dict[str, object] = {}
    path = [*sys.path]
    try:
        with chdir(file.parent):
            for cell in notebook["cells"]:
                cell["metadata"] = {}
                if cell["cell_type"] == "code":
                    shown = _run("".join(cell["source"]), file, names)
                    cell["outputs"], cell["execution_count"] = _outputs(shown, cell["outputs"]), None
    except UsageError as error:
        raise UsageError(f"{file.name}: {error.option}", error.given, error.allowed) from error
    finally:
        sys.path[:] = path
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _run(source: str, file: Path, names: dict[str, object]) -> object:
    """Runs a cell. Gives the value of its last line; None where that is no expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), file.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), file.name, "eval"), names) if isinstance(last, ast.Expr) else None


def _outputs(shown: object, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs of a cell, in the form of Jupyter's files."""
    match shown:
        case None:
            return []
        case Drawn():
            data = _picture(shown, before[0].get("data", {}) if before else {})
        case Told():
            data = {MARKDOWN: shown.markdown.splitlines(keepends=True)}
        case _:
            data = {WORDS: repr(shown).splitlines(keepends=True)}
    return [{"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}]


def _picture(shown: Drawn, before: dict[str, Any]) -> dict[str, Any]:
    data = {PICTURE: b64encode(shown.png).decode(), WORDS: shown.alternative.splitlines(keepends=True)}
    kept = before.get(PICTURE, "")
    return before if before.keys() == data.keys() and before[WORDS] == data[WORDS] and alike(shown.png, kept) else data


def alike(png: bytes, kept: str) -> bool:
    """True where two pictures differ by no more than drawings of one figure on two machines. The second is in
    Base64."""
    one, other = (np.asarray(Image.open(BytesIO(each)).convert("L"), int) for each in (png, b64decode(kept)))
    return one.shape == other.shape and bool((np.abs(one - other) > LEVELS).mean() <= SHARE)
