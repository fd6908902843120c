"""Environment of a sweep: the machine, the software, and facts of the machine that move ratios from hour to hour.

Kept beside the results as ``environment.json``, whose keys are the fields below. It is meant to be shared, so it names
neither host nor user nor a path. A fact that cannot be found out is ``unknown`` or null. It is never guessed.
"""

import hashlib
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import psutil

from experiments.peers import PEERS
from experiments.results import fingerprint
from experiments.results.files import AS_WRITTEN, damage, write_at_once
from experiments.results.machine import calibrated_us, cores
from stock_service.rpc.errors import UsageError

ENVIRONMENT_FILE = "environment.json"

UNKNOWN = "unknown"

PACKAGES = ("grpcio", "protobuf", "numpy", "scipy", "hdrhistogram", "psutil", "msgspec", "hpack")
_REPOSITORY = Path(__file__).resolve().parents[2]

_WAKE_UPS = 50
"""Number of wake-ups of a sleeping thread that are timed, which takes some 60 ms."""


@dataclass(frozen=True, slots=True)
class Busy:
    """State of the machine at one moment. The first four are the kernel's counts since it started."""

    at: str
    """Moment, ISO 8601 in UTC: a label."""
    load_1_min: float
    cpu_busy_s: float
    """Processor seconds of all cores that were not idle."""
    cpu_steal_s: float
    """Processor seconds that the hypervisor gave to others."""
    memory_available_mib: float
    fixed_work_us: float
    """Time of a fixed piece of work, the best of five. A neighbour on the same hardware makes it longer."""
    wake_up_us: float
    """Time from one thread's signal until another thread wakes, the median. A server pays it for each request that it
    waits for."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and the software of one sweep."""

    machine: str
    cpu_model: str
    cores: int
    """Cores that this process may use."""
    smt_siblings: bool | None
    """True where two of the cores are threads of one physical core, which slow each other."""
    hypervisor: bool | None
    governor: str
    memory_mib: int
    system: str
    kernel: str
    clock: str
    """Clock that ``time.perf_counter`` reads, and the kernel's clock source under it."""
    python: str
    gil: bool
    packages: dict[str, str]
    commit: str
    dirty: bool | None
    """True where a tracked file differed from the commit."""
    before: Busy
    after: Busy | None = None
    """None until the sweep has ended."""
    changes: str | None = None
    """Digest of the differences from the commit, so that two working trees can be told apart; None: not known."""
    languages: dict[str, str] = field(default_factory=dict)
    """Compiler or tool of the peers of each language here, in its own words."""
    interfaces: tuple[str, ...] | None = None
    """Network interfaces that are up, without the loopback; None: not known."""
    power: str = UNKNOWN
    """``mains`` or ``battery``. A machine without a battery has the mains."""
    processes: int | None = None
    """Processes on the whole machine, as far as this container sees them; None: not known."""
    sources: dict[str, str] = field(default_factory=dict)
    """Fingerprint of the measured sources (``fingerprint.py``); empty where it was recorded before fingerprints. A row
    that was changed while it was measured has both digests."""

    def decisive(self) -> tuple[str, ...]:
        """Facts that must be equal for blocks to be of one sweep, in words."""
        with_changes = f" with changes {(self.changes or UNKNOWN)[:12]}" if self.dirty else ""
        packages = [f"{name} {self.packages.get(name, UNKNOWN)}" for name in PACKAGES]
        commit = f"commit {self.commit[:12]}{with_changes}"
        return commit, self.python, *packages, self.kernel, self.cpu_model, f"{self.cores} cores"


def look() -> Environment:
    """This machine as it is now. Blocks for some 0.5 s."""
    return Environment(
        machine=platform.machine(),
        cpu_model=_cpu_info("model name") or platform.processor() or UNKNOWN,
        cores=len(cores()),
        smt_siblings=_smt_siblings(),
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
        languages=_languages(),
        interfaces=_interfaces(),
        power=_power(),
        processes=len(psutil.pids()),
        sources=fingerprint.taken(),
    )


