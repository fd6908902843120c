"""What is said beside the four verdicts: slopes, throughput and waits, and nothing of them that a gate refuses."""

from dataclasses import replace

import pytest

from experiments.results import Row
from experiments.stats import Verdict
from experiments.studies.stock.comparisons import judge_rates
from experiments.studies.stock.growth import flat_from
from experiments.studies.stock.questions import answers
from tests.unit.experiments.planted_stock import World, rows_of

GROWTH_PARTS = ("figure_2", "figure_4", "same")
QUIET = World(noise=0.01)


def growth(rows: list[Row], server: str = "gRPC") -> str:
    """What is said beside the growth on one server."""
    return " ".join(text for text in answers(rows)[1].details if text.startswith(server))


def with_rates(rows: list[Row], rates_hz: dict[int, list[float]]) -> list[Row]:
    """Figure 2 with that throughput, by number of clients and in turn by block."""
    return [
        replace(row, throughput_all_hz=rates_hz[row.clients][row.block % len(rates_hz[row.clients])])
        if row.part == "figure_2"
        else row
        for row in rows
    ]


@pytest.mark.parametrize(
    ("fault", "gate"),
    [
        ({"server_connections": 0}, "refused by gate 3"),
        ({"errors": 500, "error_kinds": "deadline_exceeded:500"}, "refused by gate 4"),
        ({"steal_share": 0.1}, "refused by gate 14"),
    ],
)
@pytest.mark.parametrize("clients", [3, 5])
def test_a_slope_is_not_said_of_runs_that_a_gate_refuses(fault: dict[str, object], gate: str, clients: int) -> None:
    """Neither where the comparison it stands beside rests on them, nor where the slope alone does."""
    rows = [
        replace(row, **fault) if (row.part, row.clients) == ("figure_2", clients) else row  # type: ignore[arg-type]
        for row in rows_of(QUIET, GROWTH_PARTS)
    ]
    assert "each further client adds to the mean latency is not decided" in growth(rows)
    assert gate in growth(rows)
    assert "each further client adds 2" not in growth(rows)
    assert "sockets: each further client adds 68.1 µs" in growth(rows, "sockets")


@pytest.mark.slow
def test_two_bare_means_say_nothing_of_throughput() -> None:
    """A mean that falls by a tenth, in blocks that differ by more, is not decided; nor is one within 5 %."""
    rows = rows_of(QUIET, GROWTH_PARTS)
    steady, most = [1000.0], [500.0, 1300.0, 950.0]
    text = growth(with_rates(rows, {1: steady, 2: steady, 3: steady, 4: steady, 5: most}))
    assert "whether throughput changes from 4 clients to 5 is not decided" in text
    assert "throughput falls" not in text
    near = growth(with_rates(rows, {1: steady, 2: steady, 3: steady, 4: steady, 5: [700.0, 1000.0, 1300.0]}))
    assert "throughput is that of" not in near
    assert "is not decided" in near


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "limited", "said"),
    [
        (1150.0, False, "throughput still grows from 4 clients to 5, so the server may not be full yet"),
        (1150.0, True, "so it says nothing of the server’s capacity"),
        (850.0, False, "throughput falls from 4 clients to 5"),
        (1010.0, False, "from 3 clients on, throughput is that of 5 clients to within 5 %"),
    ],
)
def test_throughput_goes_on_as_its_blocks_show(last: float, limited: bool, said: str) -> None:
    """Only a throughput that grows, under clients that could have sent more, leaves room in the server."""
    noise = [0.995, 1.0, 1.004]
    rates = {clients: [rate * each for each in noise] for clients, rate in ((1, 400.0), (2, 800.0), (3, 1000.0))}
    rates |= {4: [1000.0], 5: [last * each for each in (1.0, 1.006, 0.999)]}
    rows = [replace(row, load_limited=limited) for row in rows_of(QUIET, GROWTH_PARTS)]
    text = growth(with_rates(rows, rates))
    assert said in text
    assert ("may not be full" in text) is (last == 1150.0 and not limited)


def test_flat_ends_at_the_first_number_of_clients_that_is_not_equivalent() -> None:
    """Counted down from the most; a closed loop that does not grow is flat nowhere."""
    rates = judge_rates(rows_of(QUIET, GROWTH_PARTS), "figure_2")
    assert {clients: one.result.verdict for clients, one in rates.items()} == {
        1: Verdict.FASTER,
        2: Verdict.EQUIVALENT,
        3: Verdict.EQUIVALENT,
        4: Verdict.EQUIVALENT,
    }
    assert flat_from(rates) == 2
    assert flat_from(judge_rates(rows_of(World(growth=False), GROWTH_PARTS), "figure_2")) is None


def test_a_lock_wait_is_not_said_of_runs_that_a_gate_refuses() -> None:
    """The mutex's is not decided, and the largest share is that of what is left."""
    rows = rows_of(World(), ("locks", "same", "same_again"))
    whole = " ".join(answers(rows)[2].details)
    assert "a Lookup typically waits" in whole
    assert "Of all strategies, the largest" in whole
    assert ": two-level, " in whole
    faulty = [
        replace(row, errors=row.count, error_kinds=f"deadline_exceeded:{row.count}")
        if row.part == "locks" and row.locking in ("mutex", "two-level")
        else row
        for row in rows
    ]
    left = " ".join(answers(faulty)[2].details)
    assert "how long a Lookup waits is not decided (refused by gate 4" in left
    assert "typically waits" not in left
    assert "Of the strategies whose runs no gate refuses, the largest" in left
    assert ": read-write, " in left


def stamped(waits_us: list[float], steal_share: float = 0.0) -> list[Row]:
    """Figure 5's runs as the part of the stages, with those waits for a thread, by block in turn."""
    return [
        replace(
            row,
            part="stages",
            timeline=True,
            stage_queue_us_mean=waits_us[row.block % len(waits_us)],
            stage_total_us_mean=400.0,
            steal_share=steal_share,
        )
        if row.part == "figure_5"
        else row
        for row in rows_of(World(), ("figure_5", "same", "same_again"))
        if row.part != "figure_5" or row.clients in (1, 10)
    ]


def queueing(rows: list[Row]) -> str:
    """What is said of the wait for a thread."""
    return next(text for text in answers(rows)[3].details if "waits for a thread" in text)


def test_an_interval_of_waits_stays_above_zero() -> None:
    """Waits are skewed: of a run in three with a hundredfold wait the geometric mean; with a wait of 0, no interval."""
    assert "4.64 µs (95 % interval 0.791 to 27.2)" in queueing(stamped([100.0, 1.0, 1.0]))
    assert "33.7 µs (arithmetic mean; some are 0: no interval)" in queueing(stamped([100.0, 1.0, 0.0]))


def test_a_wait_for_a_thread_is_not_said_of_runs_that_a_gate_refuses() -> None:
    """The hypervisor took half of the time."""
    rows = stamped([1.0, 2.0], steal_share=0.5)
    assert "not decided with 10 clients (refused by gate 14" in queueing(rows)
    assert "µs in the server" not in queueing(rows)
