"""The documents tell the truth: their commands exist, every name is in them, their links lead somewhere.

The idea is sqlite-utils' tests/test_docs.py. What a program takes is read from its ``--help``. Each check is run on a
planted fault, too.
"""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from experiments.studies import PARTS, STUDIES
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.transports import TRANSPORTS
from stock_service.trading.locking import LOCKINGS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "stock_service/README.md",
    "stock_service/storage/README.md",
    "clients/load/README.md",
    "experiments/README.md",
    "experiments/compare/README.md",
    "experiments/recommend/README.md",
    "experiments/studies/README.md",
    *(f"experiments/studies/{name}/README.md" for name in STUDIES),
    ".github/CONTRIBUTING.md",
)

PROGRAMS: dict[str, tuple[str, ...]] = {
    "stock_service": ("list", "store", "credentials", *(f"serve --transport {name}" for name in TRANSPORTS)),
    "stock_service.grpc_server": ("",),
    "stock_service.socket_server": ("",),
    "clients.trader": ("", "lookup", "trade", "update"),
    "clients.price_updater": ("",),
    "clients.load": ("",),
    "experiments.compare.recorded": ("",),
    "experiments.measure.keeps": ("",),
    "experiments": (
        *("compare", "recommend", "run", "record", "list", "plot", "report", "index", "pages", "verify"),
        *("agree", "selfcheck"),
    ),
}
"""The programs by module, with the commands of each; an empty one where it runs without."""


@dataclass(frozen=True)
class Document:
    """A Markdown text by its path from the project's root."""

    name: str
    text: str

    @property
    def tokens(self) -> list[Token]:
        """Text in the parts of Markdown, with those within a line."""
        blocks = MarkdownIt("commonmark").enable("table").parse(self.text)
        return [token for block in blocks for token in (block, *(block.children or []))]

    @property
    def commands(self) -> Iterator[list[str]]:
        """The words of each command in code that begins with `python -m` or `make`."""
        for code in self.code:
            for line in code.replace("\\\n", " ").splitlines():
                command = re.sub(r"^\$ ", "", line.strip())
                if re.match(r"(\S*/)?python3? -m |make\b", command):
                    yield split(command)

    @property
    def examples(self) -> list[str]:
        """The code blocks in Python."""
        return [token.content for token in self.tokens if token.type == "fence" and token.info.strip() == "python"]

    @property
    def code(self) -> list[str]:
        """The code of a text: between backticks and in code blocks."""
        return [token.content for token in self.tokens if token.type in ("code_inline", "fence", "code_block")]

    @property
    def links(self) -> list[str]:
        """The targets of links and pictures."""
        found = [str(token.attrs[name]) for token in self.tokens for name in ("href", "src") if name in token.attrs]
        html = [token.content for token in self.tokens if token.type in ("html_block", "html_inline")]
        return found + [link for text in html for link in re.findall(r'\b(?:href|src)="([^"]*)"', text)]

    @property
    def anchors(self) -> set[str]:
        """The names by which a link finds a heading, as GitHub makes them."""
        tokens = self.tokens
        headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def documents() -> list[Document]:
    """The project's documents. Each of them must be there."""
    return [Document(name, (ROOT / name).read_text(encoding="utf-8")) for name in DOCUMENTS]


@cache
def every_page() -> list[Document]:
    """All pages that git knows, without the reports of recordings."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = [name for name in names if "/recorded/" not in name and (ROOT / name).exists()]
    return [Document(name, (ROOT / name).read_text(encoding="utf-8")) for name in found]


def split(command: str) -> list[str]:
    """A command's words, up to where the shell would take over or a comment begins."""
    words = shlex.split(command, comments=True)
    ends = [number for number, word in enumerate(words) if word in ("|", "&", "&&", ";", ">", "||")]
    return words[: min(ends, default=len(words))]


RUNS = """
import contextlib, io, json, runpy, sys
told = []
for program, *words in json.load(sys.stdin):
    sys.argv[1:] = words
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            code = runpy.run_module(program, run_name="__main__", alter_sys=True) and 0
        except SystemExit as ended:
            code = ended.code
    told.append((code or 0, said.getvalue()))
json.dump(told, sys.stdout)
"""
"""Runs programs as ``python -m`` does, one after the other, so that modules are loaded once for all."""


