"""Whether the advice is right: services are advised several times each, and a sweep of every pool judges.

A service is started by a command and advised as a user's would be, several times, without a word of what it is. Then
every pool runs beside the others, by turns, and what the advised pool does is set against what the best one does. Four
services are this project's, with work of each kind; two are somebody else's: the greeter of gRPC's examples on grpcio
alone, and the one in C++. The latter has no pool to choose: it is advised as it runs. What it is expected to do beside
our load is set against what it does beside it, right before and right after the advice. That tries whether an advice is
found again, and not the model: an advice gives what was measured beside the load where less was reached than foretold.
"""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median

from clients.load.plan.calls import called
from experiments.measure.bench import CATALOG
from experiments.peers import is_built, server_command, why_absent
from experiments.recommend import started
from experiments.recommend.advice import POOLS, Wish
from experiments.recommend.asking import Asked, Server, Watch, ask
from experiments.recommend.measured import Measured, of_command, of_running
from experiments.recommend.seen import kept_up_hz
from experiments.recommend.words import reached
from experiments.results import environment
from experiments.show.numbers import number, percent
from stock_service.rpc.transports import Address
from stock_service.trading.catalog_file import load as load_catalog

GREETER = "helloworld.Greeter/SayHello"
GREETER_PROTO = Path(__file__).resolve().parents[2] / "protos/experiments/helloworld/greeter.proto"

CPP = "cpp-greeter"

JUDGED_ROUNDS = 5
"""Of the sweep that judges, each with every pool."""

NEAR = 0.9
"""Of the best pool's throughput, what the advised one must reach."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A service to advise."""

    name: str
    transport: str
    command: str
    """With ``{workers}`` and ``{port}``; without ``{workers}`` it has no pool."""
    greets: bool = False
    """Whether it is a greeter; else a stock service."""

    def asked(self, at: Address) -> Asked:
        """How it is asked. May ask the server by reflection."""
        request = called(at, GREETER, '{"name": "world"}', GREETER_PROTO) if self.greets else None
        stocks = tuple(stock.name for stock in load_catalog(CATALOG))
        return Asked(self.transport, at, request, stocks)


@dataclass(frozen=True, slots=True)
class Tried:
    """What was advised, and what judged it."""

    name: str
    advised: tuple[str, ...]
    """In every run."""
    reached: float
    """By the advised pool, of what the best one did; the least of the runs. Where there is no pool to choose: what was
    expected of the server beside our load, of what it did around that run; the farthest of the runs."""
    best: str
    """Every pool and what it did, or what was expected and done."""
    longest_s: float
    """The longest that an advice took."""

    @property
    def passed(self) -> bool:
        """Whether all runs advised the same, and that was near the best."""
        return len(set(self.advised)) == 1 and NEAR <= self.reached <= 1 / NEAR


def subjects() -> tuple[Subject, ...]:
    """What is advised; the greeter in C++ where it is built."""
    python = shlex.quote(sys.executable)

    def ours(name: str, transport: str, work: str = "") -> Subject:
        serve = f"{python} -m experiments.services serve stock --transport {transport} --store memory {work}"
        return Subject(name, transport, f"{serve} --workers {{workers}} --port {{port}}")

    theirs = f"{python} -m experiments.peers.python.greeter_server --workers {{workers}} --port {{port}}"
    built = (shlex.join(server_command(CPP)) + " --port {port}",) if is_built(CPP) else ()
    return (
        ours("Lookup on sockets", "sockets"),
        ours("Lookup on gRPC", "grpc"),
        ours("I/O 4 ms and CPU 1 ms on gRPC", "grpc", "--io-ms 4 --cpu-ms 1"),
        ours("hash 5 ms on gRPC", "grpc", "--hash-ms 5"),
        Subject("grpcio's greeter in Python", "grpc", theirs, greets=True),
        *(Subject("gRPC's greeter in C++", "grpc", each, greets=True) for each in built),
    )


def run(runs: int, watch: Watch) -> Iterator[str]:
    """The trials as a page in Markdown, a line at a time. Blocks: some five minutes a service with five runs.

    Raises as ``of_command`` does.
    """
    here = environment.look()
    yield "# Advice beside a sweep\n"
    changed = " with changes" if here.dirty else ""
    yield f"{here.cpu_model}, {here.cores} cores, {here.kernel}, {here.python}, commit {here.commit[:12]}{changed};"
    yield f"begun {here.before.at} at load {here.before.load_1_min:g}.\n"
    if not is_built(CPP):
        yield f"Left out: {why_absent(CPP)}.\n"
    yield "| service | advised | reached | what the pools did | longest | passed |"
    yield "| :--- | :--- | ---: | :--- | ---: | :--- |"
    for subject in subjects():
        found = tried(subject, runs, watch)
        advised = ", ".join(f"{each} ({found.advised.count(each)}×)" for each in dict.fromkeys(found.advised))
        passed = "**passed**" if found.passed else "**FAILED**"
        share = percent(found.reached)
        yield f"| {found.name} | {advised} | {share} | {found.best} | {found.longest_s:.0f} s | {passed} |"


def tried(subject: Subject, runs: int, watch: Watch) -> Tried:
    """One service. Blocks. Raises as ``of_command`` does."""
    wish = Wish(environment.look().cores)
    if started.WORKERS not in subject.command:
        return _as_it_runs(subject, runs, wish, watch)
    found, took_s = _timed(runs, lambda: of_command(subject.command, subject.asked, wish, watch))
    alone_s = found[0].seen.loads[0].mean_s
    rounds = JUDGED_ROUNDS
    judged = started.checked(subject.command, POOLS, 1, subject.asked, started.window_s(alone_s), watch, rounds)
    best_hz = max(each.throughput_hz for each in judged.values())
    shares = [judged[min(max(POOLS), each.advice.chosen.workers)].throughput_hz / best_hz for each in found]
    pools = ", ".join(f"{size}: {number(each.throughput_hz)}/s" for size, each in judged.items())
    return Tried(subject.name, tuple(str(each.advice) for each in found), min(shares), pools, took_s)


def _as_it_runs(subject: Subject, runs: int, wish: Wish, watch: Watch) -> Tried:
    """Each advice stands between two looks at what the server does, so that a neighbour's noise is in all three."""
    found: list[Measured] = []
    did_hz: list[float] = []
    longest_s = 0.0
    for _ in range(runs):
        with started.serving(subject.command, 1) as at:
            asked = subject.asked(at)
            before_hz = _kept_up_hz(asked, watch)
            one, took_s = _timed(1, partial(of_running, asked, wish, watch))
            did_hz.append(fmean((before_hz, _kept_up_hz(asked, watch))))
        found += one
        longest_s = max(longest_s, took_s)
    shares = [
        reached(each.advice.chosen, each.seen) * each.advice.chosen.highest_hz / hz
        for each, hz in zip(found, did_hz, strict=True)
    ]
    farthest = max(shares, key=lambda each: abs(each - 1))
    return Tried(
        subject.name, tuple(str(each.advice) for each in found), farthest, f"{number(median(did_hz))}/s", longest_s
    )


def _kept_up_hz(asked: Asked, watch: Watch) -> float:
    """What a server does beside our load, asked and told as advices do it. Replies a second."""
    return kept_up_hz(ask(asked, Server(()), watch)[0])


def _timed(runs: int, advise: Callable[[], Measured]) -> tuple[list[Measured], float]:
    """So many advices, and how long the longest took."""
    found, longest_s = [], 0.0
    for _ in range(runs):
        began_s = time.monotonic()
        found.append(advise())
        longest_s = max(longest_s, time.monotonic() - began_s)
    return found, longest_s
