"""One run: a fresh server process, its load, and what was seen of both.

The server has the first core that this process may use and the load (clients and price updater) the second, where there
are two; otherwise nothing is pinned, and the rows say so. The server's processor time is read when the load client says
that the window begins and ends. Before the first run of a block with a kind of client, that client's floor is measured
at a server that does nothing; before every run, a fixed piece of work on the server's core. A server without clients is
watched for the window's length instead, with as many idle connections as the setting has; each has made one request.

Left out: retries. A run whose server or updater fails ends the sweep, which can be resumed.
"""

import json
import resource
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil

from clients.load.plan.load_plan import ClientKind, LoadPlan
from clients.load.record.result import ALL, LoadResult
from clients.load.run import fleet
from clients.load.run.floor import Floor, floor
from experiments import timeline
from experiments.design import Run, Setting
from experiments.environment import cores
from experiments.observation import LockWait, Machine, Observation
from experiments.server_process import READY_S, Program, kept_to
from experiments.services.workloads import REQUEST_TYPES
from stock_service.rpc import transports
from stock_service.rpc.errors import StockServiceError
from stock_service.rpc.transports import Address
from stock_service.trading.catalog_file import load as load_catalog
from stock_service.trading.service import LOOKUP
from stock_service.v1 import stock_pb2

UPDATER_INTERVAL_S = 0.02
"""Mean seconds between two updates: some fifty a second, so that the shortest window here has a good many."""

_CALIBRATION = 100_000
"""Numbers added up: some 2 ms."""

SETTLED_S = 0.1
"""After connecting: from when on a server's threads and connections are counted, which takes a millisecond or two."""

CONNECT_S = 5.0
"""How long an idle connection may take to be made, and for its one request."""


class RunInterrupted(StockServiceError):
    """Ctrl-C ended a run early: what it measured does not count."""


