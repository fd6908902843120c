"""Writes notebooks with their outputs: runs every cell, and stores the value of the cell's last expression in Jupyter's
format.

The cells run in this process, within seconds. A separate kernel for each notebook would need minutes. The files have no
execution counts, times or Python version. Two machines draw slightly different pixels. So a new picture replaces the
kept picture only in two cases: more pixels differ than ``alike`` allows, or the numbers in the picture differ. The
numbers are stored as text beside the picture, and this text is compared exactly.
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
"""Limits of ``alike``. A pixel counts as different if its brightness (0 to 255) differs by more than ``LEVELS``. Two
pictures are alike if at most the share ``SHARE`` of their pixels is different.
"""


def open_folder(folder: str) -> Notebook:
    """Content of a folder of results, for a notebook that shows each piece of the content in a cell. Takes seconds.
    Raises UsageError.
    """
    return Notebook(recording.read(Path(folder).resolve()))


def written() -> Iterator[tuple[Path, str]]:
    """Yields every notebook's file, with the recomputed text of the file. Blocks for a minute. Raises UsageError."""
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        yield file, filled(file)


def filled(file: Path) -> str:
    """Runs the cells of a notebook's file, and returns the file's text with the new outputs. If a cell raises
    UsageError, raises a UsageError that also has the file's name.
    """
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
    """Runs a cell. Returns the value of the cell's last statement. Returns None if the last statement is not an
    expression.
    """
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), file.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), file.name, "eval"), names) if isinstance(last, ast.Expr) else None


def _outputs(shown: object, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs of a cell in the format of Jupyter's files. ``shown``: the value that ``_run`` returned. ``before``: the
    outputs in the file. If the new picture is like the picture in ``before``, the old picture is kept.
    """
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
    """True if two pictures differ so little that they may be one figure, drawn on two machines. ``png``: bytes of the
    new PNG file. ``kept``: the kept PNG file in Base64.
    """
    one, other = (np.asarray(Image.open(BytesIO(each)).convert("L"), int) for each in (png, b64decode(kept)))
    return one.shape == other.shape and bool((np.abs(one - other) > LEVELS).mean() <= SHARE)
