"""The figures: their data is the rows' data, their look is one, and they are written for whatever was run."""

from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.transforms import Bbox
from scipy import stats as reference

from experiments import figures
from experiments.figures import series
from experiments.figures.captions import caption_lines
from experiments.figures.series import Facet
from experiments.figures.style import LOOKS, look
from experiments.report_tables import measured_table
from experiments.results import Row
from tests.unit.experiments.figure_layout import layout_faults, words
from tests.unit.experiments.planted_stock import EXTENSIONS, MAIN_PARTS, World, rows_of

DRAWN = tuple(part for part in MAIN_PARTS if part != "same")
"""All but what is run only to be compared with itself."""

TIMES = ("response_us_mean", "response_us_p50", "response_us_p99", "n_over_x_us")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """A planted study, its main parts."""
    return rows_of(World())


def test_a_point_is_the_mean_of_its_runs_with_students_t_interval(rows: list[Row]) -> None:
    """What is drawn at 3 clients in figure 2 is what the rows of that setting give."""
    own = [row for row in rows if row.part == "figure_2"]
    (line,) = series.by_clients(own, series.MEAN.of)
    drawn = next(point for point in line.points if point.x == 3)
    values = [
        row.response_us_mean / 1000
        for row in own
        if row.clients == 3 and row.request == "lookup" and row.response_us_mean
    ]
    expected = reference.t.interval(0.95, len(values) - 1, loc=mean(values), scale=reference.sem(values))
    assert drawn.value == pytest.approx(mean(values))
    assert (drawn.low, drawn.high) == pytest.approx(expected)
    assert drawn.runs == 9


def test_the_picture_has_the_points_of_its_series(rows: list[Row]) -> None:
    """The lines of figure 5's first panel go through the means of its series."""
    own = [row for row in rows if row.part == "figure_5"]
    (line,) = series.by_clients(own, series.MEAN.of)
    axes = figures.paint("figure_5", rows).axes[0]
    drawn = [list(artist.get_ydata()) for artist in axes.lines]  # type: ignore[arg-type]  # the stub: any array-like
    assert [point.value for point in line.points] in drawn


def test_y_starts_at_zero_everywhere(rows: list[Row]) -> None:
    """No panel of latencies is cut off below."""
    for part in ("figure_1", "figure_2", "figure_5"):
        assert {axes.get_ylim()[0] for axes in figures.paint(part, rows).axes} == {0}


def test_one_line_for_each_request_type(rows: list[Row]) -> None:
    """Figure 1 has Lookup and Trade, and no line for the sum of them."""
    own = [row for row in rows if row.part == "figure_1"]
    assert [line.request for line in series.by_clients(own, series.MEAN.of)] == ["lookup", "trade"]


def test_every_server_has_its_own_colour_marker_and_label() -> None:
    """No two servers share a look, and one that is unknown still has one."""
    for attribute in ("colour", "marker", "label"):
        values = [getattr(known, attribute) for known in LOOKS.values()]
        assert len(set(values)) == len(values)
    assert look("pigeons").label == "pigeons"


def test_a_99th_percentile_needs_a_thousand_independent_replies() -> None:
    """With fewer there is none, in the figure or in the table; the panel says why it is empty."""
    rows = [replace(row, effective_count=999.0) for row in rows_of(World(blocks=2), ("figure_2",))]
    assert series.by_clients(rows, series.P99.of) == []
    empty = figures.paint("figure_2", rows).axes[2]
    assert "under 1,000 independent" in empty.texts[0].get_text()
    assert list(empty.get_yticks()) == []
    enough = [replace(row, effective_count=1000.0) for row in rows]
    assert len(series.by_clients(enough, series.P99.of)[0].points) == 5
    cells = [table.splitlines()[2].split(" | ")[4] for table in map(measured_table, (rows, enough))]
    assert cells[0] == "–"
    assert cells[1] != "–"


def test_a_99th_percentile_that_one_run_does_not_carry_has_no_mean() -> None:
    """Those that carry it had more replies, and are the faster ones; the points of other settings stay."""
    rows = rows_of(World(blocks=3), ("figure_2",))
    place = next(place for place, row in enumerate(rows) if row.clients == 3 and row.request == "lookup")
    for few in (None, 999.0):
        rows[place] = replace(rows[place], effective_count=few)
        (line,) = series.by_clients(rows, series.P99.of)
        assert [point.x for point in line.points] == [1, 2, 4, 5]
    (line,) = series.by_clients(rows, series.MEAN.of)
    assert [point.x for point in line.points] == [1, 2, 3, 4, 5]
    why = "No point of the 99th percentile: under 1,000 independent replies in some run."
    assert why in words(figures.paint("figure_2", rows))
    drawn = max((np.asarray(line.get_ydata()) for line in figures.paint("figure_2", rows).axes[2].lines), key=len)
    assert [bool(np.isnan(y)) for y in drawn] == [False, False, True, False, False]
    assert why not in words(figures.paint("figure_2", rows_of(World(blocks=3), ("figure_2",))))


