"""Panels: places of points, shared scales, visible intervals, and different looks."""

import math
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure

from experiments.design.factors import PROTOCOLS
from experiments.judge.stats import Estimate
from experiments.results.environment import UNKNOWN
from experiments.show.figures import bars, curves, off, panels, style
from stock_service.rpc.transports import TRANSPORTS
from tests.unit.experiments.show.test_figures import outside

LANGUAGES = curves.Scale(
    "Threads", "ms", [(2.0, "2"), (8.0, "8"), (64.0, "64")], hollow="hollow: limited", columns=2, shared="row"
)


def _language(name: str, *values: float, hollow: float = 0.0) -> curves.Line:
    places = [x for x, _ in LANGUAGES.ticks]
    points = [(x, Estimate(y, y - 5, y + 5, 10)) for x, y in zip(places, values, strict=False)]
    return curves.Line(name, "", points, hollow=(hollow,))


def _languages() -> list[curves.Panel]:
    """Two rows of a document's panel and ours."""
    return [
        curves.Panel("10: the document", [_language("Rust", 10, 20, 30)]),
        curves.Panel("10: here", [_language("Go", 130, 120), _language("Rust", 10, 12, hollow=2.0)]),
        curves.Panel("100: the document", [_language("Rust", 10, 20, 30)]),
        curves.Panel("100: here", []),
    ]


@pytest.mark.slow
def test_rows_lie_within_the_figure() -> None:
    """A panel without data shows a sentence. The alternative text has every value."""
    picture = curves.picture("rows", "Rows", LANGUAGES, _languages())
    figure = picture.draw()
    assert outside(figure) == []
    assert [text.get_text() for text in figure.axes[3].texts] == ["Nothing was measured here."]
    assert "10: here, Go: 2: 130 (125 to 135); 8: 120 (115 to 125)." in picture.alternative


@pytest.mark.slow
def test_panels_of_a_row_share_a_scale() -> None:
    """Panels of a row share a scale, also with those of a compared figure. Each begins at 0 and contains its
    intervals."""
    taller = [curves.Panel(panel.title, [_language("Rust", 400)]) for panel in _languages()]
    theirs, ours, below, _ = (
        axes.get_ylim() for axes in curves.picture("rows", "Title", LANGUAGES, _languages()).draw().axes
    )
    assert theirs == ours
    assert theirs[0] == below[0] == 0
    assert below[1] < 135 < ours[1]
    compared = curves.picture("rows", "Title", LANGUAGES, _languages(), [_languages(), taller]).draw()
    assert compared.axes[2].get_ylim()[1] > 405


def test_every_point_stands_at_its_own_place() -> None:
    """Every point is at its own place on a true axis, beside any other lines. It is hollow where the data say so."""
    here = curves.picture("rows", "Title", LANGUAGES, _languages()).draw().axes[1]
    marks = [line for line in here.lines if line.get_marker() != "None"]
    assert {float(line.get_xdata()[0]) for line in marks} == {2.0, 8.0}  # type: ignore[index, arg-type]
    faces = [line.get_markerfacecolor() for line in marks if line.get_xdata()[0] == 2.0]  # type: ignore[index]
    assert faces.count("white") == 1


def test_a_name_without_a_transport_has_one_look() -> None:
    """A name without a transport has the same look on both sides, in any order, and no other name has it."""
    theirs, ours, *_ = curves.picture("rows", "Title", LANGUAGES, _languages()).draw().axes
    assert theirs.lines[0].get_color() == ours.lines[-1].get_color() != ours.lines[0].get_color()


def test_a_missing_point_breaks_its_line() -> None:
    """A missing point breaks its line, so that no value appears between its neighbours."""
    axes = Figure().subplots()
    panels.line(axes, [(1, 5.0), (2, None), (3, 7.0)], style.Stroke("black", "o", "-"))
    assert [math.isnan(y) for y in axes.lines[0].get_ydata()] == [False, True, False]  # type: ignore[union-attr, arg-type]


def test_an_interval_is_seen_on_a_black_bar() -> None:
    """An interval is visible on a black bar by its white halo."""
    black = next(name for name in PROTOCOLS if style.strokes([(name, "")])[name, ""].colour == "#000000")
    shown = bars.Panel("", "ms", [bars.Bar(black, Estimate(100, 90, 110, 10))])
    axes = bars.picture("bars", "Title", [shown]).draw().axes[0]
    assert [bool(each.get_path_effects()) for each in axes.collections] == [True]


