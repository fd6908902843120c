"""Fingerprint of a recording: digests of the measured sources.

An arm is a server under a load. A row of ``design/sources.py`` names source files by a pattern. ``environment.json``
has the fingerprint as ``sources``: a digest for each row, and the versions of other projects' programs. The fingerprint
of an arm has only the rows that the arm's setting selects. The digest of a Python file covers the file's syntax tree.
So an edited docstring, comment or layout does not change the digest. The digest of any other file covers the file's
bytes. An older recording has no fingerprint, and counts as a recording of an earlier server.
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
"""Fingerprint. The key of a row's digest is the row's pattern of files. The key of a version is the name of another
project's program.
"""

ROOT = Path(__file__).resolve().parents[2]

UNREAD = "could not be read"
"""Digest of a row whose sources could not be read at the end of a run."""

ABSENT = "absent"
"""Digest of a row without files. Also the version of a package that is not installed."""

_THEN = ", then "
"""Text between two digests of a row that changed during a run, and between two versions of a program."""

_DIGITS = 16

_OF_NO_WEIGHT = ("ctx", "kind", "type_comment", "type_params")
"""Fields of a syntax tree that the digest ignores. Some versions of Python lack some of these fields; the others repeat
another field.
"""


def taken(root: Path = ROOT) -> dict[str, str]:
    """Fingerprint of the sources as they are now. Blocks for some 0.3 s. Raises OSError if a file cannot be read, and
    SyntaxError if a Python file cannot be parsed.
    """
    rows = {row: _digest(root, files) if files else ABSENT for row, files in files_of(root).items()}
    packages = {name: version_of(name) for name in VERSIONS if name != "python"}
    return rows | packages | {"python": platform.python_version()}


def lasting(began: Sources, root: Path = ROOT) -> dict[str, str]:
    """Fingerprint at the end of a run that began with the sources ``began``. Blocks for some 0.3 s.

    A row gets two digests if its files changed during the run. If an arm selects this row, no single version of the
    sources has the arm's fingerprint.
    """
    try:
        ended = taken(root)
    except (OSError, SyntaxError):  # a file is being edited right now
        ended = dict.fromkeys(began, UNREAD)
    now = {row: ended.get(row, ABSENT) for row in began}
    return {row: then if then.split(_THEN)[-1] == now[row] else then + _THEN + now[row] for row, then in began.items()}


def differing(one: Sources, other: Sources, settings: Iterable[Setting]) -> tuple[str, ...]:
    """Names of the rows and programs that these settings select, and that differ between two fingerprints. Both
    versions follow the name of a program.
    """
    rows = dict.fromkeys(row for each in settings for row in counted(each))
    apart = {row: (one.get(row, ABSENT), other.get(row, ABSENT)) for row in rows}
    named = (PLACES.get(row, f"{row} ({a}{_THEN}{b})") for row, (a, b) in apart.items() if a != b)
    return tuple(dict.fromkeys(named))


def files_of(root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """Files of each row, by the row's pattern. A file belongs to the first row with a matching pattern."""
    before: set[str] = set()
    found = {}
    for row in SOURCES:
        every = {file for pattern in _patterns(row.files) for file in root.glob(pattern)}
        own = {file.relative_to(root).as_posix() for file in every if not file.name.endswith(NO_SOURCES)} - before
        found[row.files] = tuple(sorted(own))
        before |= own
    return found


def _patterns(pattern: str) -> Iterator[str]:
    """Expands the braces of a pattern, as a shell does: ``a.py`` and ``b.py`` for ``{a,b}.py``."""
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
    """Syntax tree of a Python file, as bytes. Every version of Python that has this syntax gives equal bytes."""
    return repr(_shape(ast.parse(content))).encode()


def _shape(node: object) -> object:
    """A node of a syntax tree as nested tuples. Docstrings, other statements that are only a text, and empty fields are
    left out."""
    if isinstance(node, list):
        return tuple(_shape(each) for each in node if not _is_text(each))
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, value) for name, value in ast.iter_fields(node) if name not in _OF_NO_WEIGHT)
    return type(node).__name__, tuple((name, _shape(value)) for name, value in fields if value not in (None, []))


def _is_text(node: object) -> bool:
    """True for a statement that is only a text, such as a docstring."""
    alone = node.value if isinstance(node, ast.Expr) else None
    return isinstance(alone, ast.Constant) and isinstance(alone.value, str)


def version_of(package: str, absent: str = ABSENT) -> str:
    """Version of a package. ``absent`` if the package is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return absent
