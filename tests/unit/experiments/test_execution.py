"""One run: the server that the setting asks for, and processor time of the very window that is counted."""

import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from clients.load.run.fleet import Progress
from clients.load.run.floor import Floor
from experiments.design import ECHO, LOOKUP_AND_TRADE, Run, Setting
from experiments.environment import cores
from experiments.execution import (
    Bench,
    CpuMeter,
    Files,
    Size,
    bench,
    calibrate,
    read_lock_waits,
    server_command,
    updater_command,
)
from experiments.observation import LockWait, rows
from experiments.results import Row, parse_counts
from experiments.server_process import Program, ProgramFailed
from experiments.studies.stock import CATALOG
from stock_service.rpc.errors import UsageError

SETTING = Setting("figure_4", warm_up_s=0.05, duration_s=0.2, workers=3)


def execute(setting: Setting, on: Bench | None = None) -> list[Row]:
    """One run of a setting on this machine."""
    run = Run("001-001", 1, 1, 5, setting)
    return rows("stock", run, (on or bench(CATALOG)).execute(run))


def test_the_servers_command_says_every_factor_of_the_setting() -> None:
    """Transport, executor, workers, locking, and the dispatch where there is a choice."""
    setting = dataclasses.replace(SETTING, locking="snapshot", dispatch="connection", executor="thread-pool")
    command = " ".join(server_command(setting, Path("a.toml"), Files(Path("s.json"), Path("t.zip")))[1:])
    assert command.startswith("-m stock_service serve")
    for option in (
        "--transport sockets",
        "--executor thread-pool",
        "--workers 3",
        "--locking snapshot",
        "--dispatch connection",
        "--catalog a.toml",
        "--stats s.json",
        "--timeline t.zip",
        "--port 0",
    ):
        assert option in command


def test_nothing_is_timed_in_the_server_unasked_and_grpc_has_no_dispatch() -> None:
    """An option that a server does not have would end it."""
    command = server_command(dataclasses.replace(SETTING, transport="grpc"), Path("a.toml"))
    assert "--stats" not in command
    assert "--timeline" not in command
    assert "--dispatch" not in command


def test_a_studys_own_service_is_served_without_a_catalog() -> None:
    """On the same transport, executor and workers."""
    command = " ".join(server_command(dataclasses.replace(SETTING, service="echo"), Path("a.toml"))[1:])
    assert command.startswith("-m experiments.services serve echo --transport sockets")
    assert "--workers 3" in command
    assert "--catalog" not in command


def test_the_updater_goes_to_the_same_server() -> None:
    """By its transport and address, seeded."""
    command = " ".join(updater_command(SETTING, ("127.0.0.1", 77), 5)[1:])
    assert command.startswith("-m clients.price_updater --transport sockets --address 127.0.0.1:77")
    assert command.endswith("--seed 5")


def test_processor_time_is_read_once_at_each_end_of_the_window() -> None:
    """Neither the warm-up's nor what comes after counts, and what is said in between changes nothing."""
    spent_s = {"starting": 0.0, "warm-up": 0.2, "first": 0.3, "again": 0.5, "end": 1.1, "later": 9.9}
    at = "starting"
    meter = CpuMeter(lambda: spent_s[at])
    told: tuple[tuple[str, Progress], ...] = (
        ("starting", Progress("starting", 0, 0.0, 1.2)),
        ("warm-up", Progress("warm-up", 0, 0.1, 1.1)),
        ("first", Progress("measuring", 0, 0.2, 1.0)),
        ("again", Progress("measuring", 0, 0.5, 0.7)),
        ("end", Progress("finishing", 0, 1.2, 0.0)),
        ("later", Progress("finishing", 0, 1.4, 0.0)),
    )
    for at, progress in told:  # noqa: B007  # the reading of that moment
        meter.watch(progress)
    assert meter.spent_s(1.0) == pytest.approx(0.8)