def test_too_few_runs_have_no_interval() -> None:
    """One run has no bar; nor have runs so unlike that the interval of a positive quantity would cross zero."""
    own = rows_of(World(blocks=1), ("figure_2",))
    assert {point.low for line in series.by_clients(own, series.MEAN.of) for point in line.points} == {None}
    first, second = (
        row for row in rows_of(World(blocks=2), ("figure_2",)) if (row.clients, row.request) == (1, "lookup")
    )
    (line,) = series.by_clients([replace(first, response_us_mean=9.0), second], series.MEAN.of)
    assert line.points[0].low is None


def test_the_caption_says_how_it_was_measured() -> None:
    """Blocks, length, cores, and that the load side was the limit."""
    limited = rows_of(World(blocks=3, load_limited=True), ("figure_4",))
    text = " ".join(caption_lines([Facet("", tuple(limited))]))
    assert "3 blocks, one run of 2 s each" in text
    assert "on a core each" in text
    assert "Hollow: in some run the clients took over 80 % of their core, so latency of client and server" in text
    assert "together († in the table)." in text


def test_what_a_gate_refuses_is_hollow() -> None:
    """The refused setting's point alone, in the picture, its caption and its text."""
    rows = rows_of(World(blocks=3), ("figure_2",))
    refused = frozenset((row.run_id, row.request) for row in rows if row.clients == 3)
    axes = figures.paint("figure_2", rows, refused).axes[0]
    markers = [line for line in axes.lines if line.get_marker() == "o"]
    faces = {float(np.asarray(line.get_xdata())[0]): line.get_markerfacecolor() for line in markers}
    assert [x for x, face in sorted(faces.items()) if face == "white"] == [3.0]
    assert len(faces) == 5
    assert "Hollow: refused by a gate (§ in the table)." in words(figures.paint("figure_2", rows, refused))
    assert "; hollow at 3." in figures.alternative("figure_2", rows, refused)
    assert "ollow" not in words(figures.paint("figure_2", rows)) + figures.alternative("figure_2", rows)


def test_ticks_stand_where_something_was_measured() -> None:
    """Numbers of clients between which others are missing; none so near another that they overlap."""
    rows = rows_of(World(blocks=2), ("figure_2",))
    few = [row for row in rows if row.clients in (1, 5)]
    assert list(figures.paint("figure_2", few).axes[0].get_xticks()) == [1, 5]
    spread = [replace(row, clients={3: 40, 4: 80, 5: 100}.get(row.clients, row.clients)) for row in rows]
    assert list(figures.paint("figure_2", spread).axes[0].get_xticks()) == [1, 40, 80, 100]


def test_the_text_alternative_has_the_numbers(rows: list[Row]) -> None:
    """It names the line and both of its ends."""
    text = figures.alternative("figure_4", rows)
    assert "sockets, Lookup, mean" in text
    assert "ms at 1 client," in text
    assert "ms at 5 clients." in text


@pytest.mark.slow
@pytest.mark.parametrize("part", [*DRAWN, *EXTENSIONS])
def test_every_figure_has_its_title(part: str) -> None:
    """What stands above the picture is the table's title for it."""
    (drawing,) = (drawing for drawing in figures.FIGURES if drawing.part == part)
    painted = figures.paint(part, rows_of(World(blocks=1), (part,)))
    assert painted.texts[0].get_text().startswith(drawing.title)


def test_a_figure_that_was_not_run_is_refused(rows: list[Row]) -> None:
    """The message names what there is."""
    with pytest.raises(ValueError, match="figure_1"):
        figures.paint("dispatch", rows)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1.0, 0.2, 0.02])
def test_no_word_is_cut_off_or_covered(times: float) -> None:
    """Whatever the part, and however many decimals its ticks have."""
    for part in ("figure_1", "figure_5", "pool_by_clients", "dispatch", "socket_trade"):
        planted = rows_of(World(blocks=3), (part,))
        scaled = [replace(row, **{name: times * getattr(row, name) for name in TIMES}) for row in planted]
        assert layout_faults(figures.paint(part, scaled)) == []


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.01, 0.1, 0.2, 0.45])
def test_no_number_lies_on_a_mark_or_a_bar(spread: float) -> None:
    """Of the locks, however far the waits lie apart from block to block."""
    planted = rows_of(World(blocks=3), ("locks",))
    spoiled = [
        row
        if row.lock_wait_us_mean is None
        else replace(row, lock_wait_us_mean=row.lock_wait_us_mean * (1 + spread * (row.block - 2)))
        for row in planted
    ]
    figure = figures.paint("locks", spoiled)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    numbers = 0
    for axes in figure.axes:
        marks = [(line.get_xydata(), line.get_markersize() / 2) for line in axes.lines]
        bars = [
            (ends, 0.6) for each in axes.collections if isinstance(each, LineCollection) for ends in each.get_segments()
        ]
        drawn = [
            Bbox.null()
            .union([Bbox([place, place]) for place in axes.transData.transform(np.asarray(ends))])
            .padded(points * figure.dpi / 72)
            for ends, points in (*marks, *bars)
        ]
        for text in axes.texts:
            box = text.get_window_extent(renderer)
            numbers += "lock" not in text.get_text()
            assert not [each for each in drawn if box.overlaps(each)], text.get_text()
            assert box.x1 <= axes.bbox.x1
    assert numbers > 12
