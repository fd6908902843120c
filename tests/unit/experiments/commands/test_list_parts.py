"""The command ``list``."""

import sys

import pytest

from experiments.__main__ import main
from experiments.studies import PARTS


def test_every_part_has_a_line_and_its_words_stand_below_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    """Every part has a line, and the descriptions begin in one column, for names of any length."""
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = max(map(len, PARTS)) + 2
    assert [line[:begin].rstrip() for line in lines] == list(PARTS)
    assert all(line[begin - 1] == " " and line[begin] != " " for line in lines)


def test_a_closed_output_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its standard output closed, as by ``>&-``, a command does its work."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["list"]) == 0