def test_news_that_comes_late_changes_no_rate() -> None:
    """A server at 0.8 of a core, read 0.2 s after the window began, and long after it ended, when it was idle."""
    spent_s = iter((0.8 * 0.2, 0.8 * 1.0))
    meter = CpuMeter(lambda: next(spent_s))
    meter.watch(Progress("measuring", 0, 0.3, 0.8))
    meter.end()
    assert meter.spent_s(1.0) == pytest.approx(0.8)


def test_a_window_that_was_not_seen_has_no_processor_time() -> None:
    """No number out of the air, and no end of the sweep: the news of its beginning came when it was over."""
    meter = CpuMeter(lambda: 1.0)
    meter.end()
    assert meter.spent_s(1.0) is None
    meter.begin(0.0)
    meter.end()
    assert meter.spent_s(1.0) is None


def test_lock_waits_come_in_microseconds_and_are_zero_where_no_lock_is_needed(tmp_path: Path) -> None:
    """As a snapshot's readers need none."""
    file = tmp_path / "stats.json"
    write = {"count": 2, "mean": 1500.0, "p50": 1, "p90": 1, "p99": 9000.0, "max": 1}
    file.write_text(json.dumps({"lock_waits_ns": {"read": {"count": 0}, "write": write}}))
    assert read_lock_waits(file) == {"read": LockWait(0.0, 0.0), "write": LockWait(1.5, 9.0)}


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["grpc", "sockets"])
def test_a_run_is_measured_on_either_transport(transport: str) -> None:
    """Latency, throughput, processor time and memory are there, agree, and nothing failed."""
    lookup, trade, everything = execute(
        dataclasses.replace(
            SETTING,
            transport=transport,
            clients=2,
            mix=LOOKUP_AND_TRADE,
            lock_waits=True,
            warm_up_s=1.0,
            duration_s=0.5,
        )
    )
    assert everything.errors == everything.starved_clients == 0
    assert everything.count == lookup.count + trade.count > 50
    assert parse_counts(everything.outcomes) == {"OK": everything.count}
    assert everything.response_us_mean is not None
    assert everything.n_over_x_us == pytest.approx(everything.response_us_mean, rel=0.5)
    assert everything.server_cpu_s is not None
    assert 0 < everything.server_cpu_s < 0.5 * len(cores()) + 0.05
    assert everything.server_memory_mib is not None
    assert everything.server_memory_mib > 5
    assert everything.pinned is (len(cores()) > 1)
    assert lookup.lock_wait_us_mean is not None


@pytest.mark.slow
def test_the_updater_runs_beside_the_clients_and_is_in_no_row() -> None:
    """Its requests are not the clients'; it is gone afterwards, or the run would have failed."""
    rows = execute(dataclasses.replace(SETTING, updater=True))
    assert [row.request for row in rows] == ["lookup", "all"]
    assert rows[-1].errors == 0
    assert rows[-1].updater is True


@pytest.mark.slow
def test_an_updater_that_cannot_update_ends_the_run(tmp_path: Path) -> None:
    """An updater that does nothing would silently change what is measured: here, of stocks that it does not know."""
    other = tmp_path / "other.toml"
    other.write_text('[[stocks]]\nname = "Other"\nprice = 1\nvolume_limit = 1\n')
    with pytest.raises(ProgramFailed, match=r"clients\.price_updater.*exit code 1"):
        execute(dataclasses.replace(SETTING, updater=True), dataclasses.replace(bench(CATALOG), catalog=other))


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["grpc", "sockets"])
def test_an_echo_is_measured_like_a_lookup(transport: str) -> None:
    """Its replies checked, on several connections of one client."""
    setting = dataclasses.replace(SETTING, transport=transport, service="echo", mix=ECHO, connections=4)
    echo, everything = execute(setting)
    assert (echo.request, echo.errors, everything.starved_clients) == ("echo", 0, 0)
    assert echo.count > 50


