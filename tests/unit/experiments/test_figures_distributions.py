"""Distributions: percentiles of merged counts, drawn only as far as the sample carries, with the runs' range."""

from itertools import accumulate, count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from experiments.figures.distributions import (
    LABELLED,
    Line,
    Run,
    carried,
    draw_distributions,
    percentiles_us,
    text_alternative,
)
from experiments.figures.style import house_style
from tests.unit.experiments.figure_layout import layout_faults, words


def run_of(times_us: list[int], effective_n: float | None = None) -> Run:
    """A run with these responses."""
    values, counts = np.unique(times_us, return_counts=True)
    n = len(times_us) if effective_n is None else effective_n
    return Run(tuple(map(float, values)), tuple(accumulate(map(int, counts))), n)


def lognormal(seed: int, median_us: float, n: int, effective_n: float | None = None) -> Run:
    """A run of seeded responses."""
    times = median_us * np.random.default_rng(seed).lognormal(0, 0.3, n)
    return run_of([int(time) + 1 for time in times], effective_n)


def line_of(transport: str, request: str, runs: int, n: int = 3000, median_us: float = 150) -> Line:
    """A line with seeded runs."""
    found = tuple(lognormal(seed, median_us * (1 + seed / 20), n) for seed in range(runs))
    return Line(f"{transport}, {request}", transport, request, found)


def paint(lines: list[Line], title: str = "Response times") -> Figure:
    """The figure, in the house's style."""
    with house_style():
        return draw_distributions(title, lines)


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(1, 500), min_size=1, max_size=40), min_size=1, max_size=4))
def test_percentiles_are_those_of_all_responses_together(runs: list[list[int]]) -> None:
    """For every share, the smallest time that at least this share of all runs' responses stayed within."""
    times = sorted(time for run in runs for time in run)
    shares = np.array([0.1, 0.5, 0.9, 0.99, 1.0])
    expected = [next(t for n, t in zip(count(1), times, strict=False) if n >= round(s * len(times), 9)) for s in shares]
    assert percentiles_us([run_of(run) for run in runs], shares).tolist() == expected


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(1, 500), min_size=1, max_size=40), min_size=2, max_size=4))
def test_the_line_lies_within_its_band(runs: list[list[int]]) -> None:
    """A percentile of all responses is never under the lowest run's, nor over the highest's."""
    shares = np.linspace(0.05, 0.95, 19)
    found = percentiles_us([run_of(run) for run in runs], shares)
    each = np.array([percentiles_us([run_of(run)], shares) for run in runs])
    assert (each.min(axis=0) <= found).all()
    assert (found <= each.max(axis=0)).all()


def test_ten_effective_responses_lie_beyond_a_percentile() -> None:
    """1,000 carry the 99th and no more, 20 the median, 19 nothing."""
    assert carried(1000) == pytest.approx((0.01, 0.99))
    assert carried(20) == (0.5, 0.5)
    assert carried(19) is None
    assert carried(0) is None


def test_a_line_ends_where_its_effective_sample_does() -> None:
    """50,000 responses that are worth 1,000 are drawn to the 99th percentile, in both panels."""
    line = Line("sockets", "sockets", "lookup", (lognormal(1, 150, 50_000, effective_n=1000),))
    curve, ecdf = paint([line]).axes
    assert max(max(np.asarray(drawn.get_xdata(), float)) for drawn in curve.lines) == pytest.approx(100)
    assert max(max(np.asarray(drawn.get_ydata(), float)) for drawn in ecdf.lines) == pytest.approx(99)
    assert "99 % within" in text_alternative("T", [line])
    assert "99.9 % within" not in text_alternative("T", [line])


def test_a_percentile_that_one_run_does_not_carry_is_not_had_by_pooling() -> None:
    """Nine runs worth 919 each, which are 8,271 together, carry no 99th percentile: no more than the table has."""
    line = Line("gRPC, 1 client", "grpc", "lookup", tuple(lognormal(seed, 150, 3000, 919) for seed in range(9)))
    said = text_alternative("T", [line])
    assert "90 % within" in said
    assert "99 % within" not in said
    assert "the 919 effective responses of the smallest run carry no further percentile" in said
    curve = paint([line]).axes[0]
    assert max(max(np.asarray(drawn.get_xdata(), float)) for drawn in curve.lines) == pytest.approx(91.9)


def test_the_labelled_percentiles_are_those_reached() -> None:
    """1 ÷ (1 − p) on a logarithmic axis, so that every further nine takes as much room."""
    axes = paint([line_of("grpc", "lookup", 4)]).axes[0]
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["50", "90", "99"]
    assert axes.get_xticks().tolist() == pytest.approx([1 / (1 - share) for share in LABELLED[:3]])


def test_the_band_reaches_from_the_lowest_run_to_the_highest() -> None:
    """As far as the smallest run carries; the caption says what it is worth. A single run has none."""
    runs = tuple(lognormal(seed, 150 * (1 + seed), 3000 - 100 * seed) for seed in range(6))
    figure = paint([Line("gRPC, Lookup", "grpc", "lookup", runs)])
    (band,) = figure.axes[0].collections
    corners = np.asarray(band.get_paths()[0].vertices)
    assert corners[:, 0].max() == pytest.approx(250)  # the smallest run's 2,500 responses: 10 beyond 1 − 1/250
    medians = [float(percentiles_us([run], np.array([0.5]))[0]) / 1000 for run in runs]
    at_median = corners[np.isclose(corners[:, 0], 2), 1]
    assert (at_median.min(), at_median.max()) == pytest.approx((min(medians), max(medians)))
    assert "holds the median run with 96.9 % confidence" in words(figure)
    alone = paint([line_of("grpc", "lookup", 1)])
    assert not alone.axes[0].collections
    assert "No band: a single run." in words(alone)


def test_what_carries_nothing_is_named_and_not_drawn() -> None:
    """In the caption and in the text alternative; without any line both panels say so."""
    small = Line("gRPC, Lookup", "grpc", "lookup", (lognormal(1, 900, 19),))
    figure = paint([small, line_of("sockets", "lookup", 2)])
    assert "Not drawn, a run of under 20 effective responses: gRPC, Lookup." in words(figure)
    assert "gRPC, Lookup: a run of under 20 effective responses" in text_alternative("T", [small])
    assert words(paint([small])).count("no line with 20 effective responses") == 2


@pytest.mark.slow
def test_no_word_is_cut_off_or_covered() -> None:
    """With nothing, one line, or twenty under a long title."""
    twenty = [line_of(transport, "lookup", 2, 400) for transport in ("grpc", "sockets", "nng", "zeromq") * 5]
    for lines in ([], [line_of("grpc", "lookup", 1, 60)], twenty):
        assert layout_faults(paint(lines, "Response times of all that was measured " * 3)) == []
