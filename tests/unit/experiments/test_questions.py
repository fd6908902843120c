"""The four answers: a planted difference is found, none is invented, and each sentence says what its data allows."""

import pytest

from experiments.stats import Verdict
from experiments.studies.stock.comparisons import families, judge, levels
from experiments.studies.stock.questions import NOT_RUN, answers, flat_from, lock_costs, slope_us_per_client
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
    assert faster.startswith("Sockets answer a Lookup in less time than gRPC with 1 client: ratio 0.5")
    assert slower.startswith("Sockets answer a Lookup in more time than gRPC with 1 client: ratio 2")


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


def test_throughput_that_still_grows_is_not_called_flat() -> None:
    """Where the latency does not grow, throughput does: the server is not full."""
    found = rows_of(World(growth=False))
    own = [row for row in found if row.part == "figure_2" and row.request == "lookup"]
    assert flat_from(own) is None
    assert "may not be full" in " ".join(answers(found)[1].details)


def test_the_slope_is_the_planted_one() -> None:
    """A line of 260 µs per client from the second client on has that slope."""
    own = [
        row
        for row in rows_of(World(noise=0.0, block_noise=0.0), ("figure_2",))
        if row.request == "lookup" and row.clients >= 2
    ]
    assert slope_us_per_client(own, lambda row: row.latency_us_mean).value == pytest.approx(260)


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
    assert "there is no jump" in none
    assert "**EQUIVALENT**" in none


@pytest.mark.slow
def test_starved_clients_are_told_where_the_dispatch_extension_was_run() -> None:
    """With a thread per connection, 5 of 10 clients never get a reply."""
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
