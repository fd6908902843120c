"""Pool by clients: every cell its number, one scale for all, the border where clients outnumber the pool."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from experiments.figures.heat_map import Cell, Field, draw_heat_map, text_alternative
from experiments.figures.style import house_style
from experiments.stats import Estimate
from tests.unit.experiments.figure_layout import layout_faults, words

POOLS, CLIENTS = (1, 3, 5), (1, 2, 5, 10)


def field_of(transport: str, base_us: float = 100, pools: tuple[int, ...] = POOLS, n: int = 9) -> Field:
    """A field whose cells grow with the clients."""
    cells = []
    for pool in pools:
        for clients in CLIENTS:
            value = base_us * clients
            cells.append(Cell(pool, clients, Estimate(value, 0.95 * value, 1.05 * value, n)))
    return Field(transport, tuple(cells))


def paint(fields: list[Field], title: str = "Pool and clients") -> Figure:
    """The figure, in the house's style."""
    with house_style():
        return draw_heat_map(title, fields)


def test_every_cell_prints_its_number() -> None:
    """At its pool and its clients, in one unit for all panels."""
    axes = paint([field_of("grpc", 400), field_of("sockets", 96.25)]).axes[1]
    found = {text.get_position(): text.get_text() for text in axes.texts}
    assert found[0, 0] == "0.0963"
    assert found[3, 2] == "0.963"
    assert len(found) == len(POOLS) * len(CLIENTS)
    assert axes.get_title(loc="left") == "sockets"


def test_colours_go_from_light_to_dark_on_one_scale() -> None:
    """The same time has the same colour on every server, and a longer one is darker: in grey print, too."""

    def greys(place: int) -> dict[tuple[float, float], float]:
        patches = figure.axes[place].patches
        corners = [(patch, patch.get_window_extent()) for patch in patches]
        assert len(corners) == len(patches)
        return {
            (round(float(patch.get_x()), 1), round(float(patch.get_y()), 1)): float(  # type: ignore[attr-defined]
                np.dot(to_rgb(patch.get_facecolor()), (0.2126, 0.7152, 0.0722))
            )
            for patch in patches
        }

    figure = paint([field_of("grpc", 100), field_of("sockets", 200)])
    first, second = greys(0), greys(1)
    assert first[0.5, -0.5] == pytest.approx(second[-0.5, -0.5])  # 200 µs on both
    row = [first[x - 0.5, -0.5] for x in range(len(CLIENTS))]
    assert row == sorted(row, reverse=True)
    assert row[0] - row[-1] > 0.3


def test_numbers_can_be_read_on_their_colour() -> None:
    """Black or white, whichever has a contrast of 4.5 at least (WCAG's formula)."""

    def luminance(colour: tuple[float, float, float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    axes = paint([field_of("grpc", 100, (1, 2, 3, 4))]).axes[0]
    assert len(axes.patches) == len(axes.texts)
    for patch, text in zip(axes.patches, axes.texts, strict=True):
        one, other = sorted((luminance(to_rgb(patch.get_facecolor())), luminance(to_rgb(text.get_color()))))
        assert (other + 0.05) / (one + 0.05) >= 4.5


def test_pairs_without_data_are_hatched() -> None:
    """And the legend says what that means; with all pairs there is no such entry."""
    whole = field_of("grpc")
    holed = Field("grpc", tuple(cell for cell in whole.cells if (cell.pool, cell.clients) != (3, 5)))
    figure = paint([holed])
    assert sum(patch.get_hatch() is not None for patch in figure.axes[0].patches) == 1
    assert "not measured" in words(figure)
    assert "not measured" not in words(paint([whole]))


def test_a_line_parts_the_pairs_whose_clients_outnumber_the_pool() -> None:
    """Pools 1, 3, 5 and clients 1, 2, 5, 10: a step after 1, after 2, and after 5 clients."""
    axes = paint([field_of("grpc")]).axes[0]
    border = next(artist for artist in axes.collections if isinstance(artist, LineCollection))
    drawn = [np.asarray(segment).tolist() for segment in border.get_segments()]
    upright = [segment for segment in drawn if segment[0][0] == segment[1][0]]
    assert [(segment[0][0], segment[0][1] + 0.5) for segment in upright] == [(0.5, 0), (1.5, 1), (2.5, 2)]


def test_the_caption_says_how_sure_the_numbers_are() -> None:
    """The widest interval, Little's law, and the mark of cells that the load side limited."""
    limited = Field("grpc", (Cell(1, 1, Estimate(100, 95, 105, 9), load_limited=True),))
    text = words(paint([limited]))
    assert "half of the widest is 5 % of its cell’s number" in text
    assert "N ÷ throughput (Little’s law)" in text
    assert "100†" in text
    assert "† In some run the clients took over 80 %" in text


def test_the_text_alternative_has_the_ends_of_every_row() -> None:
    """By server and pool."""
    text = text_alternative("T", [field_of("sockets", 100)])
    assert "sockets: pool of 1, 0.1 ms at 1 client, 1 ms at 10 clients; pool of 3," in text


@pytest.mark.slow
def test_no_word_is_cut_off_or_covered() -> None:
    """With nothing, one cell, or six servers whose cells need all their room, under a long title."""
    cells = tuple(
        Cell(pool, clients, Estimate(12_345.0 * pool * clients, 1, 2, 9), load_limited=True)
        for pool in (1, 2)
        for clients in range(1, 13)
    )
    six = [Field(name, cells) for name in ("grpc", "sockets", "nng", "zeromq", "http1", "jsonrpc")]
    one = [Field("grpc", (Cell(5, 5, Estimate(370, 0, 0, 1)),))]
    for fields in ([], one, [field_of("grpc"), field_of("sockets"), field_of("nng")], six):
        assert layout_faults(paint(fields, "Pool and clients of all that was measured " * 3)) == []
