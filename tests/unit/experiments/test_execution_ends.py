"""However a run ends, nothing of it is left: no process, no descriptor, no thread, no temporary file."""

import contextlib
import dataclasses
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from clients.load.run import fleet
from experiments.design import Run
from experiments.execution import RunInterrupted, bench
from experiments.server_process import ProgramFailed
from experiments.studies.stock import CATALOG
from stock_service.rpc.errors import Fault
from tests.leaks import footprint
from tests.unit.experiments.test_execution import SETTING, execute


def ours(command: str) -> list[psutil.Process]:
    """Processes below this one whose command has these words."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if command in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:  # it has just ended
            continue
    return found


def listening(command: str) -> list[psutil.Process]:
    """Those of them that listen: whoever started them waits for, or has, their ready line."""
    found = []
    for process in ours(command):
        try:
            if any(one.status == psutil.CONN_LISTEN for one in process.net_connections("tcp")):
                found.append(process)
        except psutil.Error:
            continue
    return found


def sending() -> list[psutil.Process]:
    """The load client's processes: children of the fork server."""
    return [child for server in ours("forkserver") for child in server.children()]


class Strike(threading.Thread):
    """Waits for processes and then strikes, once, in a thread of its own."""

    def __init__(self, there: Callable[[], list[psutil.Process]], strike: Callable[[psutil.Process], object]) -> None:
        super().__init__(name="strike")
        self._there, self._strike = there, strike
        self.struck = False

    def run(self) -> None:
        deadline_s = time.monotonic() + 20
        while time.monotonic() < deadline_s:
            with contextlib.suppress(psutil.Error):
                for process in self._there()[:1]:
                    self._strike(process)
                    self.struck = True
                    return
            threading.Event().wait(0.002)


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails the test that leaves a process, a descriptor, a thread or a temporary file behind."""
    fleet.warm()  # the fork server stays, whoever started it
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, held = {process.pid for process in psutil.Process().children(recursive=True)}, footprint()
    yield
    started = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
    _, left = psutil.wait_procs(started, timeout=5)
    assert left == []
    assert held.leaks() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("there", [partial(listening, "null_server"), sending], ids=["connecting", "sending"])
def test_ctrl_c_while_the_floor_is_measured_leaves_nothing(there: Callable[[], list[psutil.Process]]) -> None:
    """Neither the server that does nothing, nor its client, nor a run half done."""
    strike = Strike(there, lambda _: os.kill(os.getpid(), signal.SIGINT))
    strike.start()
    with pytest.raises(RunInterrupted):
        execute(SETTING)
    strike.join()
    assert strike.struck


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("there", [partial(listening, "stock_service serve"), sending], ids=["at once", "under load"])
def test_a_server_that_dies_ends_the_run_and_nothing_is_left(there: Callable[[], list[psutil.Process]]) -> None:
    """Killed when it has begun to listen, or while clients send: no rows, and no client that goes on."""
    on = bench(CATALOG)
    long = dataclasses.replace(SETTING, clients=3, duration_s=5.0)
    on.execute(Run("001-001", 1, 1, 5, dataclasses.replace(SETTING, duration_s=0.02)))  # with the floor
    strike = Strike(lambda: listening("stock_service serve") if there() else [], lambda process: process.send_signal(9))
    strike.start()
    with pytest.raises((ProgramFailed, Fault)):
        on.execute(Run("001-002", 1, 2, 5, long))
    strike.join()
    assert strike.struck


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_left")
def test_a_run_that_fails_or_ends_leaves_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    """With a server that cannot start, an updater that cannot update, every file there can be, and no client."""
    other = tmp_path_factory.mktemp("catalog") / "other.toml"
    other.write_text('[[stocks]]\nname = "Other"\nprice = 1\nvolume_limit = 1\n')
    quick = dataclasses.replace(SETTING, warm_up_s=0.01, duration_s=0.05)
    for catalog, updater in ((Path("no_such.toml"), False), (other, True)):
        with pytest.raises(ProgramFailed):
            execute(dataclasses.replace(quick, updater=updater), dataclasses.replace(bench(CATALOG), catalog=catalog))
    execute(dataclasses.replace(quick, updater=True, lock_waits=True, timeline=True))
    execute(dataclasses.replace(quick, clients=0, connections=5))
