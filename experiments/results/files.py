"""A folder of results: the plan of every run, and every block as it was observed. Format version 1.

- ``sweep.json``: the sweep, its looks and limits, with the format's version
- ``blocks.jsonl.gz``: a line of JSON for each block, on the disk before the next begins
- ``KIND.json``, ``KIND.jsonl.gz``: the same of a run of another kind (``experiments.kinds``)
- ``environment.json``: the machine and the software (``environment.py``)
- ``results.csv``: rows computed from the sweep's blocks (``rows.py``), for whoever reads them with other tools

Every block is a gzip member of its own; gzip reads members one after the other as one file. What a crash cut off is at
the end, and is dropped when a run is resumed. A line ends with digests of the plan's file and of itself, so that an
edited one is known. JSON of dataclasses is msgspec's; histograms are in HdrHistogram's own form. A factor that a file
does not have reads as standing at its default.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from clients.load.record.times import Times
from experiments.design.arms import Arm, Comparison, Group
from experiments.design.limits import LIMITS, Limits
from experiments.design.setting import setting
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.results.observed import Block
from stock_service.rpc.errors import UsageError

FORMAT = 1

EDITION = 2
"""Counts changes of defaults, names and colours. A sweep of an earlier edition is refused, since its texts and figures
cannot be computed anew."""

SWEEP_FILE, BLOCKS_FILE = "sweep.json", "blocks.jsonl.gz"

MEASURED = "one folder of results: what `python -m experiments run NAME` or `compare --out` has measured into"
AS_WRITTEN = "the file as it was written: take it from a copy, or measure anew"
"""Advice in errors: the allowed value where another value was given."""

_DIGITS = 16
"""Length of a digest, in hexadecimal digits."""


class Numbered(Protocol):
    """A block of any kind."""

    @property
    def number(self) -> int: ...


P = TypeVar("P")
B = TypeVar("B")
N = TypeVar("N", bound=Numbered)


@dataclass(frozen=True, slots=True)
class Form(Generic[P, B]):
    """Files of a kind of run, and the form of its plan in them."""

    plan_file: str
    plain: Callable[[P], dict[str, Any]]
    """Plain values of a plan."""
    plan: Callable[[dict[str, Any]], P]
    """Plan of plain values. Raises ValueError, LookupError, TypeError, AttributeError, UsageError."""
    blocks_file: str = ""
    block: type[B] | None = None
    """Type of a block; None where nothing is measured."""


@dataclass(frozen=True, slots=True)
class SweepFile:
    """Content of ``sweep.json``, with arms in the place of their numbers. A sweep has slices or windows."""

    study: str
    part: str
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...]
    rounds: int
    looks: tuple[int, ...]
    seed: int
    limits: Limits
    slices: Slices | None = None
    windows: Windows | None = None
    timeline: bool = False
    apart_from: float | None = None
    fixed: bool = False


def plan_text(form: Form[P, Any], plan: P) -> str:
    """Text of a plan's file."""
    content = msgspec.json.encode({"format": FORMAT} | form.plain(plan))
    return (msgspec.json.format(content, indent=1) + b"\n").decode()


def write_plan(folder: Path, form: Form[P, Any], plan: P) -> None:
    """Writes a plan. Raises OSError."""
    write_at_once(folder / form.plan_file, plan_text(form, plan).encode())


def read_plan(folder: Path, form: Form[P, Any]) -> P:
    """Plan that a folder holds. UsageError where there is none, or a plan of another version."""
    file = folder / form.plan_file
    try:
        content = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        version = content.pop("format", None)
        if version == FORMAT:
            return form.plan(content)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(str(folder), _no_results(folder, form.plan_file), MEASURED) from error
    except UsageError as error:
        given, allowed = f"{error.option} {error.given}", f"what this version has: {error.allowed}"
        raise UsageError(str(file), given, allowed) from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:  # the last two: of other JSON
        raise UsageError(str(file), damage(error), AS_WRITTEN) from error
    given = "no format" if version is None else f"format {version}"
    raise UsageError(str(file), given, f"format {FORMAT}: measure it anew")


def read_sweep(folder: Path) -> Sweep:
    """Sweep that a folder holds. UsageError where there is none, or a sweep of another version."""
    return read_plan(folder, SWEPT)


def damage(error: Exception) -> str:
    """Words for the damage of a file that cannot be read."""
    match error:
        case OSError():
            return f"a file that cannot be read ({error.strerror or error})"
        case IndexError():
            return "a damaged file (it names an arm that it has not)"
        case _:
            return f"a damaged file ({error})"


def _no_results(folder: Path, name: str) -> str:
    """Reason why a folder has no results in a file of this name, in words."""
    if not folder.exists():
        return "no such folder"
    if not folder.is_dir():
        return "a file, no folder"
    inside = sorted(file.parent.name for file in folder.glob(f"*/{name}"))
    return f"a folder that holds results in {', '.join(inside)}" if inside else f"a folder without {name}"


def _plain(sweep: Sweep) -> dict[str, Any]:
    """Plain values of a sweep: each arm once, by its levels; groups and comparisons have the arms' places."""
    place = sweep.places
    kept = {each.name: getattr(sweep, each.name, None) for each in fields(SweepFile)}
    return kept | {
        "arms": [{"levels": dict(arm.setting.levels), "copy": arm.copy} for arm in sweep.arms],
        "groups": [_values(each) | {"arms": [place[arm] for arm in each.arms]} for each in sweep.groups],
        "comparisons": [
            _values(each) | {"above": place[each.above], "below": place[each.below]} for each in sweep.comparisons
        ],
        "slices" if isinstance(sweep.turns, Slices) else "windows": sweep.turns,
        "edition": EDITION,
    }


