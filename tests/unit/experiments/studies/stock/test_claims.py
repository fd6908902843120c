"""The replication card: every claim of the document has a line, and verdicts alone decide a claim."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.judge.stats import Estimate
from experiments.judge.steps import Step
from experiments.judge.verdicts import Judgement, judge
from experiments.results.observed import Window
from experiments.show.content import Claim, Seen
from experiments.studies.stock import sweeps
from experiments.studies.stock.claims import ENTRIES, _rising, claims
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, block, stage_summary
from tests.unit.experiments.studies.stock.judgements import MEAN_US, SCALE, judgement, only, planted, seen, unplanted

SOCKETS = Arm(sweeps.SOCKETS)
TRADE = Arm(sweeps.GRPC.but(mix="trade"))
GRPC_LOCKED = Arm(sweeps.GRPC.but(mix=sweeps.MIXED, clients=5))
PAST_POOL = Arm(sweeps.SOCKETS.but(workers=5, clients=10))


def card(
    world: World, *names: str, figures: Sequence[str] = (), scale: Scale = SCALE, blocks: int = 10
) -> dict[str, Claim]:
    """Claims by the main part's comparisons of these names, and by the arms of these figures."""
    arms = [arm for figure in figures for arm in sweeps.figure_arms(figure, scale)]
    main = judgement(only(sweeps.stock(scale), *names, arms=arms), blocks, world)
    return {claim.text: claim for claim in claims(Seen(main))}


def with_parts(**after: Judgement) -> dict[str, Claim]:
    """Claims of the main part without planted values, with these parts after it."""
    return {claim.text: claim for claim in claims(Seen(unplanted(), after))}


def the(claims_by_text: Mapping[str, Claim], words: str) -> Claim:
    """The one claim that has these words."""
    (found,) = (claim for text, claim in claims_by_text.items() if words in text)
    return found


def test_every_claim_has_a_line() -> None:
    """The main part has a line for every claim. Claims of other parts have their command."""
    found = with_parts()
    assert len(found) == len(ENTRIES) == 16
    for part in ("dispatch", "lock_waits", "lock_strategies"):
        own = [claim for claim in found.values() if f"`python -m experiments run {part}`" in claim.said]
        assert own
        assert {claim.verdict for claim in own} == {"NOT MEASURED"}


@pytest.mark.parametrize(
    ("words", "name", "ratio", "scatter", "verdict"),
    [
        ("more efficient", "as_started", 0.7, 0.002, "CONFIRMED"),
        ("more efficient", "as_started", 1.0, 0.002, "CONTRADICTED"),
        ("more efficient", "as_started", 1.0, 0.2, "INCONCLUSIVE"),
        ("could be the lock", "equal_executors", 0.7, 0.002, "CONTRADICTED"),
        ("could be the lock", "equal_executors", 0.98, 0.002, "INCONCLUSIVE"),
        ("could be the lock", "equal_executors", 1.0, 0.002, "INCONCLUSIVE"),
        ("about as long", "trade", 1.0, 0.002, "CONFIRMED"),
        ("about as long", "trade", 1.03, 0.002, "CONFIRMED"),
        ("about as long", "trade", 1.2, 0.002, "CONTRADICTED"),
        ("about as long", "trade", 0.8, 0.002, "CONTRADICTED"),
        ("about as long", "trade", 1.06, 0.015, "INCONCLUSIVE"),
        ("about as long", "trade", 1.0, 0.2, "INCONCLUSIVE"),
    ],
)
def test_a_ratio_decides_a_claim(words: str, name: str, ratio: float, scatter: float, verdict: str) -> None:
    """Sockets are more efficient only if they are FASTER. The lock is no reason for a difference with one lock on both
    sides. A Trade is like a Lookup to within 5 %."""
    above = TRADE if name == "trade" else SOCKETS
    assert the(card(planted({above: ratio * MEAN_US}, scatter), name), words).verdict == verdict


def test_each_figure_is_judged_by_its_own_steps() -> None:
    """A figure whose latency rises confirms its claim, and a figure with flat latency contradicts its claim."""
    figures = ("figure_2", "figure_3")
    for rising, flat in ((2, 3), (3, 2)):
        world = planted({Arm(sweeps.FIGURES[f"figure_{rising}"].but(clients=5)): 3 * MEAN_US})
        found = card(world, "growth_grpc", "growth_figure_3", figures=figures)
        assert the(found, f"Figure {rising}").verdict == "CONFIRMED"
        assert the(found, f"Figure {flat}").verdict == "CONTRADICTED"


