"""Executors on both transports, under a random mix of Lookup and Trade. An executor decides which thread runs a
request.

Both transports have the static pool, the thread pool and a thread for each task. Leader/followers need a transport
whose threads read from connections, such as sockets. grpcio's server reads with its own threads. Each executor is
compared with the thread pool of its transport, with the fewest clients and with the most clients. The figures have
every number of clients.
"""

from collections.abc import Sequence

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.sweep import Sweep
from experiments.show.content import Answer, Seen
from experiments.show.figures import clients as over_clients
from experiments.show.figures.style import Picture, label
from experiments.studies.stock.extensions import CLOSED, ONE_MACHINE, told_of, where
from experiments.studies.stock.locks import REQUESTS
from experiments.studies.stock.sweeps import GRPC, HEADLINE, MIXED, POOL, SOCKETS, clients_of, in_slices
from experiments.studies.stock.wording import by_clients, by_transport, points_of
from experiments.studies.study import Scale
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.transports import load

CLIENTS = (1, POOL, 2 * POOL)
"""Numbers of clients, unless the user gives others."""

BESIDE = "thread-pool"
"""Name of the executor with which every other executor is compared."""

HEADLINES_MAX = 4
"""Number of executors of a transport whose comparisons are headlines, counted from the transport's first executor.
Holm's correction covers all headlines, and ten blocks could decide no larger family.
"""


def sweep(scale: Scale) -> Sweep:
    """Sweep of every executor of each transport, under every number of clients."""
    groups, comparisons = list[Group](), list[Comparison]()
    for base in (GRPC, SOCKETS):
        transport = base.text("transport")
        own = [each for each in EXECUTORS if each not in load(transport).REFUSED_EXECUTORS]
        for clients in scale.clients:
            arms = {each: Arm(base.but(mix=MIXED, clients=clients, executor=each)) for each in own}
            groups.append(Group(tuple(arms.values())))
            if clients not in (min(scale.clients), max(scale.clients)):
                continue
            for executor in (each for each in own if each != BESIDE):
                name = f"{executor}_{transport}_{clients}"
                title = f"{transport}, {clients_of(clients)}, Lookup and Trade: {executor} ÷ {BESIDE}"
                family = HEADLINE if own.index(executor) < HEADLINES_MAX else "further"
                compared = Comparison(name, title, arms[executor], arms[BESIDE], ("executor",), family=family)
                comparisons.append(compared)
    return in_slices("executors", groups, comparisons, scale)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers on the executors of each transport, compared with the thread pool of the transport."""

    def said(of: Comparison) -> tuple[str, str]:
        return f"{where(of)}, a request on the {of.above.setting.executor}", f"one on the {of.below.setting.executor}"

    return told_of(seen.main, "Which executor answers soonest on {}?", said, ONE_MACHINE, CLOSED)


def pictures(seen: Seen) -> Sequence[Picture]:
    """Figures, one for each transport, each with its own scale: a panel for each request type, a line for each
    executor."""
    drawn = []
    for own in by_transport(seen.main.sweep.arms):
        transport = own[0].setting.text("transport")
        settings = {arm.setting.executor: arm.setting for arm in own}
        lines = {name: by_clients(seen.main, each) for name, each in settings.items()}
        panels = []
        for request in REQUESTS:
            points = {name: points_of(seen.main, arms, request) for name, arms in lines.items()}
            shown = [over_clients.Line(name, transport, each) for name, each in points.items()]
            panels.append(over_clients.Panel(request.capitalize(), shown))
        title = f"Executors on {label(transport)}, Lookup and Trade at random"
        drawn.append(over_clients.picture(f"executors_{transport}", title, panels))
    return drawn
