"""``python -m experiments list | run NAME | plot RESULTS | report RESULTS | verify RESULTS | selfcheck [CHECK]``.

``run`` measures, and after blocks 1, 3, 9 and so on draws the figures anew from what is there: all parts of an
experiment are run in the same blocks, so that every figure is there after the first, and its intervals close in.
``plot`` and ``report`` measure nothing.
"""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from experiments.design import Design, Run
from experiments.execution import RunInterrupted, bench
from experiments.progress import Progress
from experiments.results import RESULTS_FILE, load_whole_runs
from experiments.run_records import RUNS_FILE
from experiments.runner import Sweep, Watch, run_sweep
from experiments.server_process import ProgramFailed
from experiments.studies import STUDIES, Experiment, experiments
from experiments.studies.stock import CATALOG
from experiments.study import Scale
from stock_service.rpc.errors import Fault, UsageError
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser, integer, refuse

PROGRAM = "python -m experiments"

RESULTS = Path("results")
"""Where the folders of results are, unless told."""

PROFILES = ("smoke", "quick", "paper")

CLIENTS = (1, 2, 3, 4, 5)
"""The original's numbers of clients."""

ONE_NUMBER = (
    "one number of clients: no comparison can be concluded, since gate 20 needs A/A runs at two of them at least"
)
"""Said before the sweep: its A/A comparisons are at the fewest clients and the most, on two transports, ``AA_MIN``."""

INTERRUPTED_EXIT = 130
"""128 + SIGINT, as shells have it."""

UNREAD_EXIT = 141
"""128 + SIGPIPE: whoever read the output has gone."""

SELFCHECKS = ("replay", "analytic", "stalls", "agreement", "clients", "statistics", "ab")
"""The checks of the instrument: the keys of ``selfcheck.checks.CHECKS``, which takes seconds to load."""

DIFFERS_EXIT = 1
"""Something in a folder of results is not what its runs give, or a check of the instrument did not pass."""

DRAWN_AFTER = tuple(3**power for power in range(10))
"""Blocks: drawing takes some ten seconds, in which nothing is measured."""

FAILED_EXIT = 1
"""A server, an updater or all clients of a run failed."""

EXITS = {
    0: "done, and all that was checked is as it should be",
    DIFFERS_EXIT: "a run failed; or verify found a difference, or selfcheck a check that does not pass",
    USAGE_EXIT: "bad usage, or a folder that has no results or cannot be read and written",
    INTERRUPTED_EXIT: "Ctrl-C, SIGTERM or SIGHUP; run says how to go on",
    UNREAD_EXIT: "whoever read the output has gone",
}
"""What each exit code is for."""


