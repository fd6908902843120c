"""Sweeps of the study ``pool_size``: work in a request × pool × clients, on threads and on an event loop.

An arm is one server under one load. A model is a kind of server, such as threads on sockets. Work is what a request
does in addition to the Lookup or Trade. The study has three sweeps.

``pool_one`` comes first, and measures one client of one worker. The predictions from this sweep give the rates of the
open loops.

The main sweep has a row for each model and work. A row has three kinds of arms: every pool with the most clients, every
number of clients on the largest pool, and an open loop at shares of the predicted capacity. The main sweep also
measures the arms of ``pool_one`` again, by turns with the rows, and the predictions rest on these arms. So a prediction
and its measurement are of the same minutes: a shared machine may be twice as fast in one minute as in another. The
servers of a group start just before the turn of the group, since the sweep has more servers than may be alive at once.

``pool_lookups`` measures the pure Lookup in slices: the pool has a small effect on a pure Lookup, and slices show small
effects.

Server and load have a core each, except where the server can use a second core. A server can use a second core in three
cases. Its work hashes, and so releases the GIL. Its Python has no GIL. Or the server has two processes with a GIL each.
Then neither server nor load is bound to a core.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from experiments.design.arms import GROUP_ARMS, Arm, Comparison, Group, equally_loaded, twins
from experiments.design.factors import FREE, MEMORY, SQLITE
from experiments.design.levels import Level
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.peers import FREE_THREADED, WITHOUT_GIL
from experiments.services.work import Work as Inside
from experiments.show.figures.style import label
from experiments.studies.study import Scale

HEADLINE = "headline"


def model_of(of: Setting) -> str:
    """Name of a setting's model, from the event loop, the build of Python, the processes, or else the executor."""
    name = label(of.text("transport"))
    if of["dispatch"] == "loop":
        return name
    if of["build"] == FREE_THREADED:
        return f"{name}, without a GIL"
    if of["processes"] != 1:
        return f"{name}, {of['processes']} processes"
    return f"{name}, {of.executor}"


_SOCKETS = setting(transport="sockets", executor="static-pool", client="lean")
_GRPC = setting(transport="grpc", executor="thread-pool", client="lean")

MODELS: dict[str, Setting] = {
    model_of(each): each
    for each in (
        _SOCKETS,
        _GRPC,
        _GRPC.but(executor="static-pool"),
        setting(transport="grpc_aio", client="lean"),
        _SOCKETS.but(processes=2, placement=FREE),
        _SOCKETS.but(build=FREE_THREADED, placement=FREE),
    )
}
"""Settings of the models, by name. With two processes, each process has a pool. The last model needs a free-threaded
Python on this machine."""

SOCKETS, GRPC, GRPC_STATIC, AIO, PROCESSES, NO_GIL = MODELS

SHARES = (0.5, 0.7, 0.9)
"""Rates of open loops, as shares of the predicted capacity."""

SMOKE_ROUNDS = 2
"""Number of rounds in a block of ``pool_lookups`` at the scale ``smoke``. ``rows`` recognizes this scale by the number.
The scale's looks cannot serve for this, because ``run`` changes the looks of a part that is measured first.
"""

NOMINAL_HZ = 100.0
"""Capacity, in requests a second, that an open loop's server is assumed to have before there is a prediction. Estimates
of a run's duration do not depend on this rate.
"""

BUSY = 64
"""Number of connections that keep one worker busy. No arm has more connections."""

PROBE_MS, LOOP_PROBE_MS = 0.1, 1.0
"""Time in milliseconds that a request waits in the arms that measure the cost of waiting: ``PROBE_MS`` on threads,
``LOOP_PROBE_MS`` on an event loop. The waits are short, so that caches are still warm afterwards. The clock of an event
loop counts whole milliseconds."""

OPEN_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class Work(Inside):
    """Work that every request does in addition to the Lookup or Trade."""

    durable: bool = False
    """True for a Trade that is answered once the Trade is on the disk. False for a Lookup."""


