"""Servers that a command starts, one server for each size, and their measurement. A size is a number of workers.

The command has ``{workers}``, and may have ``{port}``. A command with ``{processes}`` is started with one process. If
one process does not carry the wished rate, the command is started again with several processes. The servers run at the
same time and take turns under load. So other programs disturb all sizes alike. If a command has ``{port}``, the
standard output of its servers is sent to standard error. If a command has no ``{port}``, the server prints its address
in its first line, ``ready HOST:PORT``. At the end every server is stopped. Exit codes are ignored.
"""

import shlex
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from experiments.measure.programs import Program, ProgramFailed
from experiments.recommend.asking import Asked, Server, Watch, alone_s, by_turns, loaded, window_s
from experiments.recommend.seen import Level, Load
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import Address

WORKERS, PROCESSES, PORT = "{workers}", "{processes}", "{port}"

_SILENCED = ("/bin/sh", "-c", 'exec "$@" >&2', "sh")
"""Words that stand before a command, and send its standard output to standard error. Nobody reads this output, and a
full pipe would block the server.
"""

CONNECTIONS = 128
"""Number of connections that load one server: twice the workers of the largest size."""

QUEUED_S = 0.5
"""Longest time in seconds for which requests may queue for one worker. A window ends only after the replies to all
queued requests, so slow servers get fewer connections."""


@dataclass(frozen=True, slots=True)
class Started:
    """A running server of one size: its address, the request to send, and its processes."""

    asked: Asked
    server: Server


def check_command(template: str) -> None:
    """Refuses a command that cannot be started. Raises UsageError."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError("--start", template, f"a command as a shell reads it ({error})") from error
    if not words or not any(WORKERS in word for word in words):
        raise UsageError("--start", template, f"a command with {WORKERS} where its number of workers goes")
    if shutil.which(words[0]) is None:
        raise UsageError("--start", words[0], "a path of a program, or a program on PATH")


@contextmanager
def serving(
    template: str, sizes: Sequence[int], processes: int, asking: Callable[[Address], Asked]
) -> Iterator[Mapping[int, Started]]:
    """Context with one running server of each size. The servers start together, and are stopped at the end of the
    context.

    ``sizes``: numbers of workers of each process. Raises ProgramFailed, and the errors of ``asking``.
    """
    with ExitStack() as running:
        ports = _free_ports(len(sizes)) if PORT in template else [None] * len(sizes)
        begun = {}
        for size, port in zip(sizes, ports, strict=True):
            words = _words(template, {WORKERS: size, PROCESSES: processes, PORT: port})
            begun[size] = words, port, running.enter_context(_running(words, port))
        yield {
            size: Started(asking(_listening(words, port, program, running)), Server(program.pids))
            for size, (words, port, program) in begun.items()
        }


def _words(template: str, values: Mapping[str, int | None]) -> list[str]:
    """Words of a command, with each value in place of its name, such as ``{port}``."""
    words = shlex.split(template)
    for name, value in values.items():
        words = [word.replace(name, str(value)) for word in words]
    return words


@contextmanager
def _running(words: Sequence[str], port: int | None) -> Iterator[Program]:
    """Context with a started server. The server may not listen yet. The end of the context stops the server. ``port``:
    None if the server chooses and prints its port.
    """
    path = shutil.which(words[0]) or words[0]
    program = Program([*(() if port is None else _SILENCED), path, *words[1:]])
    try:
        yield program
    finally:
        with suppress(ProgramFailed):  # the exit code does not count: many servers do not exit with 0
            program.stop()


def _listening(words: Sequence[str], port: int | None, program: Program, running: ExitStack) -> Address:
    """Address of a started server. Blocks until the server listens. Raises ProgramFailed."""
    if port is None:
        at = program.ready()
        running.enter_context(program.drained())
        return at
    try:
        program.listening(("127.0.0.1", port))
    except ProgramFailed as error:  # raised again with the user's command, without ``_SILENCED``
        raise type(error)(words, error.what, error.stderr) from error
    return "127.0.0.1", port


def _free_ports(count: int) -> list[int]:
    """Different ports of loopback that are free now. Another program may take a port before the server does."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def swept(servers: Mapping[int, Started], processes: int, watch: Watch) -> tuple[Level, ...]:
    """Measures the highest rate of every size; the sizes are loaded in turn. Blocks for about half a minute. Raises the
    errors of ``loaded``."""
    largest = servers[max(servers)]
    response_s = alone_s(largest.asked, largest.server, watch)
    long_s = window_s(response_s)

    def load(size: int) -> Load:
        one = servers[size]
        return loaded(one.asked, one.server, connections(size * processes, response_s), long_s)

    return by_turns(tuple(servers), load, "workers", watch)


def connections(workers: int, response_s: float) -> int:
    """Number of connections that load a server: ``CONNECTIONS``, or fewer if requests would queue for long. The number
    is at least twice ``workers``. ``workers``: number of workers of all processes together.
    """
    return min(max(CONNECTIONS, 2 * workers), max(2 * workers, round(QUEUED_S / response_s)))
