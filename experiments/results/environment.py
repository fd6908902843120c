"""Environment of a sweep: the machine, the software, and the state of the machine before and after the sweep.

The state changes from hour to hour, for example with the load of other virtual machines. A changed state can change a
measured ratio. A folder of results has the environment in the file ``environment.json``. The keys of this file are the
fields of ``Environment``. The file may be published: it has no host name, no user name and no path. The value of an
unknown fact is ``unknown`` or null.
"""

import hashlib
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from experiments.peers import PEERS
from experiments.results import fingerprint
from experiments.results.files import read_json, write_json
from experiments.results.machine import calibrated_us, cores

ENVIRONMENT_FILE = "environment.json"

UNKNOWN = "unknown"

PACKAGES = ("grpcio", "protobuf", "numpy", "scipy", "hdrhistogram", "psutil", "msgspec", "hpack")
_REPOSITORY = Path(__file__).resolve().parents[2]

_WAKE_UPS = 50
"""Number of measured wake-ups of a sleeping thread. All wake-ups together take some 60 ms."""


@dataclass(frozen=True, slots=True)
class Busy:
    """State of the machine at one moment. Processor seconds are sums over all cores since the start of the kernel."""

    at: str
    """Time in ISO 8601, UTC. No measured value is computed from this time."""
    load_1_min: float
    cpu_busy_s: float
    """Processor seconds in which the cores were not idle. Includes ``cpu_steal_s``."""
    cpu_steal_s: float
    """Processor seconds that the hypervisor gave to other machines."""
    memory_available_mib: float
    fixed_work_us: float
    """Shortest time of five runs of a fixed computation. The time is longer while another virtual machine uses the
    hardware.
    """
    wake_up_us: float
    """Median time from one thread's signal until the waiting thread wakes. If a server's thread waits for requests,
    each request has this delay.
    """

    def __post_init__(self) -> None:
        datetime.fromisoformat(self.at)  # the ValueError makes the reader refuse a damaged file


@dataclass(frozen=True, slots=True)
class Environment:
    """Machine and software of one sweep, and the machine's state before and after the sweep."""

    machine: str
    cpu_model: str
    cores: int
    """Number of cores that this process may use."""
    smt_siblings: bool | None
    """True if two of the cores are hardware threads of one physical core. Such cores slow each other. None if unknown.
    """
    hypervisor: bool | None
    governor: str
    memory_mib: int
    system: str
    kernel: str
    clock: str
    """Name of the clock behind ``time.perf_counter``, and name of the kernel's clock source."""
    python: str
    gil: bool
    packages: dict[str, str]
    commit: str
    dirty: bool | None
    """True if a tracked file differed from the commit. None if unknown."""
    before: Busy
    after: Busy | None = None
    """State at the end of the sweep. None until the end."""
    changes: str | None = None
    """Digest of the differences from the commit. Two working trees with different changes have different digests. None
    if unknown."""
    languages: dict[str, str] = field(default_factory=dict)
    """Version line of the compiler or tool of each language in which a peer is written, by the language. A language has
    no entry if it needs no tool, or if the tool is not installed.
    """
    interfaces: tuple[str, ...] | None = None
    """Network interfaces that are up, without the loopback interface. None if unknown."""
    power: str = UNKNOWN
    """``mains`` or ``battery``. ``mains`` for a machine without a battery."""
    processes: int | None = None
    """Number of processes on the machine at the start. In a container, only the container's processes are counted. None
    if unknown."""
    sources: dict[str, str] = field(default_factory=dict)
    """Fingerprint of the measured sources (``fingerprint.py``). Empty in older recordings. A row of the fingerprint has
    two digests if its files changed during the sweep.
    """

    def __post_init__(self) -> None:
        if self.sources and "python" not in self.sources:
            raise ValueError("the sources lack the version of python")

    def decisive(self) -> tuple[str, ...]:
        """Texts of the facts that must be equal for all blocks of a sweep: commit, versions, kernel, processor and
        number of cores.
        """
        with_changes = f" with changes {(self.changes or UNKNOWN)[:12]}" if self.dirty else ""
        packages = [f"{name} {self.packages.get(name, UNKNOWN)}" for name in PACKAGES]
        commit = f"commit {self.commit[:12]}{with_changes}"
        return commit, self.python, *packages, self.kernel, self.cpu_model, f"{self.cores} cores"


def look() -> Environment:
    """Environment of this machine now, with the state of the machine as ``before``. Blocks for some 0.5 s."""
    clock_source = _read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    status = _git("status", "--porcelain", "--untracked-files=no")
    changes = _git("diff", "HEAD", "--binary", "--no-ext-diff")
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
        clock=f"{time.get_clock_info('perf_counter').implementation}, {clock_source}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        gil=getattr(sys, "_is_gil_enabled", lambda: True)(),  # exists from Python 3.13
        packages={name: fingerprint.version_of(name, UNKNOWN) for name in PACKAGES},
        commit=_git("rev-parse", "HEAD") or UNKNOWN,
        dirty=None if status is None else bool(status),
        before=busy(),
        changes=None if changes is None else hashlib.sha256(changes.encode()).hexdigest(),
        languages=_languages(),
        interfaces=_interfaces(),
        power=_power(),
        processes=len(psutil.pids()),
        sources=fingerprint.taken(),
    )


def busy() -> Busy:
    """State of this machine now. Blocks for some 70 ms."""
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
    """Median time from one thread's signal until the waiting thread wakes. Blocks for some 60 ms."""
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
    """Writes ``environment.json`` into the folder. Raises OSError."""
    write_json(folder / ENVIRONMENT_FILE, environment)


def load(folder: Path) -> Environment:
    """Environment of a folder of results. Raises UsageError for a folder without a readable ``environment.json``."""
    return read_json(folder / ENVIRONMENT_FILE, Environment)


def finish(folder: Path) -> None:
    """Completes a folder's environment at the end of a run: adds the machine's state, and the digests of changed
    sources.

    A second call keeps the state of the first call. Blocks for some 0.4 s. Raises UsageError, OSError.
    """
    kept = load(folder)
    save(replace(kept, after=kept.after or busy(), sources=fingerprint.lasting(kept.sources)), folder)


def _smt_siblings() -> bool | None:
    """True if two of this process's cores are hardware threads of one physical core. None if unknown.

    The kernel gives equal lists of siblings for the hardware threads of one physical core.
    """
    lists = [_read(Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")) for core in cores()]
    return None if UNKNOWN in lists else len(set(lists)) < len(lists)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() or UNKNOWN
    except OSError:  # another operating system, or a container that hides the file
        return UNKNOWN


def _cpu_info(key: str) -> str | None:
    """First value of a key in ``/proc/cpuinfo``. None for a missing key."""
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


def _languages() -> dict[str, str]:
    """Version line of the compiler or tool of each language, by the language. A missing tool has no entry."""
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
    except OSError:  # the container hides the interfaces
        return None


def _power() -> str:
    battery = psutil.sensors_battery()
    return "battery" if battery is not None and battery.power_plugged is False else "mains"


def _git(*arguments: str) -> str | None:
    """Output of a git command in this project's repository. None if the command fails, without git or without a
    repository.
    """
    return _said(("git", *arguments))


def _said(command: Sequence[str]) -> str | None:
    """Output of a command that runs in the project's folder. None if the program is missing, fails, or runs for over 10
    s.
    """
    try:
        done = subprocess.run(
            command, cwd=_REPOSITORY, capture_output=True, text=True, errors="backslashreplace", timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
