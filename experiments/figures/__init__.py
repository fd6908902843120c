"""The figures of study ``stock``: the five of the original, the lock waits, and one for each extension.

What is drawn from which part stands in ``FIGURES``; a figure is the same whoever asks for it, the report or a notebook.
Nothing here measures, and nothing is concluded; which rows gates refuse is given from outside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from experiments.figures import strategies
from experiments.figures.captions import text_alternative
from experiments.figures.panels import draw_grid, draw_single
from experiments.figures.series import (
    MEAN,
    MEDIAN,
    NONE_REFUSED,
    P99,
    STARVED,
    Facet,
    Refused,
    Statistic,
    split,
)
from experiments.figures.style import house_style
from experiments.results import ALL, Row

_LATENCIES: tuple[Statistic, ...] = (MEAN, MEDIAN, P99)


@dataclass(frozen=True, slots=True)
class Drawing:
    """One figure: the part of the study that it shows, and how."""

    part: str
    """Also the name of its files."""
    title: str
    paint: Callable[[str, Sequence[Facet]], Figure]
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


def _single(title: str, facets: Sequence[Facet]) -> Figure:
    (facet,) = facets
    return draw_single(title, facet)


def _grid(*more: Statistic) -> Callable[[str, Sequence[Facet]], Figure]:
    return lambda title, facets: draw_grid(title, facets, (*_LATENCIES, *more))


def _strategies(title: str, facets: Sequence[Facet]) -> Figure:
    return strategies.draw_strategies(f"{title}, {facets[0].rows[0].clients} clients", facets)


FIGURES: tuple[Drawing, ...] = (
    Drawing("figure_1", "Figure 1 · Lookup and Trade at random on gRPC, beside a price updater", _single, _whole),
    Drawing("figure_2", "Figure 2 · Lookup on gRPC", _single, _whole),
    Drawing("figure_3", "Figure 3 · Trade on gRPC", _single, _whole),
    Drawing("figure_4", "Figure 4 · Lookup on sockets, a thread for every client", _single, _whole),
    Drawing("figure_5", "Figure 5 · Lookup on sockets, clients beyond the pool", _single, _whole),
    Drawing("locks", "Waiting for the lock, by strategy", _strategies, _by_request, strategies.text_alternative),
    Drawing("socket_trade", "Lookup and Trade on sockets", _single, _whole),
    Drawing("pool_by_clients", "Pool and clients", _grid(), _by_pool),
    Drawing(
        "dispatch",
        "What one task of the pool is: a request, or a connection",
        _grid(STARVED),
        _by_dispatch,
    ),
    Drawing("connection_policy", "Kept connections, or a new one for every request", _grid(), _by_policy),
    Drawing("updater", "Without and with a price updater", _grid(), _by_updater),
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


def paint(part: str, rows: Sequence[Row], refused: Refused = NONE_REFUSED) -> Figure:
    """One figure, from all rows of a study; what gates refuse is hollow. ValueError if none of them is of that part."""
    for drawing in drawings(rows):
        if drawing.part == part:
            with house_style():
                return drawing.paint(drawing.title, _facets(drawing, rows, refused))
    raise ValueError(f"no figure {part!r} from parts {sorted({row.part for row in rows})}")


def alternative(part: str, rows: Sequence[Row], refused: Refused = NONE_REFUSED) -> str:
    """The text that stands for a figure where it cannot be seen."""
    drawing = next(drawing for drawing in drawings(rows) if drawing.part == part)
    return drawing.speak(drawing.title, _facets(drawing, rows, refused))


def _facets(drawing: Drawing, rows: Sequence[Row], refused: Refused) -> list[Facet]:
    own = [row for row in rows if row.part == drawing.part]
    return [replace(facet, refused=refused) for facet in drawing.facets(own)]
