"""Files of a folder of results: the plan and the observed blocks of every run. Format version 1.

- ``sweep.json``: the plan of the sweep, with its looks (the numbers of blocks at which verdicts are given) and limits,
  and the version of the format
- ``blocks.jsonl.gz``: a line of JSON for each block of the sweep, written to the disk before the next block begins
- ``KIND.json``, ``KIND.jsonl.gz``: plan and blocks of a run of another kind (``experiments.kinds``)
- ``environment.json``: the machine and the software (``environment.py``)
- ``results.csv``: rows that are computed from the sweep's blocks (``rows.py``), for other programs

A sweep measures arms in blocks. An arm is a server under a load. Every block is a separate gzip member. gzip reads the
members of a file one after another. A crash can only cut off the last member. A resumed run deletes this member. A line
ends with a digest of the plan's file and a digest of the line. With these digests, a reader detects an edited plan or
line. msgspec converts dataclasses to JSON. Histograms have the form of HdrHistogram. A setting is a mapping from
factors to levels. If the file has no level of a factor, the factor has its default level.
"""

import fcntl
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
"""Version of the defaults, names and colours of texts and figures. A sweep of another edition is refused: this version
cannot compute the sweep's texts and figures again.
"""

SWEEP_FILE, BLOCKS_FILE = "sweep.json", "blocks.jsonl.gz"

MEASURED = "a folder of results, which `python -m experiments run NAME` or `compare --out` has written"
AS_WRITTEN = "the unchanged file: restore a copy of the file, or measure again"
"""Parts of error texts. ``MEASURED`` describes the folder that a command accepts. ``AS_WRITTEN`` describes the file
that the command accepts.
"""

_DIGITS = 16
"""Length of a digest in hexadecimal digits."""


class Numbered(Protocol):
    """Block of a run of any kind, with its number."""

    @property
    def number(self) -> int: ...


P = TypeVar("P")
B = TypeVar("B")
N = TypeVar("N", bound=Numbered)


@dataclass(frozen=True, slots=True)
class Form(Generic[P, B]):
    """Names of the files of a kind of run, and the functions that convert the plan to JSON and back."""

    plan_file: str
    plain: Callable[[P], dict[str, Any]]
    """Converts a plan to values for JSON."""
    plan: Callable[[dict[str, Any]], P]
    """Converts values of JSON to a plan. Raises ValueError, LookupError, TypeError, AttributeError, UsageError."""
    blocks_file: str = ""
    block: type[B] | None = None
    """Type of a block. None for a kind without blocks."""


@dataclass(frozen=True, slots=True)
class SweepFile:
    """Content of ``sweep.json``. The file has indices of arms; in this class, arms replace the indices. A sweep has
    either slices or windows.
    """

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
    """Text of the file of a plan: JSON, with the version of the format."""
    return _json({"format": FORMAT} | form.plain(plan), 1).decode()


def write_plan(folder: Path, form: Form[P, Any], plan: P) -> None:
    """Writes the plan's file. Raises OSError."""
    write_at_once(folder / form.plan_file, plan_text(form, plan).encode())


def read_plan(folder: Path, form: Form[P, Any]) -> P:
    """Plan of a folder. Raises UsageError for a missing or damaged plan, or for a plan of another version."""
    file = folder / form.plan_file
    try:
        content = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        version = content.pop("format", None)
        if version == FORMAT:
            return form.plan(content)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(str(folder), _no_results(folder, form.plan_file), MEASURED) from error
    except UsageError as error:
        given, allowed = f"{error.option} {error.given}", f"in this version: {error.allowed}"
        raise UsageError(str(file), given, allowed) from error
    # TypeError, AttributeError: JSON of another shape
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(str(file), damage(error), AS_WRITTEN) from error
    given = "no format" if version is None else f"format {version}"
    raise UsageError(str(file), given, f"format {FORMAT}: measure again")


def read_sweep(folder: Path) -> Sweep:
    """Sweep of a folder. Raises UsageError for a missing or damaged sweep, or for a sweep of another version."""
    return read_plan(folder, SWEPT)


