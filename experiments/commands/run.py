"""``run``: measures a part of a study and the parts before and after it, draws the figures, and writes the report.

A study's name selects its main part, and the name of a part selects this part. ``all`` selects the main part of every
study (``run_all``).
"""

import argparse
import shlex
import sys
from collections import ChainMap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from itertools import chain, count
from pathlib import Path
from typing import get_args

from experiments.commands import PROGRAM, estimate, run_all
from experiments.commands.recording import AFTER_BLOCKS, FIRST_BLOCKS, beside, read
from experiments.commands.run_all import ALL, Planned
from experiments.design.limits import BLOCKS_MAX
from experiments.design.setting import WORDS
from experiments.design.sweep import BLOCKS_MIN, Sweep
from experiments.judge.verdicts import Judgement
from experiments.kinds import Plan, kind_of, prediction
from experiments.kinds.prediction import FORETOLD_FILE
from experiments.measure.bench import CATALOG, Bench, Hosts, bench
from experiments.measure.load_programs import present
from experiments.measure.progress import Progress
from experiments.measure.runner import check_free, run_beside
from experiments.peers import is_built, why_absent
from experiments.results.files import read_blocks
from experiments.results.machine import TICK_S
from experiments.results.observed import Block
from experiments.show import gallery, report
from experiments.show.content import Content, judged
from experiments.show.numbers import counted
from experiments.show.sentences import ratio_so_far
from experiments.studies import PARTS, STUDIES
from experiments.studies.by_clients import SUFFIX, is_fixed, unreachable
from experiments.studies.study import Part, ProfileName, Scale, Study
from experiments.sweeping import add_seed, measured, seed_for
from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.process.command_line import Parser, address, integer

RESULTS = Path("results")
"""Folder in which a new folder of results is created, if ``--out`` is not given."""

BUSY_SHARE = 0.04
"""Largest share of the cores' time that other processes and the hypervisor may take together without a warning. On an
idle machine, system services took 1 to 2 %.
"""

BY_CLIENTS = "{name} has fixed loads. Instead, each server is measured with the numbers of --clients."
"""Line to print if ``--clients`` is given for a part with fixed loads."""

BEYOND = (
    "left out: {name}: other hosts cannot reach this server, its load program is not our client, or it has an updater"
)
"""Line to print for each server that other hosts cannot load."""


def add_options(parser: Parser) -> None:
    """Adds the options of ``run``."""
    add = parser.add_argument
    parser.epilog = WORDS
    add(
        "name",
        choices=ChainMap({ALL: None}, PARTS),  # type: ignore[arg-type]  # argparse reads the names alone
        metavar="NAME",
        help=f"a study, a part of one ('list' prints them), or {ALL!r} studies",
    )
    add(
        "--profile",
        choices=get_args(ProfileName),
        default="quick",
        help="size of the run, which takes seconds (smoke), minutes (quick), or far longer (paper)",
    )
    add(
        "--clients",
        type=integer(1, 64),
        nargs="+",
        metavar="N",
        help="numbers of clients (default: the part's). For a part with fixed loads they replace these loads",
    )
    many = "send the load from every worker of the Dask cluster with this scheduler, by --clients clients a server"
    add("--cluster", type=address, metavar="HOST:PORT", help=many)
    reached = "with --cluster: address of this machine that the hosts reach. The servers listen there, without TLS"
    add("--host", metavar="ADDRESS", help=reached)
    add("--blocks", type=integer(1, BLOCKS_MAX), metavar="N", help="exact number of blocks (default: until decided)")
    add_seed(parser)
    add("--out", type=Path, metavar="FOLDER", help=f"folder for the results (default: a new folder in {RESULTS}/)")
    add("--resume", action="store_true", help="continue the interrupted run in --out")


def run(options: argparse.Namespace) -> int:
    """Measures a part or all studies, draws the figures, and writes the report. Returns the exit code. Blocks.

    Raises UsageError, ProgramFailed, a Fault, and KeyboardInterrupt after Ctrl-C. Every whole block is kept.
    """
    options.hosts = _hosts(options)
    folder = options.out or _new(RESULTS / f"{options.name}-{options.profile}")
    if options.resume and (options.out is None or not options.out.exists()):
        given = "no folder" if options.out is None else f"{options.out}, which does not exist"
        raise UsageError("--resume", given, "--out FOLDER, with the folder of an interrupted run")
    options.seed = seed_for(options.seed, folder if options.resume else None)
    if options.blocks is not None and options.blocks < BLOCKS_MIN:
        print(f"{options.blocks} blocks give no verdict. A verdict needs at least {BLOCKS_MIN}.", file=sys.stderr)
    try:
        return _run_all(options, folder) if options.name == ALL else _run_one(options, folder)
    except KeyboardInterrupt:
        kept = f"whole blocks are kept. To go on: {_again(options, folder)}"
        print(f"interrupted; {kept if folder.exists() else 'nothing was measured yet'}", file=sys.stderr)
        raise