@dataclass(frozen=True, slots=True)
class Row:
    """A model and a work, with the pools and loads to be measured. Every pool is measured with the largest number of
    clients. Every number of clients is measured on the largest pool.
    """

    model: str
    """Name of the model."""
    work: Work
    pools: tuple[int, ...]
    """Numbers of threads in the pools, ascending. An event loop has no pool: its row has the single number 1."""
    clients: tuple[int, ...]
    """Numbers of connections, ascending."""
    tail_of: int | None = None
    """Number of threads of the pool on which an open loop is measured. None for a row without an open loop."""

    @property
    def base(self) -> Setting:
        """Setting of the row's server, with the default pool."""
        return with_work(MODELS[self.model], self.work)

    @property
    def pooled(self) -> tuple[Arm, ...]:
        """Arms, one for each pool size, with the largest number of clients."""
        return tuple(Arm(self.base.but(workers=pool, connections=self.clients[-1])) for pool in self.pools)

    @property
    def loaded(self) -> tuple[Arm, ...]:
        """Arms, one for each number of clients, on the largest pool."""
        return tuple(Arm(self.base.but(workers=self.pools[-1], connections=each)) for each in self.clients)


def with_work(of: Setting, work: Work) -> Setting:
    """Setting of the server ``of`` with this work. If the work includes hashing, neither server nor load is bound to a
    core."""
    options = asdict(work)
    kept = {"store": SQLITE, "mix": "trade"} if options.pop("durable") else {}
    return of.but(**options, **kept, placement=FREE if work.hash_ms else of["placement"])


LOOKUP = Work()

COMMIT = Work(durable=True)

IO_SERIES = tuple(Work(io_ms=io_ms, cpu_ms=1.0) for io_ms in (0.0, 0.25, 1.0, 4.0))
"""Works that show where threads begin to gain: one millisecond of computing, with longer and longer waits."""

SERIES_POOLS, SERIES_CLIENTS = (1, 16), 16

SMOKE = (
    Row(SOCKETS, LOOKUP, (1, 16), (16,)),
    Row(SOCKETS, Work(io_ms=10), (4, 16), (1, 16), tail_of=16),
    Row(GRPC, Work(io_ms=10), (4, 16), (16,)),
    Row(AIO, Work(io_ms=10), (1,), (16,)),
    Row(NO_GIL, Work(cpu_ms=1), (1, 16), (16,)),
)

QUICK = (
    Row(SOCKETS, LOOKUP, (1, 64), (64,)),
    Row(SOCKETS, Work(io_ms=1), (64,), (64,)),
    Row(SOCKETS, Work(io_ms=10), (4, 16, 64), (1, 16, 64), tail_of=16),
    Row(SOCKETS, Work(io_ms=50), (64,), (64,)),
    *(Row(SOCKETS, work, SERIES_POOLS, (SERIES_CLIENTS,)) for work in IO_SERIES),
    Row(SOCKETS, Work(hash_ms=10), (1, 2, 16), (16,)),
    Row(NO_GIL, Work(cpu_ms=1), (1, 2, 16), (16,)),
    Row(PROCESSES, Work(cpu_ms=1), (1, 16), (16,)),
    Row(PROCESSES, Work(io_ms=4, cpu_ms=1), (16,), (16,)),
    Row(GRPC, Work(io_ms=10), (16, 64), (64,), tail_of=16),
    Row(GRPC, COMMIT, (1, 16), (16,)),
    Row(GRPC_STATIC, Work(io_ms=10), (64,), (64,)),
    Row(AIO, Work(io_ms=10), (1,), (1, 16, 64), tail_of=1),
)

POOLS = (1, 2, 4, 8, 16, 32, 64)

LONG_POOLS = (4, 8, 16, 32, 64)
"""Numbers of threads for a wait of 50 ms. Smaller pools are slow: one thread would answer 64 clients every 3 s."""

WORKS = {
    **dict.fromkeys((LOOKUP, Work(io_ms=1), Work(io_ms=10)), POOLS),
    Work(io_ms=50): LONG_POOLS,
    **dict.fromkeys((Work(cpu_ms=1), Work(cpu_ms=10), Work(hash_ms=1), Work(hash_ms=10)), POOLS),
    Work(io_ms=4, cpu_ms=1): POOLS,
}

