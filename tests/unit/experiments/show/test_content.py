"""What a part says of results of which nothing counts: an answer stands there all the same, with a figure."""

from dataclasses import dataclass

from experiments.judge.verdicts import judge
from experiments.show.content import NO_VALUE, Answer, Seen, content
from tests.unit.experiments.show.judgements import FakePart, sweep


@dataclass(frozen=True)
class Silent(FakePart):
    """Its answer is made of its comparisons' sentences; of none, nothing."""

    def answers(self, _: Seen) -> tuple[Answer, ...]:
        return (Answer("Is it so?", "", ()),)


def test_an_answer_without_a_value_says_so_and_has_a_figure() -> None:
    """Where every block was refused, the reader is told, in words and in the picture."""
    shown = content(Silent(), Seen(judge(sweep(), ())))
    (answer,) = shown.answers
    assert answer.sentence == NO_VALUE
    assert answer.figure == "question_1"
    assert "no" in shown.picture("question_1").alternative.lower()
