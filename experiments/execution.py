"""One run: a fresh server process, its load, and what became of both, as rows.

The server has the first core that this process may use and the load (clients and price updater) the second, where there
are two; otherwise nothing is pinned, and the rows say so. The server's processor time is read when the load client says
that the window begins and ends. A server without clients is watched for the window's length instead, with as many idle
connections as the setting has; each has made one request.

Left out: retries. A run whose server or updater fails ends the sweep, which can be resumed.
"""

import json
import resource
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clients.load import fleet
from clients.load.plan import LoadPlan
from clients.load.result import LoadResult
from experiments.design import Run, Setting
from experiments.environment import cores
from experiments.observation import LockWait, Observation, rows
from experiments.results import Row
from experiments.server_process import READY_S, Program
from experiments.services.workloads import REQUEST_TYPES
from stock_service import transports
from stock_service.catalog_file import load as load_catalog
from stock_service.errors import StockServiceError
from stock_service.service import LOOKUP
from stock_service.transports import Address
from stock_service.v1 import stock_pb2

UPDATER_INTERVAL_S = 0.02
"""Mean seconds between two updates: some fifty a second, so that the shortest window here has a good many."""

CONNECT_S = 5.0
"""How long an idle connection may take to be made, and for its one request."""


class RunInterrupted(StockServiceError):
    """Ctrl-C ended a run early: what it measured does not count."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What every run of a sweep is executed on."""

    study: str
    catalog: Path
    """The stocks that are served and asked for."""
    server_cores: tuple[int, ...] | None
    """None, as is ``load_cores``: not pinned."""
    load_cores: tuple[int, ...] | None

    def execute(self, run: Run) -> list[Row]:
        """Does one run. Blocks; raises ProgramFailed, a Fault of connecting, RunInterrupted or OSError."""
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        setting = run.setting
        with tempfile.TemporaryDirectory() as scratch:
            stats_file = Path(scratch) / "stats.json" if setting.lock_waits else None
            with Program(server_command(setting, self.catalog, stats_file), self.server_cores) as server:
                address = server.ready()
                seen = (
                    self._idle(server, address, setting) if setting.clients == 0 else self._load(server, address, run)
                )
            waits = None if stats_file is None else read_lock_waits(stats_file)
        observation = Observation(
            started_at=started_at,
            pinned=self.server_cores is not None,
            duration_s=seen.duration_s,
            server_cpu_s=seen.cpu_s,
            server_memory_mib=seen.memory_mib,
            load=seen.load,
            lock_waits=waits,
            updater_cpu_s=seen.updater_cpu_s,
        )
        return rows(self.study, run, observation)

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
        )
        meters = [CpuMeter(server.cpu_s)]
        with ExitStack() as beside:
            if setting.updater:
                updater = beside.enter_context(Program(updater_command(setting, address, run.seed), self.load_cores))
                updater.first_line(READY_S)
                meters.append(CpuMeter(updater.cpu_s))

            def watch(progress: fleet.Progress) -> None:
                for meter in meters:
                    meter.watch(progress)

            result = fleet.run(plan, watch)
            for meter in meters:
                meter.end()  # where its last client reported before the window was said to be over
        if result.interrupted:
            raise RunInterrupted("interrupted")
        server_cpu_s, *updater_cpu_s = (meter.spent_s(result.duration_s) for meter in meters)
        return _Seen(result.duration_s, server_cpu_s, server.memory_mib(), result, sum(s or 0.0 for s in updater_cpu_s))

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
            return _Seen(setting.duration_s, meter.spent_s(setting.duration_s), server.memory_mib(), None)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of the server while it ran."""

    duration_s: float
    cpu_s: float | None
    memory_mib: float
    load: LoadResult | None
    updater_cpu_s: float = 0.0


def bench(study: str, catalog: Path) -> Bench:
    """A bench on this machine: server and load have a core each where there are two."""
    own = cores()
    if len(own) < 2:
        return Bench(study, catalog, None, None)
    return Bench(study, catalog, own[:1], own[1:2])


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


def server_command(setting: Setting, catalog: Path, stats_file: Path | None) -> list[str]:
    """The command that serves a setting."""
    if setting.service == "stock":
        command = ["-m", "stock_service", "serve", "--catalog", str(catalog), "--locking", setting.locking]
    else:
        command = ["-m", "experiments.services", "serve", setting.service]
    command += ["--transport", setting.transport, "--port", "0"]
    command += ["--executor", setting.executor, "--workers", str(setting.workers)]
    if setting.transport == "sockets":
        command += ["--dispatch", setting.dispatch]
    if stats_file is not None:
        command += ["--stats", str(stats_file)]
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
