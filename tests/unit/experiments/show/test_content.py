"""A part without counted results still has an answer, with a figure."""

from dataclasses import dataclass, replace

from experiments.judge.verdicts import judge
from experiments.show.content import NO_VALUE, Answer, Seen, content
from tests.unit.experiments.show.judgements import FakePart, judged, sweep


@dataclass(frozen=True)
class Silent(FakePart):
    """A part whose answer is made of its comparisons' sentences; empty without any."""

    def answers(self, _: Seen) -> tuple[Answer, ...]:
        return (Answer("Is it so?", "", ()),)


def test_an_answer_without_a_value_says_so_and_has_a_figure() -> None:
    """Every block was refused: the reader is told, in words and in the picture."""
    shown = content(Silent(), Seen(judge(sweep(), ())))
    (answer,) = shown.answers
    assert answer.sentence == NO_VALUE
    assert answer.figure == "question_1"
    assert "no" in shown.picture("question_1").alternative.lower()


def test_an_answer_with_a_figure_of_its_own_says_that_it_has_no_value() -> None:
    """An empty answer that names a figure keeps the figure, and says so in words."""

    class Drawn(Silent):
        def answers(self, seen: Seen) -> tuple[Answer, ...]:
            return tuple(replace(each, figure="latency") for each in super().answers(seen))

    (answer,) = content(Drawn(), Seen(judge(sweep(), ()))).answers
    assert (answer.sentence, answer.figure) == (NO_VALUE, "latency")


@dataclass(frozen=True)
class Twofold(FakePart):
    """A part whose answer has a comparison of times and one of processor time."""

    def answers(self, seen: Seen) -> tuple[Answer, ...]:
        time = next(iter(seen.main.judged.values()))
        processor = replace(time, comparison=replace(time.comparison, title="the processor's", measure="cpu"))
        return (Answer("Is it so?", "It is.", (time, processor)),)


def test_a_figure_has_one_measure() -> None:
    """A figure has one measure. The first measure's figure is the answer's, and the second measure has one of its
    own."""
    shown = content(Twofold(), Seen(judged()))
    assert [answer.figure for answer in shown.answers] == ["question_1"]
    assert "the processor's" not in shown.picture("question_1").alternative
    assert shown.picture("question_1_cpu").title == "Processor time of a request, to the question: Is it so?"
    assert "the processor's" in shown.picture("question_1_cpu").alternative


def test_a_figure_has_the_title_that_its_answer_gives() -> None:
    """The question stands over the figure of a measure without a title."""

    class Titled(Twofold):
        def answers(self, seen: Seen) -> tuple[Answer, ...]:
            return tuple(replace(each, titles={"cpu": "Processor time"}) for each in super().answers(seen))

    shown = content(Titled(), Seen(judged()))
    assert shown.picture("question_1").title == "Is it so?"
    assert shown.picture("question_1_cpu").title == "Processor time"