def damage(error: Exception) -> str:
    """Description of the damage of a file that cannot be read."""
    match error:
        case OSError():
            return f"a file that cannot be read ({error.strerror or error})"
        case IndexError():
            return "a damaged file (the file names an arm that is missing in the file)"
        case _:
            return f"a damaged file ({error})"


def _no_results(folder: Path, name: str) -> str:
    """Text that says why a folder has no file of this name."""
    if not folder.exists():
        return "no such folder"
    if not folder.is_dir():
        return "a file, no folder"
    inside = sorted(file.parent.name for file in folder.glob(f"*/{name}"))
    return f"a folder that holds results in {', '.join(inside)}" if inside else f"a folder without {name}"


def _plain(sweep: Sweep) -> dict[str, Any]:
    """Values of a sweep for JSON. A list has each arm once, with its levels. Groups and comparisons have the arms'
    indices in this list.
    """
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
        raise UsageError("edition", str(edition), f"edition {EDITION}: measure again")
    arms = [Arm(setting(**each["levels"]), each.get("copy", 0)) for each in plain["arms"]]
    for group in plain["groups"]:
        group["arms"] = [arms[place] for place in group["arms"]]
    for comparison in plain["comparisons"]:
        comparison |= {side: arms[comparison[side]] for side in ("above", "below")}
    file = msgspec.convert(plain, SweepFile, from_attributes=True)
    others = (each.name for each in fields(file) if each.name not in ("slices", "windows"))
    return Sweep(**{name: getattr(file, name) for name in others}, turns=file.slices or file.windows or Slices())


SWEPT: Form[Sweep, Block] = Form(SWEEP_FILE, _plain, _sweep, BLOCKS_FILE, Block)
"""Form of a sweep: ``sweep.json``, ``blocks.jsonl.gz``, and the conversion of the plan."""


def append_block(folder: Path, block: object, form: Form[Any, Any] = SWEPT) -> None:
    """Adds a block to the folder's file of blocks. Returns once the block is on the disk. Raises OSError."""
    line = msgspec.json.encode(block, enc_hook=_encoded)
    digests = digest((folder / form.plan_file).read_bytes()) + b" " + digest(line)
    with (folder / form.blocks_file).open("ab") as file:
        file.write(gzip.compress(line + b" " + digests + b"\n", mtime=0))
        file.flush()
        os.fsync(file.fileno())


def read_blocks(folder: Path) -> tuple[Block, ...]:
    """Blocks of a folder's sweep, in the order of time, with all attempts of a repeated block. An incomplete last block
    is left out. Raises UsageError for a damaged file, and for an edited block or plan.
    """
    return blocks_of(folder, SWEPT)


def blocks_of(folder: Path, form: Form[Any, B]) -> tuple[B, ...]:
    """Blocks of a run, in the order of time, with all attempts. An incomplete last block is left out. Raises UsageError
    for a damaged file, and for an edited block or plan.
    """
    file, plan_file = folder / form.blocks_file, folder / form.plan_file
    plan = digest(plan_file.read_bytes()) if plan_file.exists() else b""
    blocks = []
    for number, whole in enumerate(_lines(file), 1):
        line, of_plan, of_line = whole.rsplit(b" ", 2) if whole.count(b" ") > 1 else (whole, plan, b"")
        if of_line != digest(line):
            raise UsageError(f"{file} line {number}", "a block that was edited", AS_WRITTEN)
        if of_plan != plan:
            limits = other_limits(read_sweep(folder)) if form.plan_file == SWEEP_FILE else []
            given = f"a plan that was edited after block {number}" + (f", with {', '.join(limits)}" if limits else "")
            raise UsageError(str(plan_file), given, "the plan that the blocks were measured with")
        try:
            blocks.append(msgspec.json.decode(line, type=form.block, dec_hook=_decoded))
        except ValueError as error:
            raise UsageError(f"{file} line {number}", str(error), "a block as the runner writes it") from error
    return tuple(blocks)


