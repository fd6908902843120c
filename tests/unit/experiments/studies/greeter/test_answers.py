"""The five answers, the tables and the figures have the numbers of both languages, or name the missing language."""

import re
from pathlib import Path

import pytest

from experiments.show.content import Seen, content
from experiments.studies.greeter import GREETER, figures
from experiments.studies.greeter.claims import answers
from experiments.studies.greeter.figures import sections
from tests.unit.experiments.studies.greeter.judgements import ALONE, CONNECT_US, FIRST_US, seen


def test_the_answers_have_the_planted_numbers() -> None:
    """The answers have the planted numbers, in order."""
    trip, throughput, clocks, style, language = (answer.sentence for answer in answers(seen()))
    assert "In C++ a call takes 0.101 ms" in trip
    assert "The first call of a fresh client takes 0.503 ms" in trip
    assert "In C++ the server answers 9,998/s" in throughput
    assert "With two, each client gets 6,6" in throughput
    assert ": less than 2 times." in throughput
    assert "a reply takes 100 µs" in clocks
    assert "It takes 40.0 µs" in clocks
    assert re.search(r"10 asynchronous calls at once in C\+\+ take 0\.(200|199)\d* of the time per reply of one", style)
    assert "An asynchronous call in Python takes 1.300 times the time of a synchronous one" in style
    assert "A call with both ends in C++ takes 0.333" in language


@pytest.mark.slow
def test_every_answer_has_a_figure_that_is_drawn() -> None:
    """Every answer has a figure that is drawn. Every figure is on the study's page."""
    found = content(GREETER.parts["greeter"], seen())
    for answer in found.answers:
        assert answer.figure is not None
        assert found.picture(answer.figure).alternative
        assert answer.to_decide is None
    assert {picture.name for picture in found.pictures} >= {"first_call", "throughput", "clocks", "answers", "same"}
    page = Path(figures.__file__).with_name("README.md").read_text(encoding="utf-8")
    for picture in found.pictures:
        picture.draw()
    assert all(f"| figure `{picture.name}` |" in page for picture in figures.pictures(seen()))


def test_the_originals_numbers_stand_beside_ours() -> None:
    """Every number of the document stands beside ours."""
    table = sections(seen())[0].text
    for words in ("1 to 2 ms", "0.28 ms", "about 3,600/s", "about 3,300/s (3,297.24/s on the terminal)", "not given"):
        assert words in table
    assert f"{(FIRST_US + CONNECT_US) / 1000 * 1.0055:.2f}"[:3] in table


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 10])
def test_python_alone_is_answered_alone(number: int) -> None:
    """Python alone is answered alone, without a cold run too. Before the first block every figure is drawn."""
    for each in (Seen(seen(number=number, scale=ALONE).main), seen(number=number, scale=ALONE)):
        found = content(GREETER.parts["greeter"], each)
        assert not any("In C++ the server" in answer.sentence for answer in found.answers)
        assert "make peers" in found.answers[-1].sentence
        for picture in found.pictures if number == 0 else ():
            picture.draw()


def test_a_full_clients_core_is_marked() -> None:
    """A full core of the clients is marked, with the mark's meaning."""
    table = sections(seen(cpu_share=0.9))[2].text
    assert "C++, 1 client †" in table
    assert "over 80 % of its core" in table
