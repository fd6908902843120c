"""The gallery: every picture for which there are runs, the same bytes as often as it is drawn, and in words."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from experiments import gallery
from experiments.figures.style import REFUSED_MARK
from experiments.gallery import Picture, Results
from experiments.report_tables import measured_table, summary_table
from experiments.results import RESULTS_FILE, Row
from experiments.run_records import RUNS_FILE, load_records
from experiments.studies import STUDIES
from experiments.studies.stock.comparisons import judge
from experiments.studies.stock.questions import answers
from tests.unit.experiments.planted_stock import MAIN_PARTS, World, rows_of

IN_FOLDER = ["answers", "figure_2", "figure_4", "locks", "stages", "offered_load", "distributions"]
"""The pictures of the planted runs, in the order in which they are shown."""


def named(results: Results, name: str) -> Picture:
    """The one picture of that name."""
    (found,) = (picture for picture in gallery.pictures(results) if picture.name == name)
    return found


def words(figure: Figure) -> str:
    """All that is written in a figure."""
    axes = [text.get_text() for axis in figure.axes for text in axis.texts]
    return " ".join([*(text.get_text() for text in figure.texts), *axes])


def changed(results: Results, part: str, change: Callable[[Row], Row]) -> Results:
    """The results with every row of a part changed."""
    return replace(results, rows=tuple(change(row) if row.part == part else row for row in results.rows))


def test_there_is_a_picture_for_all_that_was_run_and_for_nothing_else(untouched: Path) -> None:
    """In the order of the report, each of a part of the study or of the answers, with a title and words for it."""
    found = list(gallery.pictures(gallery.read(untouched)))
    assert [picture.name for picture in found] == IN_FOLDER
    for picture in found:
        assert picture.part in {*STUDIES["stock"].parts, "answers", "distributions"}
        assert picture.alternative.startswith(picture.title)
        assert picture.alternative.endswith(".")
    assert list(gallery.pictures(Results((), ()))) == []


@pytest.mark.slow
def test_a_folder_is_drawn_in_both_formats_and_the_same_bytes_again(folder: Path) -> None:
    """By whoever asks; no figure stays open."""
    paths = gallery.draw(folder)
    assert [path.name for path in paths] == [f"{name}.{kind}" for name in IN_FOLDER for kind in ("svg", "png")]
    before = {path: path.read_bytes() for path in paths}
    assert {path: path.read_bytes() for path in gallery.draw(folder)} == before
    for name, text in gallery.svg_texts(folder):
        assert text.encode() == before[folder / gallery.FOLDER / f"{name}.svg"]
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_only_what_is_missing_or_older_than_the_results_has_all_drawn_anew(folder: Path) -> None:
    """Nothing is drawn for a report whose figures are there; one that is gone, or older, has them made."""
    file = folder / gallery.FOLDER / "figure_2.svg"
    right = file.read_text()
    measured_s = (folder / RESULTS_FILE).stat().st_mtime
    file.write_text("mine")
    gallery.draw_if_older(folder)
    assert file.read_text() == "mine"
    os.utime(file, (measured_s - 1, measured_s - 1))
    gallery.draw_if_older(folder)
    assert file.read_text() == right
    file.unlink()
    gallery.draw_if_older(folder)
    assert file.read_text() == right


def test_without_records_their_pictures_alone_are_left_out(folder: Path) -> None:
    """Of old results, or of others' rows: the rest is drawn from the rows."""
    (folder / RUNS_FILE).unlink()
    results = gallery.read(folder)
    assert results.records == ()
    assert [picture.name for picture in gallery.pictures(results)] == IN_FOLDER[:-1]


def test_every_part_of_the_study_that_is_compared_with_another_has_a_picture() -> None:
    """The pool by clients has two; what is only run again has none, and the kinds of client have a table alone."""
    own = (*MAIN_PARTS, "socket_trade", "pool_by_clients", "dispatch", "connection_policy", "updater")
    rows = tuple(rows_of(World(blocks=1), (*own, "lock_strategies")))
    found = [picture.name for picture in gallery.pictures(Results(rows, ()))]
    expected = ["answers", *own, "lock_strategies"]
    expected.remove("same")
    expected.insert(expected.index("pool_by_clients") + 1, "pool_map")
    assert found == expected


