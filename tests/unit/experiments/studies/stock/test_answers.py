"""The four answers: each verdict has its words and no other's, and what is not decided says why and what would."""

import re
from itertools import product

import pytest

from experiments.design.arms import Arm
from experiments.judge.verdicts import Judgement
from experiments.show.content import Answer, Seen
from experiments.studies.stock import sweeps
from experiments.studies.stock.answers import answers
from tests.unit.experiments.studies.stock.judgements import (
    MEAN_US,
    SCALE,
    Planted,
    judgement,
    seen,
    stage_summary,
)

GRPC, SOCKETS = Arm(sweeps.GRPC), Arm(sweeps.SOCKETS)
EQUAL = Arm(sweeps.GRPC.but(executor="static-pool"))
TRADE = Arm(sweeps.GRPC.but(mix="trade"))
AT_POOL, PAST_POOL = (Arm(sweeps.SOCKETS.but(workers=5, clients=clients)) for clients in (5, 10))
GRPC_5, SOCKETS_5 = (Arm(base.but(clients=5)) for base in (sweeps.GRPC, sweeps.SOCKETS))
SAME = {Arm(sweeps.GRPC, 1): MEAN_US}

RATIO_WORDS = {"faster": "of the time of", "slower": "times as long", "equal": "the same time", "open": "Undecided"}

WORDS_MAX = 26

GROWTH_WORDS = ("longer", "less than 5 times", "more than 5 times", "in proportion", "the same", "less time")


def of(planted: Planted, blocks: int = 10) -> tuple[Answer, ...]:
    """The answers to the four questions."""
    return answers(seen(sweeps.stock, blocks, planted))


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (0.3, "Sockets answer a Lookup in 0.30 of gRPC's time, both servers as started"),
        (1.3, "Sockets take 1.30 times as long as gRPC for a Lookup, both servers as started"),
        (1.0, "Sockets and gRPC, as started, answer a Lookup in the same time to within 5 %"),
    ],
)
def test_question_1_first_says_how_the_servers_compare_as_started(ratio: float, said: str) -> None:
    """FASTER, SLOWER and EQUIVALENT have a sentence each, and the others' are not said."""
    times = {SOCKETS: ratio * MEAN_US, Arm(sweeps.SOCKETS, 1): ratio * MEAN_US, EQUAL: MEAN_US}
    first = of(Planted(times))[0]
    assert first.sentence.startswith(said)
    openings = ("Sockets answer", "Sockets take", "Sockets and gRPC", "Undecided")
    assert sum(opening in first.sentence for opening in openings) == 1
    assert first.to_decide is None


def test_question_1_is_answered_again_for_equal_executors() -> None:
    """As started sockets are sooner, with the static pool on both they are later: both are said, and the executor."""
    times = {SOCKETS: 400.0, Arm(sweeps.SOCKETS, 1): 400.0, EQUAL: 200.0}
    first = of(Planted(times))[0]
    assert "Sockets answer a Lookup in 0.80 of gRPC's time" in first.sentence
    assert "With the static pool on both, where the transport alone differs, sockets take 2.00 times" in first.sentence
    assert first.details[0].startswith(
        "The executor alone: On gRPC with 1 client a Lookup on the static pool takes 0.40"
    )
    assert [each.comparison.name for each in first.deciding] == ["as_started", "equal_executors"]


@pytest.mark.parametrize(
    ("ratio", "scatter", "word"),
    [(0.8, 0.002, "faster"), (1.2, 0.002, "slower"), (1.0, 0.002, "equal"), (1.0, 0.1, "open")],
)
def test_question_3_has_the_words_of_its_verdict_alone(ratio: float, scatter: float, word: str) -> None:
    """FASTER, SLOWER, EQUIVALENT and INCONCLUSIVE are told apart."""
    third = of(Planted({TRADE: ratio * MEAN_US}, scatter))[2]
    assert [name for name, words in RATIO_WORDS.items() if words in third.sentence] == [word]


