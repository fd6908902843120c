"""Cells and stress read back as they were written, plan and all."""

from pathlib import Path

from experiments.results import cells, stress
from tests.unit.experiments.cells_seen import block, plan
from tests.unit.experiments.stress_seen import PLAN, repetition


def test_cells_read_back(tmp_path: Path) -> None:
    """Ratios too, which are declared beforehand."""
    of = plan()
    seen = (block(1, of), block(2, of))
    cells.save(tmp_path, of, seen)
    assert cells.load(tmp_path) == (of, seen)


def test_stress_reads_back(tmp_path: Path) -> None:
    """Every kind and final state."""
    seen = (repetition(1), repetition(2))
    stress.save(tmp_path, PLAN, seen)
    assert stress.load(tmp_path) == (PLAN, seen)
