"""A folder of results: read, computed anew, and compared with its part's design. Shared by the commands."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from experiments.compare.sweep import PART as COMPARED
from experiments.compare.sweep import again as of_compare
from experiments.design.sweep import Sweep
from experiments.kinds import prediction
from experiments.kinds.prediction import FORETOLD_FILE
from experiments.results.files import SWEEP_FILE, read_sweep
from experiments.show import content, gallery, report
from experiments.show.content import Content
from experiments.show.figures.style import Picture, data_of
from experiments.studies import PARTS
from experiments.studies.by_clients import SUFFIX
from experiments.studies.study import Part, Scale, Study
from experiments.verify import Design, Expected
from stock_service.rpc.process.command_line import Parser

DIFFERS_EXIT = 1
"""Exit code where a difference was found."""

AFTER_BLOCKS, FIRST_BLOCKS = 3, 1
"""Blocks of a sweep without verdicts, measured after a part's own sweep or before it."""


def add_results(parser: Parser, help_text: str = "a folder that 'run' wrote") -> None:
    """Adds the folder that a command reads."""
    parser.add_argument("results", type=Path, metavar="RESULTS", help=help_text)


def read(folder: Path) -> Content:
    """Reads a folder of results, and the content of its part. Raises UsageError."""
    name = read_sweep(folder).part
    parts = {name: PARTS[name][1]} if name in PARTS else {}
    found = content.read(folder, parts, recorded_beside(folder))
    return replace(found, document=PARTS[name][0].document)


def recorded_beside(folder: Path) -> Mapping[str, Path]:
    """Folders of the parts that decide claims of a folder's part: beside it, or in the study's own recordings."""
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


def expected(folder: Path) -> Expected:
    """Content that a folder should hold, computed anew. A sweep of ``compare`` is made from its two sides. A sweep of
    no part here has no expected content. Raises UsageError."""
    sweep = read_sweep(folder)
    if sweep.part == COMPARED:
        return Expected({}, (Design(of_compare(sweep), (), {}),))
    if sweep.part not in PARTS:
        return Expected({}, ())
    return Expected({} if _is_inside(folder, sweep.part) else texts(folder), tuple(_designs(folder, sweep)))


def texts(folder: Path) -> Mapping[str, Callable[[], str]]:
    """Texts that a folder's report and figures should have, and the predictions for its arms. Each is computed when it
    is called."""
    found = read(folder)
    told = {FORETOLD_FILE: partial(_foretold, folder, found)} if (folder / FORETOLD_FILE).exists() else {}
    figures = {f"{gallery.FOLDER}/{each.name}.svg": partial(_svg, each) for each in found.pictures}
    return {report.MARKDOWN: partial(report.markdown, found), **figures, **told}


def _is_inside(folder: Path, name: str) -> bool:
    """True where a folder holds a part that was measured before or after that of the folder around it."""
    around = folder.resolve().parent
    if not (around / SWEEP_FILE).exists() or (main := read_sweep(around).part) not in PARTS:
        return False
    return name in beside(PARTS[main][1])


def beside(part: Part) -> tuple[str, ...]:
    """The parts that are measured before a part and after it, into folders of their names."""
    return (*([part.first] if part.first else []), *part.also, *part.after)


def _designs(folder: Path, sweep: Sweep) -> Iterator[Design]:
    """Sweeps of a part at every scale that ``run`` could have had: by profile, senders, clients, blocks and peers."""
    study, part = PARTS[sweep.part]
    peers = frozenset(part.peers) - frozenset(content.left_out(part.peers, sweep))
    counts = sorted({arm.connections for arm in sweep.arms})
    foretell = None
    if part.first and part.foretell and (folder / part.first / SWEEP_FILE).exists():
        foretell = partial(part.foretell, content.judged(folder / part.first))
    senders = (False, True) if sweep.part.endswith(SUFFIX) else (False,)
    for usual, hosts in product(study.scales.values(), senders):
        scale = replace(usual, seed=sweep.seed, peers=peers, foretell=foretell, hosts=hosts)
        several = [scale, *(replace(scale, clients=tuple(counts[:most])) for most in range(1, len(counts) + 1))]
        looks = {usual.looks, *_few_blocks(study, part, usual), *([sweep.looks] if sweep.fixed else [])}
        for each, at in product(several, looks):
            with suppress(ValueError):  # a scale without a decision
                asked = replace(each, looks=at)
                made = replace(part.sweep(asked), fixed=sweep.fixed and at == sweep.looks)
                yield Design(made, part.runs(asked), {name: name for name in beside(part)})


def _few_blocks(study: Study, part: Part, scale: Scale) -> Iterator[tuple[int, ...]]:
    """The looks of a part without verdicts that is measured before or after another."""
    for other in study.parts.values():
        if study.parts.get(other.first or "") is part:
            yield (min(FIRST_BLOCKS, scale.looks[-1]),)
        if part in (study.parts[name] for name in other.after):
            yield (AFTER_BLOCKS,)


def _foretold(folder: Path, found: Content) -> str:
    """Predictions of a part for its arms, from its first measurements."""
    _, part = PARTS[found.judgement.sweep.part]
    assert part.first is not None
    assert part.foretell is not None
    first = found.seen.after[part.first]
    told = [part.foretell(first, arm.setting) for arm in found.judgement.sweep.arms]
    written_at, kept = prediction.load(folder)
    text = prediction.text(told, written_at)
    if text == prediction.text(kept, written_at):  # as read, with the defaults of later factors
        return (folder / FORETOLD_FILE).read_text(encoding="utf-8")
    return text


def _svg(picture: Picture) -> str:
    return data_of(picture.draw(), "svg").decode()