def test_the_answers_are_drawn_as_they_were_judged() -> None:
    """A planted ratio of 0.3 that is decided, and with two blocks the gate that refuses to."""
    decided = named(Results(tuple(rows_of(World())), ()), "answers").alternative
    assert re.search(r"Lookup, 1 client: sockets ÷ gRPC: 0\.[23]\d* .*FASTER", decided)
    refused = named(Results(tuple(rows_of(World(blocks=2))), ()), "answers").alternative
    assert "FASTER" not in refused
    assert "refused by gate 9" in refused


def test_the_same_gates_are_named_in_figure_table_and_sentence() -> None:
    """All that refuse a comparison, want of blocks among them."""
    rows = [replace(row, steal_share=0.1) for row in rows_of(World(blocks=2))]
    refused = "refused by gate " + ", ".join(
        map(str, sorted({refusal.gate for refusal in judge(rows)["sockets_to_grpc_1"].refused}))
    )
    assert {"9", "14"} <= set(re.findall(r"\d+", refused))
    first = answers(rows)[0]
    spoken = named(Results(tuple(rows), ()), "answers").alternative
    assert f"Lookup, 1 client: sockets ÷ gRPC: {refused}." in spoken
    assert f"| Lookup, 1 client: sockets ÷ gRPC | **INCONCLUSIVE**, {refused} |" in summary_table([first])
    assert f"({refused}: " in first.headline


def test_stages_that_gates_refuse_are_marked() -> None:
    """As the answer on the wait for a thread leaves them undecided."""
    rows = [
        replace(row, part="stages", timeline=True, stage_total_us_mean=400.0, steal_share=0.1 * (row.clients == 10))
        if row.part == "figure_5"
        else row
        for row in rows_of(World(), ("figure_5", "same", "same_again"))
        if row.part != "figure_5" or row.clients in (1, 10)
    ]
    spoken = named(Results(tuple(rows), ()), "stages").alternative
    assert "sockets, 1 client: mean" in spoken
    assert "sockets, 10 clients (refused by gate 14): mean" in spoken


def stolen_from(part: str, clients: int) -> tuple[Row, ...]:
    """A planted part, from the runs of one number of clients in which time was stolen."""
    return tuple(
        replace(row, steal_share=0.1) if (row.part, row.clients) == (part, clients) else row
        for row in rows_of(World(), (part, "same", "same_again"))
    )


def test_a_point_that_gates_refuse_is_hollow_where_the_table_marks_it() -> None:
    """The setting from which time was stolen, and no other."""
    rows = stolen_from("figure_2", 3)
    table = measured_table([row for row in rows if row.part == "figure_2"], rows)
    (line,) = (line for line in table.splitlines() if line.startswith("|") and REFUSED_MARK in line)
    assert line.startswith("| 3 |")
    picture = named(Results(rows, ()), "figure_2")
    assert "; hollow at 3." in picture.alternative
    markers = [line for line in picture.paint().axes[0].lines if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() == "white" for line in markers] == [False, False, True, False, False]


def test_a_strategy_that_gates_refuse_is_hollow_beside_its_wait_too() -> None:
    """The clients' own limit is in the latency alone: a wait is the server's."""

    def white(**planted: object) -> list[int]:
        rows = tuple(
            replace(row, **planted) if (row.part, row.locking) == ("locks", "per-stock") else row  # type: ignore[arg-type]
            for row in rows_of(World(), ("locks", "same", "same_again"))
        )
        panels = named(Results(rows, ()), "locks").paint().axes
        return [sum(line.get_markerfacecolor() == "white" for line in axes.lines) for axes in panels[:3]]

    assert white() == [0, 0, 0]
    assert white(steal_share=0.1) == [1, 1, 1]
    assert white(load_limited=True) == [0, 0, 1]