def counting(blocks: Sequence[N]) -> tuple[N, ...]:
    """Blocks that count: the last attempt of each block number."""
    return tuple({block.number: block for block in blocks}.values())


def drop_torn(folder: Path, form: Form[Any, Any] = SWEPT) -> None:
    """Deletes the incomplete line that a crash left after the last whole block. Raises OSError."""
    file = folder / form.blocks_file
    whole = b"".join(gzip.compress(line + b"\n", mtime=0) for line in _lines(file))
    write_at_once(file, whole)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Locks a folder for the time of a ``with`` block: no second run can write into the folder. Makes a missing folder.

    Raises UsageError if another run has locked the folder. The kernel unlocks the folder when the process ends. Some
    file systems cannot lock a folder: a second run is then not noticed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            given, allowed = "a folder into which another run measures now", "another folder, or the end of that run"
            raise UsageError(str(folder), given, allowed) from error
        except OSError:  # the file system cannot lock folders, such as a network file system
            pass
        yield
    finally:
        os.close(descriptor)


def write_at_once(file: Path, content: bytes) -> None:
    """Writes a file atomically: a crash leaves either the whole old file or the whole new file. Raises OSError.

    An error or Ctrl-C leaves no temporary file. If ``file`` is a pipe or a device, the content is written directly into
    the pipe or device.
    """
    if file.exists() and not file.is_file():
        file.write_bytes(content)
        return
    unfinished = file.with_name(file.name + ".tmp")
    try:
        with unfinished.open("wb") as writing:
            writing.write(content)
            writing.flush()
            os.fsync(writing.fileno())
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _json(value: object, indent: int) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=indent) + b"\n"


def write_json(file: Path, value: object, indent: int = 2) -> None:
    """Writes a dataclass as JSON, by ``write_at_once``. Raises OSError."""
    write_at_once(file, _json(value, indent))


def read_json(file: Path, form: type[P]) -> P:
    """Reads a dataclass from a file of JSON. Raises UsageError for a missing or damaged file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=form)
    except (OSError, ValueError) as error:
        raise UsageError(str(file), damage(error), AS_WRITTEN) from error


def _lines(file: Path) -> list[bytes]:
    """Every whole line of a file. An incomplete last line is left out. Raises UsageError for damage before the last
    line."""
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
            raise UsageError(str(file), f"a file that is damaged after line {len(lines)}", AS_WRITTEN) from error
        if not member.eof:
            break  # an incomplete line
        lines.append(line.removesuffix(b"\n"))
        content = member.unused_data
    return lines


def other_limits(sweep: Sweep) -> list[str]:
    """Text for each limit of a sweep that differs from this version's default: the name and both values."""
    stated, usual = asdict(sweep.limits), asdict(LIMITS)
    return [f"{name} {stated[name]:g} (here {usual[name]:g})" for name in usual if stated[name] != usual[name]]


def digest(content: bytes) -> bytes:
    """Digest of ``content``, in hexadecimal digits. A file keeps digests of its lines, and an edited line no longer
    fits its digest.
    """
    return hashlib.sha256(content).hexdigest()[:_DIGITS].encode()


def _encoded(value: object) -> object:
    """Converts a histogram to values for JSON, since msgspec cannot. Raises NotImplementedError for another type."""
    if isinstance(value, Times):
        return value.to_json()
    raise NotImplementedError(type(value))


def _decoded(kind: type, value: Any) -> object:
    if kind is Times:
        return Times.from_json(value)
    raise NotImplementedError(kind)


def with_levels(value: Any) -> Any:
    """Copy of plain values for JSON. A mapping of levels replaces each setting."""
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
    """Copy of values from JSON. A ``Setting`` replaces each mapping of levels. msgspec converts these values to a plan
    only with ``from_attributes=True``.
    """
    match value:
        case {"levels": levels, **others}:
            return {"setting": with_settings(levels), **others}
        case {"transport": _}:
            return setting(**value)
        case dict():
            return {name: with_settings(each) for name, each in value.items()}
        case list():
            return [with_settings(each) for each in value]
    return value
