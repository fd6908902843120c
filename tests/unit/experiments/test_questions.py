"""The four answers: a planted difference is found, none is invented, and each sentence says what its data allows."""

from dataclasses import replace

import pytest

from experiments import figures
from experiments.report_tables import lock_table, measured_table, verdict_table
from experiments.results import Row
from experiments.stats import Verdict
from experiments.studies.stock.comparisons import judge
from experiments.studies.stock.declared import families, levels
from experiments.studies.stock.growth import slope_us_per_client
from experiments.studies.stock.questions import NOT_RUN, answers, lock_costs
from tests.unit.experiments.planted_stock import EXTENSIONS, MAIN_PARTS, World, rows_of


def verdict(world: World, name: str) -> Verdict:
    """How one comparison of a planted study is judged."""
    return judge(rows_of(world))[name].result.verdict


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "expected"), [(0.8, Verdict.FASTER), (1.25, Verdict.SLOWER)])
def test_a_planted_difference_of_a_fifth_is_found(factor: float, expected: Verdict) -> None:
    """Sockets that take four fifths of gRPC's time, or five fourths, over 9 blocks."""
    assert verdict(World(sockets_factor=factor), "sockets_to_grpc_1") is expected


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_no_difference_is_invented(seed: int, noise: float) -> None:
    """The same distribution on both sides is EQUIVALENT or INCONCLUSIVE."""
    found = verdict(World(sockets_factor=1.0, seed=seed, noise=noise), "sockets_to_grpc_1")
    assert found in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)


def test_quiet_runs_without_a_difference_are_equivalent() -> None:
    """With 1 % of noise, 9 blocks show that there is no difference."""
    assert verdict(World(sockets_factor=1.0, noise=0.01), "sockets_to_grpc_1") is Verdict.EQUIVALENT


@pytest.mark.slow
def test_the_headline_follows_the_data() -> None:
    """The sentence turns round with the planted difference."""
    faster, slower = (answers(rows_of(World(sockets_factor=factor)))[0].headline for factor in (0.5, 2.0))
    assert faster.startswith("Sockets answer a Lookup in less time than gRPC with 1 client: ratio 0.4")
    assert slower.startswith("Sockets answer a Lookup in more time than gRPC with 1 client: ratio 1.98")


def test_few_blocks_are_inconclusive_whatever_the_ratio() -> None:
    """Two blocks of a tenfold difference decide nothing, and the answer says how many would."""
    found = answers(rows_of(World(blocks=2, sockets_factor=0.1)))
    assert {judged.result.verdict for answer in found for judged in answer.comparisons} == {Verdict.INCONCLUSIVE}
    assert "would decide" in found[0].headline


def test_one_block_has_no_interval_and_still_reads_well() -> None:
    """A single block gives its ratio, and says that there is no interval."""
    headline = answers(rows_of(World(blocks=1)))[0].headline
    assert "one block: no interval" in headline
    assert "inf" not in headline


def test_growth_is_set_beside_littles_law() -> None:
    """Question 2 gives the slope of the latency and of N ÷ throughput, and calls the growth arithmetic."""
    details = " ".join(answers(rows_of(World()))[1].details)
    assert "to N ÷ throughput it adds" in details
    assert "by arithmetic" in details


def test_the_slope_is_the_planted_one() -> None:
    """A line of 260 µs per client from the second client on has that slope."""
    own = [
        row
        for row in rows_of(World(noise=0.0, block_noise=0.0), ("figure_2",))
        if row.request == "lookup" and row.clients >= 2
    ]
    assert slope_us_per_client(own, lambda row: row.response_us_mean).value == pytest.approx(260)


def test_the_lock_wait_is_given_as_a_share_of_the_latency() -> None:
    """Under the mutex: the wait over the runs, and what part of the same runs' latency it is."""
    cost = next(
        c for c in lock_costs(rows_of(World(lock_wait_us=39.0))) if (c.locking, c.request) == ("mutex", "lookup")
    )
    assert cost.wait_us is not None
    assert cost.share is not None
    assert cost.wait_us.value == pytest.approx(39.0, rel=0.1)
    assert cost.share.value == pytest.approx(0.1, rel=0.1)


