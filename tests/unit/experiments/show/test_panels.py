"""Panels: places of points, shared scales, visible intervals, and different looks."""

import math
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure

from experiments.results.environment import UNKNOWN
from experiments.show.figures import panels, style
from stock_service.rpc.transports import TRANSPORTS


def test_a_missing_point_breaks_its_line() -> None:
    """A missing point breaks its line, so that no value appears between its neighbours."""
    axes = Figure().subplots()
    panels.line(axes, [(1, 5.0), (2, None), (3, 7.0)], style.Stroke("black", "o", "-"))
    assert [math.isnan(y) for y in axes.lines[0].get_ydata()] == [False, True, False]  # type: ignore[union-attr, arg-type]


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
