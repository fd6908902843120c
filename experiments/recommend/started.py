"""Starts a server at every size from a command with ``{workers}`` and ``{port}``, to check an advice on it.

A command with ``{processes}`` is started with as many as are advised, else with one. The servers of a check are alive
together and are loaded by turns, so that a neighbour's noise is the same for all. What a server prints goes where its
errors go; one whose command has no ``{port}`` says where it listens, by its first line ``ready HOST:PORT``. However a
server ends when it is told to, it is gone afterwards.
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
from experiments.recommend.asking import Asked, Server, Watch, loaded, rounds_within
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import Address

WORKERS, PROCESSES, PORT = "{workers}", "{processes}", "{port}"

_SILENCED = ("/bin/sh", "-c", 'exec "$@" >&2', "sh")
"""Begins a command whose output nobody reads: a pipe that is full would stop it."""

BETTER = 1.10
"""A neighbouring size takes the advice's place where it does so many times as much, in every round."""


CONNECTIONS = 128
"""Under which the sizes are compared: twice as many as the largest has workers."""

BUDGET_S = 35.0
"""How long the loads of a check may take; slow servers get fewer rounds."""

RESPONSES, WINDOW_S, WINDOW_S_MAX = 20, 0.4, 2.0
"""A load counts for so many response times of one connection, and for so long at least and at most."""

ROUNDS = 5
"""Most rounds of a check: a neighbour's noise seldom favours one size in all of them."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a size was seen to do under more connections than any of them has workers."""

    workers: int
    rounds_hz: tuple[float, ...]
    processes: int = 1

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
def serving(template: str, workers: int, processes: int = 1) -> Iterator[Address]:
    """A server whose processes have so many workers each, and where it listens. It is stopped after the block.

    Raises ProgramFailed.
    """
    port = _free_port()
    values = {WORKERS: workers, PROCESSES: processes, PORT: port}
    words = shlex.split(template)
    for name, value in values.items():
        words = [word.replace(name, str(value)) for word in words]
    told = PORT in template
    program = Program([*(_SILENCED if told else ()), shutil.which(words[0]) or words[0], *words[1:]])
    try:
        if told:
            try:
                program.listening(("127.0.0.1", port))
            except ProgramFailed as error:  # names the command that was given, without what silences it
                raise type(error)(words, error.what, error.stderr) from error
        yield ("127.0.0.1", port) if told else program.ready()
    finally:
        with contextlib.suppress(ProgramFailed):  # it is gone, whatever its exit code: many servers have no clean one
            program.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def takes_processes(template: str) -> bool:
    """Whether a command can be started with several processes."""
    return PROCESSES in template


def window_s(response_s: float) -> float:
    """How long a load counts, where one connection has this response time."""
    return min(WINDOW_S_MAX, max(WINDOW_S, RESPONSES * response_s))


def checked(
    template: str,
    sizes: Sequence[int],
    processes: int,
    asking: Callable[[Address], Asked],
    window_s: float,
    watch: Watch,
    rounds: int | None = None,
) -> Mapping[int, Checked]:
    """Every size under the same load, by turns, so many times.

    Unless the number of rounds is given, blocks for ``BUDGET_S`` at most, and for what one round takes. Raises as
    ``loaded`` does.
    """
    rounds = rounds or rounds_within(BUDGET_S, window_s, len(sizes), ROUNDS)
    with ExitStack() as running:
        at = {size: asking(running.enter_context(serving(template, size, processes))) for size in sizes}
        seen: dict[int, list[float]] = {size: [] for size in sizes}
        for number in range(rounds):
            for size in sizes:
                watch(f"{size} workers, round {number + 1} of {rounds}")
                seen[size].append(loaded(at[size], Server(()), CONNECTIONS, window_s).throughput_hz)
    return {size: Checked(size, tuple(each), processes) for size, each in seen.items()}


def best_of(seen: Mapping[int, Checked], advised: int) -> int:
    """The advised size, or another that was better by ``BETTER`` in every round; the smallest of those."""
    own = seen[advised].rounds_hz
    for size in sorted(seen):
        rounds = zip(seen[size].rounds_hz, own, strict=True)
        if all(other_hz > BETTER * hz for other_hz, hz in rounds):
            return size
    return advised