PAPER = (
    *(
        Row(model, work, pools, (1, 4, 16, 64), tail_of=16)
        for model in (SOCKETS, GRPC, GRPC_STATIC, PROCESSES, NO_GIL)
        for work, pools in WORKS.items()
    ),
    *(Row(SOCKETS, work, SERIES_POOLS, (SERIES_CLIENTS,)) for work in IO_SERIES),
    *(Row(AIO, work, (1,), (1, 4, 16, 64), tail_of=1) for work in WORKS),
    *(Row(model, COMMIT, POOLS, (1, 4, 16, 64), tail_of=64) for model in (GRPC, GRPC_STATIC)),
)


def rows(scale: Scale) -> tuple[Row, ...]:
    """Rows of a scale: ``PAPER``, ``QUICK`` or ``SMOKE``. Where no free-threaded Python is installed, rows that need
    such a Python are left out."""
    wanted = SMOKE if scale.rounds <= SMOKE_ROUNDS else PAPER if scale.whole else QUICK
    return tuple(row for row in wanted if row.model != NO_GIL or WITHOUT_GIL in scale.peers)


def pool_size(scale: Scale) -> Sweep:
    """Sweep of every row of the scale, and of the arms on which the predictions rest."""
    groups: list[Group] = []
    comparisons: list[Comparison] = []
    paired = set[Level]()  # transports that have an A/A pair
    for row in rows(scale):
        own = _compared(row)
        if own and row.base["transport"] not in paired:
            paired.add(row.base["transport"])
            own = (*own, twins(row.pooled[-1].setting, "same")[0])
        arms = dict.fromkeys((*(arm for each in own for arm in (each.above, each.below)), *row.pooled, *row.loaded))
        groups += _in_groups(tuple(arms))
        groups += [Group(tuple(_open(row, scale)))] if row.tail_of else []
        comparisons += own
    there = {arm for group in groups for arm in group.arms}
    others = [tuple(arm for arm in group.arms if arm not in there) for group in _of_one(scale)]
    groups += [Group(arms) for arms in others if arms]
    # a window begins after the first replies of a row's slowest arm, and lasts for dozens of that arm's replies
    warm_up_s, duration_s = (1.0, 2.0) if scale.whole else (0.2, 0.4)
    looks, turns = scale.looks[:1], Windows(warm_up_s=warm_up_s, duration_s=duration_s, in_turn=True)
    return Sweep("pool_size", "pool_size", tuple(groups), tuple(comparisons), 1, looks, scale.seed, turns)


def pool_one(scale: Scale) -> Sweep:
    """Sweep of the arms on which the predictions of the scale rest."""
    turns = Windows(warm_up_s=0.2, duration_s=0.5, in_turn=True)
    return Sweep("pool_size", "pool_one", tuple(_of_one(scale)), (), 1, scale.looks[-1:], scale.seed, turns)


def _of_one(scale: Scale) -> Iterator[Group]:
    """Groups of the arms on which predictions rest, for each model and placement of the scale. The kinds of arms are: a
    worker with one client, a busy worker, a worker that waits, and for durable trades a worker that commits.
    """
    wanted = dict.fromkeys(one(row.base) for row in rows(scale))
    for plain in dict.fromkeys(no_work(each) for each in wanted):
        yield Group((Arm(plain), busy(plain)))
        yield Group(probes(plain))
    yield from (Group((Arm(each),)) for each in wanted if work_of(each).durable)


def basis(of: Setting) -> tuple[Arm, ...]:
    """Arms on which a prediction for a setting rests."""
    plain = no_work(one(of))
    return (Arm(plain), busy(plain), *probes(plain), *([Arm(one(of))] if work_of(of).durable else []))


