"""Trials of ``recommend``: ``--start`` advises on twelve services, and a sweep of fresh servers judges the advice.

    python -m tests.reliability.trials [NAME ...]

The advice is given as for a user's service, without a description. Then servers with every pool are started and
measured in turns, in ``SWEEPS`` sweeps. A pool is enough if it reaches ``NEAR`` of the best rate. The advice passes if
its pool is enough, and at most ``TWICE`` the smallest such pool. Its rate passes if a sweep measures it again within
``MEASURED_ERROR``.

Each service's row is written into the page of ``recommend`` as soon as it is judged. So the table can be made in
pieces: each row has the commit of its measurement. Rows of a different machine, kernel or Python are dropped.
"""

import argparse
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from clients.load.plan.calls import called
from experiments.peers.python.shapes_server import SHAPES
from experiments.recommend import started
from experiments.recommend.advice import POOLS, Wish
from experiments.recommend.asking import Asked, Watch
from experiments.recommend.measured import of_command
from experiments.recommend.seen import Found, Level, best_of
from experiments.recommend.words import MEASURED_ERROR
from experiments.results import environment
from experiments.results.files import write_at_once
from experiments.results.machine import cores
from experiments.show.numbers import number, percent
from stock_service.rpc.transports import Address

GREETER = "helloworld.Greeter/SayHello"
ROOT = Path(__file__).resolve().parents[2]
GREETER_PROTO = ROOT / "protos/experiments/helloworld/greeter.proto"

README = ROOT / "experiments/recommend/README.md"

NEAR = 0.9
"""Share of the best pool's rate with which a pool is enough."""

SWEEPS = 3
"""Number of sweeps over all pools that measure the right advice for a service. An advice itself is one sweep."""

TWICE = 2
"""Largest advised pool that passes, as a multiple of the smallest pool that is enough."""

HEADER = (
    "| service | what a request does | advised | smallest enough | of the best | rate said | found "
    "| what the pools did | took | at |"
)
RULE = "| :--- | :--- | ---: | ---: | ---: | ---: | ---: | :--- | ---: | :--- |"


@dataclass(frozen=True, slots=True)
class Tried:
    """An advice, and the measurements that judge it."""

    found: Found
    levels: tuple[Level, ...]
    """Measurements of every pool afterwards, on fresh servers."""
    took_s: float
    """Duration of the advice, in seconds."""

    @property
    def own(self) -> Level:
        """The measurement of the advised pool afterwards."""
        return next(level for level in self.levels if level.at_once == self.found.workers)

    @property
    def of_best(self) -> float:
        """Share of the best pool's rate that the advised pool reaches."""
        return self.own.throughput_hz / best_of(self.levels).throughput_hz

    @property
    def smallest(self) -> int:
        """The smallest pool that is enough."""
        least_hz = NEAR * best_of(self.levels).throughput_hz
        return next(level.at_once for level in self.levels if level.throughput_hz >= least_hz)

    @property
    def is_pool_right(self) -> bool:
        """True if the advised pool is enough, and not far too large."""
        return self.of_best >= NEAR and self.found.workers <= TWICE * self.smallest

    @property
    def is_rate_right(self) -> bool:
        """True if the advised rate was measured again."""
        return abs(self.found.highest_hz / self.own.throughput_hz - 1) <= MEASURED_ERROR


def run(names: Sequence[str], watch: Watch, page: Path = README) -> Iterator[str]:
    """Tries these services. Writes each row into the page, and gives the rows. Blocks for a minute for each service."""
    here = environment.look()
    machine = f"{here.cpu_model}, {here.cores} cores, {here.kernel}, {here.python}"
    commit = f"{here.commit[:8]}{' with changes' if is_changed() else ''}"
    yield HEADER
    yield RULE
    for name in names:
        row = shown(name, tried(name, watch), f"{datetime.now(UTC).isoformat(' ', 'minutes')[:16]} on {commit}")
        write_at_once(page, recorded(page.read_text(encoding="utf-8"), name, row, machine).encode())
        yield row


