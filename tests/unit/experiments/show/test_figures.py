"""Figures of full, sparse and empty data: all words lie within the figure, and name what is missing."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep
from experiments.judge.gates import Refusal
from experiments.judge.points import Point, points
from experiments.judge.stats import Estimate
from experiments.show.figures import (
    advice,
    bars,
    clients,
    costs,
    curves,
    distributions,
    heat_map,
    offered_load,
    ratios,
    shares,
    stages,
)
from experiments.show.figures.style import Picture
from tests.unit.experiments.blocks import World, blocks, stage_summary
from tests.unit.experiments.show.judgements import judged, mean_us

INCHES = 0.02
"""Allowed overlap: half a line's width."""

REFUSED = (Refusal(4, "too many errors"),)

ARMS = [
    Arm(setting(transport=transport, workers=workers, clients=number))
    for transport, workers, number in product(("grpc", "sockets"), (3, 5), (1, 5))
]
NOISY = World(mean_us, block_noise=0.12, slice_noise=0.3)


@cache
def _points(number: int = 4) -> list[Point]:
    groups = (Group(tuple(ARMS[:4])), Group(tuple(ARMS[4:])))
    sweep = Sweep("study", "part", groups, (), 2, (6,))
    found = points(sweep, blocks(sweep, number, World(mean_us)))
    return [found[arm, "lookup"] for arm in ARMS]


def _sparse(found: Sequence[Point]) -> list[Point]:
    """Sparse data: one point is refused, one limited by the load, one not measured, one of few requests."""
    changes: tuple[dict[str, Any], ...] = (
        {"refusals": REFUSED},
        {"load_limited": True},
        {"mean_us": None},
        {"effective": 5.0},
    )
    return [*map(lambda point, change: replace(point, **change), found, changes), *found[len(changes) :]]


def _clients(title: str, found: Sequence[Point]) -> Picture:
    lines = [
        clients.Line(f"pool of {workers}", transport, _of(found, transport, workers))
        for transport, workers in product(("grpc", "sockets"), (3, 5))
    ]
    shown = [clients.Panel("gRPC", lines[:2]), clients.Panel("sockets", lines[2:], pool=3), clients.Panel("none", [])]
    return clients.picture("clients", title, shown)


def _of(found: Sequence[Point], transport: str, workers: int) -> list[Point]:
    chosen = (("transport", transport), ("workers", workers))
    return [point for point in found if all(point.arm.setting[name] == level for name, level in chosen)]


def _distributions(title: str, found: Sequence[Point]) -> Picture:
    lines = [distributions.Line(point.arm.name, point.arm.setting.text("transport"), point) for point in found]
    return distributions.picture("distributions", title, lines)


def _heat_map(title: str, found: Sequence[Point]) -> Picture:
    return heat_map.picture("heat", title, [heat_map.Field("both", found), heat_map.Field("none", [])])


def _offered(title: str, refused: bool = False) -> Picture:
    """A server that answers 20,000 requests a second. If ``refused``, one rate is refused, and one is not measured."""
    due_hz = {rate_hz: min(20_000.0, rate_hz) for rate_hz in (500.0, 5000.0, 50_000.0)}
    loads = [
        offered_load.Load(rate_hz, Estimate(of, 0.9 * of, 1.1 * of, 3), point)
        for (rate_hz, of), point in zip(due_hz.items(), _points(), strict=False)
    ]
    if refused:
        loads[0] = replace(loads[0], point=replace(loads[0].point, refusals=REFUSED))
        loads[1] = replace(loads[1], answered_hz=None)
    return offered_load.picture("offered", title, [offered_load.Curve("sockets", "sockets", loads)])


def _stages(title: str) -> Picture:
    stamped = {arm.name: [stage_summary(0.5)] * 3 for arm in ARMS[:4]}
    return stages.picture("stages", title, {**stamped, "a server without a timeline": []})


def _side_by_side(title: str) -> Picture:
    """Two quantities of the same rows. One row has neither."""
    costs_of = [("mutex, sockets", Estimate(40, 35, 200, 5)), ("snapshot, sockets", None)]
    rows = [costs.Row(name, "sockets", of, "no lock") for name, of in costs_of]
    return costs.picture("waits", title, [costs.Panel("Wait, µs", rows), costs.Panel("Share of the latency, %", rows)])


def _costs(title: str) -> Picture:
    rows = [
        costs.Row("Lookup on gRPC, static pool", "grpc", Estimate(100, 90, 900, 10)),
        costs.Row("Echo on sockets", "sockets", Estimate(10, -math.inf, math.inf, 1)),
    ]
    return costs.picture("costs", title, [costs.Panel("µs", rows, "A load " * 15), costs.Panel("Idle, %", [])])


def _bars(title: str, *means: Estimate) -> Picture:
    shown = [
        bars.Panel(
            name,
            "Mean, µs",
            [bars.Bar(of, mean, each) for of in ("grpc", "net-rpc") for each in ("merge sort", "quicksort")],
        )
        for name, mean in zip(("The document, on another machine", "Ours"), means, strict=False)
    ]
    return bars.picture("bars", title, [*shown, bars.Panel("A panel without any", "Mean, µs", [])])