def busy() -> Busy:
    """State of the machine now. Blocks for some 70 ms."""
    times = psutil.cpu_times()
    return Busy(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        load_1_min=round(psutil.getloadavg()[0], 2),
        cpu_busy_s=round(sum(times) - times.idle - getattr(times, "iowait", 0.0), 2),
        cpu_steal_s=round(getattr(times, "steal", 0.0), 2),
        memory_available_mib=round(psutil.virtual_memory().available / 2**20, 1),
        fixed_work_us=round(calibrated_us(), 1),
        wake_up_us=round(wake_up_us(), 1),
    )


def wake_up_us() -> float:
    """Median time from one thread's signal until another thread wakes from sleep."""
    asleep, times_us = threading.Semaphore(0), []
    sent_ns = 0

    def wait() -> None:
        for _ in range(_WAKE_UPS):
            asleep.acquire()
            times_us.append((time.perf_counter_ns() - sent_ns) / 1000)

    waiting = threading.Thread(target=wait, name="wake-up")
    waiting.start()
    for _ in range(_WAKE_UPS):
        time.sleep(0.001)
        sent_ns = time.perf_counter_ns()
        asleep.release()
    waiting.join()
    return statistics.median(times_us)


def save(environment: Environment, folder: Path) -> None:
    """Writes ``environment.json`` into a folder. Raises OSError."""
    write_at_once(folder / ENVIRONMENT_FILE, msgspec.json.format(msgspec.json.encode(environment), indent=2) + b"\n")


def load(folder: Path) -> Environment:
    """Environment that a folder of results keeps. UsageError where no file can be read."""
    file = folder / ENVIRONMENT_FILE
    try:
        return msgspec.json.decode(file.read_bytes(), type=Environment)
    except (OSError, ValueError) as error:
        raise UsageError(str(file), damage(error), AS_WRITTEN) from error


def finish(folder: Path) -> None:
    """Adds the machine's state now to a folder's environment, once, and the sources that have changed since it began.
    Raises UsageError, OSError."""
    kept = load(folder)
    save(replace(kept, after=kept.after or busy(), sources=fingerprint.lasting(kept.sources)), folder)


def _smt_siblings() -> bool | None:
    """True where two cores that this process may use are threads of one physical core."""
    own = set(cores())
    shared = False
    for core in own:
        text = _read(Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"))
        if text == UNKNOWN:
            return None
        shared = shared or len(own & _numbers(text)) > 1
    return shared


def _numbers(text: str) -> set[int]:
    """The numbers of a kernel's list, such as ``0-1,4``."""
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() or UNKNOWN
    except OSError:  # another system, or hidden by the container
        return UNKNOWN


def _cpu_info(key: str) -> str | None:
    """First value of a key in /proc/cpuinfo."""
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


def _languages() -> dict[str, str]:
    """First line of each language's compiler on its version. Absent compilers are left out."""
    probes = {peer.language: peer.needs[0].probe for peer in PEERS.values() if peer.build and peer.needs}
    found = {}
    for language, probe in probes.items():
        said = _said(probe)
        if said:
            found[language] = said.splitlines()[0]
    return found


def _interfaces() -> tuple[str, ...] | None:
    try:
        return tuple(sorted(name for name, each in psutil.net_if_stats().items() if each.isup and name != "lo"))
    except OSError:  # the container hides them
        return None


def _power() -> str:
    battery = psutil.sensors_battery()
    return "battery" if battery is not None and battery.power_plugged is False else "mains"


def _dirty() -> bool | None:
    status = _git("status", "--porcelain", "--untracked-files=no")
    return None if status is None else bool(status)


def _changes() -> str | None:
    changes = _git("diff", "HEAD", "--binary", "--no-ext-diff")
    return None if changes is None else hashlib.sha256(changes.encode()).hexdigest()


def _git(*arguments: str) -> str | None:
    """Output of git on the repository that this file is in; None without git or repository."""
    return _said(("git", *arguments))


def _said(command: Sequence[str]) -> str | None:
    """Output of a program; None where the program is absent or fails."""
    try:
        done = subprocess.run(
            command, cwd=_REPOSITORY, capture_output=True, text=True, errors="backslashreplace", timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
