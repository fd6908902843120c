"""Foreign processor time: the measurement's own processes, with short-lived children, and foreign processes."""

import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.measure.others import MachineWatch
from experiments.results.machine import cores
from experiments.results.observed import RoundSeen

SERVER, CLIENT, FOREIGN = 70_001, 70_002, 70_003


class Machine:
    """A machine with this machine's cores, whose kernel reports the given values."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.now_s = 100.0
        self.cpu_ns: dict[int, int] = {}
        self.ticks = dict.fromkeys(("idle", "iowait", "irq", "softirq", "steal"), 0)
        self.process(os.getpid(), 1)
        self.process(SERVER, os.getpid())
        self.process(CLIENT, SERVER)
        self.process(FOREIGN, 1)
        self.tick()

    def process(self, pid: int, parent: int, children_ticks: int = 0) -> None:
        """A process, and the ticks of its children that have ended."""
        (self.proc / str(pid)).mkdir(exist_ok=True)
        words = ["S", parent, *[0] * 11, children_ticks, 0, *[0] * 10]
        (self.proc / str(pid) / "stat").write_text(f"{pid} (a (name) x) {' '.join(map(str, words))}")
        self.cpu_ns.setdefault(pid, 0)

    def tick(self) -> None:
        """Writes the first core's counters. The other cores are idle."""
        lines = [f"cpu{core} 0 0 0 {round(self.now_s * 100)} 0 0 0 0" for core in cores()[1:]]
        counters = " ".join(map(str, self.ticks.values()))
        (self.proc / "stat").write_text("\n".join([f"cpu{cores()[0]} 0 0 0 {counters}", *lines]))

    def watch(self, is_alone: bool = True) -> MachineWatch:
        """An observer that begins now."""
        return MachineWatch(is_alone, self.proc, lambda: self.now_s, lambda pids: sum(self.cpu_ns[pid] for pid in pids))


def _family_leaves(machine: Machine) -> None:
    machine.cpu_ns[SERVER] += 600_000_000
    machine.process(SERVER, os.getpid(), children_ticks=15)
    (machine.proc / str(CLIENT) / "stat").unlink()
    (machine.proc / str(CLIENT)).rmdir()


@pytest.mark.parametrize(
    ("happens", "stolen", "foreign"),
    [
        pytest.param(lambda of: of.cpu_ns.update({SERVER: 600_000_000, CLIENT: 150_000_000}), 0, 0, id="servers"),
        pytest.param(lambda of: of.process(SERVER, os.getpid(), children_ticks=75), 0, 0, id="a child that ended"),
        pytest.param(_family_leaves, 0, 0, id="a family that leaves"),
        pytest.param(lambda of: of.cpu_ns.update({FOREIGN: 750_000_000}), 0, 75, id="a foreign process"),
        pytest.param(lambda of: of.ticks.update(irq=5, softirq=70), 0, 0, id="softirq in no process"),
        pytest.param(lambda of: of.ticks.update(steal=75), 75, 0, id="stolen"),
    ],
)
def test_whose_the_time_was(tmp_path: Path, happens: Callable[[Machine], object], stolen: int, foreign: int) -> None:
    """Of 100 ticks, 25 were idle. The other 75 ticks belong to the measurement, a foreign process or the hypervisor."""
    machine = Machine(tmp_path)
    watch = machine.watch()
    machine.now_s += 1
    machine.ticks["idle"] = 25
    happens(machine)
    machine.tick()
    seen = watch.seen()
    assert seen.duration_s == pytest.approx(1.0)
    assert (seen.steal_ticks, seen.foreign_ticks) == (stolen, foreign)
    assert watch.seen() == RoundSeen(0.0, 0, 0)


def test_what_cannot_be_told_is_not_told(tmp_path: Path) -> None:
    """Foreign time is unknown if a server ran already, or if the system lacks the counters."""
    assert Machine(tmp_path).watch(is_alone=False).seen().foreign_ticks is None
    assert MachineWatch(proc=tmp_path / "absent").seen().foreign_ticks is None


@pytest.mark.slow
def test_a_real_neighbour_is_seen() -> None:
    """A computing orphan is foreign. A computing child is not, even after its end."""
    watch = MachineWatch()
    busy = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.25: pass"]
    subprocess.run(busy, check=True)
    beside_child = watch.seen()
    pid = int(subprocess.check_output(["sh", "-c", '"$@" >/dev/null 2>&1 & echo $!', "sh", *busy]))
    with open(os.pidfd_open(pid), "rb", buffering=0) as ended:
        assert select.select([ended], [], [], 20)[0]
    beside_neighbour = watch.seen()
    assert beside_child.foreign_ticks is not None
    assert beside_neighbour.foreign_ticks is not None
    others = len(cores()) * beside_child.duration_s * 100 - 20  # whatever else this machine does
    assert beside_child.foreign_ticks < others
    assert beside_neighbour.foreign_ticks > 20
