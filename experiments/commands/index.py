"""``index``: writes one page on all studies, in HTML and in Markdown, from folders of results or from the recordings.

A recording is a folder of results that the repository keeps. ``experiments/studies/README.md`` is the page of the
recordings, in Markdown only.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import experiments.studies
from experiments.commands.recording import read
from experiments.results.files import SWEEP_FILE, write_at_once
from experiments.show import gallery, report
from experiments.show.content import Content
from experiments.show.report import index
from experiments.show.report.index import Entry, Index, Missing
from experiments.studies import STUDIES
from experiments.studies.by_clients import SUFFIX
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser

HERE = Path(experiments.studies.__file__).parent
ROOT = HERE.parents[1]

RECORDED = "quick"
"""Name of the folder that has the first recording of a study's main part. The page shows this recording."""

OUT = Path("results/index")

WORDS, HEADING = HERE.parent / "README.md", "how-two-servers-are-compared"
"""Page that explains the terms and verdicts of all studies, and the anchor of the explanation."""

NO_REASONS: Mapping[str, str] = MappingProxyType({})


def add_options(parser: Parser) -> None:
    """Adds the options of ``index``."""
    parser.add_argument(
        "results",
        type=Path,
        nargs="*",
        metavar="RESULTS",
        help="folders that 'run' wrote, or the folder that 'run all' wrote (default: the recordings)",
    )
    add = parser.add_mutually_exclusive_group().add_argument
    add("--out", type=Path, default=OUT, metavar="FOLDER", help=f"folder for {index.HTML} and {index.MARKDOWN}")
    add("--markdown", type=Path, metavar="FILE", help="write only the Markdown, into FILE")


def run(options: argparse.Namespace) -> int:
    """Writes the page, and prints the paths of the written files. Raises UsageError, OSError."""
    folders = swept(options.results) if options.results else recordings()
    found = {folder: read(folder) for folder in folders}
    if options.markdown is not None:
        write_at_once(options.markdown, index.markdown(made(found, options.markdown.parent)).encode())
        print(options.markdown)
    else:
        print("\n".join(map(str, write(options.out, found))))
    return 0


def write(out: Path, found: Mapping[Path, Content], why: Mapping[str, str] = NO_REASONS) -> tuple[Path, Path]:
    """Writes the page as HTML and as Markdown into a folder. Returns the paths of both files. Creates a missing folder.

    ``found``: the content of each folder of results. ``why``: the reason for missing results, by the study's name.
    """
    out.mkdir(parents=True, exist_ok=True)
    of = made(found, out, why)
    write_at_once(out / index.HTML, index.html(of).encode())
    write_at_once(out / index.MARKDOWN, index.markdown(of).encode())
    return out / index.HTML, out / index.MARKDOWN


def recordings() -> Iterator[Path]:
    """Yields the folder of one recording for each recorded part of a study."""
    for name, study in STUDIES.items():
        for part in study.parts:
            folder = HERE / name / "recorded" / (RECORDED if part == name else part)
            if (folder / SWEEP_FILE).exists():
                yield folder


def swept(given: Sequence[Path]) -> Iterator[Path]:
    """Yields folders of results. If a given folder has no sweep, but has subfolders with a sweep, the subfolders are
    yielded in its place. The folder of ``run all`` is such a folder. Any other given folder is yielded itself.
    """
    for folder in given:
        inside = sorted(file.parent for file in folder.glob(f"*/{SWEEP_FILE}"))
        yield from [folder] if (folder / SWEEP_FILE).exists() or not inside else inside


def made(found: Mapping[Path, Content], at: Path, why: Mapping[str, str] = NO_REASONS) -> Index:
    """Index of the content of folders of results, with links that are relative to the page's folder ``at``.

    If the main part of a study is missing, the index shows the part that measures the same servers by numbers of
    clients (``run all --clients``). Raises UsageError if the main part of a study is given twice. Also raises
    UsageError if further parts of a study are given, but neither of these two parts.
    """
    mains: dict[str, tuple[Path, Content]] = {}
    further: dict[str, list[tuple[Path, Content]]] = {}
    for folder, content in found.items():
        name, part = content.judgement.sweep.study, content.judgement.sweep.part
        if part != name:
            further.setdefault(name, []).append((folder, content))
        elif name in mains:
            raise UsageError("RESULTS", f"{name} twice, in {mains[name][0]} and {folder}", "each study once")
        else:
            mains[name] = folder, content
    for name in further.keys() - mains.keys():
        for each in further[name]:
            if each[1].judgement.sweep.part == f"{name}{SUFFIX}":
                mains[name] = each
    if alone := further.keys() - mains.keys():
        raise UsageError("RESULTS", f"parts of {', '.join(alone)} alone", f"a folder of `run {min(alone)}` beside them")
    entries = tuple(_entry(name, *mains[name], further.get(name, ()), at) for name in STUDIES if name in mains)
    missing = tuple(
        Missing(name, study.question, why.get(name, "")) for name, study in STUDIES.items() if name not in mains
    )
    return Index(entries, missing, f"{_way(WORDS, at)}#{HEADING}")


def _entry(name: str, folder: Path, content: Content, further: Sequence[tuple[Path, Content]], at: Path) -> Entry:
    readme = HERE / name / "README.md"
    way = partial(_way, at=at)
    return Entry(
        name=name,
        question=STUDIES[name].question,
        content=content,
        claims=index.merged(content, [each for _, each in further if each is not content]),
        readme=readme.relative_to(ROOT).as_posix(),
        guide=way(readme),
        figures=way(folder / gallery.FOLDER),
        report=way(folder / report.MARKDOWN),
        page=way(folder / report.HTML),
    )


def _way(path: Path, at: Path) -> str:
    """Relative path from the folder ``at`` to a file; empty if the file does not exist."""
    return Path(os.path.relpath(path, at)).as_posix() if path.exists() else ""
