"""The notebooks: every cell of each runs, from the first to the last, and shows something as its last line.

The cells run in this process; ``test_recorded.py`` renders the figures. One notebook is run as Jupyter does, too, in a
kernel of its own (``testpaths`` in ``pyproject.toml``); ``pytest notebooks`` runs all of them so.
"""

import ast
import json
import sys
from pathlib import Path

import pytest

from experiments.show import notebook as show

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_every_cell_runs(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the notebook's folder, as on the recording that it names."""
    monkeypatch.chdir(notebook.parent)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(show, "data_of", lambda *_: b"<svg/>")
    names: dict[str, object] = {}
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 1
    for cell in cells:
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), notebook.name, "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)
            assert shown._repr_svg_() if hasattr(shown, "_repr_svg_") else shown._repr_markdown_()
