"""The replication card: every claim of the document has a line, and the data alone decide it."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from experiments.design.setting import Setting
from experiments.judge.stats import ratio_interval
from experiments.judge.verdicts import Verdict
from experiments.show.content import Claim, Seen, content
from experiments.studies.greeter import GREETER
from experiments.studies.greeter.claims import claims
from experiments.studies.greeter.design import TWO, asynchronous, cold, greeter
from experiments.studies.greeter.rates import cold_runs
from tests.unit.experiments.studies.greeter.judgements import ALONE, CPP, PYTHON, SCALE, seen


@cache
def card(of: Seen) -> tuple[Claim, ...]:
    """The claims. The result is kept, since tests ask for several claims."""
    return claims(of)


def the(words: str, *means_us: tuple[Setting, float], **planted: Any) -> Claim:
    """The one claim that has these words."""
    (found,) = (claim for claim in card(seen(*means_us, **planted)) if words in claim.text)
    return found


def test_nothing_of_cpp_is_decided_where_it_is_not_built() -> None:
    """Without C++ its claims are not decided, and the line has the command that builds it."""
    about = re.compile("has just started|same client|fewer|one alone|CPU clock|registers")
    found = [claim for claim in card(seen(scale=ALONE)) if about.search(claim.text)]
    assert {claim.verdict for claim in found} == {"NOT TESTABLE"}
    assert all("make peers" in claim.said for claim in found)


def test_python_alone_is_measured_where_the_peer_is_not_built() -> None:
    """Without the C++ peer Python has the same arms as beside it, except the lean client's."""
    assert set(greeter(ALONE).arms) < set(greeter(SCALE).arms)
    assert {cell.setting["language"] for cell in cold(ALONE).cells} == {"python"}


@pytest.mark.slow
def test_python_alone_is_answered_alone() -> None:
    """Python alone is answered alone, without a cold run too. Before the first block every figure is drawn."""
    for each in (Seen(seen(scale=ALONE).main), seen(scale=ALONE), seen(number=0, scale=ALONE)):
        found = content(GREETER.parts["greeter"], each)
        assert not any("In C++ the server" in answer.sentence for answer in found.answers)
        assert "make peers" in found.answers[-1].sentence
    for picture in found.pictures:
        picture.draw()


def test_before_its_look_a_sweep_decides_nothing() -> None:
    """Nine blocks of ten decide nothing."""
    assert {claim.verdict for claim in card(seen(number=9))} == {"NOT TESTABLE", "INCONCLUSIVE"}


@pytest.mark.parametrize(
    ("first_us", "connect_us", "verdict"),
    [(500.0, 1500.0, "CONTRADICTED"), (60.0, 40.0, "CONFIRMED"), (30.0, 30.0, "CONTRADICTED")],
)
def test_one_call_of_a_fresh_client(first_us: float, connect_us: float, verdict: str) -> None:
    """The first call is the latency if it takes as long as later calls, with connecting in it: 100 µs."""
    assert the("has just started", first_us=first_us, connect_us=connect_us).verdict == verdict


def test_a_part_of_the_cold_runs_decides_nothing() -> None:
    """Cold runs that were not all measured decide nothing."""
    found = replace(seen(), runs=(replace(cold_runs(seen()), is_whole=False),))
    (claim,) = (each for each in claims(found) if "has just started" in each.text)
    assert claim.verdict == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("mean_us", "server_less", "share_falls"),
    [
        (150.0, "CONTRADICTED", "CONFIRMED"),
        (250.0, "CONFIRMED", "CONFIRMED"),
        (100.0, "CONTRADICTED", "CONTRADICTED"),
        (80.0, "CONTRADICTED", "CONTRADICTED"),
    ],
)
def test_a_second_client(mean_us: float, server_less: str, share_falls: str) -> None:
    """The server answers less where a call takes over twice as long; one's share falls where it takes longer at all.
    Python's clients decide nothing about the original, whose programs are C++."""
    found = card(seen((TWO[CPP], mean_us), (TWO[PYTHON], 900.0)))
    assert [claim.verdict for claim in found if "fewer messages/s" in claim.text] == [server_less, share_falls]


def test_one_block_that_gates_left_decides_nothing_on_a_second_client() -> None:
    """The interval of one block is unbounded, and so is that of the rate."""
    found = seen()
    one = found.main.judged["clients_cpp"]
    open_ = tuple(replace(each, verdict=Verdict.INCONCLUSIVE) for each in one.rulings)
    judged = {**found.main.judged, "clients_cpp": replace(one, typical=ratio_interval([0.7], 0.95), rulings=open_)}
    lacking = claims(replace(found, main=replace(found.main, judged=judged)))
    assert [each.verdict for each in lacking if "fewer messages/s" in each.text] == ["INCONCLUSIVE"] * 2


@pytest.mark.parametrize(("share", "verdict"), [(0.4, "CONTRADICTED"), (1.0, "INCONCLUSIVE")])
def test_the_wall_clock_is_no_cpu_clock(share: float, verdict: str) -> None:
    """A client that computes the whole time does not tell the two clocks apart: the claim is open."""
    assert the("CPU clock", cpu_share=share).verdict == verdict


@pytest.mark.parametrize(("mean_us", "verdict"), [(200.0, "CONTRADICTED"), (1000.0, "INCONCLUSIVE")])
def test_the_servers_kind_is_not_the_calls_kind(mean_us: float, verdict: str) -> None:
    """Ten calls at once raise the rate of the synchronous server: 200 µs for each call are 20 µs for each reply."""
    assert the("registers a synchronous service", (asynchronous(CPP, 10), mean_us)).verdict == verdict
