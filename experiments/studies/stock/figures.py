"""The figures of the study ``stock``: for each one the arms and points that it shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from experiments.design.arms import Arm
from experiments.design.sweep import Sweep
from experiments.judge.points import CONFIDENCE, Point, points, stages
from experiments.judge.stats import Estimate, mean_interval
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ALL, Block
from experiments.show.content import Seen
from experiments.show.figures import clients, costs, distributions, heat_map, offered_load, ratios
from experiments.show.figures import stages as stacked
from experiments.show.figures.style import Picture, label
from experiments.show.numbers import counted
from experiments.studies.stock import pool_fills
from experiments.studies.stock.sweeps import FIGURES, MIXED, POOL, POOLED, POOLS, STAGED, THREE
from experiments.studies.stock.wording import at_work, by_clients, server, threads_ran

TITLES = {
    "figure_1": "Figure 1: Lookup and Trade on gRPC, a price updater beside them",
    "figure_2": "Figure 2: Lookup on gRPC",
    "figure_3": "Figure 3: Trade on gRPC",
    "figure_4": f"Figure 4: Lookup on sockets, a pool of {FIGURES['figure_4']['workers']} threads",
    "figure_5": f"Figure 5: Lookup on sockets, a pool of {POOL} threads",
}

ALL_POINTS = dict[tuple[Arm, str], Point]

Painter = Callable[[Seen], Sequence[Picture]]


def main(seen: Seen) -> Sequence[Picture]:
    """The answers, the five figures, the three servers beside each other, and what was measured after them."""
    found = points(seen.main.sweep, seen.main.blocks)
    title, headline = "The stock service: ratios that answer its four questions", seen.main.comparisons("headline")
    pictures = [ratios.picture("answers", title, list(headline))]
    panels = {
        name: clients.Panel(
            "",
            list(_lines(found, by_clients(seen.main, FIGURES[name]))),
            POOL if name == "figure_5" else None,
            _threads(name, seen.after.get("stages")),
        )
        for name in TITLES
    }
    for name, title in TITLES.items():
        alike = [panels[each] for each in TITLES if FIGURES[each]["transport"] == FIGURES[name]["transport"]]
        pictures.append(clients.picture(name, title, [panels[name]], percentiles=True, alike=alike))
    pictures.append(_three(seen.main, found))
    twins = list(seen.main.comparisons("same"))
    pictures.append(ratios.picture("same", "A/A pairs: one setting, started as two servers", twins))
    if "past_pool" in seen.after:
        pictures += pool_fills.pictures(Seen(seen.after["past_pool"]))
    if "lock_waits" in seen.after:
        pictures += lock_waits(Seen(seen.after["lock_waits"]))
    if "stages" in seen.after:
        pictures += stages_of(Seen(seen.after["stages"]))
    return pictures


def lock_waits(seen: Seen) -> Sequence[Picture]:
    """Figures of the wait of a request for its lock, under each strategy."""
    sweep, blocks = seen.main.sweep, seen.main.blocks
    found = points(sweep, blocks)
    waits = {
        (arm, request): _wait_us(sweep, blocks, arm, request) for arm in sweep.arms for request in ("lookup", "trade")
    }
    shares = {each: _share(wait_us, found[each]) for each, wait_us in waits.items()}
    panels = [
        costs.Panel(quantity, [_row(arm, request, of) for (arm, request), of in values.items()])
        for quantity, values in (("Mean wait for the lock, µs", waits), ("Share of the mean latency, %", shares))
    ]
    few, many = (counted(of(arm.connections for arm in sweep.arms), "client") for of in (min, max))
    loads = few if few == many else f"{few} to {many}"
    return [costs.picture("lock_waits", f"What the lock costs: waits under each strategy, {loads}", panels)]


def _row(arm: Arm, request: str, of: Estimate | None) -> costs.Row:
    transport = arm.setting.text("transport")
    return costs.Row(f"{arm.setting.text('locking')}, {label(transport)}: {request}", transport, of, "no lock")


def stages_of(seen: Seen) -> Sequence[Picture]:
    """Figure of the stages of a request inside the servers."""
    sweep, blocks = seen.main.sweep, seen.main.blocks
    settings = {
        f"{label(arm.setting.text('transport'))}, {counted(arm.connections, 'client')}": stages(sweep, blocks, arm).get(
            ALL, ()
        )
        for arm in sweep.arms
        if arm in STAGED
    }
    return [stacked.picture("stages", f"Where the time goes inside the server, a pool of {POOL} threads", settings)]


def over_clients(name: str, title: str, factor: str) -> Painter:
    """A part's figure over the clients: a panel for each level of the factor, a line for each other setting."""

    def pictures(seen: Seen) -> Sequence[Picture]:
        found = points(seen.main.sweep, seen.main.blocks)
        levels = dict.fromkeys(arm.setting.text(factor) for arm in seen.main.sweep.arms)
        panels = [clients.Panel(f"{factor}: {level}", list(_rest(found, factor, level))) for level in levels]
        return [clients.picture(name, title, panels)]

    return pictures


def pools(seen: Seen) -> Sequence[Picture]:
    """Figure of pool × clients."""
    found = points(seen.main.sweep, seen.main.blocks)
    shown = [point for (arm, request), point in found.items() if request == ALL and arm.setting["workers"] in POOLS]
    field = heat_map.Field("Lookup on sockets", shown)
    return [
        heat_map.picture("pool_by_clients", "Mean latency, by the size of the pool and the number of clients", [field])
    ]


