"""Content of a folder of results, its recomputed texts, and the sweeps that its part could have, for all commands."""

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
"""Numbers of blocks of a sweep without verdicts: ``AFTER_BLOCKS`` for a sweep that is measured after a part's own
sweep, ``FIRST_BLOCKS`` for a sweep that is measured before it."""


def add_results(parser: Parser, help_text: str = "a folder that 'run' wrote") -> None:
    """Adds the argument RESULTS, the folder of results that a command reads."""
    parser.add_argument("results", type=Path, metavar="RESULTS", help=help_text)


def read(folder: Path) -> Content:
    """Content of a folder of results: judged measurements, answers, claims and figures of the folder's part. Raises
    UsageError."""
    name = read_sweep(folder).part
    parts = {name: PARTS[name][1]} if name in PARTS else {}
    found = content.read(folder, parts, recorded_beside(folder))
    return replace(found, document=PARTS[name][0].document)


def recorded_beside(folder: Path) -> Mapping[str, Path]:
    """Folders of the further parts whose results decide some claims of the folder's part, by the names of the further
    parts. A further part's folder lies next to the given folder, or among the recordings of the further part's study.
    Parts without such a folder are left out."""
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
    """Texts and designs that ``verify`` expects in a folder, recomputed. For a sweep of ``compare`` the design is made
    from the two sides of the comparison. For a sweep of an unknown part nothing is expected. Raises UsageError."""
    sweep = read_sweep(folder)
    if sweep.part == COMPARED:
        return Expected({}, (Design(of_compare(sweep), (), ()),))
    if sweep.part not in PARTS:
        return Expected({}, ())
    return Expected({} if _is_inside(folder, sweep.part) else texts(folder), tuple(_designs(folder, sweep)))


def texts(folder: Path) -> Mapping[str, Callable[[], str]]:
    """Recomputed texts of a folder's report, figures and predictions, by file name. Each text is computed when its
    function is called."""
    found = read(folder)
    told = {FORETOLD_FILE: partial(_foretold, folder, found)} if (folder / FORETOLD_FILE).exists() else {}
    figures = {f"{gallery.FOLDER}/{each.name}.svg": partial(_svg, each) for each in found.pictures}
    return {report.MARKDOWN: partial(report.markdown, found), **figures, **told}


def _is_inside(folder: Path, name: str) -> bool:
    """True where a folder holds a part that was measured before or after the part of the folder around it."""
    around = folder.resolve().parent
    if not (around / SWEEP_FILE).exists() or (main := read_sweep(around).part) not in PARTS:
        return False
    return name in beside(PARTS[main][1])


def beside(part: Part) -> tuple[str, ...]:
    """Names of the parts that are measured before and after a part, each into a folder of its name inside the part's
    folder."""
    return (*([part.first] if part.first else []), *part.also, *part.after)


def _designs(folder: Path, sweep: Sweep) -> Iterator[Design]:
    """Designs of a part at every scale that ``run`` can choose: each profile, sender of the load (this machine or other
    hosts), set of numbers of clients, and numbers of blocks."""
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
            with suppress(ValueError):  # a scale at which the part decides nothing
                asked = replace(each, looks=at)
                made = replace(part.sweep(asked), fixed=sweep.fixed and at == sweep.looks)
                yield Design(made, part.runs(asked), beside(part))


def _few_blocks(study: Study, part: Part, scale: Scale) -> Iterator[tuple[int, ...]]:
    """Looks of a part where the part is measured before or after another part, without verdicts."""
    for other in study.parts.values():
        if study.parts.get(other.first or "") is part:
            yield (min(FIRST_BLOCKS, scale.looks[-1]),)
        if part in (study.parts[name] for name in other.after):
            yield (AFTER_BLOCKS,)


def _foretold(folder: Path, found: Content) -> str:
    """Text of the file of predictions: the predictions of a part for its arms, recomputed from the sweep that was
    measured before the part."""
    _, part = PARTS[found.judgement.sweep.part]
    assert part.first is not None
    assert part.foretell is not None
    first = found.seen.after[part.first]
    told = [part.foretell(first, arm.setting) for arm in found.judgement.sweep.arms]
    written_at, kept = prediction.load(folder)
    text = prediction.text(told, written_at)
    if text == prediction.text(kept, written_at):  # equal once read: the file may lack factors that were added later
        return (folder / FORETOLD_FILE).read_text(encoding="utf-8")
    return text


def _svg(picture: Picture) -> str:
    return data_of(picture.draw(), "svg").decode()