def _values(of: Group | Comparison) -> dict[str, Any]:
    return {each.name: getattr(of, each.name) for each in fields(of)}


def _sweep(plain: dict[str, Any]) -> Sweep:
    if (edition := plain.pop("edition", 1)) != EDITION:
        raise UsageError("edition", str(edition), f"edition {EDITION}, so measure anew")
    arms = [Arm(setting(**each["levels"]), each.get("copy", 0)) for each in plain["arms"]]
    for group in plain["groups"]:
        group["arms"] = [arms[place] for place in group["arms"]]
    for comparison in plain["comparisons"]:
        comparison |= {side: arms[comparison[side]] for side in ("above", "below")}
    file = msgspec.convert(plain, SweepFile, from_attributes=True)
    others = (each.name for each in fields(file) if each.name not in ("slices", "windows"))
    return Sweep(**{name: getattr(file, name) for name in others}, turns=file.slices or file.windows or Slices())


SWEPT: Form[Sweep, Block] = Form(SWEEP_FILE, _plain, _sweep, BLOCKS_FILE, Block)
"""Form of a sweep."""


def append_block(folder: Path, block: object, form: Form[Any, Any] = SWEPT) -> None:
    """Adds a block to the folder. The block is on the disk when this returns. Raises OSError."""
    line = msgspec.json.encode(block, enc_hook=_encoded)
    digests = digest((folder / form.plan_file).read_bytes()) + b" " + digest(line)
    with (folder / form.blocks_file).open("ab") as file:
        file.write(gzip.compress(line + b" " + digests + b"\n", mtime=0))
        file.flush()
        os.fsync(file.fileno())


def read_blocks(folder: Path) -> tuple[Block, ...]:
    """Every whole block of a folder's sweep, every attempt, in order. UsageError where a block or the plan was
    edited."""
    return blocks_of(folder, SWEPT)


def blocks_of(folder: Path, form: Form[Any, B]) -> tuple[B, ...]:
    """Every whole block of a run. Raises as ``read_blocks``."""
    file, plan_file = folder / form.blocks_file, folder / form.plan_file
    plan = digest(plan_file.read_bytes()) if plan_file.exists() else b""
    blocks = []
    for number, whole in enumerate(_lines(file), 1):
        line, of_plan, of_line = whole.rsplit(b" ", 2) if whole.count(b" ") > 1 else (whole, plan, b"")
        if of_line != digest(line):
            raise UsageError(f"{file} line {number}", "a block that was edited", AS_WRITTEN)
        if of_plan != plan:
            limits = _edited_limits(folder) if form.plan_file == SWEEP_FILE else ""
            given = f"a plan that was edited after block {number}{limits}"
            raise UsageError(str(plan_file), given, "what the blocks were measured under")
        try:
            blocks.append(msgspec.json.decode(line, type=form.block, dec_hook=_decoded))
        except ValueError as error:
            raise UsageError(f"{file} line {number}", str(error), "a block as the runner writes it") from error
    return tuple(blocks)


def counting(blocks: Sequence[N]) -> tuple[N, ...]:
    """The attempt of each block that counts: the last one."""
    return tuple({block.number: block for block in blocks}.values())


def drop_torn(folder: Path, form: Form[Any, Any] = SWEPT) -> None:
    """Cuts off the incomplete line that a crash left behind the last whole block. Raises OSError."""
    file = folder / form.blocks_file
    whole = b"".join(gzip.compress(line + b"\n", mtime=0) for line in _lines(file))
    write_at_once(file, whole)


def write_at_once(file: Path, content: bytes) -> None:
    """Writes a file so that a crash leaves the old one or the new one, whole. Raises OSError."""
    unfinished = file.with_name(file.name + ".tmp")
    with unfinished.open("wb") as writing:
        writing.write(content)
        writing.flush()
        os.fsync(writing.fileno())
    unfinished.replace(file)


def _lines(file: Path) -> list[bytes]:
    """Every whole line. An incomplete line at the end is left out. UsageError for damage before the end."""
    if not file.exists():
        return []
    content = file.read_bytes()
    lines: list[bytes] = []
    while content:
        member = zlib.decompressobj(wbits=31)
        try:
            line = member.decompress(content)
        except zlib.error as error:
            if not content.strip(b"\0"):
                break  # a power cut leaves zeros
            raise UsageError(str(file), f"a file that is damaged behind line {len(lines)}", AS_WRITTEN) from error
        if not member.eof:
            break  # an incomplete line
        lines.append(line.removesuffix(b"\n"))
        content = member.unused_data
    return lines


def other_limits(sweep: Sweep) -> list[str]:
    """Limits in which a sweep differs from this version's limits, in words."""
    stated, usual = asdict(sweep.limits), asdict(LIMITS)
    return [f"{name} {stated[name]:g} (here {usual[name]:g})" for name in usual if stated[name] != usual[name]]


def _edited_limits(folder: Path) -> str:
    """Limits that a sweep of an edited folder states and that differ from this version's."""
    found = other_limits(read_sweep(folder))
    return f", with {', '.join(found)}" if found else ""


def digest(content: bytes) -> bytes:
    """Digest of a content, written beside it so that an edited content is known."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS].encode()


def _encoded(value: object) -> object:
    """JSON of a value that msgspec does not know."""
    if isinstance(value, Times):
        return value.to_json()
    raise NotImplementedError(type(value))


def _decoded(kind: type, value: Any) -> object:
    if kind is Times:
        return Times.from_json(value)
    raise NotImplementedError(kind)
