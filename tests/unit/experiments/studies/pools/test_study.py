"""The study's sweeps, with and without its peers, and its sentences, claims and tables on made-up cells."""

import math
from dataclasses import replace
from functools import cache

import pytest

from experiments.design.arms import Arm
from experiments.design.setting import read
from experiments.judge import stress as stress_judge
from experiments.judge import table
from experiments.judge.stats import Estimate
from experiments.judge.table import CellJudged, TableJudged
from experiments.judge.verdicts import Verdict, judge
from experiments.kinds.stress import FinalSeen, KindSeen, StressSeen
from experiments.kinds.table import Cell, CellRatio, CellSeen
from experiments.show.content import Seen, content
from experiments.studies.pools import POOLS, design, original
from experiments.studies.pools.answers import answers
from experiments.studies.pools.claims import EXECUTORS, FAR_LESS, MUCH_LESS, all_are, claims
from experiments.studies.study import Scale
from tests.unit.experiments.apart_seen import block_of
from tests.unit.experiments.cells_seen import SEEN, block
from tests.unit.experiments.judge.synthetic_blocks import blocks as synthetic
from tests.unit.experiments.judge.synthetic_blocks import ratio as asked_of
from tests.unit.experiments.judge.synthetic_blocks import sweep

QUICK, SMOKE, PAPER = (POOLS.scales[name] for name in ("quick", "smoke", "paper"))
PART = POOLS.parts["pools"]


def seen_of(cell: Cell) -> CellSeen:
    """Values of a cell: Rust takes half of Go's time, and 64 threads and few connections take more of the processor."""
    of = cell.setting
    rust, many = of["language"] == "rust", of["workers"] == 64
    share = 1.3 if rust and many else 0.6 if rust else 1.0 + 0.1 * many
    cpu_s = share * (1.0 if of["connections"] == 10 else 0.5) * (1.2 if of["mix"] == "put" else 1.0)
    return replace(
        SEEN,
        response_us=500.0 if rust else 1000.0,
        received_bytes=20000 if rust else 10000,
        server_cpu_s=cpu_s,
        sampled_cpu_s=cpu_s / 2,
        memory_samples_mib=((2.0 if rust else 20.0) * (2.0 if many and rust else 1.1 if many else 1.0),),
    )


@cache
def judged(scale: Scale = QUICK) -> TableJudged:
    """Ten blocks without noise."""
    plan = design.cells(scale)
    return table.judged(plan, [block(number, plan, seen_of) for number in range(1, plan.blocks + 1)])


def seen(scale: Scale = QUICK, wrong: int = 0, cells: TableJudged | None = None) -> Seen:
    """Measurements without blocks by turns, with made-up cells and a stress test."""
    plan = design.stress(scale)
    kinds = tuple(KindSeen(each.requests, 0, 0, 10**9, 1024, 1024) for each in plan.kinds)
    final = tuple(FinalSeen(each.keys - wrong, wrong) for each in plan.final)
    repetition = block_of(1, (StressSeen(kinds, final),) * len(plan.servers))
    return Seen(
        judge(design.pools(scale), []), runs=(*([cells] if cells else []), stress_judge.judged(plan, [repetition]))
    )


def test_the_cells_are_the_documents() -> None:
    """At full scale there are 72 pinned cells of two languages, and Python's; ``quick`` has fewer, pinned and free."""
    plan = design.cells(PAPER)
    pinned = [cell for cell in plan.cells if cell.pinned]
    assert len(pinned) == 108
    assert sum(cell.setting["language"] != "python" for cell in pinned) == 72
    assert {cell.requests for cell in plan.cells} == {100_000}
    assert all(cell.setting["connection"] == "per-request" for cell in plan.cells)
    assert len(design.cells(QUICK).cells) == 54 + 24


