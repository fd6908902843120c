"""Promises of the store, tried with strace: a kill, a full disk and a failed one at every call that writes; lost power.

These calls are ``WRITES`` and ``SYNCS``. A scripted run (``store_member.py``) prints the outcome of each trade and of
each Lookup. Then the store is opened again. It must have every acknowledged trade, and so must the copy, once it was
made. The run's trades are sent once more, each with its id: each must have one effect, in a sequential order.

Lost power is simulated, from a record of the run's system calls. At a random moment each file has its content of the
last sync, and a random part of the later writes: some dropped, some torn at sectors of 512 bytes, in any order. Names
are those of the last sync of their folder, or of some later changes.
"""

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from stock_service.rpc.errors import UsageError
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side
from tests.reliability.rows import Row
from tests.reliability.store_member import STOCKS
from tests.stores import unsynced

ROOT = Path(__file__).resolve().parents[2]

STRACE = shutil.which("strace")

TRADES = 8
"""Trades of the scripted run. Its log is moved into the file after every second trade."""

WRITES = ("pwrite64", "ftruncate", "rename", "unlink")
SYNCS = ("fsync", "fdatasync")

AT_EVERY = ("a kill at every write, rename and fsync", "a full or failed disk at every write, rename and fsync")

KILLS = ("signal=KILL",)
ERRORS = ("error=ENOSPC", "error=EIO")

SOME = 5
"""Faults of each kind, and images, where only seconds are there."""

IMAGES = 10_000

WAIT_S = 60.0

_SECTOR = 512


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at the n-th call of a system call, counted from 1: a signal, or an error from then on or once."""

    call: str
    at: int
    what: str
    """``signal=KILL``, ``error=ENOSPC`` or ``error=EIO``."""
    for_ever: bool = False

    def __str__(self) -> str:
        return f"{self.what} at {self.call} {self.at}{'+' if self.for_ever else ''}"


@dataclass(slots=True)
class Told:
    """A run's words: of each trade that was acknowledged its volume and number, and the volume last seen."""

    acknowledged: dict[str, tuple[int, int]] = field(default_factory=dict)
    seen: int = 0
    refused: list[str] = field(default_factory=list)
    """``full`` or ``failed`` of a trade, or ``refused`` for the store."""
    copied: bool = False
    ended: bool = False

    def hear(self, line: str) -> None:
        """Reads a line. Raises AssertionError for a Lookup that shows a trade which was not acknowledged."""
        match line.split():
            case ["ack", name, volume, sequence]:
                self.acknowledged[name] = (int(volume), int(sequence))
            case ["saw", volume]:
                assert int(volume) == len(self.acknowledged), f"a Lookup shows {volume}: {self}"
                self.seen = int(volume)
            case [("full" | "failed" | "refused") as how, *_]:
                self.refused.append(how)
            case [("copied" | "uncopied") as how]:
                self.copied = how == "copied"
            case ["end"]:
                self.ended = True
            case _:
                raise AssertionError(f"the run said {line!r}")


def run(path: Path, *strace: str, plant: str = "") -> tuple[Told, int]:
    """Runs the script on a store, under strace. Gives its output and exit code.

    It needs no package (``-S``), which makes it a tenth shorter. It writes no bytecode (``-B``), which would rename
    files beside the store's.
    """
    member = (sys.executable, "-B", "-S", "-m", "tests.reliability.store_member", str(path), str(TRADES), plant)
    command = [str(STRACE), "-qq", "-o", *(strace or ("/dev/null",)), *member]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    told = Told()
    for line in done.stdout.splitlines():
        told.hear(line)
    return told, done.returncode


