"""The replication card: each claim's status comes from the data, and turns round when the data does."""

from dataclasses import replace

import pytest

from experiments.results import Row
from experiments.stats import Verdict
from experiments.studies.stock.claims import CLAIMS, Entry, Status, card
from experiments.studies.stock.comparisons import judge
from tests.unit.experiments.planted_stock import MAIN_PARTS, World, rows_of, swapped


def entry(rows: list[Row], words: str) -> Entry:
    """The one claim that has these words in it."""
    (found,) = (entry for entry in card(rows) if words in entry.claim)
    return found


@pytest.mark.slow
def test_faster_sockets_are_confirmed_and_contradicted_once_the_servers_are_swapped() -> None:
    """The same rows with the two servers exchanged turn the claim round."""
    rows = rows_of(World())
    assert entry(rows, "less time on sockets").status is Status.CONFIRMED
    assert entry(swapped(rows), "less time on sockets").status is Status.CONTRADICTED


@pytest.mark.parametrize(
    ("words", "confirming", "contradicting"),
    [
        ("Latency rises", World(), World(growth=False)),
        ("about as long as Lookup", World(noise=0.01), World(trade_factor=1.4)),
        ("does not jump", World(noise=0.01), World(pool_jump=1.5)),
        ("costs Trade and Lookup the same", World(lock_wait_us=0.4), World(lock_wait_us=900.0)),
    ],
)
def test_a_claim_turns_round_with_the_data(words: str, confirming: World, contradicting: World) -> None:
    """One world bears the claim out, another contradicts it."""
    assert entry(rows_of(confirming), words).status is Status.CONFIRMED
    assert entry(rows_of(contradicting), words).status is Status.CONTRADICTED


def test_the_claim_of_the_same_cost_says_what_counts_as_the_same() -> None:
    """The margin, in the claim."""
    assert entry(rows_of(World()), "costs Trade and Lookup").claim.endswith("differ by under 5 % of the latency.)")


def test_a_mean_wait_says_which_mean_it_is() -> None:
    """Beside the typical one, which the answers give."""
    data = entry(rows_of(World(lock_wait_us=0.4)), "may be the reason").evidence
    assert "as the arithmetic mean over runs of each run’s mean; their geometric mean, the typical run’s, is 0." in data


def test_the_lock_is_ruled_out_by_a_short_wait_and_never_shown_to_be_the_reason() -> None:
    """That two servers with one lock take the same time does not say that a difference without it would be the lock."""
    assert entry(rows_of(World(lock_wait_us=0.4)), "may be the reason").status is Status.CONTRADICTED
    alike = rows_of(World(sockets_factor=1.0, noise=0.01, lock_wait_us=80.0))
    assert entry(alike, "may be the reason").status is Status.INCONCLUSIVE


def test_a_small_but_sure_difference_does_not_contradict_its_own_direction() -> None:
    """Sockets 3 % faster are EQUIVALENT and yet faster; the other way round the claim is contradicted."""
    quiet = World(block_noise=0.0, noise=0.003)
    small = rows_of(replace(quiet, sockets_factor=0.97))
    assert entry(small, "less time on sockets").status is Status.INCONCLUSIVE
    assert entry(swapped(small), "less time on sockets").status is Status.CONTRADICTED


@pytest.mark.parametrize(("jump", "status"), [(1.048, Status.INCONCLUSIVE), (1.2, Status.CONTRADICTED)])
def test_a_step_that_is_not_clearly_one_does_not_contradict_that_there_is_none(jump: float, status: Status) -> None:
    """Its interval crosses the margin of equivalence and excludes 1."""
    rows = rows_of(World(pool_jump=jump, block_noise=0.0, noise=0.008))
    assert judge(rows)["pool_step"].result.verdict is Verdict.SLOWER
    assert entry(rows, "does not jump").status is status


@pytest.mark.parametrize(
    ("words", "confirming", "contradicting"),
    [("stay constant", World(growth=False, noise=0.01), World()), ("far longer", World(), None)],
)
def test_claims_about_threads_per_connection(words: str, confirming: World, contradicting: World | None) -> None:
    """They need the extension on dispatch, and are decided by it."""
    assert entry(rows_of(confirming, ("dispatch",)), words).status is Status.CONFIRMED
    assert entry(rows_of(confirming, ("figure_2",)), words).status is Status.NOT_TESTABLE
    if contradicting is not None:
        assert entry(rows_of(contradicting, ("dispatch",)), words).status is Status.CONTRADICTED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "gate"),
    [
        ({"steal_share": 0.5}, "Refused by gate 14"),
        ({"errors": 5000, "error_kinds": "deadline_exceeded:5000"}, "Refused by gate 4"),
    ],
)
@pytest.mark.parametrize("words", ["costs Trade and Lookup the same", "may be the reason", "far longer"])
def test_a_gate_that_refuses_the_runs_leaves_a_claim_open(words: str, fault: dict[str, object], gate: str) -> None:
    """The fault is in the runs of the locks and the dispatch models alone, and the gate is named."""
    rows = rows_of(World(), (*MAIN_PARTS, "dispatch"))
    assert entry(rows, words).status in (Status.CONFIRMED, Status.CONTRADICTED)
    faulty = [
        replace(row, **fault) if row.part in ("locks", "dispatch") else row  # type: ignore[arg-type]
        for row in rows
    ]
    found = entry(faulty, words)
    assert found.status is Status.INCONCLUSIVE
    assert gate in found.evidence


@pytest.mark.slow
def test_without_an_a_a_run_every_claim_is_left_open() -> None:
    """Nothing tells what the instrument makes of no difference."""
    rows = [row for row in rows_of(World(), (*MAIN_PARTS, "dispatch")) if row.part != "same"]
    statuses = {entry.status for entry in card(rows)}
    assert statuses == {Status.INCONCLUSIVE, Status.NOT_TESTABLE}


def test_two_blocks_confirm_and_contradict_nothing() -> None:
    """A trial run leaves every claim open."""
    statuses = {entry.status for entry in card(rows_of(World(blocks=2), (*MAIN_PARTS, "dispatch")))}
    assert statuses == {Status.INCONCLUSIVE, Status.NOT_TESTABLE}


def test_a_line_that_falls_somewhere_is_not_confirmed_to_rise() -> None:
    """The claim says every figure and every step: one mean that falls contradicts the sentence, if not its ends."""
    world = World(block_noise=0.0, noise=0.001)
    dented = [row for row in rows_of(world) if not (row.part == "figure_2" and row.clients == 4)]
    steep = [row for row in rows_of(World(block_noise=0.0, noise=0.001, service_factor=0.5)) if row.clients == 4]
    found = entry(dented + [row for row in steep if row.part == "figure_2"], "Latency rises")
    assert found.status is Status.INCONCLUSIVE
    assert "the mean falls" in found.evidence


def test_the_originals_times_are_context_alone() -> None:
    """Milliseconds of another machine are not testable, and ours stand beside them."""
    found = entry(rows_of(World()), "17.92")
    assert found.status is Status.NOT_TESTABLE
    assert "Here, with 1 client: gRPC 0.4" in found.evidence


def test_every_claim_is_on_the_card_with_its_evidence() -> None:
    """Nothing is left out where nothing was run."""
    entries = card(rows_of(World(), ("figure_5",)))
    assert len(entries) == len(CLAIMS)
    assert all(found.evidence and found.original for found in entries)
