"""Rules for every file of the project, beyond those of ruff and mypy. The idea is TigerBeetle's tidy.zig.

A rule is a function from a file to its faults. Each is run on every file that git knows or would add, and on a planted
bad example, which it must catch. import-linter finds imports that go the wrong way, with planted ones, too.
"""

import ast
import gc
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from types import FunctionType
from typing import cast

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
CELL_LINES_MAX = 10
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$|\.pb\.go$|(^|/)(uv\.lock|go\.sum|Cargo\.lock)$")
DATA = {".csv", ".html", ".json", ".svg", ".txt"}
TABBED = {".go", ".mod", ""}
"""Suffixes of files whose custom is tabs: Go, and files without a suffix, such as the Makefile."""

PICTURE = re.compile(r'(?<="image/png": ")[^"]+')
"""A notebook's picture in Base64, whose letters mean nothing."""

MEASURING_OR_ANALYSIS = re.compile(
    r"(numpy|scipy|pandas|subprocess|clients|stock_service|experiments\.(runner|execution|server_process))\b"
)
"""What no notebook imports."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class File:
    """A text file by its path from the project's root."""

    name: str
    text: str

    @property
    def path(self) -> PurePosixPath:
        """The name in parts."""
        return PurePosixPath(self.name)

    @property
    def lines(self) -> list[str]:
        """The text in lines."""
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of a Python file; none for another file."""
        return list(ast.walk(ast.parse(self.text))) if self.path.suffix == ".py" else []

    @cached_property
    def cells(self) -> list[dict[str, object]]:
        """Code cells of a notebook; none for another file."""
        if self.path.suffix != ".ipynb":
            return []
        return [cell for cell in json.loads(self.text)["cells"] if cell["cell_type"] == "code"]

    @property
    def is_test(self) -> bool:
        """True if a file is part of the tests."""
        return self.path.parts[0] == "tests"


Rule = Callable[[File], Iterator[str]]


@cache
def files() -> list[File]:
    """Every text file of the project that people write, parsed. The garbage collector leaves what they hold alone: it
    would look at a million nodes again and again, here and in every later test of the process."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    found = []
    for name in sorted(filter(None, set(names))):
        if GENERATED.search(name) or not (ROOT / name).is_file():
            continue
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture
            continue
        found.append(File(name, PICTURE.sub("", text) if name.endswith(".ipynb") else text))
    gc.disable()
    try:
        for file in found:
            assert file.nodes or file.path.suffix != ".py"
        gc.freeze()
    finally:
        gc.enable()
    return found


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """No later test of the process has them in its memory."""
    yield
    files.cache_clear()


def file_length(file: File) -> Iterator[str]:
    """No file of code or prose is longer than a reader can hold; reports of recordings are written by a program."""
    written = file.path.suffix in DATA | {".ipynb"} or "recorded" in file.path.parts
    if not written and len(file.lines) > FILE_LINES_MAX:
        yield f"{len(file.lines)} lines, allowed: {FILE_LINES_MAX}"


def function_length(file: File) -> Iterator[str]:
    """No function is longer than a screen or two."""
    for node in file.nodes:
        if isinstance(node, Function) and (length := cast(int, node.end_lineno) - node.lineno + 1) > FUNCTION_LINES_MAX:
            yield f"line {node.lineno}: {node.name} has {length} lines, allowed: {FUNCTION_LINES_MAX}"


def module_docstring(file: File) -> Iterator[str]:
    """Every module opens with its purpose."""
    if file.path.suffix == ".py" and not ast.get_docstring(cast(ast.Module, file.nodes[0])):
        yield "no docstring"


def docstring_of_test(file: File) -> Iterator[str]:
    """Every test states its fact."""
    for node in file.nodes if file.path.name.startswith("test_") else []:
        if isinstance(node, Function) and node.name.startswith("test_") and not ast.get_docstring(node):
            yield f"line {node.lineno}: {node.name} has no docstring"


def white_space(file: File) -> Iterator[str]:
    """No white space at the end of a line, no tabs but where they are the custom, a line break at the end."""
    if file.path.suffix in DATA:
        return
    for number, line in enumerate(file.lines, 1):
        if line != line.rstrip():
            yield f"line {number}: white space at its end"
        if "\t" in line and file.path.suffix not in TABBED:
            yield f"line {number}: a tab"
    if file.text and not file.text.endswith("\n"):
        yield "no line break at the end"


