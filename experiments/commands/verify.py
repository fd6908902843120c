"""``verify``: recomputes the content of a recording, and names the differences.

From a folder's part and measurements the command recomputes the texts in the folder, and the sweeps that the part can
have.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, product
from pathlib import Path

from experiments.commands import FAILED_EXIT
from experiments.commands.recording import AFTER_BLOCKS, FIRST_BLOCKS, add_results, beside, read
from experiments.compare.sweep import PART as COMPARED
from experiments.compare.sweep import again as of_compare
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep
from experiments.kinds import prediction
from experiments.kinds.prediction import FORETOLD_FILE, Foretold
from experiments.results.files import SWEEP_FILE, read_sweep
from experiments.show import content, gallery, report
from experiments.show.figures.style import Picture, data_of
from experiments.studies import PARTS
from experiments.studies.by_clients import SUFFIX
from experiments.studies.study import Part, Scale, Study
from experiments.verify import Design, Expected, differences
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser


def add_options(parser: Parser) -> None:
    """Adds the argument RESULTS, the folder to be verified."""
    add_results(parser, "a folder that 'run' or 'compare --out' wrote")


def run(options: argparse.Namespace) -> int:
    """Prints a line for each difference in the folder and in the folders inside it. Returns the exit code.

    Raises UsageError for a damaged folder. Before the error, the differences in earlier folders are printed.
    """
    folders = sorted(file.parent for file in options.results.rglob(SWEEP_FILE)) or [options.results]
    code = 0
    for line in chain.from_iterable(differences(folder, expected) for folder in folders):
        code = FAILED_EXIT
        print(line, flush=True)
    if not code:
        print(f"{options.results}: everything agrees with the blocks")
    return code


def expected(folder: Path) -> Expected:
    """Recomputed texts and designs that ``verify`` compares with a folder. For a sweep of ``compare``, the design is
    made from the two compared servers. A sweep of an unknown part has no recomputed texts or designs. Raises
    UsageError.
    """
    sweep = read_sweep(folder)
    if sweep.part == COMPARED:
        return Expected({}, (Design(of_compare(sweep), (), ()),))
    if sweep.part not in PARTS:
        return Expected({}, ())
    return Expected({} if _is_inside(folder, sweep.part) else texts(folder), _designs(folder, sweep))


def texts(folder: Path) -> Mapping[str, Callable[[], str]]:
    """Functions that recompute the texts of a folder's report, figures and predictions, by file name. The predictions
    are left out if the folder has no measurements of the part that is measured first.
    """
    found = read(folder)
    sweep, told = found.judgement.sweep, dict[str, Callable[[], str]]()
    part = PARTS[sweep.part][1]
    first = found.seen.after.get(part.first or "")
    if part.foretell and first and first.blocks and (folder / FORETOLD_FILE).exists():
        told[FORETOLD_FILE] = partial(_foretold, folder, sweep, partial(part.foretell, first))
    figures = {f"{gallery.FOLDER}/{each.name}.svg": partial(_svg, each) for each in found.pictures}
    return {report.MARKDOWN: partial(report.markdown, found), **figures, **told}


def _is_inside(folder: Path, name: str) -> bool:
    """True if a folder lies inside the folder of another part, and the part ``name`` is measured before or after that
    other part.
    """
    around = folder.resolve().parent
    if not (around / SWEEP_FILE).exists() or (main := read_sweep(around).part) not in PARTS:
        return False
    return name in beside(PARTS[main][1])


def _designs(folder: Path, sweep: Sweep) -> Iterator[Design]:
    """Yields the designs of a part at every scale that ``run`` can choose. Scales differ in the profile, the sender of
    the load (this machine or other hosts), the set of numbers of clients, and the numbers of blocks. Designs with the
    sweep's numbers of blocks come first.
    """
    study, part = PARTS[sweep.part]
    peers = frozenset(part.peers) - frozenset(content.left_out(part.peers, sweep))
    foretell = None
    if part.first and part.foretell and (folder / part.first / SWEEP_FILE).exists():
        foretell = partial(part.foretell, content.judged(folder / part.first))
    senders = (False, True) if sweep.part.endswith(SUFFIX) else (False,)
    scales = sorted(study.scales.values(), key=lambda usual: usual.looks != sweep.looks)
    for usual, hosts in product(scales, senders):
        scale = replace(usual, seed=sweep.seed, peers=peers, foretell=foretell, hosts=hosts)
        several = [scale, *(replace(scale, clients=each) for each in _clients(part, scale, sweep))]
        looks = {usual.looks, *_few_blocks(study, part, usual), *([sweep.looks] if sweep.fixed else [])}
        for each, at in product(several, sorted(looks, key=lambda at: at != sweep.looks)):
            with suppress(ValueError, UsageError):  # a scale without a decision, or without a server that hosts reach
                asked = replace(each, looks=at)
                made = replace(part.sweep(asked), fixed=sweep.fixed and at == sweep.looks)
                yield Design(made, part.runs(asked), beside(part))


def _clients(part: Part, scale: Scale, sweep: Sweep) -> Iterator[tuple[int, ...]]:
    """Yields sets of numbers of clients that may have been the ``--clients`` of ``run``. The first set has the sweep's
    smallest number of connections, the next set has the two smallest numbers, and so on. Then come sets without the
    numbers that the part adds by itself. If ``--clients`` had such a number, the part would have further arms.
    """
    counts, own = sorted({arm.connections for arm in sweep.arms}), list[int]()
    with suppress(ValueError, UsageError):  # as in ``_designs``
        of_all = part.sweep(replace(scale, clients=tuple(counts))).arms
        own = [each for each in counts if all(arm in sweep.places for arm in of_all if arm.connections == each)]
    yield from dict.fromkeys(tuple(each[:most]) for each in (counts, own) for most in range(1, len(each) + 1))


def _few_blocks(study: Study, part: Part, scale: Scale) -> Iterator[tuple[int, ...]]:
    """Yields the looks that a part has when it is measured without verdicts, before or after another part."""
    for other in study.parts.values():
        if study.parts.get(other.first or "") is part:
            yield (min(FIRST_BLOCKS, scale.looks[-1]),)
        if part in (study.parts[name] for name in other.after):
            yield (AFTER_BLOCKS,)


def _foretold(folder: Path, sweep: Sweep, foretell: Callable[[Setting], Foretold]) -> str:
    """Text of the file of predictions for the arms of a sweep. ``foretell`` computes the prediction for an arm's
    setting.
    """
    told = [foretell(arm.setting) for arm in sweep.arms]
    written_at, kept = prediction.load(folder)
    text = prediction.text(told, written_at)
    if text == prediction.text(kept, written_at):  # both texts are equal, but the file may lack later factors
        return (folder / FORETOLD_FILE).read_text(encoding="utf-8")
    return text


def _svg(picture: Picture) -> str:
    return data_of(picture.draw(), "svg").decode()
