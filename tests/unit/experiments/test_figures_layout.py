"""What all figures share: lines that can be told apart, ticks, words with room; and the check of layout itself."""

import math
from itertools import pairwise

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.figures.captions import balanced, fitted, framed, text_inches
from experiments.figures.style import (
    log_ticks,
    look,
    measured,
    span_unit,
    strokes,
    three_digits,
)
from tests.unit.experiments.figure_layout import layout_faults


def test_the_check_of_layout_finds_what_is_planted() -> None:
    """A text over the edge, a text on another, and a page of another width."""
    figure = Figure(figsize=(7, 2))
    figure.text(0.95, 0.5, "over the edge")
    assert layout_faults(figure) == ["cut off: 'over the edge'"]
    figure = Figure(figsize=(7, 2))
    figure.text(0.1, 0.5, "one text")
    figure.text(0.1, 0.52, "another")
    assert layout_faults(figure) == ["'one text' on 'another'"]
    assert layout_faults(Figure(figsize=(6, 2))) == ["6.0 inches wide"]


def test_servers_and_request_types_keep_their_look() -> None:
    """Lines that differ in server or request type have the table's colour, marker and line style."""
    found = strokes([("grpc", "lookup"), ("grpc", "trade"), ("sockets", "lookup")])
    assert [(stroke.colour, stroke.dashes) for stroke in found] == [
        (look("grpc").colour, "-"),
        (look("grpc").colour, "--"),
        (look("sockets").colour, "-"),
    ]


def test_settings_of_one_server_differ_in_tint_and_dashes() -> None:
    """Twenty lines of one server: its marker on all, no two alike, from strong to pale."""
    found = strokes([("sockets", "lookup")] * 20)
    assert {stroke.marker for stroke in found} == {look("sockets").marker}
    assert len({(stroke.colour, stroke.dashes) for stroke in found}) == 20
    assert found[0].colour == look("sockets").colour.lower()
    lightness = [sum(to_rgb(stroke.colour)) for stroke in found]
    assert lightness == sorted(lightness)


@pytest.mark.parametrize(("low", "high"), [(0.05, 7), (108, 222), (0.94, 1.07), (1, 1e6), (30, 31), (9.5, 10.5)])
def test_logarithmic_ticks_lie_inside_and_apart(low: float, high: float) -> None:
    """There are two at least, none is beyond the axis, and no two are closer than asked for."""
    ticks = log_ticks(low, high, 2.0, 0.3)
    assert len(ticks) >= 2
    assert all(low <= tick <= high for tick in ticks)
    per_unit = 2.0 / math.log(high / low)
    assert all(math.log(b / a) * per_unit >= 0.3 for a, b in pairwise(ticks))


def test_numbers_have_three_digits_and_no_exponent() -> None:
    """On axes without zeros at the end, in columns with them."""
    values = (0.0164, 0.65, 1, 12.34, 210_218.4)
    assert [three_digits(value) for value in values] == ["0.0164", "0.65", "1", "12.3", "210,218"]
    assert [measured(value) for value in values] == ["0.0164", "0.650", "1.00", "12.3", "210,218"]


def test_the_unit_suits_the_shortest_time_too() -> None:
    """From 95 µs to 1.6 s in ms; all under a second in µs or ms; nothing at all in µs."""
    assert span_unit([95, 1.6e6])[0] == "ms"
    assert span_unit([95, 800])[0] == "µs"
    assert span_unit([2e5, 3e6])[0] == "s"
    assert span_unit([])[0] == "µs"


def test_text_is_broken_between_words_alone() -> None:
    """No line is wider than asked for, a ratio and a per cent stay whole, and names have lines of like width."""
    text = "Lookup, 5 clients: strategy number 10 ÷ mutex, of 95 % and more"
    lines = fitted(text, 1.5, 8)
    assert all(text_inches(line, 8) <= 1.5 for line in lines)
    assert " ".join(lines).replace("\u00a0", " ") == text
    assert any("10\u00a0÷\u00a0mutex" in line for line in lines)
    assert any("95\u00a0%" in line for line in lines)
    assert len(fitted("Lookup on gRPC, 1 client: a connection per request", 2.35, 7.5)) == 2
    first, second = balanced("Lookup on gRPC, 1 client: a connection per request", 2.35, 7.5)
    assert abs(text_inches(first, 7.5) - text_inches(second, 7.5)) < 0.5


@pytest.mark.slow
def test_a_figure_grows_with_its_words() -> None:
    """A long title, a legend of thirty and a long caption are on a higher page, and none lies on another."""
    entries = [Line2D([], [], label=f"entry number {number} of a long legend") for number in range(30)]
    small = framed("Title", 1, ["A sentence."])
    frame = framed("A title that is longer than a line of the page can be " * 3, 1, ["A sentence. "] * 40, entries)
    assert frame.height_inches > 2 * small.height_inches
    assert (frame.top - frame.bottom) * frame.height_inches == pytest.approx(1)
    assert layout_faults(frame.figure) == []
