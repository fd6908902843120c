"""``record``: repeats the recordings of studies, one after the other, and writes the pages.

A recording is a folder of results that the repository keeps. Each study has a recording of its main part, named
``quick``. Each part that is not measured together with the main part has its own recording. The stock study has a
second recording of its main part, ``quick-2``, which is made last. ``run`` measures each recording into
``results/record``, so the repository's recordings stay unchanged during the measurements. At the end the new recordings
replace the old recordings in ``experiments/studies``, and ``pages`` writes the new numbers. The next ``record`` resumes
an interrupted recording. If the sources, the commit or the machine have changed since the recording began, ``record``
begins the recording again.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from experiments.commands import FAILED_EXIT, pages
from experiments.commands.index import HERE, RECORDED
from experiments.commands.recording import beside
from experiments.commands.run import add_options as add_run_options
from experiments.commands.run import planned
from experiments.commands.run_all import span
from experiments.results import environment
from experiments.results.environment import Environment
from experiments.results.files import SWEEP_FILE, held, read_sweep
from experiments.show import report, version
from experiments.show.numbers import counted
from experiments.show.version import UNKNOWN, Version
from experiments.studies import STUDIES
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.process.lifeline import tied

AGAIN = ("stock", "quick-2")
"""Name of the study whose main part has two recordings, and name of the second recording."""

SCRATCH = Path("results/record")
"""Folder where recordings are measured. A measured recording stays in this folder until all chosen recordings are
measured.
"""

_LEFT_OUT = shutil.ignore_patterns(report.HTML, "*.png", "*.tmp")
"""Filter for ``shutil.copytree``. The filter leaves out files that git does not keep."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Recording of a part of a study."""

    study: str
    part: str
    name: str

    def __str__(self) -> str:
        return f"{self.study}/{self.name}"

    @property
    def folder(self) -> Path:
        """Folder of the recording in the repository."""
        return HERE / self.study / "recorded" / self.name

    @property
    def scratch(self) -> Path:
        """Folder where the recording is measured."""
        return SCRATCH / self.study / self.name

    @property
    def mark(self) -> Path:
        """File that exists only while ``scratch`` has a complete recording."""
        return self.scratch.with_suffix(".whole")


