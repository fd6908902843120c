"""Load from many hosts, tried on one machine: ``python -m tests.reliability.hosts [--kills N] [--seconds S]``, as root.

Four network namespaces are joined by a bridge. The first namespace has the server, a relay that makes a round trip
longer, the scheduler and the coordinator. Each other namespace has one host. First the load of all hosts is measured
with delays of 0, 1 and 10 ms. Then a host is killed in the middle of a run, again and again: each run must be refused
with the host's name. Then a part of a study is measured from all hosts. A host freezes, and the load client and the
scheduler are killed.

On a machine without network namespaces, one line says so.
"""

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from clients.load import command
from clients.load.hosts import cluster
from clients.load.hosts.cluster import Refused
from clients.load.plan.load_plan import LoadPlan
from clients.load.run.fleet import Progress
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.process.command_line import address
from tests.cluster import SCHEDULER, Cluster, wait_for
from tests.cluster import cluster as started
from tests.conformance.running import until
from tests.end_to_end.process import WAIT_S, Running, Server, serve
from tests.reliability.rows import Row
from tests.reliability.serving import within

HOSTS = ("a", "b", "c")
HUB = "hub"
"""Namespace of all programs that are not on a host."""

DELAYS_MS = (0, 1, 10)
TRANSPORTS = ("sockets", "grpc_static", "grpc")

NETWORK = "10.77.0"

WORKER_PORT = 8790
"""Port of every host, so that a host that comes back has its old address: then Dask starts its task again."""

STUDY_S = 180.0
"""Longest time of a study's run; 60 s are usual."""

A_RESULT = "a result"
"""Output of a run that nothing refused."""

_WITHIN = "STOCK_HOSTS_WITHIN"
"""Tells the program that runs in the hub's namespace how namespaces are called."""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextmanager
def namespaces(prefix: str) -> Iterator[None]:
    """Makes and joins the four namespaces; removes them after the block. Raises OSError or CalledProcessError."""
    names = [HUB, *HOSTS]
    try:
        for name in names:
            _ip("netns", "add", prefix + name)
            _ip("-n", prefix + name, "link", "set", "lo", "up")
        _ip("-n", prefix + HUB, "link", "add", "bridge", "type", "bridge")
        _ip("-n", prefix + HUB, "addr", "add", f"{NETWORK}.1/24", "dev", "bridge")
        _ip("-n", prefix + HUB, "link", "set", "bridge", "up")
        for number, name in enumerate(HOSTS, start=2):
            pair = ("type", "veth", "peer", "name", "net", "netns", prefix + name)
            _ip("-n", prefix + HUB, "link", "add", f"to-{name}", *pair)
            _ip("-n", prefix + HUB, "link", "set", f"to-{name}", "master", "bridge", "up")
            _ip("-n", prefix + name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "net")
            _ip("-n", prefix + name, "link", "set", "net", "up")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", prefix + name], check=False, capture_output=True)


def _entering(name: str) -> Sequence[str]:
    """Words before a command of a host. Other programs already run in the hub's namespace."""
    return ("/usr/sbin/ip", "netns", "exec", os.environ[_WITHIN] + name) if name in HOSTS else ()


@contextmanager
def served(transport: str, delay_ms: float) -> Iterator[str]:
    """A server, and its address for the hosts."""
    with Server(serve(transport)) as server:
        with Running("tests.relay", f"{NETWORK}.1:0", server.at, str(delay_ms)) as relay:
            yield relay.line().split()[1]


def loaded(hosts: Cluster, transport: str, where: str, *options: str) -> tuple[int, str]:
    """The exit code and the output of the load client."""
    asked = ("--transport", transport, "--address", where, "--clients", str(len(HOSTS)), *options)
    with redirect_stderr(io.StringIO()) as said, redirect_stdout(said):
        return command.main(["--cluster", shown_address(hosts.address), *asked]), said.getvalue()


def delays(hosts: Cluster, seconds: float) -> Iterator[str]:
    """A line for each transport and delay, in Markdown."""
    yield "| transport | delay, ms | Lookups/s | p50, ms | p99, ms | each host's p50, ms | began within, ms |"
    yield "|---|---|---|---|---|---|---|"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        for delay_ms in DELAYS_MS:
            for transport in TRANSPORTS:
                with served(transport, delay_ms) as where:
                    code, said = loaded(hosts, transport, where, "--duration-s", str(seconds), "--json", str(file))
                if code:
                    yield f"| {transport} | {delay_ms} | exit code {code}: {' '.join(said.split())[-200:]} |"
                    continue
                (result,) = json.loads(file.read_text())["results"]
                every, each = result["requests"]["all"], result["hosts"]
                own = ", ".join(f"{host['requests']['all']['p50_us'] / 1000:.3f}" for host in each)
                within_ms = 1000 * max(host["began_within_s"] for host in each)
                yield (
                    f"| {transport} | {delay_ms} | {result['throughput_hz']:.0f} | {every['p50_us'] / 1000:.3f} "
                    f"| {every['p99_us'] / 1000:.3f} | {own} | {within_ms:.1f} |"
                )


def kills(hosts: Cluster, number: int, seed: int) -> Row:
    """Kills a host in the middle of a run, ``count`` times; every second time the host comes back at once."""
    drawn, refused, wrong = random.Random(seed), 0, []
    with served("sockets", 1) as where:
        for turn in range(number):
            name, after_s = drawn.choice(HOSTS), drawn.uniform(0.0, 2.9)
            said = _refusal(hosts, where, partial(_lose, hosts, name, turn % 2 == 0), after_s, 2.5)
            refused += f"host {name} " in said
            wrong += [f"{name} after {after_s:.1f} s: a result"] if said == A_RESULT else []
            print(f"{after_s:.1f} s: refused: {said}", flush=True)
            if name not in hosts.processes:
                hosts.start(name)
            wait_for(hosts.address, len(HOSTS))
    figure = f"{refused} of {number} {'; '.join(wrong)}".rstrip()
    return Row("a killed host refuses the run, by its name", f"{number} of {number}", figure, refused == number)