@pytest.mark.slow
def test_an_idle_server_is_watched_with_its_connections_held() -> None:
    """It sleeps, and each connection costs it memory."""
    base = dataclasses.replace(SETTING, part="idle", clients=0, connections=0)
    (without,) = execute(base)
    (with_many,) = execute(dataclasses.replace(base, connections=200))
    assert without.server_cpu_s is not None
    assert without.server_cpu_s < 0.05
    assert without.count == with_many.count == 0
    assert without.server_memory_mib is not None
    assert with_many.server_memory_mib is not None
    assert with_many.server_memory_mib > without.server_memory_mib


@pytest.mark.slow
def test_clients_beyond_a_pool_that_holds_threads_are_starved_and_no_error() -> None:
    """Three threads, five clients, one connection a thread: two never get a reply."""
    everything = execute(dataclasses.replace(SETTING, clients=5, dispatch="connection"))[-1]
    assert everything.starved_clients == 2
    assert everything.errors == 0


@pytest.mark.slow
def test_a_server_that_cannot_start_ends_the_run_with_what_it_said() -> None:
    """Here: a catalog that is not there."""
    on = dataclasses.replace(bench(CATALOG), catalog=Path("no_such.toml"))
    with pytest.raises(ProgramFailed, match=r"no_such\.toml"):
        execute(SETTING, on)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["grpc", "sockets"])
def test_stages_threads_and_connections_of_a_run_are_seen(transport: str) -> None:
    """The stages of each request type and of all; as many connections as were made, and the pool's threads at least."""
    setting = dataclasses.replace(SETTING, transport=transport, clients=2, connections=3, workers=6, timeline=True)
    setting = dataclasses.replace(setting, warm_up_s=0.5)  # long enough for connections to be counted in it
    lookup, trade, everything = execute(dataclasses.replace(setting, mix=LOOKUP_AND_TRADE))
    for row in (lookup, trade, everything):
        assert row.stage_violation_share == 0
        assert row.stage_total_us_mean is not None
        assert row.response_us_mean is not None
        parts = (row.stage_queue_us_mean, row.stage_preparation_us_mean, row.stage_lock_us_mean)
        total = sum(part or 0.0 for part in (*parts, row.stage_service_us_mean, row.stage_reply_us_mean))
        assert total == pytest.approx(row.stage_total_us_mean)
    assert everything.server_connections == 6
    assert everything.server_threads is not None
    assert everything.server_threads >= 6
    assert everything.floor_us_p50 is not None
    assert everything.floor_us_p50 > 1
    assert everything.calibration_us is not None
    assert everything.calibration_us > 100
    assert everything.lost == 0


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["grpc", "sockets"])
def test_requests_are_sent_at_the_rate_of_the_setting_by_the_client_that_it_names(transport: str) -> None:
    """An open loop of the lean client; how late it sent is known, and every request's own times where they are kept."""
    setting = dataclasses.replace(SETTING, transport=transport, client="lean", connections=4, rate_hz=300.0)
    run = Run("001-001", 1, 1, 5, dataclasses.replace(setting, duration_s=1.0))
    seen = bench(CATALOG, keep_records=True).execute(run)
    everything = rows("stock", run, seen)[-1]
    assert (everything.loop, everything.client, everything.rate_hz) == ("open", "lean", 300.0)
    assert 200 < everything.count < 400  # Poisson: 300 ± 17
    assert everything.errors == everything.lost == 0
    assert everything.late_us_p99 is not None
    assert everything.arrival_variation is not None
    assert seen.load is not None
    assert seen.load.raw is not None
    assert len(seen.load.raw.due_ns) == seen.load.recorded > everything.count


