"""A document's lines beside ours: one colour a name on both sides, every axis from 0, words where nothing is."""

from experiments.judge.stats import Estimate
from experiments.show.figures.beside import Axis, Row, Series, alternative, draw, picture

AXIS = Axis("threads", "ms", {2.0: "2", 8.0: "8", 64.0: "64"})


def line(name: str, *values: float, spread: float = 0.0) -> Series:
    """At the first places of the axis."""
    points = zip(AXIS.ticks, values, strict=False)
    return Series(name, [(x, Estimate(y, y - spread, y + spread, 10 if spread else 1)) for x, y in points])


ROWS = [
    Row("10 connections", [line("Rust", 1, 2, 3)], [line("Go", 30, 20, spread=5), line("Rust", 10, 12)]),
    Row("100 connections", [line("Rust", 1, 2, 3)], []),
]


def test_a_name_has_one_colour_and_marker() -> None:
    """On both sides, whichever comes first."""
    figure = draw("Title", AXIS, ROWS)
    theirs, ours = figure.axes[0], figure.axes[1]
    looks = {(each.get_color(), each.get_marker()) for each in (theirs.lines[0], ours.lines[1])}
    assert len(looks) == 1
    assert ours.lines[0].get_color() != ours.lines[1].get_color()


def test_every_axis_begins_at_0_and_has_all_places() -> None:
    """Intervals are within it."""
    figure = draw("Title", AXIS, ROWS)
    for axes in figure.axes[:3]:
        assert axes.get_ylim()[0] == 0
        assert [each.get_text() for each in axes.get_xticklabels()] == ["2", "8", "64"]
    assert figure.axes[1].get_ylim()[1] > 35


def test_what_was_not_measured_is_said() -> None:
    """In the panel, and in the words."""
    figure = draw("Title", AXIS, ROWS)
    assert [text.get_text() for text in figure.axes[3].texts] == ["Nothing was measured."]
    told = alternative("Title", ROWS)
    assert "10 connections, here: Go 30.0 to 20.0; Rust 10.0 to 12.0." in told
    assert "100 connections, here: nothing was measured." in told
    assert draw("Title", AXIS, []).axes


def test_a_picture_draws_itself() -> None:
    """Kinds are not joined by lines."""
    made = picture("name", "Title", Axis("kind", "1/s", AXIS.ticks, joined=False), ROWS)
    assert made.alternative.startswith("Title.")
    assert {each.get_linewidth() for each in made.draw().axes[0].lines} == {0.0}
