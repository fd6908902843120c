"""Runs from several hosts: exact sums and percentiles, and a refusal with the host's name for a spoiled run.

The hosts are two processes of this machine; ``tests/reliability/hosts.py`` has them in networks of their own.
"""

import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from clients.load import command
from clients.load.hosts import cluster, share
from clients.load.hosts.cluster import Refused
from clients.load.hosts.merging import HostResult, together
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import ALL, combine, from_json, to_json
from clients.load.run import fleet
from clients.load.run.fleet import Progress
from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep, Windows
from experiments.measure.bench import CATALOG, Hosts, bench
from experiments.measure.runner import measure_block
from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import shown_address
from tests.cluster import SCHEDULER, Cluster, wait_for
from tests.cluster import cluster as started
from tests.conformance.running import until
from tests.unit.clients.load.reports import OPEN, PLAN, WINDOW, bad_arrivals, closed_records, open_run, report
from tests.unit.clients.load.run.fleet_bench import plan_on
from tests.unit.experiments.blocks import BESIDE_OTHERS

pytestmark = pytest.mark.slow

HOSTS = ("left", "right")


@pytest.fixture(scope="module")
def hosts() -> Iterator[Cluster]:
    """A cluster of two hosts."""
    with started(HOSTS) as made:
        wait_for(made.address, len(HOSTS))
        yield made


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allows a host to begin late, on a machine that is busy with other tests."""
    monkeypatch.setattr(cluster, "SKEW_LEAST_S", 10.0)


def scheduler(hosts: Cluster) -> str:
    return shown_address(hosts.address)


def plan(server: str, **changes: object) -> LoadPlan:
    host, port = server.split(":")
    return plan_on("sockets", (host, int(port)), **changes)


def unwatched(_progress: Progress) -> None:
    """A watch that does nothing."""


def test_the_whole_is_what_all_hosts_saw(hosts: Cluster, server: str) -> None:
    """Each host sends from its share of the clients. The counts of the whole are sums of the hosts' counts."""
    asked = plan(server, clients=3, connections_per_client=2, warm_up_s=0.0)
    whole, each = cluster.run(asked, scheduler(hosts), unwatched)
    assert [host.name for host in each] == ["left", "right"]
    assert [host.result.started_clients for host in each] == [1, 2]
    assert whole.started_clients == 3
    assert whole.sending_connections == 6
    assert all(0 < host.began_within_s < 5 for host in each)
    assert whole.began == whole.recorded == sum(host.result.recorded for host in each)
    assert whole.errors == {}
    assert whole.requests[ALL].count == sum(host.result.requests[ALL].count for host in each) > 100


@pytest.mark.parametrize("plan", [PLAN, replace(OPEN, arrivals="poisson")], ids=["closed", "open"])
def test_the_sum_of_hosts_is_a_run_of_all_their_clients(plan: LoadPlan) -> None:
    """The hosts' results together have every number of one run of all their clients: percentiles are those of all
    requests, and not an average."""
    fast, slow = closed_records(took_us=100), closed_records(took_us=900, think_us=7)
    if plan.loop == "open":
        fast.due.extend(fast.sent)
        slow.due.extend(slow.sent)
    reports = [report(0, fast, plan=plan, cpu_s=1.5), report(1, slow, plan=plan, cpu_s=0.5)]
    own = replace(plan, clients=1, rate_hz=None if plan.rate_hz is None else plan.rate_hz / 2)
    hosts = [combine(own, WINDOW, [each], lost=1, cores=2) for each in reports]
    assert to_json(together(plan.rate_hz, hosts)) == to_json(combine(plan, WINDOW, reports, lost=2, cores=4))


