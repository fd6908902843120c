"""What is wrong with how a figure lies on its page: text that is cut off, or that lies on other text."""

from collections.abc import Iterator
from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from experiments.figures.style import WIDTH_INCHES, house_style

DPI = 200
"""That pictures are saved with."""

TOUCH = 2.0
"""Pixels that two boxes may share: a box is a little larger than its letters."""


def layout_faults(figure: Figure) -> list[str]:
    """Every text that is cut off or overlaps another; and a page that is not as wide as the others."""
    with house_style():
        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
        texts = [(text, text.get_window_extent(renderer)) for text in _shown(figure)]
    page = figure.bbox
    cut = [
        f"cut off: {text.get_text()!r}"
        for text, box in texts
        if box.x0 < page.x0 or box.x1 > page.x1 or box.y0 < page.y0 or box.y1 > page.y1
    ]
    over = [
        f"{one.get_text()!r} on {other.get_text()!r}"
        for (one, box), (other, another) in combinations(texts, 2)
        if _shared(box, another) > TOUCH
    ]
    width = [] if figure.get_figwidth() == WIDTH_INCHES else [f"{figure.get_figwidth()} inches wide"]
    return [*cut, *over, *width]


def words(figure: Figure) -> str:
    """Everything that a figure says, a line for each text, line breaks in them taken out."""
    return "\n".join(text.get_text().replace("\n", " ").replace("\u00a0", " ") for text in _shown(figure))


def _shown(figure: Figure) -> Iterator[Text]:
    """Every text that is drawn: matplotlib keeps labels for ticks beyond the ends of an axis, too."""
    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-6 * (high - low)
            for tick in axis.get_major_ticks():
                if not low - slack <= tick.get_loc() <= high + slack:
                    beyond |= {tick.label1, tick.label2}
    for artist in figure.findobj(Text):
        if isinstance(artist, Text) and artist.get_visible() and artist.get_text().strip() and artist not in beyond:
            yield artist


def _shared(one: Bbox, other: Bbox) -> float:
    """The smaller side of what two boxes share, in pixels; 0 or less where they share nothing."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    return float(min(width, min(one.y1, other.y1) - max(one.y0, other.y0)))
