"""An advice by measurement: on a server that runs, or on one that a command starts at every size.

A running server is asked, and an advice follows from what its requests need. A command is started with the largest pool
and asked likewise. Then every size runs beside the others, by turns, and what they do counts more than the prediction.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from clients.load.run.floor import floor
from experiments.capacity import Demands, capacity_hz, tail
from experiments.recommend import started
from experiments.recommend.advice import POOLS, UNLIMITED, USUAL, Advice, Kind, Wish, advise, sized
from experiments.recommend.asking import BUDGET_S, Asked, Server, Watch, ask, loaded, server_at
from experiments.recommend.seen import Around, Inferred, Load, infer
from experiments.recommend.words import Seen
from experiments.results.machine import cores
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import Address

TAIL_S = 4.0
"""How long the tail of a running server is measured."""

START_BUDGET_S = 10.0
"""How long a server that is started is asked, before its advice is checked."""

TAIL_CONNECTIONS = 64

TAIL_HZ_MOST = 20_000.0
"""The highest rate at which a tail is measured. One client process keeps to its schedule at 30,000/s on gRPC; at
45,000/s it did not, and what it sent late threw a server in C++ into seconds of timeouts."""


@dataclass(frozen=True, slots=True)
class Measured:
    """An advice, what it was made of, and what was seen."""

    demands: Demands
    advice: Advice
    seen: Seen


def of_running(asked: Asked, wish: Wish, watch: Watch) -> Measured:
    """Of the server that is asked. Blocks for up to a minute. Raises as ``ask`` does."""
    loads, inferred = _inferred(asked, server_at(asked.address), BUDGET_S, watch)
    advice = advise(inferred.demands, wish)
    seen = Seen(loads, inferred)
    tried = _with_tail(asked, inferred.pool or UNLIMITED, 1, inferred.highest_hz, wish, seen, watch)
    return Measured(inferred.demands, advice, tried)


def of_command(template: str, asking: Callable[[Address], Asked], wish: Wish, watch: Watch) -> Measured:
    """Of what a command starts. Blocks for up to 90 s. Raises as ``ask`` does, and ProgramFailed."""
    with started.serving(template, max(POOLS)) as at:
        asked = asking(at)
        loads, inferred = _inferred(asked, server_at(at), START_BUDGET_S, watch)
    demands = inferred.demands
    predicted = advice = advise(demands, wish)
    processes = advice.chosen.processes if started.takes_processes(template) else 1
    found = started.checked(template, POOLS, processes, asking, started.window_s(loads[0].mean_s), watch)
    workers = min(max(POOLS), advice.chosen.workers)
    if advice.kind is not Kind.ASYNCIO and wish.rate_hz is None:
        workers = started.best_of(found, workers)
        advice = replace(advice, chosen=sized(demands, workers, advice.chosen.processes, wish))
    seen = Seen(
        loads,
        inferred,
        tuple(found[size] for size in POOLS),
        before_check=None if advice.chosen == predicted.chosen else predicted.chosen.workers,
    )
    with started.serving(template, workers, processes) as at:
        highest_hz = found[workers].throughput_hz
        seen = _with_tail(replace(asked, address=at), workers, processes, highest_hz, wish, seen, watch)
    return Measured(demands, advice, seen)


def _inferred(asked: Asked, server: Server, budget_s: float, watch: Watch) -> tuple[tuple[Load, ...], Inferred]:
    """What the server was seen to do, and what a request needs."""
    watch("the client's own floor")
    try:
        floor_s = floor(asked.transport, "lean", None).floor_us_p50 / 1e6
    except Unavailable:  # nothing but its own library speaks this transport: the wait is told with what that adds
        floor_s = 0.0
    loads, kernel_share = ask(asked, server, watch, budget_s)
    if not server.pids:
        watch("the server's processor time cannot be read here: the highest rate stands for it")
    return loads, infer(loads, Around(floor_s, server.has_gil(), kernel_share, len(cores())))


def _with_tail(
    asked: Asked, workers: int, processes: int, highest_hz: float, wish: Wish, seen: Seen, watch: Watch
) -> Seen:
    """The tail of a server of so many workers, measured beside what is predicted of it.

    At the wished rate, if the server carries that and one client process sends it. It was seen to do ``highest_hz``.
    """
    assert seen.inferred is not None
    demands, of_cores = seen.inferred.demands, len(cores())
    able_hz = min(TAIL_HZ_MOST, USUAL * min(highest_hz, capacity_hz(demands, workers, of_cores, processes)))
    rate_hz = min(wish.rate_hz or able_hz, able_hz)
    watch(f"the tail at {rate_hz:,.0f}/s")
    tried = loaded(asked, Server(()), TAIL_CONNECTIONS, TAIL_S, rate_hz)
    predicted_s = tail(demands, workers, rate_hz, cores=of_cores, processes=processes)
    return replace(seen, tail=tried, tail_rate_hz=rate_hz, tail_predicted_s=predicted_s)