def _own_scales(title: str) -> Picture:
    shown = [
        bars.Bar("berkeley", Estimate(100, 90, 900, 10)),
        bars.Bar("sockets", Estimate(20, 1, 22, 10)),
        bars.Bar("nng", Estimate(10, -math.inf, math.inf, 1)),
    ]
    by_quantity = [bars.Panel("Response time, at the client", "µs", shown), bars.Panel("At the receiver", "ms", [])]
    return bars.picture("own_scales", title, by_quantity)


def _curves(title: str) -> Picture:
    """Two rows of panels. A row's panels share a scale, and one panel has no data."""
    points = [(float(x), Estimate(10.0 * x, 9.0 * x, 11.0 * x, 5)) for x in (1, 10, 100)]
    lines = [
        curves.Line("merge sort", "grpc", points, hollow=(10.0,)),
        curves.Line("quicksort", "net-rpc", points, [(x, y.value) for x, y in points]),
    ]
    scale = curves.Scale(
        x="Numbers",
        y="Mean, µs",
        ticks=[(x, f"{x:g}") for x, _ in points],
        formula="as a formula has it",
        hollow="hollow: limited",
        log_y=True,
        columns=2,
        shared="row",
    )
    without = curves.Panel("Python", [curves.Line("none", "grpc", [])])
    return curves.picture("curves", title, scale, [curves.Panel("Go", lines), without, curves.Panel("Rust", lines[:1])])


ADVISED = advice.Shown(
    advised="8 processes of 16 threads",
    pool=16,
    at_once="workers of a process",
    how="predicted",
    highest_hz=[(2.0**place, 900.0 * 2**place) for place in range(7)],
    p99_ms=[(1000.0, 5.0), (9000.0, 40.0), (12_000.0, math.inf)],
    rate_hz=8000.0,
    target_p99_ms=20.0,
)


def _endless() -> Picture:
    """Advice on a server that keeps up with no rate, without wishes."""
    bare = replace(ADVISED, pool=None, rate_hz=None, target_p99_ms=None)
    return advice.picture("advice", "How many workers?", replace(bare, p99_ms=[(1000.0, math.inf)]))


def _shares() -> Picture:
    """Shares of two costs that are far apart, one with a part under 0."""
    parts = {"kernel": 6.0, "interpreter": 3.0, "protocol": 2.0, "protobuf": 1.0, "service": 1.0}
    many = {**parts, "protocol": 130.0, "service": -2.0}
    sets = [shares.Bar("sockets", parts), shares.Bar("a server with a name of its own, by grpcio", many)]
    return shares.picture("shares", "Shares", "Processor time of the server for each Lookup, µs " * 2, sets)


FULL: dict[str, Callable[[], Picture]] = {
    "clients": lambda: _clients("Latency as clients grow", _points()),
    "one panel": lambda: clients.picture(
        "one", "One panel", [clients.Panel("", [clients.Line("a", "grpc", _points()[:2])], pool=3)], True
    ),
    "ratios": lambda: ratios.picture("ratios", "Ratios", list(judged().judged.values())),
    "stages": lambda: _stages("Stages"),
    "distributions": lambda: _distributions("Distributions", _points()),
    "offered": lambda: _offered("Offered"),
    "heat": lambda: _heat_map("Heat", _points()),
    "costs": lambda: _costs("Costs"),
    "costs, side by side": lambda: _side_by_side("Waits"),
    "shares": _shares,
    "bars": lambda: _bars("Bars", Estimate(100, -math.inf, math.inf, 1), Estimate(50, 40, 400, 5)),
    "bars, each panel its own scale": lambda: _own_scales("Values"),
    "advice": lambda: advice.picture("advice", "How many workers? 8 processes of 16 threads", ADVISED),
    "starving": lambda: _starving(7, 3),
}

SPARSE: dict[str, Callable[[], Picture]] = {
    "clients": lambda: _clients(
        "A title that is so long that it does not fit into one line of the figure " * 2, _sparse(_points())
    ),
    "clients, many lines": lambda: clients.picture(
        "many",
        "Many lines",
        [clients.Panel("", [clients.Line(f"a setting with a long name {n}" * 2, "grpc", []) for n in range(14)])],
        True,
    ),
    "clients, one block": lambda: _clients("One block", _points(1)),
    "ratios, noisy": lambda: ratios.picture("ratios", "Ratios", list(judged(10, NOISY).judged.values())),
    "ratios, unfinished": lambda: ratios.picture("ratios", "Ratios", list(judged(1).judged.values())),
    "distributions": lambda: _distributions("Distributions", _sparse(_points())),
    "offered": lambda: _offered("Offered", refused=True),
    "heat": lambda: _heat_map("Heat", _sparse(_points())),
    "advice": _endless,
    "curves": lambda: _curves("Curves"),
}