def vague_name(file: File) -> Iterator[str]:
    """No file, class or function has a name that says nothing."""
    definitions = [node.name for node in file.nodes if isinstance(node, Function | ast.ClassDef)]
    for name in [file.path.stem, *file.path.parts[:-1], *definitions]:
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
        if {word.lower() for word in words} & {"util", "utils", "helper", "helpers", "common", "manager", "managers"}:
            yield f"the name {name}"


def wall_clock(file: File) -> Iterator[str]:
    """No duration is taken from a clock that can be set: time.time() never, a difference of dates never."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and called(node) in ("time.time", "time.time_ns"):
            yield f"line {node.lineno}: {called(node)}(); use time.monotonic() or time.perf_counter()"
        if isinstance(node, ast.ImportFrom) and node.module == "time" and "time" in [name.name for name in node.names]:
            yield f"line {node.lineno}: from time import time"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides = [called(side) for side in (node.left, node.right) if isinstance(side, ast.Call)]
            if any(side.endswith(("datetime.now", "datetime.utcnow")) for side in sides):
                yield f"line {node.lineno}: a duration from datetime.now()"


def daemon_thread(file: File) -> Iterator[str]:
    """No thread is left for the interpreter to kill. (A child process may be a daemon: it is told to end.)"""
    for node in file.nodes:
        if isinstance(node, ast.Call) and not called(node).endswith("Process"):
            yield from (
                f"line {node.lineno}: a daemon thread"
                for word in node.keywords
                if word.arg == "daemon" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
            )
        if isinstance(node, ast.Assign):
            targets = [target for target in node.targets if isinstance(target, ast.Attribute)]
            if any(target.attr in ("daemon", "daemon_threads") for target in targets):
                yield f"line {node.lineno}: a daemon thread"


def sleep_in_test(file: File) -> Iterator[str]:
    """No test sleeps: a test waits for a condition, with a bound."""
    for node in file.nodes if file.is_test else []:
        if isinstance(node, ast.Call) and called(node).split(".")[-1] == "sleep":
            yield f"line {node.lineno}: {called(node)}()"


def called(node: ast.Call) -> str:
    """Name that a call calls, as written. For a call on an expression, only the part behind it."""
    names, at = [], node.func
    while isinstance(at, ast.Attribute):
        names.append(at.attr)
        at = at.value
    return ".".join(reversed([*names, at.id if isinstance(at, ast.Name) else ""]))


def pattern(what: str, expression: str) -> Rule:
    """A rule that no line matches a regular expression."""
    compiled = re.compile(expression)

    def rule(file: File) -> Iterator[str]:
        for number, line in enumerate(file.lines if compiled.search(file.text) else [], 1):
            if match := compiled.search(line):
                yield f"line {number}: {what}: {match[0]}"

    rule.__name__ = what.replace(" ", "_")
    return rule


machine_path = pattern("a path of one machine", r"(?<![\w.])/(?:work|root|Users|home/\w+|tmp/\w+)\b")
registry = pattern(
    "a registry's address",
    r"\b(?:pypi\.org|pythonhosted\.org|(?:proxy|sum)\.golang\.org|registry\.npmjs\.org|crates\.io|deb\.debian\.org)",
)
credential = pattern(
    "a credential",
    r"://[^/\s:@{}]+:[^/\s@{}]+@|\b(?:pypi-|gh[oprsu]_|AKIA)\w{16,}|_auth[T]oken\b|-----BEGI[N] [A-Z ]*PRIVATE KEY",
)
put_off = pattern("work put off", r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")


def notebook_analysis(file: File) -> Iterator[str]:
    """Notebooks read results and call figures: no loops, no functions, no arithmetic libraries, no measuring."""
    statements = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try)
    for number, cell in enumerate(file.cells, 1):
        lines = "".join(cast(list[str], cell["source"])).splitlines()
        if len(lines) > CELL_LINES_MAX:
            yield f"code cell {number}: {len(lines)} lines, allowed: {CELL_LINES_MAX}"
        if any(line.lstrip().startswith("!") for line in lines):
            yield f"code cell {number}: a command of the shell"
            continue
        for node in ast.walk(ast.parse("\n".join(line for line in lines if not line.startswith("%")))):
            if isinstance(node, statements):
                yield f"code cell {number}: a {type(node).__name__}"
            for module in imported(node):
                if MEASURING_OR_ANALYSIS.match(module):
                    yield f"code cell {number}: imports {module}"


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement may import."""
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{name.name}" for name in node.names]
    return []