def test_a_cell_of_the_map_that_gates_refuse_is_marked() -> None:
    """At every pool that was run with that number of clients."""
    rows = stolen_from("pool_by_clients", 5)
    figure = named(Results(rows, ()), "pool_map").paint()
    cells = [text.get_text() for text in figure.axes[0].texts]
    assert len(cells) > len({row.workers for row in rows})
    assert sum(REFUSED_MARK in cell for cell in cells) == len({r.workers for r in rows if r.part == "pool_by_clients"})
    assert f"{REFUSED_MARK} Refused by a gate." in words(figure)


def test_another_studys_results_have_no_answers() -> None:
    """Nothing is judged that was not declared."""
    rows = tuple(replace(row, study="server_cost", part="lookup") for row in rows_of(World(blocks=1), ("figure_2",)))
    assert list(gallery.pictures(Results(rows, ()))) == []


def test_the_map_has_the_median_of_every_pool_and_number_of_clients() -> None:
    """In words, of each pool its first and its last cell; one without a median in any of its runs is left out."""
    rows = tuple(rows_of(World(blocks=2), ("pool_by_clients",)))
    whole = named(Results(rows, ()), "pool_map").alternative
    assert re.search(r"pool of 10, \d+ µs at 1 client, \d+ µs at 10 clients", whole)
    without = changed(
        Results(rows, ()),
        "pool_by_clients",
        lambda row: replace(row, response_us_p50=None) if (row.workers, row.clients) == (10, 10) else row,
    )
    assert re.search(r"pool of 10, \d+ µs at 1 client, \d+ µs at 5 clients", named(without, "pool_map").alternative)


SOUND: dict[str, object] = {
    "count": 4000,
    "errors": 0,
    "error_kinds": "",
    "duration_s": 1.0,
    "throughput_hz": 4000.0,
    "throughput_all_hz": 4000.0,
    "effective_count": 4000.0,
    "response_us_max": 5000.0,
    "late_us_p99": 20.0,
    "arrival_rate_ratio": 1.0,
    "arrival_variation": 1.0,
    "arrival_ks_distance": 0.005,
    "arrival_dispersion": 1.0,
    "tenths": "1.01 0.99 1.02 0.98 1 1 0.98 1.02 0.99 1.01",
    "server_cpu_us_per_request": 90.0,
}
"""Of a run at 4,000 a second that no gate refuses."""


def offered(untouched: Path, blocks: int = 2, **planted: object) -> Picture:
    """The offered load of sound runs, with what is planted in the first so many blocks."""

    def change(row: Row) -> Row:
        sound = replace(row, **SOUND)  # type: ignore[arg-type]  # each is its column's
        return replace(sound, **planted) if row.block <= blocks else sound  # type: ignore[arg-type]

    results = changed(gallery.read(untouched), "offered_load", change)
    same = rows_of(World(blocks=2), ("same", "same_again"))
    return named(replace(results, rows=(*results.rows, *same)), "offered_load")


def hollow(figure: Figure) -> list[bool]:
    """Of each panel, whether any of its points is hollow."""
    return [any(line.get_markerfacecolor() == "white" for line in axes.lines) for axes in figure.axes]


def test_what_no_gate_refuses_is_drawn_full(untouched: Path) -> None:
    """Even where times that start when a request is due are as long as the gap between two of a connection."""
    for mean_us in (400.0, 2 / 4000 * 1e6):
        picture = offered(untouched, response_us_mean=mean_us)
        assert "refused" not in picture.alternative
        assert hollow(picture.paint()) == [False] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gate", "planted"),
    [
        (4, {"count": 0, "errors": 4000, "error_kinds": "closed:4000", "response_us_p50": None}),
        (6, {"lost": 500}),
        (7, {"late_us_p99": 5000.0}),
        (7, {"count": 2000}),
        (7, {"count": 2000, "errors": 2000, "error_kinds": "never_sent:2000"}),
        (8, {"arrival_variation": 0.1}),
        (8, {"count": 0, "errors": 4000, "error_kinds": "closed:4000", "arrival_variation": 0.1}),
        (14, {"steal_share": 0.2}),
    ],
)
def test_an_offered_load_is_hollow_where_a_gate_refuses_any_of_its_runs(
    untouched: Path, gate: int, planted: dict[str, object]
) -> None:
    """In all three panels, and the text says which gate, in how many runs, and why."""
    picture = offered(untouched, blocks=1, **planted)
    assert re.search(rf"gate (\d+, )*{gate}(, \d+)* in 1 of 2 runs: ", picture.alternative)
    assert hollow(picture.paint())[0]