@pytest.mark.parametrize("scale", [QUICK, PAPER])
def test_every_family_can_be_decided(scale: Scale) -> None:
    """With its blocks every family can be decided: by the least p of the sign-flip test, times the family."""
    plan = design.cells(scale)
    families = [ratio.family for ratio in plan.ratios]
    assert max(families.count(each) for each in families) * 2.0 ** (1 - plan.blocks) < 0.05


@pytest.mark.slow
def test_what_is_not_built_is_left_out() -> None:
    """Without peers the study measures Python alone, and its claims are not testable."""
    alone = replace(QUICK, peers=frozenset())
    assert {arm.setting["language"] for arm in design.pools(alone).arms} == {"python"}
    assert design.languages(replace(QUICK, peers=frozenset({"go-entity"}))) == ("go", "python")
    found = claims(Seen(judge(design.pools(alone), []), runs=(judged(alone),)))
    of_peers = [claim for claim in found if "executors" not in claim.said]  # one claim is judged by another part
    assert {claim.verdict for claim in of_peers} == {"NOT TESTABLE"}
    assert "make peers" in of_peers[0].said


def test_claims_follow_the_verdicts() -> None:
    """Made-up cells confirm every conclusion but the one on connecting. Each conclusion has the size of a cell."""
    of = claims(seen(cells=judged()))
    found = {claim.text[:2]: claim.verdict for claim in of}
    assert sum(claim.said.endswith("100,000 in 7 to 12 s, once.") for claim in of) == 9
    for number in range(1, 8):
        assert found[f"{number}."] == "CONFIRMED", number
    assert found["8."] == "CONTRADICTED"
    assert (found["9."], found["St"], found["Cl"]) == ("CONFIRMED",) * 3


def test_a_load_at_its_limit_decides_nothing_between_servers() -> None:
    """Times and rates with the load at its limit are also of the load, as in the document. They decide claims on times
    and rates alone."""
    cells = judged()
    limited = {
        name: replace(each, load_limited="response" in name or "received" in name)
        for name, each in cells.judged.items()
    }
    found = {claim.text[:2]: claim.verdict for claim in claims(seen(cells=replace(cells, judged=limited)))}
    assert (found["6."], found["7."], found["Cl"]) == ("CONFIRMED", "CONFIRMED", "INCONCLUSIVE")
    assert found["5."] == "CONFIRMED"


def test_every_connection_has_its_turns() -> None:
    """At every scale every connection has several requests, so that the mean is near N ÷ throughput."""
    for scale in (QUICK, SMOKE, PAPER):
        plan = design.cells(scale)
        assert min(cell.requests / cell.setting.whole("connections") for cell in plan.cells) >= 5


def test_no_process_is_compared_with_itself() -> None:
    """Cells of one start share a process and its memory, so that no ratio of memory compares such cells."""
    plan = design.cells(PAPER)
    for ratio in plan.ratios:
        if ratio.quantity == "memory_mib":
            pairs = zip(ratio.above, ratio.below, strict=True)
            assert all(plan.cells[above].start != plan.cells[below].start for above, below in pairs)


def one(verdict: Verdict | None, low: float, high: float) -> CellJudged:
    """A ratio with its interval."""
    ratio = CellRatio("a", "a", (0,), (1,), "response_ms")
    return CellJudged(ratio, Estimate((low * high) ** 0.5, low, high, 10), 0.01, verdict)


