"""Stages: where the mean goes, what the client waited beyond it, and the server's percentiles beside."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from experiments.figures.stages import REST, Stages, draw_stages, parts_us, server_us, text_alternative
from experiments.figures.style import house_style
from experiments.stats import Estimate
from tests.unit.experiments.figure_layout import layout_faults, words


def about(value: float, n: int = 9) -> Estimate:
    """An estimate with an interval of a twentieth to either side."""
    return Estimate(value, 0.95 * value, 1.05 * value, n)


FIVE = Stages("sockets, 5 clients", "sockets", 40, 8, 0.5, 20, 6.5, about(100), about(70), about(300))
ALONE = replace(FIVE, response_us_mean=None, total_us_p50=None, total_us_p99=None)


def paint(settings: list[Stages], title: str = "Stages") -> Figure:
    """The figure, in the house's style."""
    with house_style():
        return draw_stages(title, settings)


def bars(figure: Figure) -> list[Rectangle]:
    """The segments, from left to right."""
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def test_the_segments_add_up_to_what_the_client_waited() -> None:
    """In the order of the request's way, the rest last."""
    assert parts_us(FIVE) == [
        ("queue wait", 40),
        ("preparation", 8),
        ("lock wait", 0.5),
        ("service", 20),
        ("reply", 6.5),
        (REST, 25),
    ]
    drawn = bars(paint([FIVE]))
    assert [bar.get_width() for bar in drawn] == [40, 8, 0.5, 20, 6.5, 25]
    assert [bar.get_x() for bar in drawn] == pytest.approx([0, 40, 48, 48.5, 68.5, 75])
    assert "100" in words(paint([FIVE]))


def test_the_rest_is_hatched_and_only_there_where_the_client_said() -> None:
    """Without the client's response, and where the stages are longer than it, there is none; the latter is said."""
    assert [bar.get_hatch() is not None for bar in bars(paint([FIVE]))] == [False] * 5 + [True]
    assert REST not in dict(parts_us(ALONE))
    short = replace(FIVE, response_us_mean=about(60))
    assert REST not in dict(parts_us(short))
    assert "add up to more than the client waited, so that no rest is drawn: sockets, 5 clients" in words(
        paint([short])
    )


def test_decoding_that_was_not_timed_apart_is_in_no_segment() -> None:
    """It is in the service, and the caption says that it was not timed."""
    folded = replace(FIVE, preparation_us=None)
    assert "preparation" not in dict(parts_us(folded))
    assert server_us(folded) == 67
    assert "not timed apart" in words(paint([folded]))
    assert "not timed apart" not in words(paint([FIVE]))


def test_neighbouring_stages_differ_in_lightness() -> None:
    """Each is darker than the one before it: a grey print shows them, too."""
    light = [float(np.dot(to_rgb(bar.get_facecolor()), (0.2126, 0.7152, 0.0722))) for bar in bars(paint([ALONE]))]
    assert light == sorted(light, reverse=True)
    assert min(before - after for before, after in pairwise(light)) > 0.08


def test_percentiles_stand_beside_on_a_logarithmic_axis() -> None:
    """The server's marker at the median, a stroke at the 99th; without percentiles there is no such panel."""
    figure = paint([FIVE])
    marks = figure.axes[1]
    assert marks.get_xscale() == "log"
    found = {line.get_marker(): float(np.asarray(line.get_xdata())[0]) for line in marks.lines}
    assert found == {"s": 70, "|": 300}
    assert len(paint([ALONE]).axes) == 1


def test_the_mean_has_its_interval_over_runs() -> None:
    """At the bar's end, with the caption saying so; from one run there is none."""
    (interval,) = paint([FIVE]).axes[0].collections
    assert np.asarray(interval.get_paths()[0].vertices)[:, 0].tolist() == pytest.approx([95, 105])
    assert "95 % intervals over 9 runs" in words(paint([FIVE]))
    single = replace(FIVE, response_us_mean=about(100, 1), total_us_p50=about(70, 1), total_us_p99=about(300, 1))
    assert not paint([single]).axes[0].collections
    assert "95 % intervals" not in words(paint([single]))


def test_the_text_alternative_has_every_stage() -> None:
    """With its time, and the percentiles."""
    text = text_alternative("T", [FIVE])
    assert text == (
        "T. sockets, 5 clients: mean 100 µs, of it queue wait 40.0 µs, preparation 8.00 µs, lock wait 0.500 µs, "
        "service "
        "20.0 µs, reply 6.50 µs, network and client 25.0 µs, the server’s median 70.0 µs, the server’s 99th "
        "percentile 300 µs."
    )


def test_what_gates_refuse_is_marked() -> None:
    """The setting's name, and in the caption which gates."""
    refused = replace(FIVE, label="gRPC, 1 client", refused_by=(5, 14))
    said = words(paint([FIVE, refused]))
    assert "gRPC, 1 client §" in said
    assert "§ Refused, so that nothing is concluded from its times: gRPC, 1 client by gate 5, 14." in said
    assert "§" not in words(paint([FIVE]))


@pytest.mark.slow
def test_no_word_is_cut_off_or_covered() -> None:
    """With nothing, one setting, or twenty with long names and long times, under a long title."""
    name = "gRPC asyncio, a connection per request, two-level lock, 100 clients"
    long = Stages(name, "grpc_aio", 4e6, 8e5, 5e4, 2e6, 65, about(9.87654e6), about(1e6), about(1.23456e8))
    for settings in ([], [FIVE], [ALONE], [FIVE, long] * 10):
        assert layout_faults(paint(settings, "Where the time of all that was measured goes " * 3)) == []