def notebook(source: str) -> str:
    """A notebook of one code cell, as text."""
    cell = {"cell_type": "code", "source": [source]}
    return json.dumps({"cells": [cell]}) + "\n"


PLANTED: list[tuple[Rule, str, str]] = [
    (file_length, "a.py", "\n" * (FILE_LINES_MAX + 1)),
    (function_length, "a.py", "def f():\n" + "    f()\n" * FUNCTION_LINES_MAX),
    (module_docstring, "a.py", "import os\n"),
    (docstring_of_test, "tests/test_a.py", "def test_a(): ...\n"),
    (white_space, "a.py", "a = 1 \n"),
    (white_space, "a.py", "if a:\n\tb\n"),
    (white_space, "a.md", "text"),
    (vague_name, "a/utils/b.py", ""),
    (vague_name, "a/socket_helpers.py", ""),
    (vague_name, "a.py", "class PoolManager: ...\n"),
    (wall_clock, "a.py", "start = time.time()\n"),
    (wall_clock, "a.py", "from time import time\n"),
    (wall_clock, "a.py", "took = datetime.now(UTC) - start\n"),
    (daemon_thread, "a.py", "Thread(target=run, daemon=True)\n"),
    (daemon_thread, "a.py", "thread.daemon = True\n"),
    (sleep_in_test, "tests/a.py", "time.sleep(1)\n"),
    (sleep_in_test, "tests/a.py", "from time import sleep\nsleep(1)\n"),
    (machine_path, "a.py", f"cache = '/{'home'}/someone/cache'\n"),
    (machine_path, "Makefile", f"OUT = /{'tmp'}/x\n"),
    (registry, "a.toml", f"index = 'https://{'pypi'}.org/simple'\n"),
    (credential, "a.toml", "index = 'https://me:" + "secret@host/simple'\n"),
    (credential, "a.py", "token = 'ghp_" + "0123456789abcdef0123'\n"),
    (put_off, "a.py", "# TO" + "DO: write it\n"),
    (notebook_analysis, "a.ipynb", notebook("a = 1\n" * (CELL_LINES_MAX + 1))),
    (notebook_analysis, "a.ipynb", notebook("for run in runs:\n    print(run)")),
    (notebook_analysis, "a.ipynb", notebook("import numpy as np")),
    (notebook_analysis, "a.ipynb", notebook("!make bench")),
    (notebook_analysis, "a.ipynb", notebook("from experiments import runner")),
]
RULES = list(dict.fromkeys(rule for rule, _, _ in PLANTED))


def named(value: object) -> str:
    """A rule's name, to name a test by; nothing for the rest."""
    return value.__name__ if isinstance(value, FunctionType) else ""


@pytest.mark.slow  # the first one that needs it reads and parses every file
@pytest.mark.parametrize("rule", RULES, ids=named)
def test_the_project_is_tidy(rule: Rule) -> None:
    """No file breaks the rule."""
    assert [f"{file.name}: {fault}" for file in files() for fault in rule(file)] == []


@pytest.mark.parametrize(("rule", "name", "text"), PLANTED, ids=named)
def test_a_planted_fault_is_found(rule: Rule, name: str, text: str) -> None:
    """The rule catches its bad example, and finds nothing in a good one."""
    assert list(rule(File(name, text)))
    assert not list(rule(File("tests/test_good.py", '"""Good."""\n\n\ndef test_a() -> None:\n    """A fact."""\n')))


def test_the_files_are_found() -> None:
    """The rules are run on the project's files, and not on an empty list."""
    assert {"pyproject.toml", "Makefile", "stock_service/trading/model.py", "tests/test_tidy.py"} <= {
        f.name for f in files()
    }
