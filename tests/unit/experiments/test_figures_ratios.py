"""Ratios: each comparison with its interval, verdict and blocks; what a gate refused has no number."""

import math

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from experiments.figures.ratios import Ratio, draw_ratios, span, text_alternative
from experiments.figures.style import DIFFERENT, QUIET, SAME, house_style
from experiments.stats import EQUIVALENCE, Estimate, Verdict
from tests.unit.experiments.figure_layout import layout_faults, words

FASTER = Ratio("Lookup, 1 client: sockets ÷ gRPC", Estimate(0.231, 0.204, 0.263, 9), Verdict.FASTER)
SAME_AS = Ratio("Trade ÷ Lookup, 1 client", Estimate(1.0, 0.98, 1.02, 9), Verdict.EQUIVALENT)
OPEN = Ratio("Trade ÷ Lookup, 2 clients", Estimate(1.01, 0.916, 1.12, 9), Verdict.INCONCLUSIVE, 59)
UNKNOWN = Ratio("Trade ÷ Lookup, 3 clients", Estimate(1.3, 0.4, 4.0, 9), Verdict.INCONCLUSIVE)
REFUSED = Ratio("Trade ÷ Lookup, 4 clients", Estimate(3.33, 3, 4, 9), Verdict.SLOWER, refused_by=(7, 9))


def paint(ratios: list[Ratio], title: str = "A family") -> Figure:
    """The figure, in the house's style."""
    with house_style():
        return draw_ratios(title, ratios)


def intervals(figure: Figure) -> list[tuple[str, float, float]]:
    """The lines of the intervals: colour and both ends."""
    found = []
    for artist in figure.axes[0].collections:
        if isinstance(artist, LineCollection) and float(np.asarray(artist.get_linewidth())[0]) > 1:
            (ends,) = artist.get_segments()
            low, high = np.asarray(ends)[:, 0]
            red, green, blue, _ = np.asarray(artist.get_color())[0]
            found.append((to_hex((red, green, blue)), float(low), float(high)))
    return found


def test_every_comparison_has_its_ratio_interval_and_verdict() -> None:
    """Drawn where they are, in the verdict's colour, with the numbers and the word beside."""
    figure = paint([FASTER, SAME_AS, OPEN])
    assert intervals(figure) == [(DIFFERENT, 0.204, 0.263), (SAME, 0.98, 1.02), (QUIET, 0.916, 1.12)]
    text = words(figure)
    for expected in ("FASTER", "EQUIVALENT", "INCONCLUSIVE", "0.231 (0.204–0.263)", "1.01 (0.916–1.12); ≈ 59 blocks"):
        assert expected in text


def test_rows_stand_in_the_order_given() -> None:
    """The first is the highest."""
    figure = paint([FASTER, SAME_AS, OPEN])
    heights = {text.get_text(): text.get_position()[1] for text in figure.texts}
    assert heights["FASTER"] > heights["EQUIVALENT"] > heights["INCONCLUSIVE"]


def test_what_is_undecided_is_hollow_and_says_how_many_blocks_would_decide() -> None:
    """Or that this is unknown."""
    figure = paint([OPEN, UNKNOWN])
    points = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert {point.get_markerfacecolor() for point in points} == {"white"}
    assert "1.30 (0.400–4.00); blocks?" in words(figure)
    assert "“blocks?”: over 1,000, or unknown" in words(figure)


def test_what_a_gate_refused_has_no_number() -> None:
    """No point, no interval, no verdict: the gate's number alone, in the picture and in words."""
    figure = paint([FASTER, REFUSED])
    assert len(intervals(figure)) == 1
    assert len([line for line in figure.axes[0].lines if line.get_marker() == "o"]) == 1
    assert "refused by gate 7, 9" in words(figure)
    assert "neither ratio nor interval is drawn" in words(figure)
    assert "SLOWER" not in words(figure)
    assert "3.33" not in words(figure)
    text = text_alternative("T", [REFUSED])
    assert "Trade ÷ Lookup, 4 clients: refused by gate 7, 9." in text
    assert "3.33" not in text


def test_the_axis_is_even_around_one_and_has_the_band() -> None:
    """Logarithmic: as far below as above; a family of equals is not blown up; the band is the rule's."""
    low, high = span([FASTER])
    assert low * high == pytest.approx(1)
    assert low < 0.204
    assert span([SAME_AS])[1] > 1.25
    axes = paint([FASTER]).axes[0]
    assert axes.get_xscale() == "log"
    band = axes.patches[0].get_window_extent().transformed(axes.transData.inverted())
    assert (band.x0, band.x1) == pytest.approx(EQUIVALENCE)


def test_an_interval_that_reaches_too_far_ends_in_an_arrow() -> None:
    """It does not squeeze the others, and its ends are given as bounds."""
    wide = Ratio("wide", Estimate(1.8, 1e-5, 2e5, 2), Verdict.INCONCLUSIVE)
    figure = paint([wide, SAME_AS])
    assert figure.axes[0].get_xlim()[1] < 10
    assert {line.get_marker() for line in figure.axes[0].lines} >= {"<", ">"}
    assert "1.80 (<0.0180–>180)" in words(figure)


def test_one_block_has_no_interval() -> None:
    """Its ratio stands alone."""
    single = Ratio("single", Estimate(0.5, 0, math.inf, 1), Verdict.INCONCLUSIVE)
    figure = paint([single])
    assert intervals(figure) == []
    assert "0.500; blocks?" in words(figure)
    assert text_alternative("T", [single]) == "T. single: 0.500, INCONCLUSIVE."


def test_the_text_alternative_has_every_comparison() -> None:
    """Ratio, interval, verdict, and the blocks that would decide."""
    text = text_alternative("T", [FASTER, OPEN])
    assert "sockets ÷ gRPC: 0.231 (0.204 to 0.263), FASTER." in text
    assert "2 clients: 1.01 (0.916 to 1.12), INCONCLUSIVE, about 59 blocks would decide." in text


@pytest.mark.slow
def test_no_word_is_cut_off_or_covered() -> None:
    """With nothing, one row, all refused, or thirty with names of several lines, under a long title."""
    name = "Lookup on sockets, 5 clients: a connection per request ÷ kept, under the two-level lock, with an updater"
    wide = Ratio(name, Estimate(12.34, 0.012345, 98_765, 12), Verdict.INCONCLUSIVE, 999)
    for ratios in ([], [FASTER], [REFUSED], [FASTER, SAME_AS, OPEN, UNKNOWN, REFUSED], [wide] * 30):
        assert layout_faults(paint(ratios, "The comparisons of a family with a long name " * 3)) == []