def _run_one(options: argparse.Namespace, folder: Path) -> int:
    name = part_for(options.name, options)
    study, part = PARTS[name]
    _sweep(part, scale_of(study, part, options))  # refuses a part that these options do not fit, before any output
    if name != options.name and options.cluster is None:
        print(BY_CLIENTS.format(name=options.name), file=sys.stderr)
    for line in (*_left_out([part]), *_unreachable([options.name], options)):
        print(line, file=sys.stderr)
    found = _measured(name, options, folder, options.resume)
    print("\n".join(conclusion(found)))
    print(f"\nReport: {folder / report.HTML}; its figures, as SVG and PNG: {folder / gallery.FOLDER}")
    return 0


def _run_all(options: argparse.Namespace, folder: Path) -> int:
    if not options.resume:
        run_all.check_new(folder)
    parts = [part_for(name, options) for name in STUDIES]
    to_do = [planned(name, options, folder / name) for name in parts]
    left_out = [*_left_out([study.parts[name] for name, study in STUDIES.items()]), *_unreachable(STUDIES, options)]

    def measure(name: str, own: Path) -> Content:
        return _measured(name, options, own, options.resume and own.exists())

    return run_all.run(to_do, left_out, folder, measure, _again(options, folder))


def _measured(name: str, options: argparse.Namespace, folder: Path, resume: bool) -> Content:
    """Measures a part into a folder, with the parts that are measured before and after it. Writes the report."""
    study, part = PARTS[name]
    on = bench(CATALOG, seed=options.seed)
    if options.cluster is not None:
        if resume:
            _check_hosts(folder, options.hosts)
        on = replace(on, load_cores=None, hosts=Hosts(shown_address(options.cluster), options.host, options.hosts))
    _measure(study, part, scale_of(study, part, options), on, folder, resume)
    found = read(folder)
    report.write(folder, found)
    return found


def planned(name: str, options: argparse.Namespace, folder: Path) -> Planned:
    """Plan for measuring a part into a folder: its sweep, and its estimated duration. If the folder has predictions,
    the sweep uses the predictions. If the options do not fit the part, the plan has no sweep.
    """
    study, part = PARTS[name]
    unmeasured = tuple(each for each in study.parts if each not in (name, *beside(part)))
    scale = scale_of(study, part, options)
    try:
        if part.first and part.foretell and (folder / FORETOLD_FILE).exists():
            scale = replace(scale, foretell=partial(part.foretell, judged(folder / part.first)))
        sweep, beside_s = _sweep(part, scale), _after_s(study, part, scale)
        if part.first:
            first = _first(study, part, scale)
            beside_s += first.looks[0] * estimate.block_s(first)
    except UsageError:  # the measurement of this part will print the same line
        return Planned(name, 0.0, 0.0, unmeasured)
    least_s, most_s = (sweep.looks[place] * estimate.block_s(sweep) + beside_s for place in (0, -1))
    return Planned(name, least_s, most_s, unmeasured, sweep, _beside(part, scale))


def _beside(part: Part, scale: Scale) -> tuple[str, ...]:
    """Names of the files and folders that the measurement of a part leaves besides the files of the sweep."""
    return (
        *([FORETOLD_FILE] if part.first else []),
        *(kind_of(plan).form.plan_file for plan in part.runs(scale)),
        *beside(part),
    )


def _after(study: Study, part: Part, scale: Scale) -> dict[str, Sweep]:
    """Sweeps that are measured after a part, by the names of their parts. Sweeps with verdicts come before sweeps
    without verdicts.
    """
    few = replace(scale, looks=(AFTER_BLOCKS,), fixed=False)
    scales = dict.fromkeys(part.also, scale) | dict.fromkeys(part.after, few)
    return {name: _sweep(study.parts[name], of) for name, of in scales.items()}


def _after_s(study: Study, part: Part, scale: Scale) -> float:
    return estimate.after_s(_after(study, part, scale), part.runs(scale))


