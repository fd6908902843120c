"""``index``: one page of all studies, in HTML and in Markdown, from folders of results or from the recordings.

``experiments/studies/README.md`` is that page of the recordings, in Markdown alone.
"""

import argparse
import os
import re
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
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser

HERE = Path(experiments.studies.__file__).parent
ROOT = HERE.parents[1]

RECORDED = "quick"
"""The profile whose recording of a study's main part is shown."""

OUT = Path("results/index")

WORDS, WORDS_HEADING = HERE.parent / "README.md", "How two servers are compared"
"""Page and heading that explain the words and verdicts of every study."""

NOTHING_SAID: Mapping[str, str] = MappingProxyType({})

LISTS = ("Figures and tables", "Factors and levels", "Metrics", "Claims", "What may not be concluded")
"""Headings of a study's README to which the page leads, where it has them."""


def add_options(parser: Parser) -> None:
    """Adds the options of ``index``."""
    add = parser.add_argument
    add(
        "results",
        type=Path,
        nargs="*",
        metavar="RESULTS",
        help="folders that 'run' has written, or one that 'run all' has (default: the recordings)",
    )
    add("--out", type=Path, default=OUT, metavar="FOLDER", help=f"where {index.HTML} and {index.MARKDOWN} go")
    add("--markdown", type=Path, metavar="FILE", help="writes the Markdown alone, into this file")


def run(options: argparse.Namespace) -> int:
    """Writes the page, and prints the files' paths. Raises UsageError, OSError."""
    folders = swept(options.results) if options.results else recordings()
    found = {folder: read(folder) for folder in folders}
    if options.markdown is not None:
        write_at_once(options.markdown, index.markdown(made(found, options.markdown.parent)).encode())
        print(options.markdown)
    else:
        print("\n".join(map(str, write(options.out, found))))
    return 0


def write(out: Path, found: Mapping[Path, Content], why: Mapping[str, str] = NOTHING_SAID) -> tuple[Path, Path]:
    """Writes both forms into a folder, which is made if it is not there, and gives the files' paths. ``why``: reasons
    for studies without results, by name. ``found``: content of each folder."""
    out.mkdir(parents=True, exist_ok=True)
    of = made(found, out, why)
    files = {out / index.HTML: index.html(of), out / index.MARKDOWN: index.markdown(of)}
    for file, text in files.items():
        write_at_once(file, text.encode())
    return out / index.HTML, out / index.MARKDOWN


def recordings() -> Iterator[Path]:
    """Recording of every study's main part, and recordings of its other parts where there are any."""
    for name, study in STUDIES.items():
        for part in study.parts:
            folder = HERE / name / "recorded" / (RECORDED if part == name else part)
            if (folder / SWEEP_FILE).exists():
                yield folder


def swept(given: Sequence[Path]) -> Iterator[Path]:
    """Folders that hold a sweep: each given one, or the folders inside it."""
    for folder in given:
        inside = sorted(file.parent for file in folder.glob(f"*/{SWEEP_FILE}"))
        yield from [folder] if (folder / SWEEP_FILE).exists() or not inside else inside


def made(found: Mapping[Path, Content], at: Path, why: Mapping[str, str] = NOTHING_SAID) -> Index:
    """Index of these folders' content, for a page in ``at``. UsageError where a study's main part is there twice, or
    where another part is there without it."""
    mains: dict[str, tuple[Path, Content]] = {}
    further: dict[str, list[Content]] = {}
    for folder, content in found.items():
        name, part = content.judgement.sweep.study, content.judgement.sweep.part
        if part != name:
            further.setdefault(name, []).append(content)
        elif name in mains:
            raise UsageError("RESULTS", f"{name} twice, in {mains[name][0]} and {folder}", "each study once")
        else:
            mains[name] = folder, content
    if alone := further.keys() - mains.keys():
        raise UsageError("RESULTS", f"parts of {', '.join(alone)} alone", f"a folder of `run {min(alone)}` beside them")
    entries = tuple(_entry(name, *mains[name], further.get(name, ()), at) for name in STUDIES if name in mains)
    missing = tuple(
        Missing(name, study.question, why.get(name, "")) for name, study in STUDIES.items() if name not in mains
    )
    return Index(entries, missing, f"{_way(WORDS, at)}#{_anchor(WORDS_HEADING)}")


def _entry(name: str, folder: Path, content: Content, further: Sequence[Content], at: Path) -> Entry:
    readme = HERE / name / "README.md"
    way = partial(_way, at=at)
    return Entry(
        name=name,
        question=STUDIES[name].question,
        content=content,
        claims=index.merged(content, further),
        readme=readme.relative_to(ROOT).as_posix(),
        lists=tuple((heading, f"{way(readme)}#{_anchor(heading)}") for heading in _headings(readme)),
        figures=way(folder / gallery.FOLDER),
        report=way(folder / report.MARKDOWN),
        page=way(folder / report.HTML),
    )


def _way(path: Path, at: Path) -> str:
    """Path from a page's folder to a file; empty where the file is not there."""
    return Path(os.path.relpath(path, at)).as_posix() if path.exists() else ""


def _headings(readme: Path) -> list[str]:
    found = re.findall(r"^## (.+)$", readme.read_text(encoding="utf-8"), re.MULTILINE) if readme.exists() else []
    return [heading for heading in LISTS if heading in found]


def _anchor(heading: str) -> str:
    """A heading's anchor, made as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
