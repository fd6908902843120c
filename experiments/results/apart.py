"""Measurements apart from sweeps, as they are kept: a JSON file of plan and blocks in the folder. Format version 1.

``experiments.kinds`` names the files: one for each kind of run, and one of predictions. A file is written anew after
each block, at once, so that a crash loses one block. It ends with a digest of the rest, so that an edited one is known.
A setting is kept as a mapping of its levels; one that lacks a factor reads as standing at that factor's default.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from experiments.design.setting import recorded
from experiments.results.files import AS_WRITTEN, FORMAT, damage, digest, of_this_format, write_at_once
from stock_service.rpc.errors import UsageError

Content = TypeVar("Content")


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
    whole = msgspec.json.encode(_File(FORMAT, msgspec.Raw(encoded), digest(encoded).decode()))
    return (msgspec.json.format(whole, indent=1) + b"\n").decode()


def read(file: Path, made: Callable[[Any], Content]) -> Content:
    """Content of a file, made of its JSON. UsageError where there is none, for another version, and for an edit."""
    try:
        kept = msgspec.json.decode(of_this_format(file), type=_File)
        if digest(msgspec.json.format(kept.content, indent=-1)).decode() != kept.digest:
            raise UsageError(str(file), "a file that was edited", AS_WRITTEN)
        return made(msgspec.json.decode(kept.content))
    except FileNotFoundError as error:
        raise UsageError(str(file.parent), f"no {file.name}", "a folder that this was measured into") from error
    except (OSError, ValueError, LookupError) as error:
        raise UsageError(str(file), damage(error), AS_WRITTEN) from error


def with_levels(value: Any) -> Any:
    """Plain values, as files have them: a setting is a mapping of its levels."""
    match value:
        case {"setting": {"levels": levels}, **others}:
            return {"levels": dict(levels), **with_levels(others)}
        case {"levels": levels}:
            return dict(levels)
        case dict():
            return {name: with_levels(each) for name, each in value.items()}
        case list() | tuple():
            return [with_levels(each) for each in value]
    return value


def with_settings(value: Any) -> Any:
    """Plain values of a file, with settings in place of mappings of levels: to be converted from attributes."""
    match value:
        case {"levels": levels, **others}:
            return {"setting": with_settings(levels), **others}
        case {"transport": _}:
            return recorded(value)
        case dict():
            return {name: with_settings(each) for name, each in value.items()}
        case list():
            return [with_settings(each) for each in value]
    return value