@cache
def usages() -> dict[tuple[str, str], str]:
    """The ``--help`` of every program, by itself and its command; fails the test where one prints none."""
    asked = [(program, command) for program in PROGRAMS for command in dict.fromkeys(("", *PROGRAMS[program]))]
    lines = json.dumps([[program, *command.split(), "--help"] for program, command in asked])
    environment, command = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}, [sys.executable, "-c", RUNS]
    done = subprocess.run(command, input=lines, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [each for each, (code, _) in zip(asked, told, strict=True) if code] == [], done.stderr
    return {each: said for each, (_, said) in zip(asked, told, strict=True)}


def options(help_text: str) -> dict[str, set[str]]:
    """The options of a help text, each with the values it may take; no values: any."""
    found = re.findall(r"^ +(?:-\w(?: \S+)?, )?(--[a-z][\w-]*)(?:[ =]\{([^}]*)\})?", help_text, re.MULTILINE)
    return {option: set(filter(None, values.split(","))) for option, values in found}


def faults_of_program(program: str, words: list[str]) -> Iterator[str]:
    """The faults of a command of ours, by the help of the program."""
    first = words[0] if words and not words[0].startswith("-") else ""
    if first not in {command.partition(" ")[0] for command in PROGRAMS[program]} and words[:1] != ["--help"]:
        yield f"{program} has no command {first!r}"
        return
    known = options(usages()[program, ""])
    for command in PROGRAMS[program]:
        if words[: len(command.split())] == command.split():
            known |= options(usages()[program, command])
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        value = value if equals else following
        if option.startswith("--") and option not in known:
            yield f"{program} has no option {option}"
        elif option.startswith("--") and known[option] and value not in known[option] and not value.isupper():
            yield f"{program} {option} takes no {value!r}"


def faults_of_make(words: list[str]) -> Iterator[str]:
    """The faults of a make command, by the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        variable, equals, _ = word.partition("=")
        expression = rf"^{re.escape(variable)} \?=" if equals else rf"^{re.escape(word)}:"
        if not re.search(expression, makefile, re.MULTILINE):
            yield f"make has no {variable}"


def commands_exist(document: Document) -> Iterator[str]:
    """Every command names a module or target that exists, and options that it has."""
    for words in document.commands:
        if words[0] == "make":
            yield from faults_of_make(words[1:])
        elif words[2] in PROGRAMS:
            yield from faults_of_program(words[2], words[3:])
        elif words[2].split(".")[0] in ("stock_service", "clients", "experiments") or not importable(words[2]):
            yield f"python -m {words[2]}: no program of ours, and no module that is installed"


def importable(module: str) -> bool:
    """True if a module is installed."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def examples_import_what_exists(document: Document) -> Iterator[str]:
    """Every example in Python parses, and its imports exist."""
    for node in [node for code in document.examples for node in ast.walk(ast.parse(code))]:
        if isinstance(node, ast.Import):
            yield from (f"no module {name.name}" for name in node.names if not importable(name.name))
        elif isinstance(node, ast.ImportFrom):
            module = import_module(str(node.module)) if importable(str(node.module)) else None
            yield from (
                f"no {name.name} in {node.module}"
                for name in node.names
                if not (hasattr(module, name.name) or importable(f"{node.module}.{name.name}"))
            )


def links_lead_somewhere(document: Document) -> Iterator[str]:
    """Every link within the project leads to a file, and to a heading where it names one."""
    for link in document.links:
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", link):  # to the world outside
            continue
        path = (ROOT / document.name).parent / target
        if not path.exists():
            yield f"the link {link}"
        elif anchor and anchor not in (Document(link, path.read_text()) if target else document).anchors:
            yield f"the link {link}: no such heading"


def missing_names(found: Iterable[Document]) -> list[str]:
    """The names that can be given to a program and that no document shows as code."""
    words = {word for document in found for code in document.code for word in re.findall(r"[\w-]+", code)}
    return sorted({*TRANSPORTS, *EXECUTORS, *LOCKINGS, *PARTS} - words)


def faults(rule: Callable[[Document], Iterator[str]], found: Iterable[Document]) -> list[str]:
    """The faults of all these documents, by one of the rules above."""
    return [f"{document.name}: {fault}" for document in found for fault in rule(document)]


@pytest.mark.slow
def test_every_command_exists() -> None:
    """A reader can type what the documents say."""
    assert faults(commands_exist, documents()) == []


def test_every_example_imports_what_exists() -> None:
    """A reader can begin as the examples do."""
    assert faults(examples_import_what_exists, documents()) == []


@pytest.mark.slow
def test_every_link_leads_somewhere() -> None:
    """A reader can follow the documents' links."""
    assert faults(links_lead_somewhere, every_page()) == []


@pytest.mark.slow
def test_every_page_is_linked() -> None:
    """A reader of the front page reaches every page by links, from page to page."""
    pages = {page.name: page for page in every_page()}
    reached, new = set[str](), {"README.md"}
    while new:
        reached |= new
        linked = {
            os.path.normpath(Path(name).parent / link.partition("#")[0]) for name in new for link in pages[name].links
        }
        new = (linked & pages.keys()) - reached
    assert pages.keys() - reached == set()


def test_every_name_is_in_the_documents() -> None:
    """A reader finds every transport, executor, locking strategy, study and experiment."""
    assert missing_names(documents()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("make bnech", "make has no bnech"),
        ("make bench PROFIL=smoke", "make has no PROFIL"),
        ("python -m stock_service.grpc_servre", "no program of ours"),
        ("python -m no_such_module", "no program of ours"),
        ("python -m stock_service stop", "has no command 'stop'"),
        ("python -m stock_service.grpc_server --prot 0 &", "has no option --prot"),
        ("$ python -m stock_service serve --transport sockets --no-such 1", "has no option --no-such"),
        ("python -m stock_service.socket_server \\\n    --locking none", "--locking takes no 'none'"),
        (".venv/bin/python -m stock_service.socket_server --locking=none", "--locking takes no 'none'"),
    ],
)
def test_a_planted_command_is_found(command: str, fault: str) -> None:
    """A command with a slip in it is reported; one without is not."""
    (found,) = commands_exist(Document("a.md", f"```sh\n{command}\n```\n"))
    assert fault in found
    good = "make test\npython -m stock_service.grpc_server --port 0 --locking mutex > log  # a comment\n"
    assert not list(commands_exist(Document("a.md", f"```sh\n{good}```\n")))