@pytest.mark.slow
def test_a_floor_is_measured_once_in_a_block_for_each_kind_of_client() -> None:
    """The next run of it has the very same; another kind and another block have their own; an idle server, none."""
    on, own = bench(CATALOG), cores()
    library = dataclasses.replace(SETTING, warm_up_s=0.01, duration_s=0.02)
    lean = dataclasses.replace(library, client="lean")
    floors = [
        on.execute(Run(f"00{block}-001", block, 1, 5, setting)).floor
        for block, setting in ((1, library), (1, lean), (1, library), (2, library))
    ]
    assert None not in floors
    assert floors[0] is floors[2]
    assert len({id(each) for each in floors}) == 3
    assert on.execute(Run("002-002", 2, 2, 5, dataclasses.replace(library, clients=0))).floor is None
    assert cores() == own  # which it leaves for a moment, to calibrate


@pytest.mark.slow
def test_the_load_is_sent_by_the_settings_own_kind_of_client() -> None:
    """One that there is not is refused where the load is planned, here with a floor that is known."""
    pigeon: Any = "pigeon"
    setting = dataclasses.replace(SETTING, client=pigeon)
    on = dataclasses.replace(bench(CATALOG), _floors={(1, "sockets", pigeon): Floor(1.0, 2.0)})
    with pytest.raises(UsageError, match="--client: got 'pigeon'"):
        on.execute(Run("001-001", 1, 1, 5, setting))


class Early(Exception):
    """Ends a calibration."""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins nothing")
def test_a_calibration_leaves_its_thread_on_the_cores_where_it_was() -> None:
    """Also when it is cut short, or is asked for a core that no machine has."""
    before = os.sched_getaffinity(0)

    def end(*_: object) -> None:
        raise Early

    def cut_short() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        calibrate(cores()[-1:])  # takes three times as long

    assert calibrate(None) > 0
    assert calibrate(cores()[-1:]) > 0
    assert os.sched_getaffinity(0) == before
    with pytest.raises(OSError, match="Invalid argument"):
        calibrate((100_000,))
    assert os.sched_getaffinity(0) == before
    handler = signal.signal(signal.SIGALRM, end)
    try:
        with pytest.raises(Early):
            cut_short()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert os.sched_getaffinity(0) == before


class Counted:
    """A server that has so many connections, one number each time it is asked; threads as many."""

    def __init__(self, *counts: int) -> None:
        self._counts = list(counts)

    def connections(self, _: object) -> int:
        """The next number."""
        return self._counts.pop(0)

    def threads(self) -> int:
        """The same."""
        return self._counts[0]


@pytest.mark.parametrize(
    ("counts", "beside", "said"),
    [
        ((0, 3, 5, 9), False, 5),
        ((5, 4, 4, 9), False, 5),
        ((0, 3, 3, 5, 9), False, 5),
        ((0, 3, 3, 4, 9), False, 4),
        ((1, 4, 6, 9), True, 5),
    ],
    ids=["they come", "some have gone", "one is late", "one is missing", "the updater has one too"],
)
def test_connections_are_counted_while_the_clients_connect(counts: tuple[int, ...], beside: bool, said: int) -> None:
    """The most of the warm-up; once more as the window begins, where one is missing; and never in it."""
    server = cast("Program", Counted(*counts))
    size = Size(server, ("127.0.0.1", 1), 5, beside)
    size.watch(Progress("starting", 5, 0.0, 1.0))
    for elapsed_s in (0.0, 0.2, 0.4, 0.6):
        size.watch(Progress("warm-up", 5, elapsed_s, 1.0))
    for elapsed_s in (0.8, 1.0):
        size.watch(Progress("measuring", 5, elapsed_s, 0.5))
    size.watch(Progress("finishing", 5, 2.0, 0.0))
    assert size.connections == said


def test_threads_are_counted_at_the_end_after_a_warm_up_that_was_too_short() -> None:
    """And connections not at all, since clients may have gone."""
    size = Size(cast("Program", Counted(7)), ("127.0.0.1", 1), 5, beside=False)
    size.watch(Progress("warm-up", 5, 0.0, 1.0))
    size.watch(Progress("measuring", 5, 0.1, 1.0))
    size.watch(Progress("finishing", 5, 1.1, 0.0))
    assert (size.threads, size.connections) == (7, None)
