"""Advice from measurements: of a running server, or of servers that a command starts, one server for each pool size.

A running server is loaded over a rising number of connections. A command is started once for each pool size, and the
servers take turns under load. In both cases the module ``seen`` derives the advice from the rates. The p99 is measured
last, in an open loop. The p99 is measured on the running server, or on the started servers whose pools may be advised.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from clients.load.run.floor import floor
from experiments.recommend import started
from experiments.recommend.advice import BUSIEST, POOLS, RATE_NEAR, USUAL, Wish
from experiments.recommend.asking import Asked, Server, Watch, ask, loaded, server_at
from experiments.recommend.seen import Found, Program, Tail, of_connections, of_pools
from experiments.results.machine import cores
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import Address

TAIL_S = 2.0
"""Duration of the measurement of a p99, in seconds."""

TAIL_NEAR = 1.25
"""Largest ratio of two pools' p99 that counts as no difference. Two measurements of one pool's p99, in different
windows, differ by up to this factor."""

TAIL_CONNECTIONS = 64
"""Number of connections of the open loop that measures a p99."""

TAIL_HZ_MOST = 20_000.0
"""Highest rate at which a p99 is measured. On gRPC one client process kept its schedule at 30,000/s. At 45,000/s the
client sent late, and requests to a server in C++ timed out for seconds."""

IN_TARGET = (BUSIEST, 0.6, 0.4, 0.2)
"""Shares of the highest rate, in the order of their trial. The p99 is measured at each share, until a measured p99 is
at most the wished p99.
"""


def of_running(asked: Asked, wish: Wish, watch: Watch) -> Found:
    """Findings on a running server. Blocks for up to a minute. Raises the errors of ``ask``."""
    server = server_at(asked.address)
    if not server.pids:
        watch("the server's processor time cannot be read here")
    levels = ask(asked, server, watch)
    watch("the client's own floor")
    try:
        floor_s = floor(asked.transport, "lean", None).floor_us_p50 / 1e6
    except Unavailable:  # the lean client does not speak this transport: waits then include the client's own time
        floor_s = 0.0
    found = of_connections(levels, Program(server.has_gil(), len(cores())), floor_s, wish)
    return with_tails(found, wish, lambda workers, rate_hz: _tail(asked, workers, rate_hz, watch))


def of_command(template: str, asking: Callable[[Address], Asked], wish: Wish, watch: Watch) -> Found:
    """Findings on servers that a command starts. Blocks for up to 90 s. Raises the errors of ``ask``, and
    ProgramFailed.

    ``template``: the command. ``asking``: function from a server's address to an ``Asked`` with this address and the
    request to send.
    """
    found = _of_processes(template, 1, asking, wish, watch)
    if wish.rate_hz is None or found.carried(wish) or started.PROCESSES not in template:
        return found
    processes = min(wish.cores, math.ceil(wish.rate_hz / (BUSIEST * found.best.throughput_hz)))
    more = _of_processes(template, processes, asking, wish, watch) if processes > 1 else found
    return more if RATE_NEAR * more.best.throughput_hz > found.best.throughput_hz else found


def _of_processes(template: str, processes: int, asking: Callable[[Address], Asked], wish: Wish, watch: Watch) -> Found:
    """Findings on servers with this number of processes, one server for each pool size."""
    watch(f"{len(POOLS)} servers are started")
    with started.serving(template, POOLS, processes, asking) as servers:
        levels = started.swept(servers, processes, watch)
        program = Program(servers[max(POOLS)].server.has_gil(), len(cores()), processes)
        found = of_pools(levels, program, wish)

        def tail_of(workers: int, rate_hz: float) -> Tail:
            return _tail(servers[workers].asked, workers, rate_hz, watch)

        if wish.rate_hz is not None and wish.rate_hz <= BUSIEST * found.highest_hz:
            return with_short_tail(found, wish.rate_hz, tail_of)
        return with_tails(found, wish, tail_of)


def with_short_tail(found: Found, rate_hz: float, tail_of: Callable[[int, float], Tail]) -> Found:
    """Findings with another advised pool: the smallest pool that carries a rate, and whose p99 at this rate is near the
    largest pool's p99.

    ``tail_of`` measures the p99 with a given number of workers at a given rate.
    """
    carrying = [level for level in found.levels if rate_hz <= BUSIEST * level.throughput_hz]
    largest = tail_of(carrying[-1].at_once, rate_hz)
    tails = [largest]
    for level in carrying[:-1]:
        tails.append(tail_of(level.at_once, rate_hz))
        if tails[-1].p99_s <= TAIL_NEAR * largest.p99_s:
            return replace(found, workers=level.at_once, highest_hz=level.throughput_hz, tails=tuple(tails))
    tails = [*tails[1:], largest]
    return replace(found, workers=largest.workers, highest_hz=carrying[-1].throughput_hz, tails=tuple(tails))


def with_tails(found: Found, wish: Wish, tail_of: Callable[[int, float], Tail]) -> Found:
    """Findings with a measured p99. The p99 is measured at the wished rate, but at most at ``BUSIEST`` of the highest
    rate. Without a wished rate, the p99 is measured at ``USUAL`` of the highest rate. If the user wishes only a p99,
    the rate is lowered in the steps of ``IN_TARGET``, until the server keeps the p99.

    No p99 is measured at a rate over ``TAIL_HZ_MOST``. ``tail_of`` measures the p99 with a given number of workers at a
    given rate.
    """
    most_hz = min(TAIL_HZ_MOST, (USUAL if wish.rate_hz is None else BUSIEST) * found.highest_hz)
    if wish.target_p99_s is None or wish.rate_hz is not None:
        return replace(found, tails=(tail_of(found.workers, min(wish.rate_hz or most_hz, most_hz)),))
    tails: list[Tail] = []
    for share in IN_TARGET:
        tails.append(tail_of(found.workers, min(TAIL_HZ_MOST, share * found.highest_hz)))
        if tails[-1].p99_s <= wish.target_p99_s:
            break
    return replace(found, tails=tuple(tails))


def _tail(asked: Asked, workers: int, rate_hz: float, watch: Watch) -> Tail:
    """Measures the p99 at a rate, in an open loop on ``TAIL_CONNECTIONS`` connections. Blocks."""
    watch(f"the p99 at {rate_hz:,.0f}/s")
    return Tail(workers, rate_hz, loaded(asked, Server(()), TAIL_CONNECTIONS, TAIL_S, rate_hz).p99_s)