def test_a_window_of_a_study_is_sent_by_every_host(hosts: Cluster) -> None:
    """The counts of a block are the sums of the hosts' counts. The block has no bytes of this machine's loopback."""
    arm = Arm(setting(clients=3, mix="trade"))
    sweep = Sweep("try", "try", (Group((arm,)),), (), 2, (1,), turns=Windows(0.1, 0.5), limits=BESIDE_OTHERS)
    on = replace(bench(CATALOG), hosts=Hosts(scheduler(hosts), "127.0.0.1", HOSTS))
    block = measure_block(sweep, 1, 1, on)
    (seen,) = block.arms
    assert [[host.name for host in window.hosts] for window in seen.windows] == [list(HOSTS)] * 2
    each = [host for window in seen.windows for host in window.hosts]
    every = seen.answered["all"].times
    assert sum(host.requests for host in each) == every.count > 100
    mean_us = sum(host.requests * (host.mean_us or 0.0) for host in each) / every.count
    assert mean_us == pytest.approx(every.sum_ns / every.count / 1000)
    assert all(0 < host.core_s < window.duration_s for window in seen.windows for host in window.hosts)
    assert block.slices.client_cpu_ns == [
        round(1e9 * max(host.core_s for host in window.hosts)) for window in seen.windows
    ]
    assert block.slices.wire_bytes == [0, 0]
    assert [each.foreign_ticks for each in block.rounds] == [None, None]
    lacking = replace(on, hosts=Hosts(scheduler(hosts), "127.0.0.1", (*HOSTS, "third")))
    with pytest.raises(Refused, match="host third is gone"):
        measure_block(sweep, 1, 1, lacking)


def at(phase: str, act: Callable[[], None]) -> fleet.Watch:
    """A watch that calls ``act`` once, when the run has reached the phase."""
    done: list[None] = []

    def watch(progress: Progress) -> None:
        if progress.phase == phase and not done:
            done.append(None)
            act()

    return watch


def until_idle(hosts: Cluster) -> None:
    """Waits for the end of the load. The pauses are long, since each look goes through all processes of the machine."""
    pause = threading.Event()
    until(lambda: not pause.wait(0.1) and hosts.senders() == 0, "the end of the load")