def add_options(parser: Parser) -> None:
    """Adds the options of ``record``."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="a study with all its parts, a part, or STUDY/FOLDER (default: all)")
    add("--list", action="store_true", help="measure nothing: list the recordings, and the version of their servers")


def run(options: argparse.Namespace) -> int:
    """Measures the chosen recordings that are not complete in ``SCRATCH``, replaces the kept recordings, and writes the
    pages. Returns the exit code. Blocks for hours.

    Raises UsageError, OSError, and KeyboardInterrupt after Ctrl-C. Every whole block is kept.
    """
    chosen = selected(options.names)
    if not options.list:
        with held(SCRATCH):
            return _recorded(chosen)
    print("\n".join(announced(chosen, list(filter(is_done, chosen)))), flush=True)
    return 0


def _recorded(chosen: Sequence[Recording]) -> int:
    """Measures the chosen recordings, replaces the kept recordings, and writes the pages. Returns the exit code."""
    done = list(filter(is_done, chosen))
    print("\n".join(announced(chosen, done)), flush=True)
    failed = []
    for number, each in enumerate(chosen, 1):
        if each in done:
            continue
        print(f"\n{each} ({number} of {len(chosen)})", flush=True)
        if code := measure(each):
            failed.append(f"{each} failed, with exit code {code}")
        elif not each.mark.exists():
            failed.append(f"{each} is to be measured again: its sources were changed meanwhile")
    for each in (each for each in chosen if each.mark.exists()):
        put(each)
    print("".join(f"{line}\n" for line in failed), end="", flush=True)  # before the pages, which may raise UsageError
    pages.run(argparse.Namespace(check=False))
    print(f"{counted(len(chosen) - len(failed), 'recording')} replaced: `git add` and commit them")
    return FAILED_EXIT if failed else 0


def every() -> Iterator[Recording]:
    """Yields all recordings, in the order of their measurement."""
    for name, study in STUDIES.items():
        main = study.parts[name]
        yield Recording(name, name, RECORDED)
        with_main = (name, *beside(main))
        inside = {each for part in study.parts.values() for each in part.after}
        yield from (Recording(name, part, part) for part in study.parts if part not in (*with_main, *inside))
    yield Recording(AGAIN[0], AGAIN[0], AGAIN[1])


def selected(names: Sequence[str]) -> list[Recording]:
    """Recordings that the names select; all recordings if no name is given. Raises UsageError for a name that selects
    no recording.
    """
    known = list(every())
    for name in names:
        if not any(name in _names(each) for each in known):
            raise UsageError("NAME", name, ", ".join(dict.fromkeys(word for each in known for word in _names(each))))
    return [each for each in known if not names or set(names) & set(_names(each))]


def _names(recording: Recording) -> tuple[str, ...]:
    """Names that select a recording: its study, its part, and STUDY/FOLDER."""
    return recording.study, recording.part, str(recording)


def announced(chosen: Sequence[Recording], done: Sequence[Recording]) -> list[str]:
    """Lines to print before the start. The first line has the estimated duration of all recordings. Each further line
    has a recording, its own duration, and the version of the kept recording. ``done``: recordings that are measured
    already.
    """
    took = {each: (0.0, 0.0) if each in done else _span_s(each) for each in chosen}
    least_s, most_s = (sum(seconds[place] for seconds in took.values()) for place in (0, 1))
    lines = [f"{counted(len(chosen), 'recording')}, one after the other; about {span(least_s, most_s)} in all:"]
    for each in chosen:
        told = "measured already" if each in done else f"about {span(*took[each])}"
        lines.append(f"  {each!s:26} {told:22} {age(each)}")
    return [*lines, "Use a machine that does nothing else. After an interruption the same command goes on."]


def _span_s(recording: Recording) -> tuple[float, float]:
    """Smallest and largest estimated duration of a recording, in seconds."""
    parser = Parser("run", "")
    add_run_options(parser)
    options = parser.parse_args([recording.part, "--seed", "1"])
    found = planned(recording.part, options, recording.scratch)
    return found.least_s, found.most_s


def age(recording: Recording) -> str:
    """Text on the kept recording: the version of its servers, its age in days, and the sources that have changed since
    the recording.
    """
    if not (recording.folder / SWEEP_FILE).exists():
        return "not recorded"
    found = _version(recording.folder)
    if found == UNKNOWN:
        return "it cannot be read here: damaged, or of an earlier edition"
    made = datetime.fromisoformat(min(each.before.at for each in _environments(recording.folder)))
    today = datetime.now(UTC).toordinal()
    days = counted(today - made.toordinal(), "day")
    if found.is_this:
        return f"{version.THIS}, {days} ago"
    return f"{version.EARLIER}, {days} ago: {_changed(found)}"


def _version(folder: Path) -> Version:
    """Version of the servers that were measured in a folder and its subfolders. Of several versions, the result is the
    first version that differs from the present sources. ``UNKNOWN`` for a folder without results, and for an unreadable
    folder.
    """
    try:
        settings = [arm.setting for file in folder.glob(f"**/{SWEEP_FILE}") for arm in read_sweep(file.parent).arms]
        found = [version.of(each, settings) for each in _environments(folder)] if settings else []
    except UsageError:
        return UNKNOWN
    return next((each for each in found if not each.is_this), found[0]) if found else UNKNOWN


def _environments(folder: Path) -> list[Environment]:
    """Records of the machine in a folder and in its subfolders."""
    return [environment.load(file.parent) for file in sorted(folder.glob(f"**/{environment.ENVIRONMENT_FILE}"))]


def _changed(found: Version) -> str:
    return ", ".join(found.changed) or "it has no fingerprint"


def _hindrance(folder: Path) -> str:
    """Reason why an interrupted recording cannot be resumed; empty if ``run`` can resume the recording. Blocks for some
    0.5 s.
    """
    found = _version(folder)
    if not found.is_this:
        return _changed(found)
    here = environment.look().decisive()
    pairs = (pair for each in _environments(folder) for pair in zip(each.decisive(), here, strict=True))
    return next((f"it has blocks of {then}, and this is {now}" for then, now in pairs if then != now), "")


def is_done(recording: Recording) -> bool:
    """True if ``scratch`` has a complete recording that was made with the present sources of its servers."""
    return recording.mark.exists() and _version(recording.scratch).is_this


def measure(recording: Recording) -> int:
    """Measures a recording, or resumes its measurement. Returns the exit code of ``run``. Blocks.

    Begins an interrupted recording again if ``run`` cannot resume it. If sources change during the measurement, the
    recording gets no mark. Raises KeyboardInterrupt after Ctrl-C, once ``run`` has ended. A second Ctrl-C ends ``run``
    at once.
    """
    recording.mark.unlink(missing_ok=True)
    if recording.scratch.exists() and (why := _hindrance(recording.scratch)):
        print(f"begun again: {why}", flush=True)
        shutil.rmtree(recording.scratch)
    command = [sys.executable, "-m", "experiments", "run", recording.part, "--out", str(recording.scratch)]
    command += ["--resume"] * recording.scratch.exists()
    with subprocess.Popen(tied(command), process_group=0) as measuring:  # so that Ctrl-C does not reach `run`
        try:
            code = measuring.wait()
        except KeyboardInterrupt:
            measuring.send_signal(signal.SIGTERM)  # not SIGINT, which is ignored behind `nohup … &`
            measuring.wait()
            raise
    if code == 0 and _version(recording.scratch).is_this:
        recording.mark.touch()
    return code


def put(recording: Recording) -> None:
    """Replaces the kept recording with the complete recording in ``scratch``. An interruption leaves the mark, so the
    next ``record`` repeats the replacement. Raises OSError.
    """
    recording.folder.parent.mkdir(parents=True, exist_ok=True)
    study = recording.folder.parents[1]  # folder of the copy: on the same disk, and no page finds half a copy there
    with tempfile.TemporaryDirectory(prefix=".record-", dir=study) as near:
        fresh = shutil.copytree(recording.scratch, Path(near, recording.name), ignore=_LEFT_OUT)
        shutil.rmtree(recording.folder, ignore_errors=True)
        fresh.rename(recording.folder)
    recording.mark.unlink()  # before the folder: with a mark, the next `record` would keep a partly deleted folder
    shutil.rmtree(recording.scratch)
