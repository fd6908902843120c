"""Starts a server at some sizes from a command with ``{workers}`` and ``{port}``, to check an advice on it.

The servers of a check are alive together and are loaded by turns, so that a neighbour's noise is the same for all. What
a server prints goes where its errors go; one whose command has no ``{port}`` says where it listens, by its first line
``ready HOST:PORT``. However a server ends when it is told to, it is gone afterwards.
"""

import contextlib
import shlex
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median

from experiments.measure.programs import Program, ProgramFailed
from experiments.recommend.advice import POOLS
from experiments.recommend.asking import ROUNDS, Asked, Server, Watch, loaded
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import Address

WORKERS, PORT = "{workers}", "{port}"

_SILENCED = ("/bin/sh", "-c", 'exec "$@" >&2', "sh")
"""Begins a command whose output nobody reads: a pipe that is full would stop it."""

BETTER = 1.10
"""A neighbouring size takes the advice's place where it does so many times as much, in every round."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a size was seen to do under more connections than any of them has workers."""

    workers: int
    rounds_hz: tuple[float, ...]

    @property
    def throughput_hz(self) -> float:
        """The middle one."""
        return median(self.rounds_hz)


def check_command(template: str) -> None:
    """Refuses what cannot be started. Raises UsageError."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError("--start", template, f"a command as a shell reads it ({error})") from error
    if not words or not any(WORKERS in word for word in words):
        raise UsageError("--start", template, f"a command with {WORKERS} where its number of workers goes")
    if shutil.which(words[0]) is None:
        raise UsageError("--start", words[0], "a program that is there")


@contextmanager
def serving(template: str, workers: int) -> Iterator[Address]:
    """A server of that size, and where it listens. It is stopped after the block. Raises ProgramFailed."""
    port = _free_port()
    words = [word.replace(WORKERS, str(workers)).replace(PORT, str(port)) for word in shlex.split(template)]
    told = PORT in template
    program = Program([*(_SILENCED if told else ()), shutil.which(words[0]) or words[0], *words[1:]])
    try:
        if told:
            program.listening(("127.0.0.1", port))
        yield ("127.0.0.1", port) if told else program.ready()
    finally:
        with contextlib.suppress(ProgramFailed):  # it is gone, whatever its exit code: many servers have no clean one
            program.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def sizes_around(workers: int) -> tuple[int, ...]:
    """The sizes that check an advice: the pool itself, and half and twice as many."""
    place = POOLS.index(min(POOLS, key=lambda pool: abs(pool - workers)))
    return POOLS[max(0, place - 1) : place + 2]


def checked(
    template: str, sizes: Sequence[int], asking: Callable[[Address], Asked], window_s: float, watch: Watch
) -> Mapping[int, Checked]:
    """Every size under the same load, by turns. Blocks for ``ROUNDS`` windows of each. Raises as ``loaded`` does."""
    connections = 2 * max(sizes)
    with ExitStack() as running:
        at = {size: asking(running.enter_context(serving(template, size))) for size in sizes}
        seen: dict[int, list[float]] = {size: [] for size in sizes}
        for number in range(ROUNDS):
            for size in sizes:
                watch(f"{size} workers, round {number + 1} of {ROUNDS}")
                seen[size].append(loaded(at[size], Server(()), connections, window_s).throughput_hz)
    return {size: Checked(size, tuple(rounds)) for size, rounds in seen.items()}


def best_of(seen: Mapping[int, Checked], advised: int) -> int:
    """The advised size, or one beside it that was better by ``BETTER`` in every round; the smallest of those."""
    own = seen[advised].rounds_hz
    for size in sorted(seen):
        rounds = zip(seen[size].rounds_hz, own, strict=True)
        if all(other_hz > BETTER * hz for other_hz, hz in rounds):
            return size
    return advised