def _again(options: argparse.Namespace, folder: Path) -> str:
    """Command that the user enters to continue an interrupted run."""
    words = ["run", options.name, "--profile", options.profile, "--seed", str(options.seed)]
    if options.clients is not None:
        words += ["--clients", *map(str, options.clients)]
    if options.cluster is not None:
        words += ["--cluster", shown_address(options.cluster), "--host", options.host]
    if options.blocks is not None:
        words += ["--blocks", str(options.blocks)]
    return f"{PROGRAM} {shlex.join([*words, '--out', str(folder), '--resume'])}"


def conclusion(found: Content) -> list[str]:
    """Lines to print: each question and its answer. After an undecided answer, a line has the command that would decide
    the question.
    """
    lines = [""]
    for answer in found.answers:
        lines += [answer.question, f"  {answer.sentence}"]
        if answer.to_decide:
            lines.append(f"  {answer.to_decide}")
    return lines


def _measure(study: Study, part: Part, scale: Scale, on: Bench, folder: Path, resume: bool) -> None:
    """Measures the parts before a part, the part's own sweep, and then the runs and parts after the sweep. Raises
    UsageError.
    """
    scale = _foretelling(study, part, scale, on, folder, resume)
    sweep = _sweep(part, scale)
    if scale.foretell is not None and not (folder / FORETOLD_FILE).exists():
        now = datetime.now(UTC).isoformat(timespec="seconds")
        prediction.save(folder, [scale.foretell(arm.setting) for arm in sweep.arms], now)
    progress = Progress(sweep, sys.stderr, _after_s(study, part, scale))

    def seen(judgement: Judgement) -> str:
        if len(judgement.blocks) == 1:
            _say_busy(progress, judgement.blocks[0])
        return ratio_so_far(judgement)

    with present((arm.setting.text("client") for arm in sweep.arms), "client") as there:
        measured(sweep, replace(on, load_programs=there), folder, progress, seen, resume)
    for plan in part.runs(scale):
        _measure_beside(plan, on, folder, resume, progress)
    for name, after in _after(study, part, scale).items():
        progress.say(f"{study.parts[name].title}: {counted(after.looks[0], 'block')}")
        measured(after, on, folder / name, Progress(after, sys.stderr), ratio_so_far, resume)


def _foretelling(study: Study, part: Part, scale: Scale, on: Bench, folder: Path, resume: bool) -> Scale:
    """Measures the part that ``part.first`` names, and computes predictions from its results. Returns the scale with
    these predictions. If the part has no predictions, returns the given scale.
    """
    if part.first is None or part.foretell is None:
        return scale
    if not resume:
        check_free(folder)
    first = _first(study, part, scale)
    progress = Progress(first, sys.stderr)
    progress.say(f"{study.parts[part.first].title}: {counted(first.looks[0], 'block')}")
    seen = measured(first, on, folder / part.first, progress, ratio_so_far, resume)
    return replace(scale, foretell=partial(part.foretell, seen))


def _first(study: Study, part: Part, scale: Scale) -> Sweep:
    """Sweep that is measured before a part's own sweep. ``part.first`` must be set."""
    assert part.first is not None
    return _sweep(study.parts[part.first], replace(scale, looks=(min(FIRST_BLOCKS, scale.looks[-1]),), fixed=False))


def _measure_beside(plan: Plan, on: Bench, folder: Path, resume: bool, progress: Progress) -> None:
    """Measures a run that is not a sweep, such as a run of cold starts, into the folder of the sweep."""
    kind = kind_of(plan)

    def began(done: int) -> None:
        progress.say(f"{kind.title}: block {done + 1} of {plan.blocks}")

    with present([kind.program] if kind.program else [], "client") as there:
        run_beside(plan, folder, resume, replace(on, load_programs=there), began)


def _say_busy(progress: Progress, first: Block) -> None:
    """Prints a warning if the first block shows that the machine is too busy for small differences to be seen."""
    stolen_s = sum(each.steal_ticks for each in first.rounds) * TICK_S
    foreign_s = sum(each.foreign_ticks or 0 for each in first.rounds) * TICK_S
    lasted_s = sum(each.duration_s for each in first.rounds) * first.cores
    lost = sum(1 for fate in first.slices.fate if fate)
    if stolen_s + foreign_s > BUSY_SHARE * lasted_s or lost > 0.1 * len(first.slices.fate):
        stolen, foreign = (each / lasted_s if lasted_s else 0.0 for each in (stolen_s, foreign_s))
        progress.say(
            f"The machine is busy: the hypervisor took {stolen:.0%} of its time, and other processes took "
            f"{foreign:.0%}. {lost} of {len(first.slices.fate)} slices were lost. Differences of a few per cent "
            "may stay undecided."
        )