def _lose(hosts: Cluster, name: str, comes_back: bool) -> None:
    """Kills a host, which may come back at once."""
    hosts.kill(name)
    if comes_back:
        hosts.start(name)


def frozen(hosts: Cluster) -> Row:
    """Freezes a host in the middle of a run, as if its cable was pulled."""
    with served("sockets", 1) as where:
        said = _refusal(hosts, where, lambda: hosts.processes["b"].send_signal(signal.SIGSTOP), 0.5, 60.0)
        hosts.processes["b"].send_signal(signal.SIGCONT)
        until(lambda: not hosts.senders(), "the end of the load")
    return Row("a frozen host refuses the run, by its name", "refused", said, "host b" in said)


def left(hosts: Cluster) -> Row:
    """Kills the load client in the middle of a run. The hosts must stop."""
    asked = ("--cluster", shown_address(hosts.address), "--transport", "sockets", "--clients", str(len(HOSTS)))
    with (
        served("sockets", 1) as where,
        Running("clients.load", *asked, "--address", where, "--duration-s", "60") as own,
    ):
        within(WAIT_S, lambda: "measuring" in own.said() or not own.runs())
        sent = hosts.senders()
        own.signal(signal.SIGKILL)
        until(lambda: not hosts.senders(), "the end of the load")
        said = f"of {sent} 0" if sent == len(HOSTS) else own.said()
    return Row("a load client that is killed leaves no load", f"of {len(HOSTS)} senders 0", said, sent == len(HOSTS))


def studied(hosts: Cluster) -> Iterator[Row]:
    """Measures a part of a study from all hosts. Kills a host in the middle, and goes on when the host is back."""
    with TemporaryDirectory() as folder:
        started_by = ("experiments", "run", "socket_trade", "--profile", "smoke", "--clients", "3", "6")
        place = ("--out", f"{folder}/seen", "--cluster", shown_address(hosts.address), "--host", f"{NETWORK}.1")
        asked = (*started_by, *place)
        with Running(*asked) as running:
            within(WAIT_S, lambda: "block 1 done" in running.said() or not running.runs())
            hosts.kill("b")
            within(WAIT_S, lambda: not running.runs())
            said = running.said().strip().splitlines()[-1]
        yield Row("a killed host ends a study's run, by its name", "refused", said, "host b" in said)
        hosts.start("b")
        wait_for(hosts.address, len(HOSTS))
        with Running(*asked, "--resume") as running:
            within(STUDY_S, lambda: not running.runs())
        report = Path(folder, "seen", "report.md")
        text = report.read_text() if report.exists() else ""
        told = text.partition("The load came from the ")[2].partition("Each")[0]
        yield Row("which goes on, and has every host's share", "whole", told or said, "hosts a, b, c" in told)


def headless(hosts: Cluster) -> Row:
    """Kills the scheduler in the middle of a run. No later run is possible."""
    with served("sockets", 1) as where:
        said = _refusal(hosts, where, lambda: hosts.kill(SCHEDULER), 0.5, 60.0)
        until(lambda: not hosts.senders(), "the end of the load")
    return Row("a killed scheduler refuses the run, and leaves no load", "refused", said, "scheduler" in said)


def _refusal(hosts: Cluster, where: str, act: Callable[[], object], after_s: float, duration_s: float) -> str:
    """Output of a run that a failure, this time after the load began, must refuse."""
    asked = LoadPlan("sockets", address(where), len(HOSTS), {"lookup": 1.0}, ("GameStart",), 0.5, duration_s)
    acted: list[None] = []

    def watch(progress: Progress) -> None:
        if progress.phase != "starting" and progress.elapsed_s >= after_s and not acted:
            acted.append(None)
            act()

    try:
        cluster.run(asked, shown_address(hosts.address), watch)
    except Refused as error:
        return str(error)
    return A_RESULT


def _inside(options: argparse.Namespace) -> int:
    """Makes all trials in the hub's namespace. Gives the exit code."""
    with started(HOSTS, f"{NETWORK}.1", _entering, WORKER_PORT) as hosts:
        wait_for(hosts.address, len(HOSTS))
        for line in delays(hosts, options.seconds) if options.seconds else ():
            print(line, flush=True)
        if not options.kills:
            return 0
        drawn = kills(hosts, options.kills, options.seed)
        rows = [drawn, *studied(hosts), frozen(hosts), left(hosts), headless(hosts)]
    print(f"seed {options.seed}", *rows, sep="\n")
    return 0 if all(row.passed for row in rows) else 1


def main(arguments: Sequence[str]) -> int:
    """Runs the program; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.reliability.hosts", description="Tries load from many hosts."
    )
    parser.add_argument("--kills", type=int, default=20, help="runs in which a host is killed")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement with a delay; 0: none")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="what to draw from; printed")
    options = parser.parse_args(arguments)
    if _WITHIN in os.environ:
        return _inside(options)
    prefix = f"load-{os.getpid()}-"
    try:
        with namespaces(prefix):
            inside = ["ip", "netns", "exec", prefix + HUB, sys.executable, "-m", "tests.reliability.hosts", *arguments]
            return subprocess.run(inside, env=os.environ | {_WITHIN: prefix}, check=False).returncode
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        print(f"no network namespaces here, so that load from many hosts is not tried: {said}".rstrip())
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
