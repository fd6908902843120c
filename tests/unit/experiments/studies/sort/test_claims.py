"""The card of the study ``sort`` says what planted data say, and the opposite of the opposite."""

from dataclasses import replace

import pytest

from experiments.design.setting import Setting
from experiments.show.content import Seen
from experiments.studies.sort import claims, sweeps
from tests.unit.experiments.studies.sort.planted import SCALE, Truth, cold_rows, judged, seen, truth

FALLS_BY_CALLS = "N being the number of calls."
FALLS_BY_LENGTH = "N being the size of the input"
MERGE_LONGER = "At N = 100 merge sort"
NET_RPC = "net/rpc consistently"
MORE_BY_CALLS = "The more so as N grows"
MORE_BY_LENGTH = "The more so as the input grows"
ALGORITHMS = "The algorithms differ by less"


def verdict(of: Seen, words: str) -> str:
    """Of the one claim with these words."""
    (claim,) = [each for each in claims.claims(of) if words in each.text]
    return claim.verdict


def net_rpc_slower(setting: Setting) -> float:
    """The other way round."""
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


@pytest.fixture(scope="module")
def ours() -> Seen:
    """As one would expect it."""
    return seen()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (FALLS_BY_CALLS, "CONFIRMED"),
        (FALLS_BY_LENGTH, "CONTRADICTED"),
        (MERGE_LONGER, "CONTRADICTED"),
        (NET_RPC, "CONFIRMED"),
        (MORE_BY_CALLS, "CONTRADICTED"),
        (MORE_BY_LENGTH, "CONTRADICTED"),
        (ALGORITHMS, "CONFIRMED"),
    ],
)
def test_data_as_one_would_expect_them(ours: Seen, words: str, expected: str) -> None:
    """net/rpc takes half the time, one-off costs are there, long arrays take longer and hide the mechanism."""
    assert verdict(ours, words) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "words", "expected"),
    [
        (net_rpc_slower, NET_RPC, "CONTRADICTED"),
        (falling, FALLS_BY_LENGTH, "CONFIRMED"),
        (diverging, MORE_BY_LENGTH, "CONFIRMED"),
        (merge_matters, ALGORITHMS, "CONTRADICTED"),
    ],
)
def test_data_that_say_the_opposite(of: Truth, words: str, expected: str) -> None:
    """Have the opposite verdict."""
    assert verdict(seen(of), words) == expected


@pytest.mark.slow
def test_cold_runs_that_say_the_opposite(ours: Seen) -> None:
    """Calls that slow down make the mean rise; a slow merge sort confirms that it is slow."""
    assert verdict(replace(ours, cold=cold_rows(slowing=0.001)), FALLS_BY_CALLS) == "CONTRADICTED"
    assert verdict(replace(ours, cold=cold_rows(slower={"merge": 1.8})), MERGE_LONGER) == "CONFIRMED"


@pytest.mark.slow
def test_a_few_cold_runs_decide_nothing(ours: Seen) -> None:
    """Under six blocks, or without any."""
    for cold in (cold_rows(5), ()):
        for words in (FALLS_BY_CALLS, MERGE_LONGER, MORE_BY_CALLS):
            assert verdict(replace(ours, cold=cold), words) == "INCONCLUSIVE"


@pytest.mark.slow
def test_a_sweep_at_no_look_decides_nothing() -> None:
    """Whatever its numbers."""
    early = seen(number=7)
    for words in (NET_RPC, FALLS_BY_LENGTH, MORE_BY_LENGTH, ALGORITHMS):
        assert verdict(early, words) == "INCONCLUSIVE"


@pytest.mark.slow
def test_without_go_nothing_is_tested() -> None:
    """Every claim says how to get the peers, or which part tests it."""
    bare = replace(SCALE, peers=frozenset[str]())
    sweep = sweeps.sort(bare)
    of = Seen(judged(sweep), {"sort_array_len": judged(sweeps.array_len(bare))})
    found = claims.claims(of)
    assert {each.verdict for each in found} == {"NOT TESTABLE"}
    assert all("make peers" in each.said for each in found)
    assert sweeps.cold(bare) is None


@pytest.mark.slow
def test_the_part_on_lengths_has_its_own_claims_alone() -> None:
    """Those that its data decide."""
    found = claims.claims(Seen(judged(sweeps.array_len(SCALE))))
    assert {each.verdict for each in found} == {"CONTRADICTED"}
    assert len(found) == 2
