"""Sentences: every kind of comparison with every verdict that it can have."""

import re
from dataclasses import replace

import pytest

from experiments.judge.gates import Refusal
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judged, Ruling, Verdict
from experiments.show.sentences import (
    MEANINGS,
    listed,
    ratio_sentence,
    state_sentences,
    take,
    undecided_words,
    verdict_words,
)
from tests.unit.experiments.blocks import World
from tests.unit.experiments.show.judgements import SAME, judged, mean_us

WORDS_MAX = 20

NOISY = World(mean_us, block_noise=0.12, slice_noise=0.3)

Interval = tuple[float, float, float]


ALIKE = "take the same time, to within 5 %: ratio"
OPEN = "Whether sockets or gRPC takes less time is not decided: ratio"
NEEDED = "About 24 blocks in all would decide it with 80 % power."
SMALL = "but by less than 5 %."
GROWN = "5 clients have 2.70 times the latency of 1 client"
UNKNOWN = "Whether latency grows as the number of clients does, 5 times, is not decided."
TWINS = "Two equal servers (sockets)"


def made(name: str, verdicts: tuple[Verdict, ...], ratio: Interval, needed: int | None = 24) -> Judged:
    """A comparison of the sweep, as if it had been judged so."""
    one = judged().judged[name]
    estimate = Estimate(*ratio, 10)
    rulings = tuple(
        Ruling(ruling.against, 0.002, verdict, needed if verdict is Verdict.INCONCLUSIVE else None)
        for ruling, verdict in zip(one.rulings, verdicts, strict=True)
    )
    return replace(one, typical=estimate, whole=estimate, rulings=rulings, refusals=())


@pytest.mark.parametrize(
    ("name", "verdicts", "ratio", "expected"),
    [
        ("transport", "FASTER", "0.29 0.28 0.30", "Sockets take 0.290 of the time of gRPC (0.280 to 0.300)."),
        ("transport", "SLOWER", "1.29 1.2 1.4", "Sockets take 1.29 times the time of gRPC (1.20 to 1.40)."),
        ("transport", "EQUIVALENT", "1.01 0.99 1.02", f"Sockets and gRPC {ALIKE} 1.01 (0.99 to 1.02)."),
        ("transport", "INCONCLUSIVE", "0.98 0.9 1.07", f"{OPEN} 0.980 (0.900 to 1.070). {NEEDED}"),
        ("transport", "FASTER", "0.997 0.996 0.998", f"…(0.996 to 0.998). That is less time, {SMALL}"),
        ("cpu", "LESS", "0.5 0.49 0.51", "Sockets take 0.500 of the processor time of gRPC (0.490 to 0.510)."),
        ("cpu", "LESS", "0.997 0.996 0.998", f"… That is less processor time, {SMALL}"),
        ("growth grpc", "GROWS SUBLINEAR", "2.7 2.6 2.8", f"{GROWN} (2.60 to 2.80): less than 5 times."),
        ("growth grpc", "GROWS PROPORTIONAL", "2.7 2.6 2.8", f"{GROWN} (2.60 to 2.80): 5 times, to within 5 %."),
        ("growth grpc", "GROWS SUPERLINEAR", "2.7 2.6 2.8", f"{GROWN} (2.60 to 2.80): more than 5 times."),
        ("growth grpc", "GROWS INCONCLUSIVE", "2.7 2.6 2.8", f"…. {UNKNOWN} {NEEDED}"),
        ("growth grpc", "FLAT SUBLINEAR", "2.7 2.6 2.8", "…Latency is the same with 5 clients as with 1 client, to wi"),
        ("growth grpc", "INCONCLUSIVE INCONCLUSIVE", "2.7 2.6 2.8", "…Whether latency differs between 1 client and 5 "),
        ("growth grpc", "GROWS SUBLINEAR", "4.85 4.8 4.9", "…: less than 5 times, by under 5 %."),
        ("growth grpc", "GROWS SUBLINEAR", "1.02 1.01 1.03", f"… That is more time, {SMALL}"),
        ("per client", "SUPERLINEAR", "2.7 2.6 2.8", f"{GROWN} (2.60 to 2.80): more than 5 times."),
        (SAME.name, "EQUIVALENT", "1 0.97 1.03", f"Two equal servers (sockets) {ALIKE} 1.00 (0.97 to 1.03)."),
        (SAME.name, "INCONCLUSIVE", "1 0.97 1.03", f"{TWINS} show no difference: ratio 1.00 (0.97 to 1.03)."),
        (SAME.name, "FASTER", "1 0.97 1.03", "… show a difference, which is an error: ratio 1.00 (0.97 to 1.03)."),
    ],
)
def test_every_verdict_has_a_sentence(name: str, verdicts: str, ratio: str, expected: str) -> None:
    """The verdict determines the sentence, and the ratio is inserted. Here ``…`` is before a part of a sentence."""
    value, low, high = map(float, ratio.split())
    one = made(name, tuple(Verdict[each] for each in verdicts.split()), (value, low, high))
    labels = ("sockets", "gRPC") if name in ("transport", "cpu", SAME.name) else ("5 clients", "1 client")
    said = ratio_sentence(one, *labels)
    assert expected[1:] in said if expected[0] == "…" else said == expected