@pytest.mark.parametrize(
    "line", ["import stock_srevice", "from stock_service.trading.model import Stok", "from no.such import a"]
)
def test_a_planted_import_is_found(line: str) -> None:
    """An example that imports a missing name is reported. An example that imports an existing one is not."""
    assert len(list(examples_import_what_exists(Document("a.md", f"```python\n{line}\n```\n")))) == 1
    good = "import os\nfrom stock_service.trading.model import Stock\n"
    assert not list(examples_import_what_exists(Document("a.md", f"```python\n{good}```\n")))


@pytest.mark.parametrize("link", ["[a](b.md)", "![a](b.png)", '<img src="b.png">', "[a](#b)", "[a](Makefile#b)"])
def test_a_planted_link_is_found(link: str) -> None:
    """A link to nowhere is reported; one to a file, a heading or another site is not."""
    assert len(list(links_lead_somewhere(Document("a.md", f"# A\n\n{link}\n")))) == 1
    good = "# The `b` – one\n\n[a](Makefile) [b](#the-b--one) [c](https://example.org)\n"
    assert not list(links_lead_somewhere(Document("a.md", good)))


def test_a_missing_name_is_found() -> None:
    """A name in prose is reported; one shown as code is not."""
    missing = missing_names([Document("a.md", "mutex and `per-stock`\n")])
    assert "mutex" in missing
    assert "per-stock" not in missing
