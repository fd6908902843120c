"""Figures of the study ``stock``: the arms and points that each figure shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from experiments.design.arms import Arm
from experiments.design.factors import FACTORS
from experiments.judge.points import CONFIDENCE, Point, points
from experiments.judge.stats import Estimate, mean_interval
from experiments.judge.verdicts import Judgement
from experiments.show.content import Seen
from experiments.show.figures import clients, costs, distributions, heat_map, offered_load, ratios
from experiments.show.figures import stages as stacked
from experiments.show.figures.style import Picture, label
from experiments.show.numbers import counted
from experiments.studies.stock import pool_fills
from experiments.studies.stock.locks import REQUESTS
from experiments.studies.stock.sweeps import FIGURES, MIXED, POOL, POOLS, STAGED, THREE
from experiments.studies.stock.wording import (
    at_work,
    by_clients,
    by_transport,
    counted_stages,
    points_of,
    server,
    threads_ran,
)

TITLES = {
    "figure_1": "Figure 1: Lookup and Trade on gRPC, a price updater beside them",
    "figure_2": "Figure 2: Lookup on gRPC",
    "figure_3": "Figure 3: Trade on gRPC",
    "figure_4": f"Figure 4: Lookup on sockets, a pool of {FIGURES['figure_4']['workers']} threads",
    "figure_5": f"Figure 5: Lookup on sockets, a pool of {POOL} threads",
}

Painter = Callable[[Seen], Sequence[Picture]]


def main(seen: Seen) -> Sequence[Picture]:
    """Figures of the report. The main part has the ratios that answer the four questions, the five figures of the
    original document, the comparison of three servers, and the A/A pairs. After these come the figures of the parts
    that are measured after the main part.
    """
    title, headline = "The stock service: ratios that answer its four questions", seen.main.comparisons("headline")
    pictures = [ratios.picture("answers", title, list(headline))]
    panels = {}
    for name in TITLES:
        lines, pool = _lines(seen.main, by_clients(seen.main, FIGURES[name])), POOL if name == "figure_5" else None
        panels[name] = clients.Panel("", list(lines), pool, _threads(name, seen.after.get("stages")))
    for name, title in TITLES.items():
        alike = [panels[each] for each in TITLES if FIGURES[each]["transport"] == FIGURES[name]["transport"]]
        pictures.append(clients.picture(name, title, [panels[name]], percentiles=True, alike=alike))
    pictures.append(_three(seen.main))
    twins = list(seen.main.comparisons("same"))
    pictures.append(ratios.picture("same", "A/A pairs: one setting, started as two servers", twins))
    for part, painter in (("past_pool", pool_fills.pictures), ("lock_waits", lock_waits), ("stages", stages_of)):
        if part in seen.after:
            pictures += painter(Seen(seen.after[part]))
    return pictures


def lock_waits(seen: Seen) -> Sequence[Picture]:
    """Figure of the time that a request waits for the lock, under each locking strategy."""
    sweep = seen.main.sweep
    found = points(sweep, seen.main.blocks)
    waits = {(arm, request): _wait_us(seen.main, arm, request) for arm in sweep.arms for request in REQUESTS}
    shares = {each: _share(wait_us, found.get(each)) for each, wait_us in waits.items()}
    panels = [
        costs.Panel(quantity, [_row(seen.main, arm, request, of) for (arm, request), of in values.items()])
        for quantity, values in (("Mean wait for the lock, µs", waits), ("Share of the mean latency, %", shares))
    ]
    few, many = (counted(of(arm.connections for arm in sweep.arms), "client") for of in (min, max))
    loads = few if few == many else f"{few} to {many}"
    return [costs.picture("lock_waits", f"What the lock costs: waits under each strategy, {loads}", panels)]


def _row(judgement: Judgement, arm: Arm, request: str, of: Estimate | None) -> costs.Row:
    transport = arm.setting.text("transport")
    lacks = "no lock" if counted_stages(judgement, arm, request) else "not measured"
    return costs.Row(f"{arm.setting.text('locking')}, {label(transport)}: {request}", transport, of, lacks)


def stages_of(seen: Seen) -> Sequence[Picture]:
    """Figure of the stages of a request inside the servers."""
    settings = {
        f"{label(arm.setting.text('transport'))}, {counted(arm.connections, 'client')}": [
            *counted_stages(seen.main, arm).values()
        ]
        for arm in seen.main.sweep.arms
        if arm in STAGED
    }
    return [stacked.picture("stages", f"Where the time goes inside the server, a pool of {POOL} threads", settings)]


def over_clients(name: str, title: str, factor: str) -> Painter:
    """Function that makes a part's figure of the latency over the number of clients. The figure has a panel for each
    level of ``factor``, and a line for each setting of the other factors."""

    def pictures(seen: Seen) -> Sequence[Picture]:
        arms = [arm for arm in seen.main.sweep.arms if not arm.copy]
        found, levels = points_of(seen.main, arms), dict.fromkeys(arm.setting.text(factor) for arm in arms)
        panels = [clients.Panel(f"{factor}: {level}", list(_rest(found, factor, level))) for level in levels]
        return [clients.picture(name, title, panels)]

    return pictures


def pools(seen: Seen) -> Sequence[Picture]:
    """Heat map of the latency by the pool's size and the number of clients."""
    shown = points_of(seen.main, (arm for arm in seen.main.sweep.arms if arm.setting["workers"] in POOLS))
    title = "Mean latency, by the size of the pool and the number of clients"
    return [heat_map.picture("pool_by_clients", title, [heat_map.Field("Lookup on sockets", shown)])]


