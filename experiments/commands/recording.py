"""Content of a folder of results, and the names and folders of the parts that belong to the folder's part. Several
commands use these functions.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from experiments.results.files import SWEEP_FILE, read_sweep
from experiments.show import content
from experiments.show.content import Content
from experiments.studies import PARTS
from experiments.studies.study import Part
from stock_service.rpc.process.command_line import Parser

AFTER_BLOCKS, FIRST_BLOCKS = 3, 1
"""Number of blocks of a sweep without verdicts. ``AFTER_BLOCKS``: for a sweep that is measured after a part's own
sweep. ``FIRST_BLOCKS``: for a sweep that is measured before a part's own sweep.
"""


def add_results(parser: Parser, help_text: str = "a folder that 'run' wrote") -> None:
    """Adds the argument RESULTS, the folder of results that a command reads."""
    parser.add_argument("results", type=Path, metavar="RESULTS", help=help_text)


def read(folder: Path) -> Content:
    """Reads the content of a folder of results: judged measurements, and the answers, claims and figures of the
    folder's part. Raises UsageError.
    """
    name = read_sweep(folder).part
    parts = {name: PARTS[name][1]} if name in PARTS else {}
    found = content.read(folder, parts, recorded_beside(folder))
    return replace(found, document=PARTS[name][0].document)


def recorded_beside(folder: Path) -> Mapping[str, Path]:
    """Folders of the further parts whose results decide some claims of the folder's part, by the further parts' names.
    A further part's folder lies next to the given folder, or among the recordings of the further part's study. A
    further part without such a folder is left out.
    """
    name = read_sweep(folder).part
    if name not in PARTS:
        return {}
    found = {}
    for other in PARTS[name][1].beside:
        studies = folder.resolve().parents[2:3]
        for place in (folder.parent / other, *(each / PARTS[other][0].name / "recorded" / other for each in studies)):
            if other not in found and (place / SWEEP_FILE).exists():
                found[other] = place
    return found


def beside(part: Part) -> tuple[str, ...]:
    """Names of the parts that are measured before and after a part. Each of these parts has a subfolder with its name
    in the part's folder, for its results.
    """
    return (*([part.first] if part.first else []), *part.also, *part.after)