@pytest.mark.parametrize(
    ("found", "bound", "verdict"),
    [
        (one(Verdict.LESS, 0.3, 0.5), 1.0, "CONFIRMED"),
        (one(Verdict.MORE, 1.1, 1.2), 1.0, "CONTRADICTED"),
        (one(Verdict.EQUIVALENT, 0.98, 1.02), 1.0, "CONTRADICTED"),
        (one(Verdict.EQUIVALENT, 0.96, 0.99), 1.0, "INCONCLUSIVE"),
        (one(Verdict.INCONCLUSIVE, 0.3, 1.2), 1.0, "INCONCLUSIVE"),
        (one(None, 0.3, 0.5), 1.0, "INCONCLUSIVE"),
        (None, 1.0, "INCONCLUSIVE"),
        (one(Verdict.LESS, 0.3, 0.5), 0.6, "CONFIRMED"),
        (one(Verdict.LESS, 0.5, 0.7), 0.6, "INCONCLUSIVE"),
        (one(Verdict.LESS, 0.7, 0.8), 0.6, "CONTRADICTED"),
        (one(Verdict.EQUIVALENT, 0.96, 0.99), 0.6, "CONTRADICTED"),
    ],
)
def test_a_claim_of_less(found: CellJudged | None, bound: float, verdict: str) -> None:
    """A claim of "less" follows the verdict. A claim of "far less" needs the whole interval under the bound, too."""
    assert all_are(Verdict.LESS, [found], bound) == verdict
    assert all_are(Verdict.LESS, [one(Verdict.LESS, 0.1, 0.2), found], bound) == verdict


def test_bounds_are_what_the_document_calls_so() -> None:
    """The document's own numbers are within a bound, and the next round number is not."""
    pairs = [pair for verb in design.VERBS for pair in original.pairs(verb)]
    few = [math.log(rust.cpu_percent / go.cpu_percent) for rust, go in pairs if rust.pool == 2]
    assert 0.85 < math.exp(sum(few) / len(few)) < FAR_LESS
    assert 0.6 < max(rust.memory_percent / go.memory_percent for rust, go in pairs) < MUCH_LESS


@pytest.mark.parametrize(
    ("times", "measured", "verdict"),
    [(2.0, 2, "CONFIRMED"), (1.0, 2, "CONTRADICTED"), (2.0, 1, "INCONCLUSIVE"), (2.0, None, "NOT MEASURED")],
)
def test_a_pool_saves_threads_where_a_thread_a_request_is_slower(
    times: float, measured: int | None, verdict: str
) -> None:
    """A part of another study, with a thread for each request beside a pool, decides if a pool saves threads. A
    comparison without a value keeps the claim open."""
    executors = {"thread-per-task": 100.0 * times, "thread-pool": 100.0}
    means = {Arm(read(f"sockets clients={n} executor={each}")): us for n in (1, 5) for each, us in executors.items()}
    one, one_pool, five, five_pool = means
    of = sweep(asked_of(one, one_pool, "one"), asked_of(five, five_pool, "five"))
    whole = judge(of, synthetic(of, means))
    found = replace(whole, judged=dict([*whole.judged.items()][:measured]))
    beside = {} if measured is None else {EXECUTORS: found}
    (claim,) = [each for each in claims(replace(seen(cells=judged()), beside=beside)) if "saves" in each.text]
    assert (claim.verdict, "of 2 comparisons" in claim.said) == (verdict, measured is not None)


def test_a_wrong_key_contradicts_the_stress_test() -> None:
    """A wrong key contradicts the claim, though no request ended in an error."""
    (claim,) = [each for each in claims(seen(wrong=1, cells=judged())) if each.text.startswith("Stress")]
    assert claim.verdict == "CONTRADICTED"
    assert claim.said.startswith("0 errors in 80,000 requests, and 59,994 of 60,000 keys")


def test_few_blocks_decide_no_claim() -> None:
    """Few blocks, and few requests of the stress test, decide no claim. Every text is there nevertheless."""
    told = content(PART, seen(SMOKE, cells=judged(SMOKE)))
    assert {claim.verdict for claim in told.claims[1:]} == {"INCONCLUSIVE"}
    assert (len(told.answers), len(told.sections)) == (5, 9)


def test_cells_without_a_block_are_said_to_be_not_measured() -> None:
    """Before the first block no ratio has a value, and both answers on cells say so."""
    nothing = table.judged(design.cells(QUICK), ())
    said = [each.sentence for each in answers(seen(cells=nothing)) if "threads change" in each.question]
    assert [each.rpartition(": ")[2] for each in said] == ["not measured."]