def test_a_small_difference_has_words() -> None:
    """Each verdict on a small difference says so."""
    assert verdict_words(made("transport", (Verdict.FASTER,), (0.997, 0.996, 0.998))) == "FASTER, by less than 5 %"
    for ratio, words in (
        ((4.85, 4.8, 4.9), "GROWS, SUBLINEAR, by less than 5 %"),
        ((1.02, 1.01, 1.03), "GROWS, by less than 5 %, SUBLINEAR"),
    ):
        assert verdict_words(made("growth grpc", (Verdict.GROWS, Verdict.SUBLINEAR), ratio)) == words


def test_a_load_at_its_limit_for_every_headline_leaves_no_verdict() -> None:
    """If the load is the limit of every headline comparison, the state says so, and that no comparison is decided."""
    every = " ".join(state_sentences(judged(10, World(mean_us, client_share=lambda _: 0.9))))
    assert "3 headline comparisons have no verdict on the server." in every
    assert "is decided" not in every, "there is no other headline comparison"


def test_what_a_gate_keeps_back_names_the_gate() -> None:
    """A verdict that a gate keeps back names the gate, and promises nothing of more blocks."""
    one = replace(
        made("transport", (Verdict.INCONCLUSIVE,), (0.3, 0.28, 0.32)), refusals=(Refusal(5, "one half says no"),)
    )
    assert ratio_sentence(one, "sockets", "gRPC").endswith("Gate 5 refuses a verdict: one half says no.")
    assert undecided_words(one) == "gate 5"


def test_unknown_blocks_are_said_to_be_unknown() -> None:
    """Over a thousand blocks are called unknown."""
    one = made("transport", (Verdict.INCONCLUSIVE,), (1.0, 0.5, 2.0), needed=None)
    assert "unknown, or over 1,000" in ratio_sentence(one, "sockets", "gRPC")
    assert undecided_words(one) == "over 1,000 blocks, or unknown"


def test_whole_means_that_disagree_are_said_too() -> None:
    """A second sentence has the ratio of whole means, if the two intervals do not overlap."""
    one = replace(made("transport", (Verdict.FASTER,), (0.3, 0.29, 0.31)), whole=Estimate(0.4, 0.38, 0.42, 10))
    assert "The ratio of the plain means, which include long pauses, is 0.400 (0.380 to 0.420)." in ratio_sentence(
        one, "a", "b"
    )


def test_without_verdicts_the_ratio_is_no_verdict() -> None:
    """The sentence of an unfinished sweep begins with "No verdict", and then has the number."""
    one = judged(3).judged["transport"]
    assert ratio_sentence(one, "sockets", "gRPC").startswith("No verdict. Sockets take 0.")
    assert ": no verdict, 0." in listed(one)
    assert verdict_words(one) == "no verdict"


@pytest.mark.parametrize("blocks", [1, 2])
def test_of_too_few_blocks_there_is_no_interval(blocks: int) -> None:
    """Two blocks have no interval in a sentence. Three blocks have one."""
    few, enough = judged(blocks).judged["transport"], judged(3).judged["transport"]
    for said in (ratio_sentence, lambda one, *_: listed(one)):
        assert "(too few blocks for an interval)" in said(few, "sockets", "gRPC")
        assert "interval" not in said(enough, "sockets", "gRPC")


@pytest.mark.parametrize("world", [World(mean_us), NOISY], ids=["quiet", "noisy"])
@pytest.mark.parametrize("number", [1, 3, 10])
def test_sentences_are_short(number: int, world: World) -> None:
    """Sentences have at most 20 words, for any result. An interval in brackets does not count."""
    for one in judged(number, world).judged.values():
        for sentence in re.split(r"(?<=[.:]) ", re.sub(r" \([^)]*\)", "", ratio_sentence(one, "sockets", "gRPC"))):
            assert len(sentence.split()) <= WORDS_MAX, sentence


def test_every_verdict_has_a_meaning() -> None:
    """Every verdict has a meaning in short, plain words."""
    assert MEANINGS.keys() == set(Verdict)


def test_a_sweep_says_how_far_it_is() -> None:
    """A sweep's state is judged, undecided, unfinished, or too small to decide."""
    assert " ".join(state_sentences(judged())) == (
        "This sweep was judged at 10 blocks. Its plan allows verdicts at 10 or 14 blocks. "
        "Every headline comparison is decided."
    )
    assert "headline comparisons are undecided." in " ".join(state_sentences(judged(10, World(mean_us, 0.5, 0.5))))
    assert "not finished: it has 3 of 10 blocks. There are no verdicts." in " ".join(state_sentences(judged(3)))
    assert "it has 12 of 14 blocks" in " ".join(state_sentences(judged(12)))
    assert "It decides nothing." in " ".join(state_sentences(judged(2, looks=(2,))))


@pytest.mark.parametrize(
    ("label", "verb"),
    [
        ("sockets", "take"),
        ("gRPC", "takes"),
        ("5 clients", "take"),
        ("gRPC with 5 clients", "takes"),
        ("a connection per request", "takes"),
        ("sockets workers=8", "take"),
        ("one process", "takes"),
        ("on sockets with 5 clients, a Lookup", "takes"),
    ],
)
def test_the_verb_agrees_with_its_subject(label: str, verb: str) -> None:
    """The verb agrees with the head of the label."""
    assert take(label) == verb