def calls(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """The number of calls of each system call in a run without a fault."""
    with TemporaryDirectory(dir=folder) as own:
        log = Path(own, "calls")
        told, code = run(Path(own, "store"), str(log), "-e", f"trace={','.join(names)}")
        assert (code, told.ended, told.copied, told.refused) == (0, True, True, [])
        found = re.findall(r"^(\w+)\(", log.read_text(encoding="ascii"), re.MULTILINE)
    return {name: found.count(name) for name in names if name in found}


def faults(folder: Path, whats: Sequence[str], names: Sequence[str]) -> list[Fault]:
    """Each of these at every index of these system calls; errors once, and from then on."""
    numbers = calls(folder, names)
    return [
        Fault(name, at, what, for_ever)
        for name, number in numbers.items()
        for at in range(1, number + 1)
        for what in whats
        for for_ever in ((False,) if what.startswith("signal") else (False, True))
    ]


def survives(folder: Path, fault: Fault) -> Told:
    """Makes a run with a fault, and checks that its acknowledged trades are there afterwards. Raises AssertionError."""
    folder.mkdir()
    inject = f"inject={fault.call}:{fault.what}:when={fault.at}{'+' if fault.for_ever else ''}"
    told, code = run(folder / "store", "/dev/null", "-e", f"trace={fault.call}", "-e", inject)
    if fault.what.startswith("signal"):
        assert code != 0
    else:  # a documented state: the start is refused, or trades are while lookups go on, or all of it was harmless
        assert code == (2 if "refused" in told.refused else 0), f"exit code {code}"
        assert told.ended or "refused" in told.refused
    holds(folder / "store", told)
    return told


def holds(path: Path, told: Told) -> None:
    """Check that a store has the acknowledged trades, and takes the run's trades, each once. Raises AssertionError."""
    if not path.exists():
        assert not told.acknowledged, "a store is gone"
    if told.copied:
        with StoreFile.opened(path.with_name(f"{path.name}.copy"), unsynced) as copy:
            assert copy.load().versions["A"][0].volume >= told.seen, "a copy is an older store"
    try:
        catalog = SqliteCatalog(path, STOCKS, open_file=partial(StoreFile.opened, connect=unsynced))
    except UsageError as error:
        raise AssertionError(f"the store is refused: {error}") from error
    try:
        exchange = Exchange(catalog)
        found = exchange.lookup("A")
        assert found.volume >= told.seen, f"{found} where {told.seen} was shown"
        assert found.volume == found.sequence, f"{found} is half of a trade"
        for name, expected in told.acknowledged.items():
            reply = exchange.trade("A", 1, Side.BUY, name)
            assert (reply.volume, reply.sequence) == expected, f"{name}: {reply}, told was {expected}"
        for _ in range(3):
            replies = [exchange.trade("A", 1, Side.BUY, str(number)) for number in range(TRADES)]
            assert sorted((each.volume, each.sequence) for each in replies) == [(n, n) for n in range(1, TRADES + 1)]
        assert exchange.lookup("A").volume == TRADES
    finally:
        assert catalog.close()


# ---- lost power


@dataclass(frozen=True, slots=True)
class Step:
    """A system call of a run: its kind, its file, and its content."""

    what: str
    file: str = ""
    place: int = 0
    data: bytes = b""


_CALL = re.compile(r"^(\w+)\((.*)\) += (-?\w+)", re.MULTILINE)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def recorded(folder: Path, plant: str = "") -> tuple[list[Step], Path]:
    """System calls of a run on its files, and its output, in order; and the store's path."""
    path, log = folder / "store", folder / "log"
    folder.mkdir(exist_ok=True)
    traced = ("openat", "close", "pwrite64", "write", "ftruncate", "fsync", "fdatasync", "rename", "unlink")
    run(path, str(log), "-xx", "-s", "100000", "-e", f"trace={','.join(traced)}", plant=plant)
    return list(_steps(log.read_text(encoding="ascii"), folder)), path


def _steps(log: str, folder: Path) -> Iterator[Step]:
    files: dict[str, str] = {}
    for what, given, result in _CALL.findall(log):
        texts = [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(given)]
        number = given.partition(",")[0]
        if what == "write" and number == "1":
            yield Step("say", data=texts[0])
        elif what == "openat" and not result.startswith("-"):
            file = Path(texts[0].decode())
            files[result] = "." if file == folder else file.name if file.parent == folder else ""
            if files[result] and "O_CREAT" in given:
                yield Step("open", files[result])
        elif what in ("rename", "unlink") and result == "0":
            names = [Path(text.decode()).name for text in texts]
            yield Step(what, names[0], data=names[-1].encode())
        elif not files.get(number):
            continue
        elif what == "pwrite64":
            yield Step("write", files[number], int(given.rpartition(", ")[2]), texts[0])
        elif what == "ftruncate":
            yield Step("cut", files[number], int(given.rpartition(", ")[2]))
        elif what in SYNCS:
            yield Step("sync", files[number])
        elif what == "close":
            del files[number]


class _Disk:
    """Bytes that a disk has for certain, and bytes that it may have besides."""

    def __init__(self) -> None:
        self.content: list[bytearray] = []  # of each file, at its last sync
        self.pending: list[list[Step]] = []
        self.names: dict[str, int] = {}  # as the program sees them
        self.kept: list[dict[str, int]] = [{}]  # as at the last sync of the folder, and after each change since

    def take(self, step: Step) -> None:
        """Carries out a step."""
        match step.what:
            case "open" if step.file not in self.names:
                self.names[step.file] = len(self.content)
                self.content.append(bytearray())
                self.pending.append([])
            case "write" | "cut":
                self.pending[self.names[step.file]].append(step)
            case "sync" if step.file == ".":
                self.kept = [dict(self.names)]
            case "sync":
                number = self.names[step.file]
                for each in self.pending[number]:
                    _put(self.content[number], each)
                self.pending[number].clear()
            case "rename":
                self.names[step.data.decode()] = self.names.pop(step.file)
            case "unlink":
                del self.names[step.file]
        if step.what in ("open", "rename", "unlink"):
            self.kept.append(dict(self.names))

    def image(self, rng: random.Random) -> dict[str, bytes]:
        """A state of the disk after the power was lost."""
        found: dict[str, bytes] = {}
        for name, number in rng.choice(self.kept).items():
            content = bytearray(self.content[number])
            share = rng.random()
            written = [each for each in self.pending[number] if rng.random() < share]
            rng.shuffle(written)
            for each in written:
                _put(content, _torn(each, rng) if rng.random() < 0.3 else each)
            found[name] = bytes(content)
        return found


def _put(content: bytearray, step: Step) -> None:
    if step.what == "cut":
        del content[step.place :]
        content.extend(bytes(step.place - len(content)))
        return
    content.extend(bytes(max(0, step.place - len(content))))
    content[step.place : step.place + len(step.data)] = step.data


def _torn(step: Step, rng: random.Random) -> Step:
    """The beginning of a write, or its end, to a border of sectors."""
    border = _SECTOR - step.place % _SECTOR + _SECTOR * rng.randrange(1 + len(step.data) // _SECTOR)
    if rng.random() < 0.5:
        return Step("write", step.file, step.place, step.data[:border])
    return Step("write", step.file, step.place + border, step.data[border:])


def power_is_lost(folder: Path, steps: Sequence[Step], rng: random.Random, images: int) -> None:
    """Opens this number of images of a run after lost power. Raises AssertionError for an image without a trade that
    was acknowledged by then."""
    for _ in range(images):
        disk, told = _Disk(), Told()
        for step in steps[: rng.randrange(len(steps)) + 1]:
            if step.what == "say":
                told.hear(step.data.decode().rstrip())
            else:
                disk.take(step)
        with TemporaryDirectory(dir=folder) as place:
            for name, content in disk.image(rng).items():
                Path(place, name).write_bytes(content)
            holds(Path(place, "store"), told)


# ---- the table


def check(minutes: bool, seed: int) -> list[Row]:
    """Tries the store's promises: for four minutes, or some of it for seconds. Blocks."""
    if STRACE is None:
        return [Row(AT_EVERY[0], "0 lost", "not tried: strace is not here", passed=False)]
    with TemporaryDirectory() as folder:
        return _checked(Path(folder), random.Random(seed), minutes)


def _checked(folder: Path, rng: random.Random, minutes: bool) -> list[Row]:
    rows = []
    for promise, whats in zip(AT_EVERY, (KILLS, ERRORS), strict=True):
        every = faults(folder, whats, (*WRITES, *SYNCS))
        tried = every if minutes else rng.sample(every, SOME)
        trials = (partial(survives, folder / f"{whats[0]}-{number}", fault) for number, fault in enumerate(tried))
        failed = [fault for fault, trial in zip(tried, trials, strict=True) if not _held(trial)]
        figure = f"{len(failed)} of {len(tried)} lost or doubled a trade {' '.join(map(str, failed[:3]))}".rstrip()
        rows.append(Row(promise, f"0 of {len(every)}", figure, not failed))
    steps, _ = recorded(folder / "run")
    images = IMAGES if minutes else SOME
    lost = sum(not _held(partial(power_is_lost, folder, steps, rng, 1)) for _ in range(images))
    rows.append(Row("lost power", f"0 of {IMAGES}", f"{lost} of {images} lost or doubled a trade", not lost))
    return rows


def _held(trial: Callable[[], object]) -> bool:
    """True if a trial finds no lost or doubled trade."""
    try:
        trial()
    except (AssertionError, UsageError):
        return False
    return True
