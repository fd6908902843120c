"""What a sweep ran on: the machine, the software, and how busy the machine was before and after.

Kept beside the results as ``environment.json``, whose keys are the fields below. It is meant to be shared, so it names
neither host nor user nor a path. What cannot be found out is ``unknown`` or null, never guessed.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from stock_service.rpc.errors import UsageError

ENVIRONMENT_FILE = "environment.json"

UNKNOWN = "unknown"

DRAWS = "matplotlib"
"""The package that draws the figures, and has no part in what is measured."""

PACKAGES = ("grpcio", "protobuf", "numpy", "scipy", DRAWS, "hdrhistogram", "psutil")
_REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Busy:
    """How busy the machine is at one moment, from the kernel's accounts since it started."""

    at: str
    """ISO 8601 in UTC: a label."""
    load_1_min: float
    cpu_busy_s: float
    """Processor seconds of all cores that were not idle."""
    cpu_steal_s: float
    """Processor seconds that the hypervisor gave to others."""
    memory_available_mib: float


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and the software of one sweep."""

    machine: str
    cpu_model: str
    cores: int
    """Cores this process may use."""
    hypervisor: bool | None
    governor: str
    memory_mib: int
    system: str
    kernel: str
    clock: str
    """What ``time.perf_counter`` reads, and the kernel's clock source under it."""
    python: str
    gil: bool
    packages: dict[str, str]
    commit: str
    dirty: bool | None
    """Whether a tracked file differed from the commit."""
    before: Busy
    after: Busy | None = None
    """None while the sweep is not done."""
    changes: str | None = None
    """A digest of what differed from the commit, so that two working trees can be told apart; None: not known."""


def look() -> Environment:
    """This machine as it is now. Blocks for some 10 ms, on git."""
    return Environment(
        machine=platform.machine(),
        cpu_model=_cpu_info("model name") or platform.processor() or UNKNOWN,
        cores=len(cores()),
        hypervisor=_hypervisor(),
        governor=_read(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        memory_mib=psutil.virtual_memory().total >> 20,
        system=_system(),
        kernel=f"{platform.system()} {platform.release()}",
        clock=_clock(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        gil=_gil(),
        packages={name: _version(name) for name in PACKAGES},
        commit=_git("rev-parse", "HEAD") or UNKNOWN,
        dirty=_dirty(),
        before=busy(),
        changes=_changes(),
    )


def busy() -> Busy:
    """How busy the machine is now."""
    times = psutil.cpu_times()
    return Busy(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        load_1_min=round(psutil.getloadavg()[0], 2),
        cpu_busy_s=round(sum(times) - times.idle - getattr(times, "iowait", 0.0), 2),
        cpu_steal_s=round(getattr(times, "steal", 0.0), 2),
        memory_available_mib=round(psutil.virtual_memory().available / 2**20, 1),
    )


def cores() -> tuple[int, ...]:
    """The numbers of the cores that this process may use, in order."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def save(environment: Environment, folder: Path) -> None:
    """Writes ``environment.json`` into a folder. Raises OSError."""
    text = json.dumps(asdict(environment), indent=2)
    write_at_once(folder / ENVIRONMENT_FILE, text + "\n")


def write_at_once(file: Path, text: str) -> None:
    """Writes a file so that a crash leaves the old one or the new one, whole. Raises OSError."""
    unfinished = file.with_name(file.name + ".tmp")
    with unfinished.open("w", encoding="utf-8") as writing:
        writing.write(text)
        writing.flush()
        os.fsync(writing.fileno())
    unfinished.replace(file)


def load(folder: Path) -> Environment:
    """The environment kept in a folder of results. UsageError where there is none that can be read."""
    file = folder / ENVIRONMENT_FILE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        after = values.pop("after")
        before = Busy(**values.pop("before"))
        return Environment(**values, before=before, after=None if after is None else Busy(**after))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(str(file), f"{type(error).__name__}: {error}", "what a sweep writes there") from error


def digest(folder: Path) -> str:
    """A digest of a folder's environment but for what is added when the sweep is done. UsageError as ``load``."""
    load(folder)
    values = json.loads((folder / ENVIRONMENT_FILE).read_text(encoding="utf-8")) | {"after": None}
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def finished(environment: Environment) -> Environment:
    """The same, with how busy the machine is now as what it was afterwards."""
    return replace(environment, after=busy())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() or UNKNOWN
    except OSError:  # another system, or hidden by the container
        return UNKNOWN


def _cpu_info(key: str) -> str | None:
    """The first value of a key in /proc/cpuinfo."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _hypervisor() -> bool | None:
    flags = _cpu_info("flags")
    return None if flags is None else "hypervisor" in flags.split()


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", UNKNOWN)
    except OSError:
        return platform.platform()


def _clock() -> str:
    source = _read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    return f"{time.get_clock_info('perf_counter').implementation}, {source}"


def _gil() -> bool:
    enabled: Callable[[], bool] | None = getattr(sys, "_is_gil_enabled", None)  # from Python 3.13
    return True if enabled is None else enabled()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return UNKNOWN


def _dirty() -> bool | None:
    status = _git("status", "--porcelain", "--untracked-files=no")
    return None if status is None else bool(status)


def _changes() -> str | None:
    changes = _git("diff", "HEAD", "--binary", "--no-ext-diff")
    return None if changes is None else hashlib.sha256(changes.encode()).hexdigest()


def _git(*arguments: str) -> str | None:
    """What git says of the repository that this file is in; None without git or repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=_REPOSITORY, capture_output=True, text=True, errors="backslashreplace", timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