@pytest.mark.parametrize(("times", "jump"), [(2.0, "CONFIRMED"), (2.03, "CONFIRMED"), (3.0, "CONTRADICTED")])
def test_a_jump_is_growth_beyond_the_clients(times: float, jump: str) -> None:
    """A jump is growth by over 5 % more than the clients. Growth in proportion to the clients is no jump."""
    base = sweeps.SOCKETS.but(workers=5)
    before = {Arm(base.but(clients=clients)): clients / 5 * MEAN_US for clients in range(1, 5)}
    past = {Arm(base.but(clients=5 + more)): times ** (more / 5) * MEAN_US for more in range(1, 5)}
    computing = Arm(sweeps.COMPUTING["computing_sockets"].but(connections=10))
    world = planted({**before, **past, PAST_POOL: times * MEAN_US, computing: times * MEAN_US})
    found = card(world, "computing_sockets", "past_pool", figures=["figure_5"])
    assert the(found, "does not jump").verdict == jump
    assert the(found, "Figure 5").verdict == "CONFIRMED"


@pytest.mark.parametrize(("second", "verdict"), [(0.77, "CONTRADICTED"), (0.999, "CONTRADICTED"), (1.3, "CONFIRMED")])
def test_latency_rises_only_if_it_does_at_every_step(second: float, verdict: str) -> None:
    """A fall or no change from 1 client to 2 contradicts the claim, though 5 clients have thrice the latency."""
    rising = {1: 1.0, 2: second, 3: 1.8, 4: 2.4, 5: 3.0}
    times = {Arm(sweeps.FIGURES["figure_4"].but(clients=n)): each * MEAN_US for n, each in rising.items()}
    scale = replace(SCALE, clients=tuple(rising))
    found = card(planted(times), "growth_sockets", figures=["figure_4"], scale=scale)
    assert the(found, "Figure 4").verdict == verdict
    said = the(found, "Figure 4").said
    assert "Step by step: 2 ÷ 1 client" in said
    named = {0.77: "falls from 1 to 2 clients (ratio 0.770).", 0.999: "is flat from 1 to 2 clients (ratio 0.999)."}
    assert "Latency " not in said if verdict == "CONFIRMED" else said.endswith(f"Latency {named[second]}")


def test_a_small_rise_that_is_not_certain_among_many_is_not_flat() -> None:
    """An interval above 1 without a p below the level keeps the claim open: the step is neither flat nor rising."""
    one, two, five = (Arm(sweeps.GRPC.but(clients=n)) for n in (1, 2, 5))
    small = Step(two, one, Estimate(1.01, 1.002, 1.018, 10), 0.2)
    rising = Step(five, two, Estimate(2.0, 1.9, 2.1, 10), 0.01)
    judged = unplanted()
    assert _rising(judged, (small, rising), all_measured=True) == "INCONCLUSIVE"
    flat = replace(small, ratio=Estimate(1.0, 0.99, 1.01, 10))
    assert _rising(judged, (flat, rising), all_measured=True) == "CONTRADICTED"


def test_a_step_that_gates_left_out_confirms_no_rise() -> None:
    """With 3 of 1, 2, 3 and 5 clients every block failed, so that no rise is confirmed."""
    times = {Arm(sweeps.FIGURES["figure_4"].but(clients=n)): n * MEAN_US for n in (1, 2, 3, 5)}
    world = planted(times, errors=[Arm(sweeps.FIGURES["figure_4"].but(clients=3))])
    scale = replace(SCALE, clients=(1, 2, 3, 5))
    lacking = the(card(world, "growth_sockets", figures=["figure_4"], scale=scale), "Figure 4")
    assert lacking.verdict == "INCONCLUSIVE"
    assert lacking.said.endswith("The gates left no block for 2 steps.")


def test_waits_and_ratios_are_paired_by_their_blocks() -> None:
    """Waits of blocks differ by 100 times, and each request type lacks another block: the other eight blocks agree."""
    scale = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0, 10.0, 3.0)
    sweep = only(sweeps.lock_waits(SCALE), arms=[GRPC_LOCKED])
    stages = [{"lookup": stage_summary(each), "trade": stage_summary(each)} for each in scale]
    del stages[0]["lookup"], stages[9]["trade"]
    every = [block(sweep, n, planted(stages={GRPC_LOCKED: of})) for n, of in enumerate(stages, 1)]
    waits = judge(sweep, every)
    claim = the(with_parts(lock_waits=waits), "costs Trade and Lookup the same")
    assert claim.verdict == "CONFIRMED"
    assert "in 8 blocks" in claim.said