def offered(seen: Seen) -> Sequence[Picture]:
    """Figure of answered requests over offered ones, and of how soon they are answered."""
    sweep = seen.main.sweep
    found = points(sweep, seen.main.blocks)
    curves = []
    for transport in dict.fromkeys(arm.setting.text("transport") for arm in sweep.arms):
        own = [arm for arm in sweep.arms if arm.setting.text("transport") == transport]
        loads = [offered_load.load_of(seen.main, arm, found[arm, ALL]) for arm in own if (arm, ALL) in found]
        curves.append(offered_load.Curve(label(transport), transport, loads))
    return [
        offered_load.picture("offered_load", "An open loop: requests that were due, answered, and how soon", curves)
    ]


CLIENTS = {"library": "own client", "lean": "lean client"}
"""Words for the two kinds of client: the one that users of a transport have, and one that adds little time."""


def kinds(seen: Seen) -> Sequence[Picture]:
    """Figures of both kinds of client on both transports, from the quickest request to the slowest."""
    found = points(seen.main.sweep, seen.main.blocks)
    lines = [
        distributions.Line(
            f"{label(arm.setting.text('transport'))}, {CLIENTS[arm.setting.text('client')]}",
            arm.setting.text("transport"),
            point,
        )
        for (arm, request), point in found.items()
        if request == ALL and arm.connections == 1 and not arm.copy and "executor" not in dict(arm.setting.said())
    ]
    return [
        distributions.picture(
            "client_kind", "Response times of a Lookup, 1 client: the transport's own client, and a lean one", lines
        )
    ]


def _lines(found: ALL_POINTS, arms: Sequence[Arm]) -> Iterator[clients.Line]:
    """The lines of one of the original's figures: one for each request type of these arms."""
    for request in dict.fromkeys(request for arm, request in found if arm in arms and request != ALL):
        line = [found[arm, request] for arm in arms if (arm, request) in found]
        yield clients.Line(request.capitalize(), arms[0].setting.text("transport"), line)


def _threads(figure: str, staged: Judgement | None) -> Mapping[str, Mapping[int, str]]:
    """Number of threads that ran the requests of a figure's arms, as the server stamped them. Empty without stamps."""
    if staged is None or figure not in POOLED:
        return {}
    own = by_clients(staged, FIGURES[figure])
    ran = {arm.connections: threads_ran(staged, arm) for arm in own}
    at_once = {arm.connections: at_work(staged, arm) for arm in own}
    rows = {
        "threads that ran requests": {n: str(each) for n, each in ran.items() if each is not None},
        "threads at work at once, on average": {n: f"{each:.1f}" for n, each in at_once.items() if each},
    }
    return {name: row for name, row in rows.items() if row}


def _three(judgement: Judgement, found: ALL_POINTS) -> Picture:
    """Figure with a panel for each request type and a line for each of the three servers."""
    lines: dict[str, list[clients.Line]] = {"lookup": [], "trade": []}
    for base in THREE:
        arms = by_clients(judgement, base.but(mix=MIXED))
        for request, drawn in lines.items():
            if line := [found[arm, request] for arm in arms if (arm, request) in found]:
                drawn.append(clients.Line(server(arms[0]), base.text("transport"), line))
    title = "Lookup and Trade at random, on three servers with the same executor, pool and lock"
    return clients.picture("three", title, [clients.Panel(each.capitalize(), lines[each]) for each in lines])


def _rest(found: ALL_POINTS, factor: str, level: str) -> Iterator[clients.Line]:
    """A line for each setting at that level, over the clients, named by the other factors that vary."""
    arms = dict.fromkeys(arm for arm, _ in found)
    varying = [
        name
        for name in dict(next(iter(arms)).setting.levels)
        if name not in (factor, "clients") and len({arm.setting[name] for arm in arms}) > 1
    ]
    lines: dict[tuple[str, str], list[Point]] = {}
    for (arm, request), point in found.items():
        alone = len(_types(found, arm)) == 1
        if arm.setting.text(factor) != level or arm.copy or (request == ALL) != alone:
            continue
        transport = arm.setting.text("transport")
        words = [label(transport) if name == "transport" else arm.setting.text(name) for name in varying]
        name = ", ".join([*words, *([] if alone else [request])]) or label(transport)
        lines.setdefault((name, transport), []).append(point)
    for (name, transport), line in lines.items():
        yield clients.Line(name, transport, sorted(line, key=lambda point: point.arm.connections))


def _types(found: ALL_POINTS, arm: Arm) -> list[str]:
    return [request for each, request in found if each == arm and request != ALL]


def _wait_us(sweep: Sweep, blocks: Sequence[Block], arm: Arm, request: str) -> Estimate | None:
    """Mean wait for the lock; None where no request took a lock."""
    waits = [each.lock_wait.mean_us for each in stages(sweep, blocks, arm).get(request, ()) if each.locked]
    return mean_interval(waits, CONFIDENCE) if waits else None


def _share(wait_us: Estimate | None, point: Point) -> Estimate | None:
    """The wait as a share of the latency that the clients saw, in per cent."""
    return wait_us.over(point.mean_us.value / 100) if wait_us and point.mean_us else None
