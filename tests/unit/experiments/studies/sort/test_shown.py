"""Texts and figures of the study ``sort``: numbers where they were measured, words where they were not."""

from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.judge.cold import ColdJudged
from experiments.show import content, report
from experiments.show.content import Seen
from experiments.studies import PARTS
from experiments.studies.sort import answers, design, figures
from experiments.studies.sort.answers import NO_GO, Measured
from experiments.studies.sort.design import PARAMETERS, go
from tests.unit.experiments.studies.sort.planted import CALL_US, CONNECT_US, FIRST_US, SCALE, cold_rows, judged


@pytest.mark.slow
@pytest.mark.parametrize("part", ["sort_array_len", "sort_python", "sort_python_array_len"])
def test_the_report_of_every_other_part_is_written(part: str) -> None:
    """The report of every other part is written, with a figure."""
    of = PARTS[part][1]
    text = report.markdown(content.content(of, Seen(judged(of.sweep(SCALE)))))
    assert ".svg" in text
    assert NO_GO not in text


@pytest.mark.slow
def test_without_go_the_report_says_so() -> None:
    """Without Go the report says so, and has Python's servers."""
    bare = design.sort(replace(SCALE, peers=frozenset[str]()))
    text = report.markdown(content.content(PARTS["sort"][1], Seen(judged(bare))))
    assert NO_GO in text
    assert "In Python, merge sort on sockets" in text


def test_running_first_costs_what_is_paid_once() -> None:
    """The cost of the first calls is its planted share of a mean of 100 calls."""
    ratio = Measured({}, {}, {}, cold_rows(), True).first_pays("grpc")
    assert ratio is not None
    planted = (CONNECT_US["grpc"] + FIRST_US["grpc"] + 99 * CALL_US["grpc"]) / 100 / CALL_US["grpc"]
    assert ratio.value == pytest.approx(planted, rel=0.02)


@pytest.mark.slow
def test_errors_are_counted() -> None:
    """Errors of the sweep are counted, 100 in each of ten blocks, and those of cold runs."""
    first, *others = cold_rows()
    main = judged(design.sort(SCALE), errors=[Arm(go("grpc", "merge"))])
    told = figures.sections(Seen(main, runs=(ColdJudged((replace(first, errors=3), *others)),)))
    assert "replies were counted beside the cold runs, 1,003 errors." in told[-1].text


def test_the_falling_mean_is_explained_without_a_sweep() -> None:
    """Cold runs alone, without a sweep, explain the falling mean. Calls that slow down show no one-off cost."""
    sweep = judged(design.sort(SCALE), number=1)
    for rows, said in ((cold_rows(), "are paid once"), (cold_rows(slowing=1e-4), "the fit shows no one-off cost: -")):
        answer = answers.answers(Seen(sweep, runs=(ColdJudged(rows),)))[2]
        assert said in " ".join((answer.sentence, *answer.details))


def test_parameters_without_a_record_are_unknown() -> None:
    """Parameters without a record are unknown, and none is left out."""
    assert figures.parameters(None).markdown.count("unknown") == len(PARAMETERS)