@dataclass(slots=True)
class Bench:
    """What every run of a sweep is executed on. One thread's."""

    catalog: Path
    """The stocks that are served and asked for."""
    server_cores: tuple[int, ...] | None
    """None, as is ``load_cores``: not pinned."""
    load_cores: tuple[int, ...] | None
    keep_records: bool = False
    """Whether every request's own times are kept too."""
    _floors: dict[tuple[int, str, ClientKind], Floor] = field(default_factory=dict)

    def execute(self, run: Run) -> Observation:
        """Does one run. Blocks; raises ProgramFailed, a Fault of connecting, RunInterrupted or OSError."""
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        setting = run.setting
        said = None if setting.clients == 0 else self._floor(run)
        calibration_us = calibrate(self.server_cores)
        with tempfile.TemporaryDirectory() as scratch:
            files = Files(
                Path(scratch) / "stats.json" if setting.lock_waits else None,
                Path(scratch) / "timeline" if setting.timeline else None,
            )
            stolen_before_s, began_s = stolen_s(cores()), time.monotonic()
            with Program(server_command(setting, self.catalog, files), self.server_cores) as server:
                address = server.ready()
                seen = (
                    self._idle(server, address, setting) if setting.clients == 0 else self._load(server, address, run)
                )
            passed_s = (time.monotonic() - began_s) * len(cores())
            steal_share = (stolen_s(cores()) - stolen_before_s) / passed_s
            waits = None if files.stats is None else read_lock_waits(files.stats)
            stages = None if files.timeline is None else read_stages(files.timeline, seen.load)
        return Observation(
            started_at=started_at,
            pinned=self.server_cores is not None,
            duration_s=seen.duration_s,
            server_cpu_s=seen.cpu_s,
            server_memory_mib=seen.memory_mib,
            load=seen.load,
            lock_waits=waits,
            updater_cpu_s=seen.updater_cpu_s,
            stages=stages,
            server_threads=seen.threads,
            server_connections=seen.connections,
            floor=said,
            machine=Machine(steal_share, calibration_us),
        )

    def _floor(self, run: Run) -> Floor:
        """What the run's kind of client adds of its own, measured once in each block."""
        key = (run.block, run.setting.transport, run.setting.client)
        if key not in self._floors:
            try:
                self._floors[key] = floor(run.setting.transport, run.setting.client, self.load_cores)
            except KeyboardInterrupt:
                raise RunInterrupted("interrupted") from None
        return self._floors[key]

    def _load(self, server: Program, address: Address, run: Run) -> "_Seen":
        """The server under its load."""
        setting = run.setting
        plan = LoadPlan(
            transport=setting.transport,
            address=address,
            clients=setting.clients,
            connections_per_client=setting.connections,
            mix=dict(setting.mix),
            stocks=tuple(stock.name for stock in load_catalog(self.catalog)),
            connection=setting.connection,
            warm_up_s=setting.warm_up_s,
            duration_s=setting.duration_s,
            seed=run.seed,
            cpus=self.load_cores,
            request_types=REQUEST_TYPES,
            client=setting.client,
            rate_hz=setting.rate_hz,
            arrivals=setting.arrivals,
            keep_records=self.keep_records,
        )
        size = Size(server, address, setting.clients * setting.connections, bool(setting.updater))
        meters = [CpuMeter(server.cpu_s)]
        with ExitStack() as beside:
            if setting.updater:
                updater = beside.enter_context(Program(updater_command(setting, address, run.seed), self.load_cores))
                updater.first_line(READY_S)
                meters.append(CpuMeter(updater.cpu_s))

            def watch(progress: fleet.Progress) -> None:
                for meter in meters:
                    meter.watch(progress)
                size.watch(progress)

            result = fleet.run(plan, watch)
            for meter in meters:
                meter.end()  # where its last client reported before the window was said to be over
        if result.interrupted:
            raise RunInterrupted("interrupted")
        server_cpu_s, *updater_cpu_s = (meter.spent_s(result.duration_s) for meter in meters)
        return _Seen(
            result.duration_s,
            server_cpu_s,
            server.memory_mib(),
            result,
            sum(spent or 0.0 for spent in updater_cpu_s),
            size.threads,
            size.connections,
        )

    def _idle(self, server: Program, address: Address, setting: Setting) -> "_Seen":
        """The server while nobody sends."""
        with ExitStack() as held:
            hold_idle(setting.transport, address, setting.connections, held)
            if setting.warm_up_s:
                _pause(setting.warm_up_s)
            meter = CpuMeter(server.cpu_s)
            meter.begin(setting.duration_s)
            _pause(setting.duration_s)
            meter.end()
            spent_s = meter.spent_s(setting.duration_s)
            memory_mib, threads = server.memory_mib(), server.threads()
            return _Seen(setting.duration_s, spent_s, memory_mib, None, 0.0, threads, server.connections(address))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of the server while it ran."""

    duration_s: float
    cpu_s: float | None
    memory_mib: float
    load: LoadResult | None
    updater_cpu_s: float
    threads: int | None
    connections: int | None


@dataclass(frozen=True, slots=True)
class Files:
    """Where a server is to write what it has timed, when it stops; None: it times nothing."""

    stats: Path | None = None
    timeline: Path | None = None


def bench(catalog: Path, keep_records: bool = False) -> Bench:
    """A bench on this machine: server and load have a core each where there are two."""
    own = cores()
    if len(own) < 2:
        return Bench(catalog, None, None, keep_records)
    return Bench(catalog, own[:1], own[1:2], keep_records)


def calibrate(on: tuple[int, ...] | None) -> float:
    """How many µs a fixed piece of work takes here, the best of five: a machine that drifts shows in it. Some 10 ms.

    On these cores, as this thread then is for so long; None, or where the system pins nothing: on any. Raises OSError.
    """
    with kept_to(on):
        return _calibrated_us()


def _calibrated_us() -> float:
    return min(timeit.repeat(lambda: sum(range(_CALIBRATION)), number=1, repeat=5)) * 1e6


def stolen_s(of: Iterable[int]) -> float:
    """Processor seconds of these cores that the hypervisor has given to others since the machine started."""
    by_core = dict(enumerate(psutil.cpu_times(percpu=True)))
    return sum(float(getattr(by_core.get(core), "steal", 0.0)) for core in of)


@dataclass(slots=True)
class Size:
    """How many threads the server has and how many connections of the load, the most that were seen. One thread's.

    Counted in the warm-up. A client whose connection was not there yet is looked for once more as the window begins;
    where the warm-up was too short to look at all, threads are counted at the window's end, when clients may have gone.
    """

    server: Program
    address: Address
    expected: int
    """Connections that the clients are to have."""
    beside: bool
    """Whether a price updater has one too."""
    threads: int | None = None
    connections: int | None = None
    _window_begun: bool = False

    def watch(self, progress: fleet.Progress) -> None:
        """Told by the load client how far it is."""
        early = progress.phase == "warm-up" and progress.elapsed_s >= SETTLED_S
        missing = self.connections is not None and self.connections < self.expected
        begins = progress.phase == "measuring" and not self._window_begun
        self._window_begun = self._window_begun or begins
        if early or (begins and missing):
            self.threads = max(self.threads or 0, self.server.threads())
            counted = self.server.connections(self.address) - self.beside
            self.connections = max(self.connections or 0, counted)
        elif progress.phase == "finishing" and self.threads is None:
            self.threads = self.server.threads()


class CpuMeter:
    """Reads a process's processor time at the beginning and the end of a window. One thread's.

    Where the news that the window has begun comes late, the time that is left of it is what the reading is divided by;
    where the news that it has ended does, nobody has sent meanwhile, so that there is nothing to correct.
    """

    def __init__(self, cpu_s: Callable[[], float]) -> None:
        self._cpu_s = cpu_s
        self._began_s: float | None = None
        self._left_s = 0.0
        self._spent_s: float | None = None

    def watch(self, progress: fleet.Progress) -> None:
        """Told by the load client how far it is: reads when the window begins, and when it ends."""
        if progress.phase == "measuring":
            self.begin(progress.remaining_s)
        elif progress.phase == "finishing":
            self.end()

    def begin(self, left_s: float) -> None:
        """Reads, the first time, with so much of the window left."""
        if self._began_s is None:
            self._began_s, self._left_s = self._cpu_s(), left_s

    def end(self) -> None:
        """Reads, the first time after ``begin``."""
        if self._began_s is not None and self._spent_s is None:
            self._spent_s = self._cpu_s() - self._began_s

    def spent_s(self, window_s: float) -> float | None:
        """Processor seconds of a window this long; None where the news of its beginning came after its end."""
        if self._spent_s is None or self._left_s <= 0:
            return None
        return self._spent_s / self._left_s * window_s


def server_command(setting: Setting, catalog: Path, files: Files = Files()) -> list[str]:
    """The command that serves a setting."""
    if setting.service == "stock":
        command = ["-m", "stock_service", "serve", "--catalog", str(catalog), "--locking", setting.locking]
    else:
        command = ["-m", "experiments.services", "serve", setting.service]
    command += ["--transport", setting.transport, "--port", "0"]
    command += ["--executor", setting.executor, "--workers", str(setting.workers)]
    if setting.transport == "sockets":
        command += ["--dispatch", setting.dispatch]
    if files.stats is not None:
        command += ["--stats", str(files.stats)]
    if files.timeline is not None:
        command += ["--timeline", str(files.timeline)]
    return [sys.executable, *command]


def updater_command(setting: Setting, address: Address, seed: int) -> list[str]:
    """The command that runs a price updater beside the clients."""
    where = ["--transport", setting.transport, "--address", f"{address[0]}:{address[1]}"]
    pace = ["--interval-s", str(UPDATER_INTERVAL_S), "--seed", str(seed)]
    return [sys.executable, "-m", "clients.price_updater", *where, *pace]


def read_lock_waits(stats_file: Path) -> Mapping[str, LockWait]:
    """What a server wrote with ``--stats``. Where no lock was waited for, since none is needed, the wait is 0."""
    document = json.loads(stats_file.read_text(encoding="utf-8"))["lock_waits_ns"]
    return {
        kind: LockWait(waits.get("mean", 0.0) / 1000, waits.get("p99", 0.0) / 1000) for kind, waits in document.items()
    }


def read_stages(file: Path, load: LoadResult | None) -> Mapping[str, timeline.StageSummary]:
    """What a server wrote with ``--timeline``, of the requests in the load's window, by request type, and of all."""
    assert load is not None
    start_ns = load.start_ns
    end_ns = start_ns + round(load.duration_s * 1e9)
    by_path = timeline.summary(timeline.load(file), start_ns, end_ns)
    return {ALL if path == ALL else path.rpartition("/")[2].lower(): stages for path, stages in by_path.items()}


def hold_idle(transport: str, address: Address, connections: int, held: ExitStack) -> None:
    """Makes connections, one request on each, and leaves them open in ``held``. Raises a Fault."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    payload = stock_pb2.LookupRequest(name="GameStart").SerializeToString()
    connect = transports.load(transport).connect
    for _ in range(connections):
        connection = held.enter_context(closing(connect(address, CONNECT_S)))
        connection.call(LOOKUP, payload, CONNECT_S)


def _pause(seconds: float) -> None:
    """Waits, doing nothing."""
    threading.Event().wait(seconds)
