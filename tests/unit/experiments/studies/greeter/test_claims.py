"""The replication card: every claim of the document has a line, and the data alone decide it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from experiments.design.setting import Setting
from experiments.show.content import Claim
from experiments.studies.greeter.claims import ENTRIES, claims
from experiments.studies.greeter.design import asynchronous, two
from experiments.studies.greeter.rates import cold_runs
from tests.unit.experiments.studies.greeter.judgements import ALONE, CPP, PYTHON, seen


def card(**planted: Any) -> dict[str, Claim]:
    """The claims by their texts."""
    return {claim.text: claim for claim in claims(seen(**planted))}


def the(words: str, **planted: Any) -> Claim:
    """The one claim that has these words."""
    (found,) = (claim for text, claim in card(**planted).items() if words in text)
    return found


def test_every_claim_has_a_line_and_the_headlines_are_decided() -> None:
    """Every claim has a line. A statement on the study's machine alone is not testable, and these data decide the
    others."""
    found = card()
    assert list(found) == [entry.text for entry in ENTRIES]
    verdicts = [claim.verdict for claim in found.values()]
    assert verdicts.count("NOT TESTABLE") == 4
    assert "INCONCLUSIVE" not in verdicts
    assert all(claim.said for claim in found.values())


def test_nothing_of_cpp_is_decided_where_it_is_not_built() -> None:
    """Without C++ its claims are not decided, and the line has the command that builds it."""
    about = re.compile("has just started|same client|fewer|one alone|CPU clock|registers")
    found = [claim for text, claim in card(scale=ALONE).items() if about.search(text)]
    assert {claim.verdict for claim in found} == {"NOT TESTABLE"}
    assert all("make peers" in claim.said for claim in found)


def test_before_its_look_a_sweep_decides_nothing() -> None:
    """Nine blocks of ten."""
    assert {claim.verdict for claim in card(number=9).values()} == {"NOT TESTABLE", "INCONCLUSIVE"}


@pytest.mark.parametrize(
    ("first_us", "connect_us", "verdict"),
    [(500.0, 1500.0, "CONTRADICTED"), (60.0, 40.0, "CONFIRMED"), (30.0, 30.0, "CONTRADICTED")],
)
def test_one_call_of_a_fresh_client(first_us: float, connect_us: float, verdict: str) -> None:
    """The first call is the latency if it takes as long as later calls, with connecting in it: 100 µs."""
    claim = the("has just started", first_us=first_us, connect_us=connect_us)
    assert claim.verdict == verdict


def test_a_part_of_the_cold_runs_decides_nothing() -> None:
    """Cold runs that were not all measured decide nothing."""
    found = replace(seen(), runs=(replace(cold_runs(seen()), is_whole=False),))
    (claim,) = (each for each in claims(found) if "has just started" in each.text)
    assert claim.verdict == "INCONCLUSIVE"


TWO = two(CPP)


@pytest.mark.parametrize(
    ("means_us", "server_less", "share_falls"),
    [
        ({TWO: 150.0}, "CONTRADICTED", "CONFIRMED"),
        ({TWO: 250.0}, "CONFIRMED", "CONFIRMED"),
        ({TWO: 100.0}, "CONTRADICTED", "CONTRADICTED"),
        ({TWO: 80.0}, "CONTRADICTED", "CONTRADICTED"),
    ],
)
def test_a_second_client(means_us: Mapping[Setting, float], server_less: str, share_falls: str) -> None:
    """The server answers less where a call takes over twice as long; one's share falls where it takes longer at all."""
    found = card(means_us=means_us)
    verdicts = [claim.verdict for text, claim in found.items() if "fewer messages/s" in text]
    assert verdicts == [server_less, share_falls]


def test_pythons_clients_decide_nothing_of_the_original() -> None:
    """Python's clients decide nothing about the original, whose programs are C++."""
    assert the("the server answers fewer", means_us={two(PYTHON): 900.0}).verdict == "CONTRADICTED"


@pytest.mark.parametrize(("share", "verdict"), [(0.4, "CONTRADICTED"), (1.0, "INCONCLUSIVE")])
def test_the_wall_clock_is_no_cpu_clock(share: float, verdict: str) -> None:
    """A client that computes all the while cannot tell them apart, and makes it none."""
    claim = the("CPU clock", cpu_share=share)
    assert claim.verdict == verdict


@pytest.mark.parametrize(("mean_us", "verdict"), [(200.0, "CONTRADICTED"), (1000.0, "INCONCLUSIVE")])
def test_the_servers_kind_is_not_the_calls_kind(mean_us: float, verdict: str) -> None:
    """Shown where ten calls at once, of the synchronous server, raise the rate: 200 µs each are 20 µs a reply."""
    claim = the("registers a synchronous service", means_us={asynchronous(CPP, 10): mean_us})
    assert claim.verdict == verdict


def test_its_two_numbers_contradict_each_other() -> None:
    """The document's two numbers contradict each other by a law that holds in our data, and stand beside it."""
    claim = the("same client, one call at a time")
    assert claim.verdict == "CONTRADICTED"
    assert "3.6 to 7.2" in claim.said
    assert "0.28 ms" in claim.said
