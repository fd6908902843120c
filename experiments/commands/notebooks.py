"""Notebooks with their outputs: every cell is run, and the value of its last line is kept in Jupyter's format.

The cells run in this process, which takes seconds; one kernel for each notebook would take minutes. The files have no
execution counts, times or Python version. Two machines draw slightly different pixels: within that difference the kept
picture stays. The numbers of a picture are also kept as text, which is compared exactly.
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
"""Brightness, of 255, by which a different pixel differs at least; largest share of different pixels in like
pictures."""


def open_folder(folder: str) -> Notebook:
    """A folder of results for a notebook, which shows it piece by piece. Takes seconds. Raises UsageError."""
    return Notebook(recording.read(Path(folder).resolve()))


def written() -> Iterator[tuple[Path, str]]:
    """Every notebook with its recomputed text. Blocks for a minute. Raises UsageError."""
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        yield file, filled(file)


def filled(file: Path) -> str:
    """Text of a notebook with its outputs. A UsageError of a cell is raised with the notebook's name."""
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
    """Runs a cell. Returns the value of its last line; None where the last line is not an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), file.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), file.name, "eval"), names) if isinstance(last, ast.Expr) else None


def _outputs(shown: object, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs of a cell, in the format of Jupyter's files. ``before``: the outputs that the file has."""
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
    """True where two pictures differ no more than two machines' drawings of one figure. ``kept`` is in Base64."""
    one, other = (np.asarray(Image.open(BytesIO(each)).convert("L"), int) for each in (png, b64decode(kept)))
    return one.shape == other.shape and bool((np.abs(one - other) > LEVELS).mean() <= SHARE)