@pytest.mark.parametrize(("ratio", "said"), [(1.03, "longer by under 5 %"), (0.97, "less by under 5 %")])
def test_a_small_difference_is_called_small(ratio: float, said: str) -> None:
    """A difference that lies within 5 % is said to."""
    third = of(Planted({TRADE: ratio * MEAN_US}))[2]
    assert said in third.sentence


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (3.0, {"longer", "less than 5 times"}),
        (5.0, {"in proportion"}),
        (8.0, {"more than 5 times"}),
        (1.0, {"the same"}),
        (0.5, {"less time"}),
    ],
)
def test_question_2_has_the_words_of_both_its_verdicts(times: float, said: set[str]) -> None:
    """GROWS, FLAT and FALLS against 1; SUBLINEAR, PROPORTIONAL and SUPERLINEAR against the clients."""
    second = of(Planted({GRPC_5: times * MEAN_US, SOCKETS_5: times * MEAN_US}))[1]
    for sentence, name in zip(second.sentence.split("On ")[1:], ("gRPC", "sockets"), strict=True):
        assert sentence.startswith(name)
        assert {words for words in GROWTH_WORDS if words in sentence} == said


def test_question_2_says_what_littles_law_makes_of_it() -> None:
    """Growth in a closed loop is no finding on the server: so is it said, and that more was answered where it was."""
    second = of(Planted({GRPC_5: 3 * MEAN_US, SOCKETS_5: 5 * MEAN_US}))[1]
    assert any("Little's law" in each for each in second.not_concluded)
    assert [each for each in second.details if "times as many requests" in each] == [
        "So on gRPC about 1.66 times as many requests a second are answered: fewer clients leave the server idle "
        "between their requests."
    ]


@pytest.mark.parametrize(
    ("times", "said"), [(1.5, "less than 2 times"), (2.0, "in proportion"), (3.0, "more than 2 times")]
)
def test_question_4_compares_growth_with_the_clients(times: float, said: str) -> None:
    """SUBLINEAR, PROPORTIONAL and SUPERLINEAR, and the means in milliseconds."""
    last = of(Planted({AT_POOL: 1000.0, PAST_POOL: times * 1000}))[3]
    assert said in last.sentence
    phrases = ("less than", "in proportion", "more than", "Undecided")
    assert sum(each in last.sentence for each in phrases) == 1
    assert "ms with 5 clients and" in last.sentence
    assert "longer" not in last.sentence  # no verdict of it is against 1


@pytest.mark.slow
def test_an_undecided_answer_says_how_many_blocks_would_decide() -> None:
    """With a command that runs so many; beyond 40, that the machine is too noisy."""
    some = of(Planted({TRADE: 1.06 * MEAN_US}, scatter=0.05))[2]
    assert "10 blocks are too few; about" in some.sentence
    assert some.to_decide is not None
    assert some.to_decide.startswith("python -m experiments run stock --blocks ")
    assert 10 < int(some.to_decide.split()[-1]) <= 40
    many = of(Planted({TRADE: MEAN_US}, scatter=0.2))[2]
    assert many.to_decide is not None
    assert many.to_decide.startswith("This machine is too noisy now")


def test_an_unfinished_sweep_has_numbers_and_no_verdict_words() -> None:
    """Three blocks of ten: the ratio so far, and the command that goes on."""
    times = {SOCKETS: 150.0, EQUAL: 450.0, TRADE: 600.0, GRPC_5: 1500.0, SOCKETS_5: 300.0, PAST_POOL: 900.0}
    for answer in of(Planted(times), blocks=3):
        assert "so far. No verdict yet: 3 of 10 blocks." in answer.sentence
        forbidden = (*RATIO_WORDS.values(), *GROWTH_WORDS, "less than", "more than", "Sockets answer")
        assert not [words for words in forbidden if words in answer.sentence]
        assert answer.to_decide == "python -m experiments run stock --out FOLDER --resume"


def test_without_a_block_nothing_is_known() -> None:
    """Each answer says so, and the command that measures."""
    for answer in of(Planted(), blocks=0):
        assert answer.sentence.startswith("Not known: ")
        assert answer.deciding == ()
        assert answer.to_decide == "python -m experiments run stock"


