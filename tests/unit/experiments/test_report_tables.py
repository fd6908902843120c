"""The report's tables of what was measured: each setting has a line of its own, whatever a part varies."""

from dataclasses import replace

import pytest

from experiments.design import Run, Setting
from experiments.observation import Observation, rows
from experiments.report_tables import measured_table
from experiments.results import ALL, Row
from experiments.studies import STUDIES
from experiments.study import Scale
from tests.unit.experiments.planted_stock import World, rows_of

PARTS = [(study.name, part) for study in STUDIES.values() for part in study.parts]

UNSEEN = Observation("2025-01-01T00:00:00+00:00", True, 1.0, None, 30.0)


def lines(table: str) -> list[list[str]]:
    """The cells of a table's head and lines, its rule left out."""
    found = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (found[0], *found[2:])]


def rows_of_part(name: str, part: str) -> list[Row]:
    """A row of each request type for every setting of a part, in two blocks, nothing measured."""
    study = STUDIES[name]
    scale = Scale((1, 2, 5), study.profiles["quick"])
    found = []
    for block in (1, 2):
        for order, setting in enumerate(study.parts[part].settings(scale), start=1):
            (whole,) = rows(name, Run(f"{block:03d}-{order:03d}", block, order, 4, setting), UNSEEN)
            found += [replace(whole, request=request) for request in (*requests(setting), ALL)]
    return found


def requests(setting: Setting) -> list[str]:
    """The request types of a setting that have rows of their own; none where nobody sends."""
    return [name for name, _ in setting.mix] if setting.clients else []


@pytest.mark.parametrize(("study", "part"), PARTS)
def test_every_setting_of_every_part_has_its_own_line(study: str, part: str) -> None:
    """As many lines as settings and request types, no two with the same factors, and each factor with several levels
    is a column."""
    own = rows_of_part(study, part)
    expected = len({(row.order, row.request) for row in own if row.request != ALL}) or len({row.order for row in own})
    head, *found = lines(measured_table(own))
    factors = head.index("Mean, ms")
    assert len(found) == expected
    assert len({tuple(line[:factors]) for line in found}) == expected


def test_clients_and_rates_are_columns_where_they_vary() -> None:
    """The lean client apart from the library's, and each rate apart from the others; elsewhere there is no column."""
    assert "Client" in lines(measured_table(rows_of_part("stock", "client_kind")))[0]
    head, *found = lines(measured_table(rows_of_part("stock", "offered_load")))
    rates = [line[head.index("Offered, 1/s")] for line in found if line[0] == "gRPC"]
    assert rates == ["500", "1,000", "2,000", "3,000", "4,000", "5,500", "7,000"]
    assert not {"Client", "Offered, 1/s", "Loop", "Stamped"} & set(
        lines(measured_table(rows_of_part("stock", "figure_2")))[0]
    )


def test_an_open_loop_says_how_late_its_sends_were() -> None:
    """Of the typical run and of the worst; of a closed loop, which has no schedule, nothing."""
    closed = [row for row in rows_of(World(blocks=3), ("figure_2",)) if row.clients == 1]
    due = [replace(row, loop="open", rate_hz=500.0, late_us_p99=float(10**row.block)) for row in closed]
    head, line = lines(measured_table(due))
    assert (head[-1], line[-1]) == ("Late sends, p99, µs: median run, worst", "100, 1,000")
    assert "Late" not in measured_table(closed)


def test_two_runs_of_a_block_on_one_line_are_refused() -> None:
    """What tells them apart is no column: their mean would be of two settings."""
    own = [row for row in rows_of(World(blocks=2), ("figure_2",)) if row.clients == 1]
    with pytest.raises(ValueError, match=r"figure_2: runs .* of block 1 on one line"):
        measured_table([*own, *(replace(row, run_id="other", warm_up_s=9.0) for row in own)])


def test_an_open_loops_replies_are_those_of_the_window() -> None:
    """What the figure calls achieved: of requests due in the window all may be answered, however late."""
    due = [
        replace(row, loop="open", rate_hz=500.0, throughput_hz=500.0, throughput_all_hz=123.0)
        for row in rows_of(World(blocks=3), ("figure_2",))
        if row.clients == 1
    ]
    head, line = lines(measured_table(due))
    assert line[head.index("Replies/s")] == "123"
    assert "which the figure calls achieved" in measured_table(due)


def test_a_line_whose_runs_gates_refuse_is_marked() -> None:
    """Where the hypervisor took too much, and nowhere else; below stands what the mark means, with the gate."""
    rows = [
        replace(row, steal_share=0.1 * (row.clients == 3 and row.part == "figure_2"))
        for row in rows_of(World(), ("figure_2", "figure_4", "same"))
    ]
    own = [row for row in rows if row.part == "figure_2"]
    table = measured_table(own, rows)
    assert [line[0] for line in lines(table)[1:] if line[1].endswith("§")] == ["3"]
    assert "§ Refused by a gate (gate 14: steal or calibration drift over the limit)" in table
    assert "§" not in measured_table(own)


def test_replies_of_one_type_beside_the_law_of_all_are_explained() -> None:
    """Only where a run has several types."""
    rows = rows_of(World(blocks=2), ("figure_1", "figure_2"))
    told = [
        "N ÷ the sum of" in measured_table([row for row in rows if row.part == part])
        for part in ("figure_1", "figure_2")
    ]
    assert told == [True, False]