def test_a_jump_past_the_pool_is_found_and_proportional_growth_is_none() -> None:
    """A latency half as high again past the pool is SLOWER than in proportion; without it, EQUIVALENT."""
    jump, none = (answers(rows_of(World(pool_jump=jump, noise=0.01)))[3].headline for jump in (1.5, 1.0))
    assert "by more than in proportion" in jump
    assert "**SLOWER**" in jump
    assert none.startswith("Latency grows in proportion to the clients from 5 to 10 clients")
    assert "jump" not in none
    assert "**EQUIVALENT**" in none


@pytest.mark.slow
def test_starved_clients_are_told_where_the_dispatch_extension_was_run() -> None:
    """With a thread per connection, 5 of 10 clients get no reply."""
    text = " ".join(answers(rows_of(World(blocks=2), (*MAIN_PARTS, "dispatch")))[3].details)
    assert "5 of 10" in text


def test_what_was_not_run_is_said() -> None:
    """A folder with figure 5 alone answers question 4 and says that the others were not run."""
    found = answers(rows_of(World(), ("figure_5",)))
    assert [answer.headline == NOT_RUN for answer in found] == [True, True, True, False]


def test_a_limit_on_the_load_side_is_named() -> None:
    """The answer is then called what it is."""
    headline = answers(rows_of(World(load_limited=True)))[0].headline
    assert "latency of client and server together" in headline


def only(rows: list[Row], clients: set[int]) -> list[Row]:
    """The rows with those numbers of clients."""
    return [row for row in rows if row.clients in clients]


def test_a_cell_is_not_compared_with_itself() -> None:
    """With one number of clients there is no growth, and nothing past the pool."""
    judged = judge(only(rows_of(World(), ("figure_2", "figure_4", "figure_5")), {3}))
    assert set(judged) == {"sockets_to_grpc_3"}


@pytest.mark.parametrize("clients", [{7, 8}, {2, 4}])
def test_the_pool_is_judged_only_from_within_it_to_past_it(clients: set[int]) -> None:
    """All clients past the pool, or all within it: there is no step to be seen."""
    rows = only(rows_of(World(), ("figure_5",)), clients)
    assert not {"past_pool", "pool_step"} & judge(rows).keys()
    assert answers(rows)[3].headline == NOT_RUN


def test_what_was_not_run_still_counts_for_holm() -> None:
    """One of the six answers alone is corrected for six: six blocks cannot decide it."""
    every = rows_of(World(blocks=6, sockets_factor=0.2), ("figure_2", "figure_4", "same", "same_again"))
    rows = [row for row in every if row.clients == 1 or row.part.startswith("same")]
    result = judge(rows)["sockets_to_grpc_1"].result
    assert result.p_holm == pytest.approx(6 * result.p)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.blocks_needed == 8


def with_fault(**fault: object) -> list[Row]:
    """Sockets at half the time, and in two blocks something was wrong with them."""
    return [
        replace(row, **fault) if row.part == "figure_4" and row.block < 3 else row  # type: ignore[arg-type]
        for row in rows_of(World(sockets_factor=0.5), ("figure_2", "figure_4", "same", "same_again"))
    ]