def test_a_gate_that_leaves_out_every_block_is_named() -> None:
    """Errors in one arm leave its comparisons unknown, and touch no other."""
    first, _, third, last = of(Planted(errors={TRADE: 100}))
    assert "Not known" in third.sentence
    assert "Gate 4 left out its blocks" in third.sentence
    assert third.to_decide is not None
    assert "gate" in third.to_decide
    assert "Not known" not in first.sentence + last.sentence


def test_halves_that_contradict_each_other_keep_the_verdict_back() -> None:
    """Gate 5: undecided, with what it found in place of a number of blocks."""
    third = of(Planted({TRADE: 0.5 * MEAN_US}, later={TRADE: 4.0}))[2]
    assert third.sentence.startswith("Undecided")
    assert "Gate 5 keeps the verdict back" in third.sentence
    assert "would decide" not in third.sentence
    assert third.to_decide == "python -m experiments run stock (anew: more blocks do not mend what a gate found)"


def test_an_effect_smaller_than_equal_arms_showed_is_undecided() -> None:
    """Gate 20: gRPC's A/A pair differs by 20 %, so a Trade that takes 10 % longer is not said to."""
    third = of(Planted({TRADE: 1.1 * MEAN_US, Arm(sweeps.GRPC, 1): 1.2 * MEAN_US}))[2]
    assert third.sentence.startswith("Undecided")
    assert "Gate 20 keeps the verdict back" in third.sentence


def test_with_one_number_of_clients_growth_is_not_known() -> None:
    """Such a sweep has no comparison for question 2, and answers the others."""
    scale = type(SCALE)(rounds=2, looks=(10, 14), clients=(1,))
    main = judgement(sweeps.stock(scale), 10, Planted())
    second = answers(Seen(main, {}))[1]
    assert "This sweep has not the numbers of clients that it needs." in second.sentence
    assert second.to_decide == "python -m experiments run stock (anew: more blocks do not mend what a gate found)"


def test_whole_means_that_disagree_are_given_too() -> None:
    """Where pauses set whole means apart from the typical ratio, the brackets have both."""
    third = of(Planted({TRADE: 1.2 * MEAN_US}, pauses={TRADE: 50.0}))[2]
    assert "; of whole means " in third.sentence


def test_a_load_side_at_its_limit_is_named() -> None:
    """Over 80 % of its core the latency is that of client and server together."""
    details = of(Planted(client_share=0.9))[1].details
    assert sum("latency of client and server together" in each for each in details) == 4


def test_the_lock_is_told_where_it_was_measured() -> None:
    """With the part behind the main one its waits; without, the command."""
    assert "run lock_waits" in of(Planted())[2].details[0]
    sweep = sweeps.lock_waits(SCALE)
    waits = judgement(sweep, 3, Planted(stages={arm: {"lookup": stage_summary(0.5)} for arm in sweep.arms}))
    main: Judgement = judgement(sweeps.stock(SCALE), 10, Planted())
    details = answers(Seen(main, {"lock_waits": waits}))[2].details
    assert details[0].startswith("A Lookup waits for the mutex on sockets with 5 clients: 0.500 µs")


@pytest.mark.slow
def test_no_sentence_is_long() -> None:
    """The first of every decided answer has at most 26 words, its interval aside."""
    levels = (0.5, 1.0, 1.03, 1.5)
    for sockets, grown in product(levels, (1.0, 3.0, 5.0, 9.0)):
        times = {SOCKETS: sockets * MEAN_US, TRADE: sockets * MEAN_US, GRPC_5: grown * MEAN_US, PAST_POOL: grown * 200}
        for answer in of(Planted(times | {Arm(sweeps.SOCKETS, 1): sockets * MEAN_US})):
            first = re.sub(r"\([^)]*\)", "", answer.sentence.split(". ")[0])
            assert len(first.split()) <= WORDS_MAX, first