def test_no_line_of_the_grid_strikes_a_number_through() -> None:
    """A number has a white background over the grid."""
    shown = bars.Panel("", "ms", [bars.Bar("grpc", Estimate(100, 90, 110, 10))])
    (said,) = bars.picture("bars", "Title", [shown]).draw().axes[0].texts
    ground = said.get_bbox_patch()
    assert ground is not None
    assert to_rgb(ground.get_facecolor()) == (1, 1, 1)
    assert (ground.get_zorder(), said.get_zorder()) > (1, 1)


def test_net_rpc_has_another_hue_than_grpc() -> None:
    """The two mechanisms of the study of sorts are told apart by hue, also beside their lighter shades."""
    found = style.strokes([("grpc", "a"), ("net-rpc", "a")]).values()
    one, other = (rgb_to_hsv(to_rgb(each.colour))[0] for each in found)
    assert 0.2 < abs(one - other) < 0.8


def test_parts_of_a_bar_differ_in_grey() -> None:
    """Parts of a bar differ in grey by lightness or by hatching."""
    with style.house():
        looks = [(float(np.dot(to_rgb(colour), (0.3, 0.59, 0.11))), hatch) for colour, hatch in panels.STACKED]
    alike = [(a, b) for a, b in combinations(looks, 2) if abs(a[0] - b[0]) < 0.05 and a[1] == b[1]]
    assert alike == []


def test_a_single_value_of_a_formula_is_seen() -> None:
    """A single value of a formula is drawn as a short line."""
    scale = curves.Scale("Clients", "a second", [(1.0, "1"), (64.0, "64")], "foretold", log_x=False, holds_formula=True)
    shown = curves.Panel("", [curves.Line("", "grpc", [(64.0, Estimate(4, 3, 5, 10))], [(64.0, 6.0)])])
    places = np.asarray(
        curves.picture("rows", "Title", scale, [shown]).draw().axes[0].lines[0].get_xdata(), dtype=float
    )
    assert places.min() < 64 < places.max()


def test_arms_of_a_row_are_named() -> None:
    """A row's arms are named on the right and in the words, in the order of its dots."""
    ratios = [(name, Estimate(at, at, at, 10)) for name, at in (("4/64", 0.8), ("16/64", 1.0))]
    picture = off.picture("off", "Title", 0.1, [off.Off("sockets", ratios)], "threads/clients")
    figure = picture.draw()
    (right,) = (axis for axes in figure.axes for axis in axes.child_axes)
    assert [each.get_text() for each in right.get_yticklabels()] == ["4/64, 16/64"]
    assert "sockets: 4/64 0.800, 16/64 1.00." in picture.alternative


def test_transports_have_their_own_colours_and_markers() -> None:
    """Transports have colours and markers by their places in the table. An unknown one is grey."""
    found = style.strokes((name, "a") for name in (*TRANSPORTS, UNKNOWN))
    assert len({stroke.colour for stroke in found.values()}) == len(found)
    assert found[UNKNOWN, "a"].colour == style.QUIET
    assert style.label(UNKNOWN) == UNKNOWN


def test_lines_of_one_transport_differ() -> None:
    """Lines of one transport differ in shade, dashes and marker, so that a grey printer shows it. No marker is that of
    another transport."""
    drawn = style.strokes([("grpc", "a"), ("grpc", "b"), ("grpc", "c"), ("sockets", "a")]).values()
    assert len({stroke.marker for stroke in drawn}) == len({stroke.colour for stroke in drawn}) == len(drawn)
    assert len({stroke.dashes for stroke in [*drawn][:3]}) == 3


@pytest.mark.parametrize(("text", "lines"), [("a short one", 1), ("mix=lookup=0.5,trade=0.5 is long", 2), ("", 1)])
def test_words_are_wrapped_whole(text: str, lines: int) -> None:
    """Words are wrapped, and no word is broken."""
    found = style.wrapped(text, 16)
    assert found.split() == text.split()
    assert len(found.split("\n")) == lines
