"""Executors on both transports: every level that a transport can have, Lookup and Trade at random.

Both transports have the static pool, the thread pool and a thread for each task. Leader/followers need a transport
whose threads read by themselves, as on sockets. grpcio's server does not let them. Each executor is compared with the
thread pool of its transport, with the fewest clients and with the most; the figures have every number of clients.
"""

from collections.abc import Iterator, Mapping, Sequence

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.sweep import Sweep
from experiments.judge.points import Point, points
from experiments.show.content import Answer, Seen
from experiments.show.figures import clients as over_clients
from experiments.show.figures.style import Picture, label
from experiments.studies.stock.extensions import CLOSED, ONE_MACHINE, each_transport, where
from experiments.studies.stock.sweeps import GRPC, HEADLINE, MIXED, POOL, SOCKETS, clients_of, in_slices
from experiments.studies.stock.wording import by_clients
from experiments.studies.study import Scale
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.transports import load

CLIENTS = (1, POOL, 2 * POOL)
"""Numbers of clients, unless told."""

BESIDE = "thread-pool"
"""Executor with which each other is compared."""

HEADLINES_MAX = 4
"""Transports whose comparisons of executors form one family. With more transports in a family, ten blocks could decide
none."""

REQUESTS = ("lookup", "trade")
"""Request types, a panel each."""


def sweep(scale: Scale) -> Sweep:
    """Every executor of a transport beside each other, at every number of clients."""
    groups: list[Group] = []
    comparisons: list[Comparison] = []
    for base in (GRPC, SOCKETS):
        transport = base.text("transport")
        own = [each for each in EXECUTORS if each not in load(transport).REFUSED_EXECUTORS]
        for clients in scale.clients:
            arms = {each: Arm(base.but(mix=MIXED, clients=clients, executor=each)) for each in own}
            groups.append(Group(tuple(arms.values())))
            comparisons += [
                Comparison(
                    f"{executor}_{transport}_{clients}",
                    f"{transport}, {clients_of(clients)}, Lookup and Trade: {executor} ÷ {BESIDE}",
                    arms[executor],
                    arms[BESIDE],
                    ("executor",),
                    family=HEADLINE if own.index(executor) < HEADLINES_MAX else "further",
                )
                for executor in own
                if executor != BESIDE and clients in (min(scale.clients), max(scale.clients))
            ]
    return in_slices("executors", groups, comparisons, scale)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers on each executor beside another, on each transport."""

    def said(of: Comparison) -> tuple[str, str]:
        return f"{where(of)}, a request on the {of.above.setting.executor}", f"one on the {of.below.setting.executor}"

    return each_transport(seen, "Which executor answers soonest on {}?", said, (ONE_MACHINE, CLOSED))


def pictures(seen: Seen) -> Sequence[Picture]:
    """A figure for each transport, on its own scale: a panel for each request type, a line for each executor."""
    found, drawn = points(seen.main.sweep, seen.main.blocks), []
    for base in (GRPC, SOCKETS):
        transport = base.text("transport")
        own = [arm for arm in seen.main.sweep.arms if arm.setting["transport"] == transport]
        executors = dict.fromkeys(arm.setting.text("executor") for arm in own)
        lines = [by_clients(seen.main, base.but(mix=MIXED, executor=each)) for each in executors]
        panels = [over_clients.Panel(each.capitalize(), list(_lines(each, lines, found))) for each in REQUESTS]
        title = f"Executors on {label(transport)}, Lookup and Trade at random"
        drawn.append(over_clients.picture(f"executors_{transport}", title, panels))
    return drawn


def _lines(
    request: str, lines: Sequence[Sequence[Arm]], found: Mapping[tuple[Arm, str], Point]
) -> Iterator[over_clients.Line]:
    """A line for each executor's arms."""
    for arms in lines:
        setting = arms[0].setting
        line = [found[arm, request] for arm in arms if (arm, request) in found]
        yield over_clients.Line(setting.executor, setting.text("transport"), line)
