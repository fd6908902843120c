"""Measurements apart from sweeps, as they are kept: a JSON file of plan and blocks in the folder. Format version 1.

- ``alone.json``: servers by themselves (``alone.py``)
- ``cold.json``: cold runs (``cold.py``)
- ``received.json``: what receivers told (``received.py``)
- ``cells.json``: cells, a server at a time (``cells.py``)
- ``stress.json``: servers under stress (``stress.py``)
- ``foretold.json``: what was foretold of a sweep, before it (``foretold.py``)

The file is written anew after each block, at once, so that a crash loses one block. It ends with a digest of the rest,
so that an edited one is known. A setting that lacks a factor reads as standing at that factor's default.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from experiments.design.levels import Level
from experiments.results.files import AS_WRITTEN, damage, write_at_once
from stock_service.rpc.errors import UsageError

FORMAT = 1

_DIGITS = 16
"""Of the digest."""

Content = TypeVar("Content")

Levels = Mapping[str, Level]
"""A setting, as files have it."""


@dataclass(frozen=True, slots=True)
class _File:
    format: int
    content: msgspec.Raw
    digest: str


def write(file: Path, content: object) -> None:
    """Writes a file whole. Raises OSError."""
    write_at_once(file, text(content).encode())


def text(content: object) -> str:
    """A file's text."""
    encoded = msgspec.json.encode(content)
    whole = msgspec.json.encode(_File(FORMAT, msgspec.Raw(encoded), _digest(encoded)))
    return (msgspec.json.format(whole, indent=1) + b"\n").decode()


def read(file: Path, kind: type[Content]) -> Content:
    """Content of a file. UsageError where there is none, for another version, and for one that was edited."""
    try:
        whole = file.read_bytes()
        version = msgspec.json.decode(whole, type=dict[str, Any]).get("format")
        if version != FORMAT:
            given = "no format" if version is None else f"format {version}"
            raise UsageError(str(file), given, f"format {FORMAT}: measure it anew")
        kept = msgspec.json.decode(whole, type=_File)
        if _digest(msgspec.json.format(kept.content, indent=-1)) != kept.digest:
            raise UsageError(str(file), "a file that was edited", AS_WRITTEN)
        return msgspec.json.decode(kept.content, type=kind)
    except FileNotFoundError as error:
        raise UsageError(str(file.parent), f"no {file.name}", "a folder that this was measured into") from error
    except (OSError, ValueError) as error:
        raise UsageError(str(file), damage(error), AS_WRITTEN) from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
