"""A part without counted results still has an answer, with a figure."""

from dataclasses import dataclass, replace

from experiments.judge.verdicts import judge
from experiments.show.content import NO_VALUE, Answer, Content, Seen, content
from tests.unit.experiments.show.judgements import FakePart, judged, sweep

EMPTY = Answer("Is it so?", "", ())


@dataclass(frozen=True)
class Asked(FakePart):
    """A part with one answer, which is empty unless given."""

    answer: Answer = EMPTY

    def answers(self, _: Seen) -> tuple[Answer, ...]:
        return (self.answer,)


def twofold(answer: Answer) -> Content:
    """Content with the answer, on a comparison of times and on a comparison of processor time."""
    time = next(iter(judged().judged.values()))
    processor = replace(time, comparison=replace(time.comparison, title="the processor's", measure="cpu"))
    return content(Asked(answer=replace(answer, sentence="It is.", deciding=(time, processor))), Seen(judged()))


def test_an_answer_without_a_value_says_so_and_has_a_figure() -> None:
    """Every block was refused: the reader is told, in words and in the picture. A figure that the answer names
    stays."""
    unknown = Seen(judge(sweep(), ()))
    shown = content(Asked(), unknown)
    (answer,) = shown.answers
    assert (answer.sentence, answer.figure) == (NO_VALUE, "question_1")
    assert "no" in shown.picture("question_1").alternative.lower()
    (answer,) = content(Asked(answer=replace(EMPTY, figure="latency")), unknown).answers
    assert (answer.sentence, answer.figure) == (NO_VALUE, "latency")


def test_a_figure_has_one_measure() -> None:
    """A figure has one measure. The first measure's figure is the answer's, and the second measure has one of its
    own, with the title that the answer gives for the measure."""
    shown = twofold(EMPTY)
    assert [answer.figure for answer in shown.answers] == ["question_1"]
    assert "the processor's" not in shown.picture("question_1").alternative
    assert shown.picture("question_1_cpu").title == "Processor time of a request, to the question: Is it so?"
    assert "the processor's" in shown.picture("question_1_cpu").alternative
    titled = twofold(replace(EMPTY, titles={"cpu": "Processor time"}))
    assert [titled.picture(name).title for name in ("question_1", "question_1_cpu")] == ["Is it so?", "Processor time"]