def test_an_offered_load_of_a_sweep_that_gates_refuse_is_hollow(untouched: Path) -> None:
    """As all lines of its table are marked: here nothing was run twice."""
    picture = named(changed(gallery.read(untouched), "offered_load", lambda row: replace(row, **SOUND)), "offered_load")  # type: ignore[arg-type]
    assert "refused (gate 20 for the whole sweep: no A/A run" in picture.alternative
    assert hollow(picture.paint()) == [True] * 3


def test_a_server_past_its_capacity_is_no_fault_of_the_load(untouched: Path) -> None:
    """All was sent when it was due, and half of it answered in the window: the knee. Of times that grow all the while
    nothing is concluded."""
    growing = " ".join(str(0.1 + 0.2 * tenth) for tenth in range(10))
    picture = offered(untouched, throughput_hz=2000.0, throughput_all_hz=2000.0, tenths=growing)
    assert "knee at 4,000/s, 50 % not achieved" in picture.alternative
    assert "response times refused (gate 5 in 2 of 2 runs: " in picture.alternative
    assert "gate 7" not in picture.alternative
    assert hollow(picture.paint()) == [False, True, True]


@pytest.mark.slow
def test_a_percentile_that_a_run_does_not_carry_is_not_drawn(untouched: Path) -> None:
    """By gate 13, of the smallest run."""
    assert "99th percentile" in offered(untouched).alternative
    few = offered(untouched, blocks=1, effective_count=999.0).alternative
    assert "99th percentile" not in few
    assert "median" in few
    assert "median" not in offered(untouched, blocks=1, effective_count=19.0).alternative


def test_stages_are_means_over_the_runs_of_a_setting(untouched: Path) -> None:
    """Of 1, 3 and 2 µs … and only of requests that were stamped."""
    results = gallery.read(untouched)
    place = iter((1.0, 3.0))

    def stamped(row: Row) -> Row:
        return row if row.request == "all" else replace(row, stage_queue_us_mean=next(place))

    assert "2" in named(changed(results, "stages", stamped), "stages").alternative
    unstamped = changed(results, "stages", lambda row: replace(row, stage_total_us_mean=None))
    assert "stages" not in [picture.name for picture in gallery.pictures(unstamped)]


def test_the_distributions_are_those_of_the_fewest_and_the_most_clients(folder: Path) -> None:
    """On both servers; a run without any reply is left out, and without one that has a reply there is no picture."""
    results = gallery.read(folder)
    said = named(results, "distributions").alternative
    for server in ("gRPC", "sockets"):
        for clients in ("1 client", "2 clients"):
            assert f"{server}, {clients}" in said
    kept = [record for record in load_records(folder) if record.run.setting.part != "figure_4"]
    assert "sockets" not in named(replace(results, records=tuple(kept)), "distributions").alternative
    idle = tuple(replace(record, seen=replace(record.seen, load=None)) for record in kept)
    assert IN_FOLDER[:-1] == [picture.name for picture in gallery.pictures(replace(results, records=idle))]


@pytest.mark.slow
def test_every_picture_has_its_title_in_it(untouched: Path, tmp_path: Path) -> None:
    """What stands above it is what stands in the report."""
    shutil.copytree(untouched, tmp_path / "copy")
    for picture in gallery.pictures(gallery.read(tmp_path / "copy")):
        assert picture.title.split(":")[0].split("·")[-1].strip()[:20] in words(picture.paint())
