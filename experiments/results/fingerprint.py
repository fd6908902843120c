"""A recording's fingerprint: digests of the sources that each of its arms was measured with.

``environment.json`` keeps it as ``sources``: a digest for each row of ``design/sources.py``, and the versions of the
programs of others. An arm's own fingerprint has the rows that count for its setting. A file in Python counts by its
syntax tree, so that a docstring, a comment or another layout changes nothing. Any other file counts by its bytes. A
recording that was made before fingerprints has none, and counts as one of an earlier server.
"""

import ast
import hashlib
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path

from experiments.design.setting import Setting
from experiments.design.sources import NO_SOURCES, PLACES, SOURCES, VERSIONS, counted

Sources = Mapping[str, str]
"""Digests by the rows' patterns, and versions by the programs' names."""

ROOT = Path(__file__).resolve().parents[2]

UNREAD = "could not be read"
"""Digest of a row whose sources could not be read at the end of the run."""

ABSENT = "absent"
"""Digest of a row without files here, and version of a package that is not installed."""

_THEN = ", then "
"""Word between the two digests of a row that was changed during a run, and between two versions of a program."""

_DIGITS = 16

_OF_NO_WEIGHT = ("ctx", "kind", "type_comment", "type_params")
"""Fields of a syntax tree that not every Python has, or that repeat other fields."""


def taken(root: Path = ROOT) -> dict[str, str]:
    """The sources that are here now. Blocks for some 0.3 s. Raises OSError, SyntaxError."""
    rows = {row: _digest(root, files) if files else ABSENT for row, files in files_of(root).items()}
    packages = {name: _version(name) for name in VERSIONS if name != "python"}
    return rows | packages | {"python": platform.python_version()}


def lasting(began: Sources, root: Path = ROOT) -> dict[str, str]:
    """Sources that a run began with. A row that has changed since has both digests, so that no arm with the row is of
    any version. Blocks for some 0.3 s."""
    try:
        ended = taken(root)
    except (OSError, SyntaxError):  # a file is being edited at this moment
        ended = dict.fromkeys(began, UNREAD)
    now = {row: ended.get(row, ABSENT) for row in began}
    return {row: then if then.split(_THEN)[-1] == now[row] else then + _THEN + now[row] for row, then in began.items()}


def differing(one: Sources, other: Sources, settings: Iterable[Setting]) -> tuple[str, ...]:
    """Places of the rows that differ and count for any of these arms, each once, and programs with both versions."""
    rows = dict.fromkeys(row for each in settings for row in counted(each))
    apart = {row: (one.get(row, ABSENT), other.get(row, ABSENT)) for row in rows}
    named = (PLACES.get(row, f"{row} ({a}{_THEN}{b})") for row, (a, b) in apart.items() if a != b)
    return tuple(dict.fromkeys(named))


def files_of(root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """Files of each row, by its pattern: a file belongs to the first row that has it."""
    before: set[str] = set()
    found = {}
    for row in SOURCES:
        every = {file for pattern in _patterns(row.files) for file in root.glob(pattern)}
        own = {file.relative_to(root).as_posix() for file in every if not file.name.endswith(NO_SOURCES)} - before
        found[row.files] = tuple(sorted(own))
        before |= own
    return found


def _patterns(pattern: str) -> Iterator[str]:
    """Patterns that a pattern with braces stands for."""
    parts = (part.split(",") if place % 2 else [part] for place, part in enumerate(re.split(r"[{}]", pattern)))
    return map("".join, product(*parts))


def _digest(root: Path, files: Iterable[str]) -> str:
    made = hashlib.sha256()
    for name in files:
        content = (root / name).read_bytes()
        counts = _tree(content) if name.endswith(".py") else content
        made.update(f"{name} {len(counts)}\n".encode())
        made.update(counts)
    return made.hexdigest()[:_DIGITS]


@cache
def _tree(content: bytes) -> bytes:
    """Syntax tree of a file in Python, equal on every Python that has its syntax."""
    return repr(_shape(ast.parse(content))).encode()


def _shape(node: object) -> object:
    """A node as nested tuples. Statements that are a text alone, as docstrings are, and empty fields are left out."""
    if isinstance(node, list):
        return tuple(_shape(each) for each in node if not _is_text(each))
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, value) for name, value in ast.iter_fields(node) if name not in _OF_NO_WEIGHT)
    return type(node).__name__, tuple((name, _shape(value)) for name, value in fields if value not in (None, []))


def _is_text(node: object) -> bool:
    """True where a statement is a text alone."""
    alone = node.value if isinstance(node, ast.Expr) else None
    return isinstance(alone, ast.Constant) and isinstance(alone.value, str)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