def _starving(starved: int, windows: int = 1) -> Picture:
    """One point whose clients starve, in this number of windows."""
    point = replace(_points()[0], starved_clients=starved, windows=windows)
    below = {"threads that ran requests": {1: "4"}}
    return clients.picture("starving", "Starving", [clients.Panel("", [clients.Line("a", "grpc", [point])], 5, below)])


EMPTY: dict[str, Callable[[], Picture]] = {
    "clients": lambda: clients.picture("clients", "Nothing", [], True),
    "clients, empty lines": lambda: clients.picture(
        "clients", "Nothing", [clients.Panel("A", [clients.Line("a", "grpc", [])])], True
    ),
    "ratios": lambda: ratios.picture("ratios", "Nothing", []),
    "stages": lambda: stages.picture("stages", "Nothing", {}),
    "distributions": lambda: distributions.picture("distributions", "Nothing", []),
    "offered": lambda: offered_load.picture("offered", "Nothing", []),
    "heat": lambda: heat_map.picture("heat", "Nothing", []),
    "costs": lambda: costs.picture("costs", "Nothing", []),
    "shares": lambda: shares.picture("shares", "Nothing", "µs", []),
    "bars": lambda: bars.picture("bars", "Nothing", []),
    "curves": lambda: curves.picture("curves", "Nothing", curves.Scale("x", "y", [(1.0, "1")]), []),
}


def texts(figure: Figure) -> list[Text]:
    """Every visible text."""
    found = figure.findobj(Text)
    return [text for text in found if isinstance(text, Text) and text.get_visible()]


def outside(figure: Figure) -> list[str]:
    """Sides of the figure at which a part lies outside."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    beyond = {"left": -box.x0, "bottom": -box.y0, "right": box.x1 - width, "top": box.y1 - height}
    return [side for side, inches in beyond.items() if inches > INCHES]


@pytest.mark.slow
@pytest.mark.parametrize("kind", FULL)
def test_full_data(kind: str) -> None:
    """All words lie within the figure, and its text alternative has numbers."""
    picture = FULL[kind]()
    assert outside(picture.draw()) == []
    assert any(letter.isdigit() for letter in picture.alternative)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_data(kind: str) -> None:
    """Refused, limited and missing data are drawn, and the legend explains them."""
    figure = SPARSE[kind]().draw()
    assert outside(figure) == []
    words = " ".join(text.get_text() for text in texts(figure))
    assert any(word in words for word in ("refused: a check", "no verdict", "nothing was", "Nothing was", "one block"))


@pytest.mark.parametrize("kind", EMPTY)
def test_empty_data(kind: str) -> None:
    """A panel without data says so in words, and so does the alternative."""
    picture = EMPTY[kind]()
    figure = picture.draw()
    assert outside(figure) == []
    for said in (" ".join(text.get_text() for text in texts(figure)), picture.alternative.removeprefix("Nothing. ")):
        assert any(word in said.lower() for word in ("nothing", "none", "no ", "too few"))


@pytest.mark.parametrize(("starved", "windows", "crosses"), [(0, 3, 0), (1, 3, 1), (6, 3, 2), (7, 3, 3), (3, 0, 0)])
def test_each_starved_client_of_a_window_is_a_cross(starved: int, windows: int, crosses: int) -> None:
    """Each client that starves in a window on average is a cross, at least one where any starved. The legend explains a
    cross, and the alternative text has the number."""
    picture = _starving(starved, windows)
    figure = picture.draw()
    assert [line.get_marker() for line in figure.axes[0].lines].count("x") == crosses
    words = " ".join(text.get_text() for text in texts(figure))
    assert ("a client without any reply" in words) == (crosses > 0)
    assert ("Without any reply: " in picture.alternative) == (starved > 0)


def test_crosses_hang_above_every_mean() -> None:
    """The panel is higher if crosses would touch the line."""
    axes = _starving(5).draw().axes[0]
    crosses = [float(line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "x"]  # type: ignore[index, arg-type]
    highest = max(float(line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "o")  # type: ignore[index, arg-type]
    assert min(crosses) > highest / axes.get_ylim()[1]


def test_a_percentile_that_stands_alone_is_known() -> None:
    """A single percentile is known by its marker, and has no line in the legend."""
    for number, dashes in ((1, "None"), (2, "-")):
        shown = [clients.Panel("", [clients.Line("a", "grpc", _points()[:number])])]
        figure = clients.picture("a", "Title", shown, percentiles=True).draw()
        assert [line.get_marker() for line in figure.axes[-1].lines] == ["o", "^"]
        assert [each.get_linestyle() for each in figure.legends[0].get_lines() if each.get_marker() == "^"] == [dashes]


def test_what_reaches_out_is_found() -> None:
    """A planted text that does not fit is found."""
    figure = EMPTY["heat"]().draw()
    figure.text(0.9, 0.5, "A text that does not fit there")
    assert outside(figure) == ["right"]
