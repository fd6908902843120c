"""The replication card: the data alone decide each claim of the document. Without C++ there are no claims on C++."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from experiments.judge.stats import ratio_interval
from experiments.judge.verdicts import Verdict
from experiments.show.content import Seen, content
from experiments.studies.greeter import GREETER
from experiments.studies.greeter.claims import claims
from experiments.studies.greeter.design import TWO, asynchronous, cold, greeter
from experiments.studies.greeter.figures import cold_runs
from tests.unit.experiments.studies.greeter.judgements import ALONE, CPP, PYTHON, SCALE, seen

FIRST, BOTH, SERVER_LESS, SHARE_FALLS = (
    "has just started",
    "same client",
    "the server answers fewer",
    "one client alone",
)
CLOCK, KIND = "CPU clock", "registers a synchronous service"
ON_ITS_MACHINE = (
    "The round trip",
    "With one client, throughput",
    "With two clients, throughput",
    "The calls are synchronous",
)

EVERY = (FIRST, BOTH, SERVER_LESS, SHARE_FALLS, CLOCK, KIND)
"""Claims on C++ that a measurement decides, each by a part of its text."""


def two_clients(mean_us: float) -> Seen:
    """The part with this mean of a call of two clients in C++. Python's clients decide nothing about the original."""
    return seen((TWO[CPP], mean_us), (TWO[PYTHON], 900.0))


def in_part() -> Seen:
    """The part, whose cold runs were not all measured."""
    return replace(seen(), runs=(replace(cold_runs(seen()), is_whole=False),))


def with_one_block() -> Seen:
    """The part, with one block for two clients: the interval of one block is unbounded, and so is that of the rate."""
    found = seen()
    one = found.main.judged["clients_cpp"]
    open_ = tuple(replace(each, verdict=Verdict.INCONCLUSIVE) for each in one.rulings)
    judged = {**found.main.judged, "clients_cpp": replace(one, typical=ratio_interval([0.7], 0.95), rulings=open_)}
    return replace(found, main=replace(found.main, judged=judged))


CASES: dict[str, tuple[Callable[[], Seen], dict[str, Sequence[str]]]] = {
    "two clients take 1.5 times as long": (
        seen,
        {
            "CONTRADICTED": (FIRST, BOTH, SERVER_LESS, CLOCK, KIND),
            "CONFIRMED": [SHARE_FALLS],
            "NOT TESTABLE": ON_ITS_MACHINE,
        },
    ),
    "connecting and the first call take as long as another call": (
        lambda: seen(first_us=60.0, connect_us=40.0),
        {"CONFIRMED": [FIRST]},
    ),
    "they take less": (lambda: seen(first_us=30.0, connect_us=30.0), {"CONTRADICTED": [FIRST]}),
    "some cold runs are missing": (in_part, {"INCONCLUSIVE": [FIRST]}),
    "two clients take 2.5 times as long": (lambda: two_clients(250.0), {"CONFIRMED": [SERVER_LESS, SHARE_FALLS]}),
    "two clients take as long": (lambda: two_clients(100.0), {"CONTRADICTED": [SERVER_LESS, SHARE_FALLS]}),
    "two clients take less": (lambda: two_clients(80.0), {"CONTRADICTED": [SERVER_LESS, SHARE_FALLS]}),
    "gates left one block": (with_one_block, {"INCONCLUSIVE": [SERVER_LESS, SHARE_FALLS]}),
    "the client computes the whole time": (lambda: seen(cpu_share=1.0), {"INCONCLUSIVE": [CLOCK]}),
    "ten calls at once take ten times as long": (
        lambda: seen((asynchronous(CPP, 10), 1000.0)),
        {"INCONCLUSIVE": [KIND]},
    ),
    "nine blocks of ten": (lambda: seen(number=9), {"INCONCLUSIVE": EVERY}),
    "C++ is not built": (lambda: seen(scale=ALONE), {"NOT TESTABLE": EVERY}),
}
"""Planted data, and the claims with each verdict."""


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_follows_its_data(name: str) -> None:
    """Planted data give each claim its verdict."""
    made, expected = CASES[name]
    found = claims(made())
    for verdict, asked in expected.items():
        assert [[each.verdict for each in found if words in each.text] for words in asked] == [[verdict]] * len(asked)


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
