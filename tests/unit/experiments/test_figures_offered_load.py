"""Offered load: where the achieved rate leaves the diagonal, what a gate refused, and the three panels."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.figures.offered_load import Curve, Load, draw_offered_load, knee, text_alternative
from experiments.figures.style import house_style
from experiments.stats import Estimate
from tests.unit.experiments.figure_layout import layout_faults, words


def about(value: float, n: int = 9, off: float = 0.1) -> Estimate:
    """An estimate with an interval of a tenth to either side; from one block without."""
    return Estimate(value, (1 - off) * value, (1 + off) * value, n) if n > 1 else Estimate(value, -np.inf, np.inf, n)


def load_at(offered_hz: float, share: float = 1.0, refused: str = "", n: int = 9) -> Load:
    """A load of which this share was achieved, to a thousandth."""
    slow = 100 if share < 1 else 1
    return Load(offered_hz, about(share * offered_hz, n, 0.001), about(200 * slow, n), about(900 * slow, n), refused)


def curve_of(transport: str, loads: list[Load]) -> Curve:
    """A line of Lookups."""
    return Curve(f"{transport}, Lookup", transport, "lookup", tuple(loads))


def paint(curves: list[Curve], title: str = "Offered load") -> Figure:
    """The figure, in the house's style."""
    with house_style():
        return draw_offered_load(title, curves)


def test_the_knee_is_where_over_a_per_cent_is_missing() -> None:
    """The lowest such load, in whatever order they come; a per cent exactly is achieved."""
    loads = [load_at(4000, 0.9), load_at(1000), load_at(3000, 0.98), load_at(2000, 0.99)]
    found = knee(loads)
    assert found is not None
    assert (found.offered_hz, found.reason) == (3000, "2 % not achieved")
    assert knee([load_at(1000), load_at(2000, 0.99)]) is None
    assert knee([]) is None


def test_a_rate_that_chance_may_have_made_low_is_no_knee() -> None:
    """The whole interval must lie below; of one block, which has none, the rate itself."""
    low = Load(1000, about(980, off=0.02), None, None)
    assert knee([low]) is None
    assert knee([Load(1000, about(980, off=0.005), None, None)]) is not None
    assert knee([Load(1000, about(980, n=1), None, None)]) is not None


def test_a_refusal_alone_is_no_knee_and_is_said_at_one() -> None:
    """What was achieved was achieved; the gate's words stand beside what was not."""
    late = "gate 7: sends late"
    found = knee([load_at(1000), load_at(2000, refused=late), load_at(3000, 0.5, refused=late)])
    assert found is not None
    assert (found.offered_hz, found.reason) == (3000, "50 % not achieved, refused (gate 7: sends late)")


def test_what_was_refused_is_hollow_and_said() -> None:
    """In all three panels; with the reason in the text."""
    curve = curve_of("sockets", [load_at(1000), load_at(2000, refused="gate 7: sends late")])
    figure = paint([curve])
    for axes in figure.axes:
        hollow = [line for line in axes.lines if line.get_marker() == "s" and line.get_markerfacecolor() == "white"]
        assert [list(np.asarray(line.get_xdata())) for line in hollow] == [[2.0]]
    assert "refused (gate 7: sends late)" in text_alternative("T", [curve])
    assert "Hollow: refused by a gate (§ in the table)." in words(figure)


def test_a_refusal_of_the_times_leaves_the_throughput() -> None:
    """Full there and hollow beside it; it is no knee, and is said wherever on the line it is."""
    spoiled = Load(2000, about(2000), about(200), about(900), response_refused="gate 5: a trend")
    curve = curve_of("sockets", [load_at(1000), spoiled, load_at(3000)])
    faces = [[line.get_markerfacecolor() == "white" for line in axes.lines] for axes in paint([curve]).axes]
    assert [sum(panel) for panel in faces] == [0, 1, 1]
    assert knee(curve.loads) is None
    assert "response times refused (gate 5: a trend)" in text_alternative("T", [curve])


def test_the_knee_is_ringed_in_every_panel() -> None:
    """At the knee's load, and nowhere where there is none."""
    figure = paint([curve_of("grpc", [load_at(4000), load_at(6000, 0.9), load_at(8000, 0.7)])])
    for axes in figure.axes:
        rings = [line for line in axes.lines if line.get_markersize() > 10]
        assert [list(np.asarray(line.get_xdata())) for line in rings] == [[6.0]]
    kept = paint([curve_of("grpc", [load_at(4000), load_at(6000)])])
    assert not [line for axes in kept.axes for line in axes.lines if line.get_markersize() > 10]


def test_throughput_has_its_diagonal_and_points() -> None:
    """Achieved against offered, both from 0 and on the same scale."""
    axes = paint([curve_of("grpc", [load_at(4000), load_at(6000, 0.9)])]).axes[0]
    diagonal, points = axes.lines[0], axes.lines[1]
    assert list(np.asarray(diagonal.get_xdata())) == list(np.asarray(diagonal.get_ydata()))
    assert list(np.asarray(points.get_xdata())) == [4, 6]
    assert list(np.asarray(points.get_ydata())) == pytest.approx([4, 5.4])
    assert axes.get_xlim() == axes.get_ylim()
    assert axes.get_ylim()[0] == 0


def test_responses_are_on_one_logarithmic_scale() -> None:
    """Median and 99th percentile can be compared by eye; loads that span much are logarithmic, too."""
    _, median, p99 = paint([curve_of("grpc", [load_at(4000), load_at(6000, 0.9)])]).axes
    assert (median.get_yscale(), p99.get_yscale(), median.get_xscale()) == ("log", "log", "linear")
    assert median.get_ylim() == p99.get_ylim()
    throughput = paint([curve_of("grpc", [load_at(100), load_at(6000, 0.9)])]).axes[0]
    assert (throughput.get_xscale(), throughput.get_yscale()) == ("log", "log")


def test_bars_are_the_intervals_over_blocks() -> None:
    """From a single block there is none, and the caption says so."""
    axes = paint([curve_of("grpc", [load_at(4000)])]).axes[1]
    (bar,) = axes.collections
    assert np.asarray(bar.get_paths()[0].vertices)[:, 1].tolist() == pytest.approx([180, 220])
    alone = paint([curve_of("grpc", [load_at(4000, n=1)])])
    assert not alone.axes[1].collections
    assert "too few blocks" in words(alone)


def test_the_text_alternative_has_the_ends_and_the_knee() -> None:
    """What is offered, what is achieved, how long it took."""
    text = text_alternative("T", [curve_of("grpc", [load_at(6000, 0.9), load_at(4000)])])
    assert "offered 4,000/s, achieved 4,000/s, median 200 µs, 99th percentile 900 µs" in text
    assert "knee at 6,000/s, 10 % not achieved." in text
    assert "no knee within these loads" in text_alternative("T", [curve_of("grpc", [load_at(4000)])])


@pytest.mark.slow
def test_no_word_is_cut_off_or_covered() -> None:
    """With nothing, one point, or twenty lines from 500 to 64,000 a second under a long title."""
    rates = (500, 1000, 4000, 16_000, 64_000)
    names = ("grpc", "sockets", "nng", "zeromq", "http1")
    twenty = [curve_of(name, [load_at(r, 1 if r < 5000 else 0.4) for r in rates]) for name in names * 4]
    narrow = [curve_of("grpc", [load_at(rate) for rate in range(1000, 1900, 100)])]
    for curves in ([], [curve_of("grpc", [Load(90, about(90, 1), None, None)])], narrow, twenty):
        assert layout_faults(paint(curves, "Offered load of all that was measured " * 3)) == []