def offered(seen: Seen) -> Sequence[Picture]:
    """Figure of the answered requests and of the response times, by the requests that were due."""
    curves = []
    for arms in by_transport(seen.main.sweep.arms):
        transport = arms[0].setting.text("transport")
        loads = [offered_load.load_of(seen.main, point.arm, point) for point in points_of(seen.main, arms)]
        curves.append(offered_load.Curve(label(transport), transport, loads))
    title = "An open loop: requests that were due, answered, and how soon"
    return [offered_load.picture("offered_load", title, curves)]


CLIENTS = {"library": "own client", "lean": "lean client"}
"""Words for the two kinds of client. Users have the transport's own client. Our lean client adds little latency."""


def kinds(seen: Seen) -> Sequence[Picture]:
    """Figure of the response times by both kinds of client on both transports, from the quickest request to the
    slowest."""
    lines = []
    for point in points_of(seen.main, seen.main.sweep.arms):
        of = point.arm.setting
        if point.arm.connections == 1 and not point.arm.copy and "executor" not in dict(of.said()):
            name = f"{label(of.text('transport'))}, {CLIENTS[of.text('client')]}"
            lines.append(distributions.Line(name, of.text("transport"), point))
    title = "Response times of a Lookup, 1 client: the transport's own client, and a lean one"
    return [distributions.picture("client_kind", title, lines)]


def _lines(judgement: Judgement, arms: Sequence[Arm]) -> Iterator[clients.Line]:
    """Lines of one of the original's figures. Each request type that these arms measured has a line."""
    for request in REQUESTS:
        if line := points_of(judgement, arms, request):
            yield clients.Line(request.capitalize(), arms[0].setting.text("transport"), line)


def _threads(figure: str, staged: Judgement | None) -> Mapping[str, Mapping[int, str]]:
    """Rows of numbers under a figure. A row has a number for each number of clients: the threads that ran requests, or
    the average number of threads at work at once. Empty where the server stamped nothing.
    """
    if staged is None:
        return {}
    own = by_clients(staged, FIGURES[figure])
    ran = {arm.connections: threads_ran(staged, arm) for arm in own}
    at_once = {arm.connections: at_work(staged, arm) for arm in own}
    rows = {
        "threads that ran requests": {n: str(each) for n, each in ran.items() if each is not None},
        "threads at work at once, on average": {n: f"{each:.1f}" for n, each in at_once.items() if each},
    }
    return {name: row for name, row in rows.items() if row}


def _three(judgement: Judgement) -> Picture:
    """Figure with a panel for each request type and a line for each of the three servers."""
    panels = []
    for request in REQUESTS:
        every = (points_of(judgement, by_clients(judgement, base.but(mix=MIXED)), request) for base in THREE)
        lines = [clients.Line(server(own[0].arm), own[0].arm.setting.text("transport"), own) for own in every if own]
        panels.append(clients.Panel(request.capitalize(), lines))
    title = "Lookup and Trade at random, on three servers with the same executor, pool and lock"
    return clients.picture("three", title, panels)


def _rest(found: Sequence[Point], factor: str, level: str) -> Iterator[clients.Line]:
    """Lines of latency over the number of clients, at one level of ``factor``. Each setting of the other factors has a
    line. The line's name has the levels of the other factors that vary.
    """
    varying = [
        name
        for name in FACTORS
        if name not in (factor, "clients") and len({point.arm.setting[name] for point in found}) > 1
    ]
    lines: dict[tuple[str, str], list[Point]] = {}
    for point in (each for each in found if each.arm.setting.text(factor) == level):
        transport = point.arm.setting.text("transport")
        words = [label(transport) if name == "transport" else point.arm.setting.text(name) for name in varying]
        lines.setdefault((", ".join(words) or label(transport), transport), []).append(point)
    for (name, transport), line in lines.items():
        yield clients.Line(name, transport, sorted(line, key=lambda point: point.arm.connections))


def _wait_us(judgement: Judgement, arm: Arm, request: str) -> Estimate | None:
    """Mean wait for the lock in µs, with its interval over blocks. None where no request took a lock."""
    waits = [each.lock_wait.mean_us for each in counted_stages(judgement, arm, request).values() if each.locked]
    return mean_interval(waits, CONFIDENCE) if waits else None


def _share(wait_us: Estimate | None, point: Point | None) -> Estimate | None:
    """Wait for the lock in per cent of the latency at the clients. None where wait or latency is unknown."""
    return wait_us.over(point.mean_us.value / 100) if wait_us and point and point.mean_us else None
