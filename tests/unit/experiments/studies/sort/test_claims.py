"""The card of the study ``sort``: its verdicts follow planted data, and are opposite for opposite data."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge.cold import ColdJudged
from experiments.kinds.cold import ColdRow
from experiments.show.content import Claim, Seen
from experiments.studies.sort import claims, design
from tests.unit.experiments.studies.sort.planted import SCALE, cold_rows, judged, seen, truth

pytestmark = pytest.mark.slow  # judges sweeps: some 0.3 s each

FALLS_BY_CALLS = "The mean falls as N grows from 100 to 10,000"
FALLS_BY_LENGTH = "where N is the size of the input"
MERGE_LONGER = "At N = 100 merge sort"
NET_RPC = "net/rpc consistently"
MORE_BY_CALLS = "grows with N, where N is the number of calls"
MORE_BY_LENGTH = "grows with N, where N is the length of the array"
ALGORITHMS = "The algorithms differ by less"

OF_COLD_RUNS = (FALLS_BY_CALLS, MERGE_LONGER, MORE_BY_CALLS)


def the(of: Seen, words: str) -> Claim:
    """The one claim with these words."""
    (claim,) = [each for each in claims.claims(of) if words in each.text]
    return claim


def net_rpc_slower(setting: Setting) -> float:
    """net/rpc is slower."""
    return 120.0 if setting.text("transport") == "net-rpc" else truth(setting)


def falling(setting: Setting) -> float:
    """Longer arrays take less."""
    return 200.0 - setting.whole("array_len") / 100


def diverging(setting: Setting) -> float:
    """The longer the array, the larger the ratio of gRPC to net/rpc."""
    factor = 2 + setting.whole("array_len") / 1000 if setting.text("transport") == "grpc" else 1
    return 30.0 * factor


def merge_matters(setting: Setting) -> float:
    """The algorithm alone makes a difference."""
    return 90.0 if setting.text("mix") == "merge" else 30.0


def both_matter(setting: Setting) -> float:
    """The algorithm and the mechanism make equal differences."""
    return merge_matters(setting) * (3.0 if setting.text("transport") == "grpc" else 1.0)


def with_cold(rows: Iterable[ColdRow], is_whole: bool = True) -> Seen:
    """The planted sweeps beside other cold runs."""
    return replace(seen(), runs=(ColdJudged(tuple(rows), is_whole),))


def without_a_comparison() -> Seen:
    """The planted data without the comparison of the mechanisms with quicksort."""
    found = seen()
    judged = {name: each for name, each in found.main.judged.items() if name != "mechanism_quick"}
    return replace(found, main=replace(found.main, judged=judged))


SLOW = cold_rows(slower={"merge": 1.8})

ON_NET_RPC_ALONE = [
    one if one.cell.setting["transport"] == "grpc" else other for one, other in zip(cold_rows(), SLOW, strict=True)
]
"""Cold runs in which merge sort takes 1.8 times as long on net/rpc, and as long as quicksort on gRPC."""

LACKING = [row for row in cold_rows() if row.cell.setting != design.go("net-rpc", "quick")]

CASES: dict[str, tuple[Callable[[], Seen], dict[str, Sequence[str]]]] = {
    "net/rpc takes half the time, and long arrays hide the mechanism": (
        seen,
        {
            "CONFIRMED": (FALLS_BY_CALLS, NET_RPC, ALGORITHMS),
            "CONTRADICTED": (FALLS_BY_LENGTH, MERGE_LONGER, MORE_BY_CALLS, MORE_BY_LENGTH),
        },
    ),
    "net/rpc is slower": (lambda: seen(net_rpc_slower), {"CONTRADICTED": [NET_RPC]}),
    "the ratio grows with the array": (lambda: seen(diverging), {"CONFIRMED": [MORE_BY_LENGTH]}),
    "the algorithm alone makes a difference": (lambda: seen(merge_matters), {"CONTRADICTED": [ALGORITHMS]}),
    "algorithm and mechanism make equal differences": (lambda: seen(both_matter), {"INCONCLUSIVE": [ALGORITHMS]}),
    "merge sort takes 1.8 times as long": (lambda: with_cold(SLOW), {"CONFIRMED": [MERGE_LONGER]}),
    "it does on one mechanism": (lambda: with_cold(ON_NET_RPC_ALONE), {"CONTRADICTED": [MERGE_LONGER]}),
    "five blocks of cold runs": (lambda: with_cold(cold_rows(5)), {"INCONCLUSIVE": OF_COLD_RUNS}),
    "no cold run": (lambda: with_cold(()), {"INCONCLUSIVE": OF_COLD_RUNS}),
    "some cold runs are missing": (lambda: with_cold(cold_rows(), False), {"INCONCLUSIVE": OF_COLD_RUNS}),
    "a cell was not measured": (lambda: with_cold(LACKING), {"INCONCLUSIVE": [FALLS_BY_CALLS]}),
    "a comparison has no value": (without_a_comparison, {"INCONCLUSIVE": [NET_RPC]}),
    "seven blocks, which are no look": (
        lambda: seen(number=7),
        {"INCONCLUSIVE": (NET_RPC, FALLS_BY_LENGTH, MORE_BY_LENGTH, ALGORITHMS)},
    ),
}
"""Planted data, and the claims with each verdict."""


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_follows_its_data(name: str) -> None:
    """Planted data give each claim its verdict."""
    made, expected = CASES[name]
    found = claims.claims(made())
    for verdict, asked in expected.items():
        assert [[each.verdict for each in found if words in each.text] for words in asked] == [[verdict]] * len(asked)


def test_two_blocks_have_ratios_without_an_interval() -> None:
    """The interval of two blocks is left out, and no dash stands in its place."""
    said = the(seen(number=2), FALLS_BY_LENGTH).said
    assert said.startswith("Means: ")
    assert "–" not in said


def test_a_mean_falls_with_calls_only_if_it_does_at_every_step() -> None:
    """A mean falls with calls if it falls at every step: from 1,000 calls to 10,000 one mean rises by a tenth, or
    stays. The step is named."""
    of = design.go("grpc", "merge")
    before = {row.block: row for row in cold_rows() if row.cell.setting == of and row.cell.calls == 1000}
    for times, said in ((1.1, "The mean rises at"), (1.0, "The mean is flat at")):
        cold = (
            replace(row, with_connect_us=times * before[row.block].with_connect_us)
            if row.cell.setting == of and row.cell.calls == 10_000
            else row
            for row in cold_rows()
        )
        claim = the(with_cold(cold), FALLS_BY_CALLS)
        assert claim.verdict == "CONTRADICTED"
        assert f"{said} gRPC, merge sort, 1,000 ÷ 10,000. " in claim.said


def test_a_mean_falls_with_length_only_if_it_does_at_every_step() -> None:
    """A mean falls with length if it falls at every step: 1,000 numbers take longer than 100, and 10,000 less than
    both. A step without a block leaves it open."""
    lengths = design.array_len(SCALE)
    rises = judged(lengths, lambda of: {100: 90.0, 1000: 100.0}.get(of.whole("array_len"), 80.0))
    lacking = judged(lengths, falling, errors=[Arm(design.go("grpc", "merge", 100))])
    claim, decided, open_ = (the(Seen(each), FALLS_BY_LENGTH) for each in (rises, judged(lengths, falling), lacking))
    assert claim.verdict == "CONTRADICTED"
    assert (
        "The mean rises at gRPC, merge sort, 1,000 ÷ 100 numbers; gRPC, quicksort, 1,000 ÷ 100 numbers;" in claim.said
    )
    assert (decided.verdict, open_.verdict) == ("CONFIRMED", "INCONCLUSIVE")
    assert "The mean is not known to rise or fall at gRPC, merge sort, 1,000 ÷ 100 numbers." in open_.said


def test_the_more_so_is_asked_of_every_step() -> None:
    """The ratio must grow at every step: a ratio of 2, then 1.5, then 3 contradicts, and the first step is named."""
    times = {100: 2.0, 1000: 1.5, 10_000: 3.0}

    def between(of: Setting) -> float:
        return 30.0 * (times.get(of.whole("array_len"), 2.0) if of["transport"] == "grpc" else 1)

    cold = (
        replace(row, mean_us=30.0, with_connect_us=30.0 * (times[row.cell.calls] if on_grpc else 1) + row.block / 100)
        for row, on_grpc in ((each, each.cell.setting["transport"] == "grpc") for each in cold_rows())
    )
    by_length = the(Seen(judged(design.array_len(SCALE), between)), MORE_BY_LENGTH)
    for claim in (by_length, the(with_cold(cold), MORE_BY_CALLS)):
        assert claim.verdict == "CONTRADICTED"
        assert "The ratio is smaller at merge sort, from 100 to 1,000; quicksort, from 100 to 1,000." in claim.said


def test_without_go_nothing_is_tested() -> None:
    """Every claim says how to get the peers, or which part tests it."""
    bare = replace(SCALE, peers=frozenset[str]())
    found = claims.claims(Seen(judged(design.sort(bare)), {"sort_array_len": judged(design.array_len(bare))}))
    assert {each.verdict for each in found} == {"NOT TESTABLE"}
    assert all("make peers" in each.said for each in found)
    assert design.cold(bare) == ()


def test_the_part_on_lengths_has_its_own_claims_alone() -> None:
    """The part has the claims that its data decide."""
    assert [each.verdict for each in claims.claims(Seen(seen().after["sort_array_len"]))] == ["CONTRADICTED"] * 2
