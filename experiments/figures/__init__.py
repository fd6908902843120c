"""The figures of study ``stock``: the five of the original, the lock waits, and one for each extension.

``draw`` reads a results folder and writes an SVG (for pages and print) and a PNG of every figure whose runs are in it.
What is drawn from which part stands in ``FIGURES``; a figure is the same whoever asks for it, the report or a notebook.
Nothing here measures, and nothing is concluded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from experiments.figures import strategies
from experiments.figures.captions import text_alternative
from experiments.figures.panels import draw_grid, draw_single
from experiments.figures.series import MEAN, MEDIAN, P99, STARVED, Facet, Statistic, split
from experiments.figures.style import house_style, save
from experiments.results import ALL, Row, load_whole_runs

FOLDER = "figures"
"""Where ``draw`` puts the files, inside the results folder."""

_LATENCIES: tuple[Statistic, ...] = (MEAN, MEDIAN, P99)


@dataclass(frozen=True, slots=True)
class Drawing:
    """One figure: the part of the study that it shows, and how."""

    part: str
    """Also the name of its files."""
    title: str
    paint: Callable[[str, Sequence[Row]], Figure]
    facets: Callable[[Sequence[Row]], list[Facet]]
    speak: Callable[[str, Sequence[Facet]], str] = text_alternative
    """The text that stands for the picture."""


def _whole(rows: Sequence[Row]) -> list[Facet]:
    return [Facet("", tuple(rows))]


def _by_pool(rows: Sequence[Row]) -> list[Facet]:
    return split(rows, lambda row: f"pool of {row.workers}", lambda row: row.workers)


def _by_dispatch(rows: Sequence[Row]) -> list[Facet]:
    return split(rows, lambda row: f"one task is a {row.dispatch}", lambda row: int(row.dispatch == "connection"))


def _by_policy(rows: Sequence[Row]) -> list[Facet]:
    titles = {"kept-alive": "connections kept alive", "per-request": "one connection per request"}
    return split(
        rows, lambda row: titles.get(row.connection, row.connection), lambda row: row.connection != "kept-alive"
    )


def _by_updater(rows: Sequence[Row]) -> list[Facet]:
    return split(rows, lambda row: "with a price updater" if row.updater else "without", lambda row: int(row.updater))


def _by_request(rows: Sequence[Row]) -> list[Facet]:
    """Request types, alone and mixed with others, at the most clients measured, where a lock is most in demand."""
    most = max(row.clients for row in rows)
    crowd = [row for row in rows if row.clients == most and row.request != ALL]
    mixes = {row.mix for row in crowd}
    facets = []
    for request, mix in sorted({(row.request, row.mix) for row in crowd}):
        title = request.capitalize()
        if len(mixes) > 1:
            title += " alone" if mix == request else ", mixed"
        facets.append(Facet(title, tuple(row for row in crowd if (row.request, row.mix) == (request, mix))))
    return facets


def _grid(facets: Callable[[Sequence[Row]], list[Facet]], *more: Statistic) -> Callable[[str, Sequence[Row]], Figure]:
    return lambda title, rows: draw_grid(title, facets(rows), (*_LATENCIES, *more))


def _strategies(title: str, rows: Sequence[Row]) -> Figure:
    facets = _by_request(rows)
    return strategies.draw_strategies(f"{title}, {facets[0].rows[0].clients} clients", facets)


FIGURES: tuple[Drawing, ...] = (
    Drawing("figure_1", "Figure 1 · Lookup and Trade at random on gRPC, beside a price updater", draw_single, _whole),
    Drawing("figure_2", "Figure 2 · Lookup on gRPC", draw_single, _whole),
    Drawing("figure_3", "Figure 3 · Trade on gRPC", draw_single, _whole),
    Drawing("figure_4", "Figure 4 · Lookup on sockets, a thread for every client", draw_single, _whole),
    Drawing("figure_5", "Figure 5 · Lookup on sockets, clients beyond the pool", draw_single, _whole),
    Drawing("locks", "Waiting for the lock, by strategy", _strategies, _by_request, strategies.text_alternative),
    Drawing("socket_trade", "Lookup and Trade on sockets", draw_single, _whole),
    Drawing("pool_by_clients", "Pool and clients", _grid(_by_pool), _by_pool),
    Drawing(
        "dispatch",
        "What one task of the pool is: a request, or a connection",
        _grid(_by_dispatch, STARVED),
        _by_dispatch,
    ),
    Drawing("connection_policy", "Kept connections, or a new one for every request", _grid(_by_policy), _by_policy),
    Drawing("updater", "Without and with a price updater", _grid(_by_updater), _by_updater),
    Drawing(
        "lock_strategies",
        "Waiting for the lock, by strategy and mix",
        _strategies,
        _by_request,
        strategies.text_alternative,
    ),
)
"""Every figure there can be, in the order in which they are shown."""


def drawings(rows: Sequence[Row]) -> list[Drawing]:
    """The figures for which there are rows."""
    found = {row.part for row in rows}
    return [drawing for drawing in FIGURES if drawing.part in found]


def paint(part: str, rows: Sequence[Row]) -> Figure:
    """One figure, from all rows of a study. ValueError if none of them is of that part."""
    for drawing in drawings(rows):
        if drawing.part == part:
            with house_style():
                return drawing.paint(drawing.title, _rows_of(part, rows))
    raise ValueError(f"no figure {part!r} from parts {sorted({row.part for row in rows})}")


def alternative(part: str, rows: Sequence[Row]) -> str:
    """The text that stands for a figure where it cannot be seen."""
    drawing = next(drawing for drawing in drawings(rows) if drawing.part == part)
    return drawing.speak(drawing.title, drawing.facets(_rows_of(part, rows)))


def draw(results_dir: Path) -> list[Path]:
    """Writes every figure of a results folder and returns the files' paths. Takes seconds. UsageError, OSError."""
    rows = load_whole_runs(results_dir)
    paths: list[Path] = []
    for drawing in drawings(rows):
        paths.extend(save(paint(drawing.part, rows), results_dir / FOLDER, drawing.part))
    return paths


def _rows_of(part: str, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.part == part]