def test_a_share_that_is_started_again_refuses_the_run(
    hosts: Cluster, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second start of a share, on any worker, refuses the run with the host's name. No host sends any more."""
    submit, others = cluster._Run.submit, list[object]()

    def twice(self: cluster._Run, host: cluster._Host, worker: str) -> object:
        if host.name == "left":
            others.append(submit(self, host, self.hosts[1].address))
        return submit(self, host, worker)

    monkeypatch.setattr(cluster._Run, "submit", twice)
    with pytest.raises(Refused, match=r"host left.* started a second time"):
        cluster.run(plan(server, duration_s=30.0), scheduler(hosts), unwatched)
    until_idle(hosts)


def test_ctrl_c_ends_the_load_on_every_host(hosts: Cluster, server: str) -> None:
    """Each host notices that the share is not wanted any more, and stops."""

    def interrupt() -> None:
        assert hosts.senders() == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.run(plan(server, duration_s=30.0), scheduler(hosts), at("measuring", interrupt))
    until_idle(hosts)


def test_a_scheduler_that_falls_silent_refuses_the_run(
    hosts: Cluster, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent scheduler, such as a scheduler on a lost machine, refuses the run. Otherwise Ctrl-C would not be
    noticed."""
    monkeypatch.setattr(cluster, "SILENT_S", 3.0)  # hosts say each second that they live
    frozen = hosts.processes[SCHEDULER]
    freeze = at("measuring", lambda: frozen.send_signal(signal.SIGSTOP))
    try:
        with pytest.raises(Refused, match=r"the Dask scheduler at .* is gone"):
            cluster.run(plan(server, duration_s=30.0), scheduler(hosts), freeze)
    finally:
        frozen.send_signal(signal.SIGCONT)
    until_idle(hosts)


@pytest.mark.usefixtures("no_leaks")
def test_the_command_says_what_each_host_saw(
    hosts: Cluster, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Screen and file have each host's result in addition to the whole result."""
    file = tmp_path / "results.json"
    assert run(server, scheduler(hosts), "--clients", "2", "--rate-hz", "200", "--json", str(file)) == 0
    said = capsys.readouterr()
    assert "the hosts began within" in said.out
    assert [line.split()[:2] for line in said.out.splitlines() if line.startswith(HOSTS)] == [
        ["left", "1"],
        ["right", "1"],
    ]
    (result,) = json.loads(file.read_text())["results"]
    shares = [from_json(host["counted"]).requests[ALL].count for host in result["hosts"]]
    assert len(shares) == 2
    assert sum(shares) == from_json(result["counted"]).requests[ALL].count


def test_a_killed_host_refuses_the_run(
    hosts: Cluster, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A killed host refuses the run by its name. There is no file, and the other host sends no more."""
    file = tmp_path / "results.json"

    def kill() -> None:
        until(lambda: hosts.senders() == len(HOSTS), "the load")
        hosts.kill("right")

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        assert run(server, scheduler(hosts), "--clients", "2", "--duration-s", "30", "--json", str(file)) == 5
    finally:
        killing.join()
    assert "refused: host right" in capsys.readouterr().err
    assert not file.exists()
    until_idle(hosts)


def run(server: str, hosts: str, *options: str) -> int:
    """The command's exit code."""
    times = ["--warm-up-s", "0.1", "--duration-s", "0.5"]
    return command.main(["--transport", "sockets", "--address", server, "--cluster", hosts, *times, *options])


# ---- without a cluster


def test_no_scheduler_is_a_bad_option(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a scheduler one line names the option, without advice on stock servers."""
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    assert run(server, nobody) == 2
    said = capsys.readouterr().err
    assert f"--cluster: got '{nobody}', allowed: the address of a Dask scheduler (" in said
    assert "stock_service" not in said


class FakeClient:
    """A fake client of a cluster: its scheduler only tells the workers."""

    def __init__(self, **workers: str | None) -> None:
        self._workers = {f"tcp://{name}:1": {"name": name, "nanny": nanny} for name, nanny in workers.items()}

    @property
    def scheduler(self) -> "FakeClient":
        """The scheduler, by the name that Dask's client uses."""
        return self

    def identity(self, n_workers: int) -> object:
        """Workers, as a scheduler tells them."""
        assert n_workers == -1
        return {"workers": self._workers}

    def sync(self, call: Callable[..., object], callback_timeout: float, **arguments: int) -> object:
        """Waits for a call, as Dask's client does."""
        assert callback_timeout == cluster.SILENT_S
        return call(**arguments)


@pytest.mark.parametrize(("clients", "shares"), [(3, [1, 1, 1]), (4, [1, 1, 2]), (512, [170, 171, 171])])
def test_the_plan_is_cut_into_shares(clients: int, shares: list[int]) -> None:
    """The numbers of clients of two hosts differ by one at most. Each host has the corresponding part of the rate, and
    a unique seed."""
    asked = replace(OPEN, clients=clients, rate_hz=clients * 10.0)
    hosts = cluster.hosts_of(FakeClient(b=None, a=None, c=None), asked)  # type: ignore[arg-type]
    assert [host.name for host in hosts] == ["a", "b", "c"]
    assert [host.plan.clients for host in hosts] == shares
    assert [host.plan.rate_hz for host in hosts] == [pytest.approx(share * 10.0) for share in shares]
    assert len({host.plan.seed for host in hosts}) == 3
    again = cluster.hosts_of(FakeClient(b=None, a=None, c=None), asked)  # type: ignore[arg-type]
    assert [host.plan for host in again] == [host.plan for host in hosts]


def test_fewer_clients_than_hosts_are_a_bad_option() -> None:
    """Fewer clients than hosts are refused: a host without a client would send nothing."""
    with pytest.raises(UsageError, match="--clients: got 1, allowed: 2 or more"):
        cluster.hosts_of(FakeClient(a=None, b=None), replace(PLAN, clients=1))  # type: ignore[arg-type]


def test_a_nanny_is_refused() -> None:
    """A nanny is refused: it would start a dead worker again, and its worker may start no processes."""
    with pytest.raises(Refused, match="host b has a nanny"):
        cluster.hosts_of(FakeClient(a=None, b="tcp://b:2"), replace(PLAN, clients=2))  # type: ignore[arg-type]


def test_hosts_that_changed_between_two_windows_are_refused() -> None:
    """A lost host and a later host are refused by name. Otherwise the clients would run on other hosts than before."""
    asked, here = replace(PLAN, clients=2), FakeClient(a=None, c=None)
    assert len(cluster.hosts_of(here, asked, ["a", "c"])) == 2  # type: ignore[arg-type]
    with pytest.raises(Refused, match="host b is gone, host c came later: the run began with a, b"):
        cluster.hosts_of(here, asked, ["a", "b"])  # type: ignore[arg-type]


def test_a_host_that_dies_before_it_is_ready_is_told_where_to_start() -> None:
    """A worker that was started in a wrong folder, or lacks a package, ends before it is ready. The error says where to
    start the worker."""
    lost = cluster._Host("b", "tcp://b:1", 0, PLAN)
    run = SimpleNamespace(_client=FakeClient(a=None), hosts=[lost], _futures={0: None})
    with pytest.raises(Refused, match="died before it was ready: start its worker in the project's folder"):
        cluster._Run._take(run)  # type: ignore[arg-type]
    lost.ready = True
    with pytest.raises(Refused, match=r"died$"):
        cluster._Run._take(run)  # type: ignore[arg-type]


def test_no_workers_are_refused() -> None:
    """A cluster without workers is refused with advice."""
    with pytest.raises(Refused, match="no workers: start one"):
        cluster.hosts_of(FakeClient(), replace(PLAN, clients=2))  # type: ignore[arg-type]


def test_a_host_that_lags_is_refused() -> None:
    """A host that sent off its schedule, sent too little, or began late is refused by its name."""
    good = open_run()
    cluster.check(HostResult("a", 0.01, good), OPEN)
    with pytest.raises(Refused, match=r"host a lagged: its sends did not follow the schedule"):
        cluster.check(HostResult("a", 0.01, replace(good, arrivals=(bad_arrivals(),))), OPEN)
    with pytest.raises(Refused, match=r"host a lagged: it may have begun 10\.200 s after the first"):
        cluster.check(HostResult("a", 10.2, good), OPEN)
    long = replace(OPEN, duration_s=400.0)  # a twentieth is 20 s
    cluster.check(HostResult("a", 19.9, good), long)
    with pytest.raises(Refused, match=r"host a lagged: it may have begun 20\.100 s after the first"):
        cluster.check(HostResult("a", 20.1, good), long)
    with pytest.raises(Refused, match="host a stopped before the end"):
        cluster.check(HostResult("a", 0.01, replace(good, interrupted=True)), OPEN)


def test_how_far_apart_hosts_began_is_told_by_one_clock() -> None:
    """The signal was sent at 100.0 s. The first host may have begun at 100.5 s, the second host by 100.2 + 0.6 s."""
    within_s = cluster.began_within_s(100.0, [(100.1, 0.5), (100.2, 0.6)])
    assert within_s == [pytest.approx(0.1), pytest.approx(0.3)]


def test_a_host_is_ready_when_its_clients_stand_at_the_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host is ready only when its clients stand at the barrier: a client that is still starting would connect
    late."""
    executing = SimpleNamespace(tasks={"share": SimpleNamespace(state="executing")})
    worker = SimpleNamespace(get_current_task=lambda: "share", state=executing)
    monkeypatch.setattr(share, "get_worker", lambda: worker)
    monkeypatch.setattr(share, "Event", lambda _run: SimpleNamespace(wait=lambda _timeout_s: True))
    monkeypatch.setattr(share, "LEAD_S", 0.0)
    said: list[str] = []
    watch = share._Watch(share.Share(PLAN, 0, "run", share.SOURCES), lambda word, _value=0: said.append(word))
    for phase, words in (("starting", []), ("starting", []), ("standing", [share.READY, share.HEARD])):
        said.clear()
        watch(Progress(phase, 0, 0.0, 1.0))  # type: ignore[arg-type]
        assert said == words
    watch(Progress("warm-up", 0, 0.0, 1.0))
    assert said[-1] == share.BEGUN