def pool_lookups(scale: Scale) -> Sweep:
    """Sweep that compares a Lookup with 8 and with 64 threads to a Lookup with one thread, on sockets and on gRPC, each
    with its own executor."""
    groups, comparisons = list[Group](), list[Comparison]()
    for model in (SOCKETS, GRPC):
        alone = MODELS[model].but(connections=16, workers=1)
        same, first, again = twins(alone, "same")
        more = [Arm(alone.but(workers=workers)) for workers in (8, 64)]
        groups.append(Group((first, *more, again), times=4))
        for each in more:
            threads = f"{each.setting.whole('workers')} threads"
            name, title = f"{threads} on {alone['transport']}", f"Lookup, {model}: {threads} ÷ 1"
            comparisons.append(Comparison(name, title, each, first, ("workers",), family=HEADLINE))
        comparisons.append(same)
    loaded, turns = equally_loaded(groups, comparisons), Slices(block_s=scale.block_s)
    return Sweep("pool_size", "pool_lookups", loaded, tuple(comparisons), scale.rounds, scale.looks, scale.seed, turns)


def one(of: Setting) -> Setting:
    """Setting of the same server with one process, one worker and one client, in a closed loop."""
    return of.but(processes=1, workers=1, clients=1, connections=1, rate_hz=None)


def no_work(of: Setting) -> Setting:
    """Setting of the same server without work: a Lookup in memory, with the placement of the model."""
    return with_work(of, LOOKUP).but(store=MEMORY, mix="lookup")


def busy(plain: Setting) -> Arm:
    """Arm of one worker that always has a request, since ``BUSY`` connections send requests."""
    return Arm(plain.but(connections=BUSY))


def probes(plain: Setting) -> tuple[Arm, ...]:
    """Arms of one worker whose requests wait. On an event loop many requests wait at once. So an event loop also has
    such an arm with a busy worker.
    """
    if plain["dispatch"] != "loop":
        return (Arm(plain.but(io_ms=PROBE_MS)),)
    waits = plain.but(io_ms=LOOP_PROBE_MS)
    return Arm(waits), busy(waits)


def work_of(of: Setting) -> Work:
    """Work that every request of a setting does in addition to the Lookup or Trade."""
    io_ms, cpu_ms, hash_ms = (float(str(of[name])) for name in ("io_ms", "cpu_ms", "hash_ms"))
    return Work(io_ms, cpu_ms, hash_ms, durable=of["store"] == SQLITE)


def named(work: Work) -> str:
    """Name of a work: ``I/O 4 ms, CPU 1 ms``; without such work ``Lookup`` or ``durable trade``."""
    kinds = (("I/O", work.io_ms), ("CPU", work.cpu_ms), ("hash", work.hash_ms))
    request = "durable trade" if work.durable else "Lookup"
    return ", ".join(f"{kind} {ms:g} ms" for kind, ms in kinds if ms) or request


def _compared(row: Row) -> tuple[Comparison, ...]:
    """Comparison of a row's largest pool with its smallest pool. Empty for a row with one pool."""
    if len(row.pools) == 1:
        return ()
    above, below = row.pooled[-1], row.pooled[0]
    title = f"{row.model}, {named(row.work)}: {row.pools[-1]} threads ÷ {row.pools[0]}"
    return (Comparison(f"pool of {above.setting}", title, above, below, ("workers",), family=HEADLINE),)


def _in_groups(arms: tuple[Arm, ...]) -> Iterator[Group]:
    """Groups of the arms, each of the largest allowed size. Compared arms must stand first in ``arms``: they then share
    a group.
    """
    most = GROUP_ARMS[-1]
    return (Group(arms[begin : begin + most]) for begin in range(0, len(arms), most))


def _open(row: Row, scale: Scale) -> Iterator[Arm]:
    """Arms of a row's open loop, one arm for each share of the predicted capacity."""
    assert row.tail_of is not None
    pool = row.base.but(workers=row.tail_of, connections=OPEN_CONNECTIONS)
    for share in SHARES:
        rate_hz = NOMINAL_HZ * share if scale.foretell is None else scale.foretell(pool).capacity_hz * share
        yield Arm(pool.but(rate_hz=float(f"{rate_hz:.3g}")))