def test_blocks_with_starved_clients_do_not_decide_silently() -> None:
    """No gate refuses them: those that are answered are, and keep every law."""
    rows = with_fault(starved_clients=1, think_us_mean=None)
    judged = judge(rows)["sockets_to_grpc_1"]
    assert judged.refused == ()
    assert judged.result.verdict is Verdict.INCONCLUSIVE
    first = answers(rows)[0]
    assert "(2 blocks had clients without a reply)" in first.headline
    assert "**INCONCLUSIVE**, 2 blocks had clients without a reply |" in verdict_table(first.comparisons)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"errors": 50, "error_kinds": "unavailable:50"}, "requests failed"),
        ({"response_us_mean": None, "count": 0}, "requests was answered"),
    ],
    ids=["errors", "no reply"],
)
def test_blocks_with_errors_or_without_a_reply_are_gate_fours(fault: dict[str, object], why: str) -> None:
    """It says so, with the numbers, and nothing else does."""
    judged = judge(with_fault(**fault))["sockets_to_grpc_1"]
    assert judged.result.verdict is Verdict.INCONCLUSIVE
    assert judged.starved_blocks == 0
    said = [refusal for refusal in judged.refused if refusal.gate == 4]
    assert len(said) == 2
    assert all(why in refusal.what for refusal in said)


def test_an_error_in_a_thousand_requests_is_borne() -> None:
    """The limit is 0.1 %."""
    rows = [
        replace(row, errors=row.count // 1001, error_kinds=f"deadline_exceeded:{row.count // 1001}")
        for row in rows_of(World(sockets_factor=0.5))
    ]
    assert judge(rows)["sockets_to_grpc_1"].result.verdict is Verdict.FASTER


def test_latency_and_littles_law_are_told_apart() -> None:
    """How far latency is from N ÷ throughput is of those two; Little's law has the think time too, and its own word."""
    rows = [replace(row, n_over_x_us=1.04 * (row.response_us_mean or 0)) for row in rows_of(World(), ("figure_2",))]
    text = " ".join(answers(rows)[1].details)
    assert "differ by at most 3.8 % in any run; the client’s own time between two requests is in the second" in text
    assert "does not hold" not in text
    off = [replace(row, little_ratio=1.05) if row.block == 1 else row for row in rows]
    assert "does not hold to within 2 % in 5 of 45 runs" in " ".join(answers(off)[1].details)
    assert "‡" in measured_table(off)
    assert "‡" not in measured_table(rows)


def test_typical_waits_are_geometric_means_and_say_so() -> None:
    """One run in nine with a wait a hundred times as long, in the table, the sentence and the figure."""
    cell = ("mutex", "lookup")
    every = rows_of(World(), ("locks", "same", "same_again"))
    own = [row for row in every if (row.locking, row.request) == cell and row.part == "locks"]
    rows = [replace(row, lock_wait_us_mean=30.0 if row.block == 9 else 0.3) for row in own]
    rows += [row for row in every if row.part != "locks"]
    assert "Typical wait (geometric mean), µs" in lock_table(lock_costs(rows))
    assert "| 0.500 |" in lock_table(lock_costs(rows))
    assert "†" not in lock_table(lock_costs(rows))
    limited = [replace(row, load_limited=True) for row in rows]
    assert "† In some run the clients took over 80 %" in lock_table(lock_costs(limited))
    assert "typically waits 0.500 µs" in " ".join(answers(rows)[2].details)
    assert "typically waits 0.5 µs" in figures.alternative("locks", rows)


def test_the_families_are_small_enough_for_nine_blocks() -> None:
    """Holm's strictest step can be passed with 9 blocks in every family: at most 12 comparisons."""
    declared = families(rows_of(World(blocks=1), (*MAIN_PARTS, *EXTENSIONS)))
    assert len(declared["answers"]) == 6
    assert max(map(len, declared.values())) <= 12


def test_names_of_comparisons_are_unique() -> None:
    """No comparison is judged in two families."""
    names = [c.name for family in families(rows_of(World(blocks=1))).values() for c in family]
    assert len(set(names)) == len(names)


def test_the_levels_come_from_the_data() -> None:
    """The numbers of clients are those that were run, not the original's."""
    found = levels([row for row in rows_of(World(blocks=1)) if row.clients in (2, 4, 8)])
    assert (found.few, found.most, found.at_pool, found.past_pool, found.farthest) == (2, 4, 4, 8, 8)