def main(arguments: Sequence[str]) -> int:
    """Does what the arguments say; gives the process's exit code."""
    options = _parser().parse_args(arguments)
    try:
        code = _do(options)
        sys.stdout.flush()  # here, where it is known what to do if nobody reads
    except UsageError as error:
        refuse(PROGRAM, error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at exit
        return UNREAD_EXIT
    except OSError as error:
        refuse(PROGRAM, f"{error.filename}: {error.strerror}, allowed: a folder to read and write")
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    return code


def _do(options: argparse.Namespace) -> int:
    match options.command:
        case "list":
            return _list()
        case "run":
            return _run(options)
        case "plot":
            return _plot(options.results)
        case "verify":
            return _verify(options.results)
        case "selfcheck":
            return _selfcheck(options)
        case _:
            return _report(options.results)


def interrupt_on_signals() -> None:
    """Has SIGTERM, and SIGHUP unless it is ignored (``nohup``), do what Ctrl-C does: stop what was started, and end."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: another would cut short what stops the programs
    raise KeyboardInterrupt


def _parser() -> Parser:
    parser = Parser(PROGRAM, "Runs the studies' experiments, draws their figures, writes their reports.", EXITS)
    commands = parser.add_subparsers(dest="command", required=True, metavar="list|run|plot|report|verify|selfcheck")
    commands.add_parser("list", prog=f"{PROGRAM} list", description="Prints every experiment.")
    run = commands.add_parser("run", prog=f"{PROGRAM} run", description="Runs an experiment; 'list' prints them.")
    add = run.add_argument
    add("name", choices=experiments(), metavar="NAME", help="which experiment")
    add("--clients", type=integer(1, 64), nargs="+", metavar="N", help="numbers of clients (default: 1 to 5)")
    add(
        "--profile", choices=PROFILES, default="quick", help="how much: seconds, minutes, or the original's full counts"
    )
    add("--resume", action="store_true", help="go on with what --out holds, or else the latest")
    add("--out", type=Path, metavar="DIR", help="folder of the results (default: a new one, results/NAME-PROFILE)")
    add("--seed", type=integer(0, 2**31 - 1), default=1, help="of the order of the runs and of the requests")
    add("--keep-records", action="store_true", help="keep every request's own times too, in records/: large")
    add("--blocks", type=integer(1, 1000), metavar="N", help="how often every setting is run (default: the profile's)")
    for name, what in (
        ("plot", "Draws the figures of a folder of results."),
        ("report", "Writes the report of a folder of results."),
        ("verify", "Computes every number and sentence of a folder of results again, and names what differs."),
    ):
        command = commands.add_parser(name, prog=f"{PROGRAM} {name}", description=what)
        command.add_argument("results", type=Path, help="a folder of results")
    what = "Checks the instrument against what is known beforehand, on this machine."
    selfcheck = commands.add_parser("selfcheck", prog=f"{PROGRAM} selfcheck", description=what)
    selfcheck.add_argument("checks", nargs="*", metavar="CHECK", help=f"{', '.join(SELFCHECKS)} (default: all)")
    selfcheck.add_argument("--overnight", action="store_true", help="the long versions, which take hours")
    folder = Path("results/selfcheck")
    selfcheck.add_argument("--out", type=Path, default=folder, metavar="DIR", help="folder of what was found")
    return parser


def _list() -> int:
    """Every experiment, one line each."""
    for name, experiment in experiments().items():
        print(f"{name:20} {experiment.title}")
    return 0


def _run(options: argparse.Namespace) -> int:
    """Runs an experiment, draws and reports it."""
    from experiments import gallery  # here, since drawing takes seconds to load, which --help need not wait for

    experiment = experiments()[options.name]
    varies = any(experiment.study.parts[part].varies_clients for part in experiment.parts)
    if options.clients is not None and not varies:
        raise UsageError(
            "--clients", " ".join(map(str, options.clients)), f"none, since {options.name} has its own numbers"
        )
    folder = options.out or _folder(RESULTS, f"{options.name}-{options.profile}", options.resume)
    sweep = Sweep(experiment.study.name, _design(experiment, options), folder)
    progress = Progress(sys.stderr)

    def began(runs: Sequence[Run]) -> None:
        if options.clients is not None and len(set(options.clients)) == 1:
            progress.say(ONE_NUMBER)
        if options.resume and len(runs) == len(sweep.design.runs()):
            progress.say(f"--resume: nothing to go on with in {folder}, which is begun anew; Ctrl-C ends it")
        progress.began(runs)

    def ended_block(block: int) -> None:
        if block in DRAWN_AFTER and gallery.draw(folder) and block == 1:
            progress.say(f"figures, drawn anew after blocks 3, 9 and so on, and at the end: {folder / gallery.FOLDER}")
        progress.resumed()

    execute = bench(CATALOG, options.keep_records).execute
    try:
        run_sweep(sweep, execute, options.resume, Watch(began, progress.ended, ended_block, progress.again))
    except (KeyboardInterrupt, RunInterrupted):
        what, code = "interrupted", INTERRUPTED_EXIT
    except (ProgramFailed, Fault) as failed:
        what, code = str(failed), FAILED_EXIT
    else:
        return _report(folder)
    finally:
        progress.close()
    print(f"{PROGRAM}: {what}; to go on: {_command_to_resume(options, folder)}", file=sys.stderr)
    return code


def _folder(under: Path, name: str, resume: bool) -> Path:
    """Where results go unless told: a new folder, NAME, NAME-2 and so on; the last of them to go on with."""
    taken = 0
    while (under / _numbered(name, taken + 1) / RESULTS_FILE).exists():
        taken += 1
    return under / _numbered(name, max(1, taken if resume else taken + 1))


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _design(experiment: Experiment, options: argparse.Namespace) -> Design:
    profiles = experiment.study.profiles
    if options.profile not in profiles:
        raise UsageError("--profile", options.profile, f"for {options.name}: {', '.join(profiles)}")
    profile = profiles[options.profile]
    if options.blocks is not None:
        profile = replace(profile, blocks=options.blocks)
    scale = Scale(tuple(sorted(set(options.clients or CLIENTS))), profile)
    return experiment.study.design(experiment.parts, scale, options.seed)


def _command_to_resume(options: argparse.Namespace, folder: Path) -> str:
    """The command that goes on with an interrupted sweep."""
    words = [*PROGRAM.split(), "run", options.name, "--resume", "--profile", options.profile, "--out", str(folder)]
    words += ["--seed", str(options.seed)]
    if options.clients is not None:
        words += ["--clients", *map(str, options.clients)]
    if options.blocks is not None:
        words += ["--blocks", str(options.blocks)]
    if options.keep_records:
        words.append("--keep-records")
    return shlex.join(words)


def _need(folder: Path, file: str) -> None:
    """UsageError unless the folder has that file of a sweep; it names the folders here that have."""
    if (folder / file).exists():
        return
    lack = f"this has no {file}" if folder.is_dir() else "there is no such folder"
    found = sorted(path.parent for path in RESULTS.glob(f"*/{file}"))
    here = ", ".join(map(str, found)) if found else f"none; '{PROGRAM} run NAME' makes one"
    raise UsageError("RESULTS", str(folder), f"a folder of results, and {lack}; results here: {here}")


def _plot(folder: Path) -> int:
    """Draws a folder's figures and says where they are."""
    from experiments import gallery

    _need(folder, RESULTS_FILE)
    rows = load_whole_runs(folder)
    if not rows:
        raise UsageError(str(folder), "no whole run", "results of one run at least")
    paths = gallery.draw(folder)
    for path in paths:
        print(path)
    if not paths:
        print(f"no figures for: {', '.join(sorted({row.part for row in rows}))}")
    return 0


def _selfcheck(options: argparse.Namespace) -> int:
    """Runs checks of the instrument; all of them unless some are named."""
    for name in options.checks:
        if name not in SELFCHECKS:
            raise UsageError("CHECK", name, ", ".join(SELFCHECKS))
    from experiments.selfcheck import checks

    passed = checks.run(options.checks or SELFCHECKS, options.overnight, options.out)
    print(options.out / checks.REPORT)
    return 0 if passed else DIFFERS_EXIT


def _verify(folder: Path) -> int:
    """Names every difference between a folder's results and what its runs' own records give."""
    from experiments import verify

    _need(folder, RUNS_FILE)
    found = 0
    for difference in verify.differences(folder):
        found += 1
        if found <= verify.SHOWN_MAX:
            print(difference)
    left_out = verify.not_compared(folder)
    if left_out:
        print(f"not compared: {left_out}")
    if found:
        print(
            f"{folder} does not verify: {found:,} {'difference' if found == 1 else 'differences'}"
            + ("" if found <= verify.SHOWN_MAX else ", the first here")
        )
        return DIFFERS_EXIT
    what = "number and sentence" if left_out else "number, figure and sentence"
    print(f"{folder} verifies: every {what} is what its runs give")
    return 0


def _report(folder: Path) -> int:
    """Writes the report of a folder, and prints what its study concludes; the files come last."""
    from experiments import report

    _need(folder, RESULTS_FILE)
    rows = load_whole_runs(folder)
    paths = report.write(folder)
    for name in sorted({row.study for row in rows}):
        conclude = STUDIES[name].conclude
        if conclude is not None:
            print(conclude([row for row in rows if row.study == name]))
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    interrupt_on_signals()
    sys.exit(main(sys.argv[1:]))