def part_for(name: str, options: argparse.Namespace) -> str:
    """Name of the part to measure: ``name``, or the part that measures the same servers by numbers of clients. The
    second part is chosen with ``--cluster``. It is also chosen with ``--clients`` if ``name`` has fixed loads.
    """
    study, part = PARTS[name]
    by_clients = options.clients is not None and is_fixed(part, study.scale(options.profile))
    return f"{name}{SUFFIX}" if by_clients or options.cluster is not None else name


def scale_of(study: Study, part: Part, options: argparse.Namespace) -> Scale:
    """Scale of a part's run: the scale of the profile, but with the options' seed, clients and blocks."""
    usual = study.scale(options.profile)
    return replace(
        usual,
        seed=options.seed,
        peers=frozenset(filter(is_built, part.peers)),
        hosts=options.cluster is not None,
        clients=tuple(sorted(set(options.clients or part.clients or usual.clients))),
        looks=usual.looks if options.blocks is None else (options.blocks,),
        fixed=options.blocks is not None,
    )


def _sweep(part: Part, scale: Scale) -> Sweep:
    """Sweep of a part at a scale. Raises UsageError if a comparison cannot be decided with this number of blocks or
    clients, or if no peer of the part is built.
    """
    try:
        return replace(part.sweep(scale), fixed=scale.fixed)
    except ValueError as error:
        if part.peers and not scale.peers:
            raise UsageError("peers", "none that is built", "at least one of this part: run make peers") from error
        raise UsageError("the size of the run", str(error), "more --blocks, or other --clients") from error


def _left_out(parts: Iterable[Part]) -> list[str]:
    """Lines to print, one for each peer of these parts that is not built here. Each line says how to build its peer."""
    peers = dict.fromkeys(name for part in parts for name in part.peers)
    return [f"left out: {why_absent(name)}" for name in peers if not is_built(name)]


def _hosts(options: argparse.Namespace) -> tuple[str, ...]:
    """Names of the hosts in the cluster; empty without ``--cluster``.

    Raises UsageError in four cases: only one of ``--cluster`` and ``--host`` is given, ``--host`` is a wildcard
    address, Dask is not installed, or a host would have no client.
    """
    if (options.cluster is None) != (options.host is None):
        lacking, given = ("--host", "--cluster") if options.host is None else ("--cluster", "--host")
        raise UsageError(lacking, "nothing", f"an address, together with {given}")
    if options.cluster is None:
        return ()
    with suppress(ValueError):  # the option is the name of a host, not an address
        if ip_address(options.host).is_unspecified:
            raise UsageError("--host", options.host, "the one address of this machine that the hosts reach")
    if find_spec("distributed") is None:
        raise UsageError("--cluster", "no Dask here", "with the library of the extra cluster (pip install distributed)")
    from clients.load.hosts.cluster import names  # here, since this module needs Dask

    hosts = names(shown_address(options.cluster))
    if min(options.clients or (1,)) < len(hosts):
        given = min(options.clients) if options.clients else "nothing, which means 1"
        allowed = f"{len(hosts)} or more: one for each host of the cluster ({', '.join(hosts)})"
        raise UsageError("--clients", given, allowed)
    return tuple(hosts)


def _check_hosts(folder: Path, hosts: Sequence[str]) -> None:
    """Refuses to resume a run if other hosts sent the load of its earlier blocks. Raises UsageError."""
    shares = (
        {share.name for share in window.hosts}
        for block in read_blocks(folder)
        for arm in block.arms
        for window in arm.windows
    )
    began = set().union(*shares)
    if began and began != set(hosts):
        given = f"blocks of the hosts {', '.join(sorted(began))}, and these are {', '.join(hosts)}"
        raise UsageError(f"--resume {folder}", given, "the same hosts for all blocks (or another folder)")


def _unreachable(names: Iterable[str], options: argparse.Namespace) -> list[str]:
    """Lines to print, one for each server that the hosts of ``--cluster`` cannot load."""
    found = []
    for study, part in (PARTS[name] for name in names if options.cluster is not None):
        with suppress(ValueError):  # no server at this scale: the measurement will print the line
            found += [BEYOND.format(name=name) for name in unreachable(part, scale_of(study, part, options))]
    return found


def _new(folder: Path) -> Path:
    """Folder that does not exist yet: the given FOLDER, or the first free name of FOLDER-2, FOLDER-3 and so on."""
    names = chain([folder], (folder.with_name(f"{folder.name}-{number}") for number in count(2)))
    return next(each for each in names if not each.exists())