def test_an_unfinished_sweep_decides_no_claim() -> None:
    """An unfinished sweep decides no claim, however clear the numbers are."""
    times = {SOCKETS: 100.0, TRADE: 900.0, PAST_POOL: 9000.0}
    names = ("as_started", "equal_executors", "trade", "past_pool")
    assert {claim.verdict for claim in card(planted(times), *names, blocks=5).values()} == {
        "INCONCLUSIVE",
        "NOT TESTABLE",
        "NOT MEASURED",
    }


def test_a_refused_comparison_decides_no_claim() -> None:
    """A comparison decides no claim where a gate leaves out all of its blocks."""
    found = card(planted({TRADE: 2 * MEAN_US}, errors=[TRADE]), "trade")
    assert the(found, "about as long").verdict == "INCONCLUSIVE"
    assert "Gate 4" in the(found, "about as long").said


@pytest.mark.parametrize(("trade_us", "verdict"), [(1.0, "CONFIRMED"), (100.0, "CONTRADICTED")])
def test_lock_waits_are_the_same_to_within_5_percent_of_the_latency(trade_us: float, verdict: str) -> None:
    """Three blocks decide if the lock waits differ by under 5 % of the latency; two blocks do not. The claim has both
    waits."""
    sweep = only(sweeps.lock_waits(SCALE), arms=[GRPC_LOCKED])
    stages = {"lookup": stage_summary(0.5), "trade": stage_summary(trade_us)}
    three, two = (judgement(sweep, n, planted(stages={GRPC_LOCKED: stages})) for n in (3, 2))
    claim = the(with_parts(lock_waits=three), "costs Trade and Lookup the same")
    assert claim.verdict == verdict
    assert "a Lookup waits 0.500 µs" in claim.said
    assert f"A Trade waits {trade_us:.3g}" in claim.said.replace("1.00 µs", "1 µs")
    assert the(with_parts(lock_waits=two), "costs Trade and Lookup").verdict == "INCONCLUSIVE"


@pytest.mark.parametrize(("ratio", "verdict"), [(0.8, "CONFIRMED"), (1.0, "CONTRADICTED")])
def test_a_read_lock_is_faster(ratio: float, verdict: str) -> None:
    """The part that compares strategies decides its own two claims alone."""
    arm = Arm(sweeps.SOCKETS.but(mix=sweeps.MIXED, clients=5, locking="read-write"))
    found = claims(seen(sweeps.lock_strategies, 10, planted({arm: ratio * MEAN_US})))
    assert [claim.verdict for claim in found] == [verdict, "CONTRADICTED"]


def test_five_blocks_that_gates_left_do_not_decide_on_a_read_lock() -> None:
    """A gate leaves out five of ten blocks. The other five agree, and are too few."""
    arm, of = Arm(sweeps.SOCKETS.but(mix=sweeps.MIXED, clients=5, locking="read-write")), sweeps.lock_strategies(SCALE)
    judged = judge(of, [block(of, n, planted(errors=[arm] if n > 5 else [])) for n in range(1, 11)])
    assert claims(Seen(judged))[1].verdict == "INCONCLUSIVE"


def test_a_read_lock_that_sets_them_apart_is_seen() -> None:
    """A larger Trade ÷ Lookup under read and write locks than under one mutex confirms the claim."""
    arm = Arm(sweeps.SOCKETS.but(mix=sweeps.MIXED, clients=5, locking="read-write"))
    apart = World(
        lambda of, request: MEAN_US * (1.5 if of == arm and request == "trade" else 1.0),
        block_noise=0.002,
        slice_noise=0.0,
        effective=2000.0,
    )
    found = claims(seen(sweeps.lock_strategies, 10, apart))
    assert found[1].verdict == "CONFIRMED"
    assert "The first ÷ the second: 1.5" in found[1].said


@pytest.mark.parametrize(
    ("starved", "blocks", "verdict"),
    [
        ((5, 5), 10, "CONFIRMED"),
        ((0, 0), 10, "CONTRADICTED"),
        ((5, 0), 10, "INCONCLUSIVE"),
        ((5, 5), 3, "INCONCLUSIVE"),
    ],
)
def test_clients_past_the_pool_starve(starved: tuple[int, int], blocks: int, verdict: str) -> None:
    """The claim needs starved clients in every window, at a look, where a connection holds its thread."""
    windows = [Window(None, 100.0, 100.0, each, 0, None) for each in starved]
    arms = [Arm(sweeps.SOCKETS.but(workers=5, clients=n, dispatch="connection")) for n in (6, 10)]
    found = claims(seen(sweeps.dispatch, blocks, planted(windows=dict.fromkeys(arms, windows))))
    assert [claim.verdict for claim in found] == ["CONFIRMED" if blocks == 10 else "INCONCLUSIVE", verdict]
