"""Comparing two servers: what its words mean, what it says, and what it exits with."""

import json
from pathlib import Path

import pytest

from experiments.compare.outcome import BEYOND_EXIT, UNDECIDED_EXIT, exit_code, outcome, parsed_limit, save, sentence
from experiments.compare.sweep import LOOKS, side, sweep
from experiments.design.sweep import Sweep, Windows
from experiments.judge.verdicts import Judgement, judge
from experiments.results import environment
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import block

A, B = side("sockets", "grpc", {}), side("sockets workers=4", "grpc", {})


def judged(ratio: float, number: int = 10, noise: float = 0.01, of: Sweep | None = None) -> Judgement:
    """So many blocks in which B takes so much of A's time."""
    asked = of or sweep(A, B, LOOKS, 1)
    means = {arm: 100.0 * (ratio if arm.setting == B else 1.0) for arm in asked.arms}
    return judge(asked, [block(asked, means, each, noise) for each in range(1, number + 1)])


@pytest.mark.parametrize(
    ("words", "service", "transport"),
    [
        ("grpc workers=4", "stock", "grpc"),
        ("workers=4 transport=sockets", "stock", "sockets"),
        ("127.0.0.1:5001", "127.0.0.1:5001", "sockets"),
        ("./server --port 0", "./server --port 0", "sockets"),
    ],
)
def test_a_side_is_a_setting_an_address_or_a_command(words: str, service: str, transport: str) -> None:
    """By how it begins; what is no setting speaks the transport that is given."""
    found = side(words, "sockets", {"clients": 3})
    assert (found["service"], found["transport"], found["clients"]) == (service, transport, 3)


@pytest.mark.parametrize("words", ["", "  ", "sockets workers=0", "sockets no_factor=1"])
def test_other_words_are_refused(words: str) -> None:
    """In a line that says what is allowed."""
    with pytest.raises(UsageError):
        side(words, "grpc", {})


def test_one_process_is_not_compared_with_itself() -> None:
    """An address twice; two servers of one setting are an A/A pair."""
    address = side("127.0.0.1:5001", "grpc", {})
    with pytest.raises(UsageError):
        sweep(address, address, LOOKS, 1)
    assert sweep(A, A, LOOKS, 1).comparisons[0].kind == "same"


def test_loads_that_slices_cannot_serve_take_windows() -> None:
    """By themselves."""
    open_loop = [each.but(rate_hz=100.0) for each in (A, B)]
    assert isinstance(sweep(open_loop[0], open_loop[1], LOOKS, 1).turns, Windows)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (0.5, "B answers in 0.50"),
        (1.5, "B takes 1.50"),
        (1.0, "in the same time as A, to within 5 %"),
        (1.03, "slower by less than 5 %"),
    ],
)
def test_the_sentence_has_the_verdicts_words(ratio: float, said: str) -> None:
    """And its number."""
    assert said in sentence(judged(ratio))


def test_what_is_undecided_says_what_decides_it() -> None:
    """With 80 % power, and never as if it were decided."""
    told = sentence(judged(1.05, noise=0.8))
    assert told.startswith("Undecided: B ")
    assert "80 % power" in told


def test_between_looks_there_is_no_verdict() -> None:
    """Ctrl-C leaves numbers, in words and in JSON."""
    stopped = judged(0.5, number=7)
    assert sentence(stopped).startswith("No verdict: 7 of at least 10 blocks.")
    assert outcome(stopped, environment.look()).verdict is None


@pytest.mark.parametrize(
    ("ratio", "limit", "code"),
    [
        (1.2, "slower>5%", BEYOND_EXIT),
        (1.02, "slower>5%", 0),
        (0.5, "slower>5%", 0),
        (1.05, "slower>5%", UNDECIDED_EXIT),
        (0.5, "faster>20%", BEYOND_EXIT),
        (0.9, "faster > 20 %", 0),
    ],
)
def test_the_exit_code_of_a_limit(ratio: float, limit: str, code: int) -> None:
    """4 where the whole interval is beyond it, 5 where it lies inside, 0 else."""
    assert exit_code(judged(ratio, number=20), parsed_limit(limit)) == code
    assert exit_code(judged(ratio, number=20), None) == 0


@pytest.mark.parametrize("text", ["", "slower", "slower>5", "slower>-5%", "faster>100%", "p99>5%"])
def test_another_limit_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(UsageError, match="slower>5%"):
        parsed_limit(text)


def test_a_limit_inside_the_interval_asks_for_more_blocks() -> None:
    """Though the verdict is there: the limit is a part of the sweep."""
    asked = sweep(A, B, LOOKS, 1, limit=1.2)
    assert judged(1.2, of=asked).decided is False
    assert judged(1.5, of=asked).decided is True


def test_json_has_the_numbers_of_both_sides(tmp_path: Path) -> None:
    """And no word where there is no verdict."""
    save(outcome(judged(0.5), environment.look()), tmp_path / "o.json")
    found = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))
    assert found["verdict"] == "FASTER"
    assert found["low"] < found["ratio"] < found["high"] < 1
    assert found["a"]["mean_us"] == pytest.approx(100, rel=0.05)
    assert found["environment"]["cores"] >= 1