def tried(name: str, watch: Watch) -> Tried:
    """Tries one service. Blocks. Raises as ``of_command`` does."""
    python = shlex.quote(sys.executable)
    command = f"{python} -m experiments.peers.python.shapes_server --shape {name} --workers {{workers}} --port {{port}}"
    began_s = time.monotonic()
    found = of_command(command, _asked, Wish(len(cores())), watch)
    took_s = time.monotonic() - began_s
    with started.serving(command, POOLS, 1, _asked) as servers:
        sweeps = [started.swept(servers, 1, watch) for _ in range(SWEEPS)]
    levels = (
        Level(of[0].at_once, tuple(chain.from_iterable(level.rounds for level in of)))
        for of in zip(*sweeps, strict=True)
    )
    return Tried(found, tuple(levels), took_s)


def _asked(at: Address) -> Asked:
    return Asked("grpc", at, called(at, GREETER, '{"name": "world"}', GREETER_PROTO), ("none",))


def shown(name: str, tried: Tried, at: str) -> str:
    """The row of a service. ``at``: time and commit of the trial."""
    pools = ", ".join(f"{level.at_once}: {number(level.throughput_hz)}/s" for level in tried.levels)
    cells = (
        f"`{name}`",
        (SHAPES[name].__doc__ or "").strip().removesuffix("."),
        _marked(str(tried.found), tried.is_pool_right),
        str(tried.smallest),
        percent(tried.of_best),
        _marked(f"{number(tried.found.highest_hz)}/s", tried.is_rate_right),
        f"{number(tried.own.throughput_hz)}/s",
        pools,
        f"{tried.took_s:.0f} s",
        at,
    )
    return f"| {' | '.join(cells)} |"


def is_changed() -> bool:
    """True if the sources differ from the commit's sources. The page does not count, since it is written row by row."""
    return subprocess.run(["git", "diff", "--quiet", "HEAD", "--", ":/*.py"], cwd=README.parent).returncode != 0


def _marked(text: str, is_right: bool) -> str:
    return text if is_right else f"**{text}, wrong**"


BEGIN, END = "<!-- trials -->\n", "<!-- end of trials -->\n"
"""Marks in the page around the written part."""

_ROW = re.compile(r"^\| `(\w+)` \|.*$", re.M)


def recorded(page: str, name: str, row: str, machine: str) -> str:
    """The page with a service's row, in place of its earlier row, and with the summary of all rows.

    One line names the machine of all rows. So rows of another machine are dropped.
    """
    before, _, rest = page.partition(BEGIN)
    part, _, after = rest.partition(END)
    kept = part if part.startswith(f"{machine}. ") else ""
    rows = {match[1]: match[0] for match in _ROW.finditer(kept)} | {name: row}
    said = (
        f"{machine}. {summary(tuple(rows.values()))}",
        "",
        HEADER,
        RULE,
        *(rows[each] for each in SHAPES if each in rows),
    )
    return before + BEGIN + "\n".join(said) + "\n" + END + after


def summary(rows: Sequence[str]) -> str:
    """Number of advices that held."""
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    pools, rates = (sum("wrong" not in each[column] for each in cells) for column in (3, 6))
    return f"Of {len(rows)} services {pools} advised pools are right, and {rates} rates."


def main(arguments: Sequence[str]) -> None:
    """Tries the services that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.trials", description="Is the advice right?")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(SHAPES)}; all without one")
    names = parser.parse_args(arguments).names
    if unknown := [name for name in names if name not in SHAPES]:
        parser.error(f"no service is named {', '.join(unknown)}; allowed: {', '.join(SHAPES)}")
    for line in run(names or tuple(SHAPES), lambda what: print(f"measuring: {what}", file=sys.stderr, flush=True)):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
