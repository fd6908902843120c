"""The report's section on the gates: where the cross-check of the intervals lies elsewhere is said."""

from dataclasses import replace

import pytest

from experiments.report_gates import DISTURBED, section
from experiments.results import Row
from tests.unit.experiments.planted_stock import World, rows_of


def cross_check(rows: list[Row]) -> str:
    """The paragraph on the cross-check; empty if there is none."""
    return next((paragraph for paragraph in section(rows) if "cross-check" in paragraph), "")


@pytest.mark.slow
def test_the_comparisons_in_which_the_bootstrap_disagrees_are_named() -> None:
    """One block of figure 4 with one client is 20 times as slow; without it the bootstrap has nothing against that."""
    rows = rows_of(World())
    name = "Lookup, 1 client: sockets ÷ gRPC"
    assert " comparisons; by chance " in cross_check(rows)
    assert name not in cross_check(rows)
    far_off = [
        replace(row, response_us_mean=20 * (row.response_us_mean or 0.0))
        if (row.part, row.clients, row.block) == ("figure_4", 1, 5)
        else row
        for row in rows
    ]
    assert name in cross_check(far_off)


def noise(rows: list[Row]) -> str:
    """The paragraph on the machine's noise."""
    return next(paragraph for paragraph in section(rows) if f"took over {DISTURBED:g} times" in paragraph)


def test_the_runs_that_were_done_again_are_counted_beside_the_machines_noise() -> None:
    """Each once, whatever rows it has, and the attempts that do not count; nothing where there were none."""
    rows = rows_of(World(blocks=2))
    assert "again" not in noise(rows)
    once = [replace(row, attempt=2) if row.run_id == "001-001" else row for row in rows]
    rule = "by a rule fixed beforehand that looks at stolen time alone and lets the last one count"
    assert (
        "1 run was done again at once, since the hypervisor had taken over 2 % of the cores’ time: 1 attempt was "
        f"superseded, {rule}, and every attempt’s record is in runs.jsonl.gz."
    ) in noise(once)
    twice = [replace(row, attempt=3) if row.run_id == "002-004" else row for row in once]
    assert "2 runs were done again at once" in noise(twice)
    assert f": 3 attempts were superseded, {rule}" in noise(twice)


def test_a_setting_that_differs_from_itself_is_in_the_table_of_those_run_twice() -> None:
    """Half as long again, in the part that runs it once more; few blocks say that they show nothing."""
    rows = [
        replace(row, response_us_mean=1.5 * (row.response_us_mean or 0.0))
        if (row.part, row.transport, row.clients) == ("same", "sockets", 1)
        else row
        for row in rows_of(World(), ("same", "same_again"))
    ]
    text = "\n".join(section(rows))
    (line,) = (line for line in text.splitlines() if line.startswith("| Lookup on sockets, 1 client |"))
    assert 1.3 < float(line.split("|")[2]) < 1.7
    assert "is false; 1 of these comparisons showed one." in text
    assert "so few blocks show none" in "\n".join(section([row for row in rows if row.block <= 2]))


def test_from_two_blocks_nothing_is_said_of_the_cross_check() -> None:
    """They are always even."""
    assert cross_check(rows_of(World(blocks=2))) == ""


def test_offered_loads_are_judged_without_a_comparison() -> None:
    """No comparison is declared, and it is said where what gates refuse is seen."""
    closed = rows_of(World(blocks=2), ("figure_2",))
    due = [replace(row, part="offered_load", loop="open", rate_hz=500.0) for row in closed]
    said = "What gates refuse of the runs of each offered load is marked in the figure and the table."
    assert list(section(due))[-1] == f"No comparison is declared among these settings. {said}"
