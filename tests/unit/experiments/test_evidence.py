"""From rows to the gates: a fault planted in the rows of one comparison reaches its gate, and no verdict is left."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from experiments.results import Row
from experiments.stats import Verdict
from experiments.studies.stock.comparisons import judge
from tests.unit.experiments.planted_stock import World, rows_of

NAME = "sockets_to_grpc_1"

Plant = Callable[[Row], Row]


def set_to(row: Row, **values: object) -> Row:
    """The row with other values."""
    return replace(row, **values)  # type: ignore[arg-type]  # each is its column's


DRIFTS = "0.91 0.93 0.95 0.97 0.99 1.01 1.03 1.05 1.07 1.09"
"""Of the window's tenths: by 18 % from first to last."""

FAULTS: tuple[tuple[int, Plant], ...] = (
    (2, partial(set_to, locking="snapshot")),
    (3, partial(set_to, server_connections=0)),
    (4, partial(set_to, errors=500, error_kinds="deadline_exceeded:500")),
    (5, partial(set_to, tenths=DRIFTS)),
    (6, partial(set_to, lost=3)),
    (6, partial(set_to, think_us_mean=500.0)),
    (7, partial(set_to, loop="open", rate_hz=100.0, arrivals="poisson", late_us_p99=5000.0)),
    (14, partial(set_to, steal_share=0.2)),
    (19, partial(set_to, response_us_max=1.0)),
)
"""A fault of the socket server's runs with one client, and the gate that is there for it."""


def planted(plant: Plant) -> list[Row]:
    """Nine blocks of quiet results, the fault in every run of figure 4 with one client."""
    return [
        plant(row) if (row.part, row.clients) == ("figure_4", 1) else row for row in rows_of(World(sockets_factor=0.5))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("gate", "plant"), FAULTS)
def test_a_fault_in_the_rows_is_refused_by_its_gate(gate: int, plant: Plant) -> None:
    """And the comparison, which is FASTER without it, is INCONCLUSIVE."""
    one = judge(planted(plant))[NAME]
    assert gate in {refusal.gate for refusal in one.refused}
    assert one.result.verdict is Verdict.INCONCLUSIVE


def test_without_a_fault_no_gate_refuses() -> None:
    """The same rows as they were."""
    one = judge(planted(lambda row: row))[NAME]
    assert (one.refused, one.result.verdict) == ((), Verdict.FASTER)


def test_without_an_a_a_run_nothing_is_concluded() -> None:
    """Gate 20: nothing tells what the instrument makes of no difference."""
    rows = [row for row in rows_of(World(sockets_factor=0.5)) if row.part != "same"]
    one = judge(rows)[NAME]
    assert {refusal.gate for refusal in one.refused} == {20}
    assert one.result.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("unsteady", "refused"), [(1, False), (9, True)])
def test_a_trend_is_an_arms_and_not_one_runs(unsteady: int, refused: bool) -> None:
    """One run of nine may show one; all of them do not."""
    rows = planted(lambda row: replace(row, tenths=DRIFTS if row.block <= unsteady else row.tenths))
    assert (5 in {refusal.gate for refusal in judge(rows)[NAME].refused}) is refused


@pytest.mark.parametrize("fault", [{"steal_share": 0.03}, {"late_us_p99": 5000.0}], ids=["stolen", "late"])
def test_one_run_at_fault_refuses_its_arm(fault: dict[str, float]) -> None:
    """Stolen time and late sends are judged run by run: a mean falls with any of them."""
    gate = 14 if "steal_share" in fault else 7

    def due(row: Row) -> Row:
        sent = replace(row, loop="open", rate_hz=row.count / row.duration_s, arrivals="poisson", late_us_p99=20.0)
        return set_to(sent, **fault) if row.block == 1 else sent

    assert gate in {refusal.gate for refusal in judge(planted(due))[NAME].refused}


def slowed(rows: list[Row], slow: Callable[[int, Row], bool], times: float) -> list[Row]:
    """Some rows with the calibration so many times as long; asked with the row's place among the sweep's."""
    return [
        replace(row, calibration_us=2000.0 * (times if slow(place, row) else 1.0)) for place, row in enumerate(rows)
    ]


def test_a_neighbour_for_moments_is_no_drift_and_a_slower_machine_is() -> None:
    """Two calibrations of five half as long again in the last block, or all of them by a tenth."""
    rows = planted(lambda row: row)
    noisy = slowed(rows, lambda place, row: row.block == 9 and place % 5 < 2, 1.5)
    assert judge(noisy)[NAME].refused == ()
    slower = slowed(rows, lambda _, row: row.block == 9, 1.1)
    assert {refusal.gate for refusal in judge(slower)[NAME].refused} == {14}
