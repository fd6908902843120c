"""A recording of ``compare`` for readers: the screen of a terminal, as text and as a picture."""

import sys

from experiments.compare.recorded import COLUMNS, REWRITTEN, in_terminal, picture, screen

SAID = "".join(
    [
        *(f"{REWRITTEN}block {block} of 3, {share}% of it" for block in (1, 2, 3) for share in (0, 50, 100)),
        f"{REWRITTEN}{REWRITTEN}B takes 2.00 times the time of A.\r\n  mean\r\n",
    ]
)


def test_the_live_line_is_kept_at_the_ends_of_two_blocks() -> None:
    """The live line is kept at the ends of the second block and the last, with the output after it."""
    ends = ["block 2 of 3, 100% of it", "block 3 of 3, 100% of it"]
    assert screen(SAID) == [*ends, "B takes 2.00 times the time of A.", "  mean"]


def test_lines_without_a_live_view_are_kept_as_they_are() -> None:
    """Output without a rewritten line, such as an error, is kept as it is."""
    assert screen("one\r\ntwo\r\n") == ["one", "two"]


def test_a_program_has_a_terminal() -> None:
    """A program has a terminal with the picture's width. Its exit code is returned."""
    program = "import os, sys; print(os.get_terminal_size().columns, sys.stderr.isatty()); sys.exit(4)"
    assert in_terminal([sys.executable, "-c", program]) == (f"{COLUMNS} True\r\n", 4)


def test_the_picture_is_small_and_says_the_same() -> None:
    """The picture is a small SVG with the same text, escaped once."""
    drawn = picture(["$ compare [a] 'b'", *screen(SAID)])
    assert drawn.startswith("<svg")
    assert "[a]" in drawn.replace("&#160;", " ")
    assert len(drawn) < 60_000
    assert "url(http" not in drawn, "it loads nothing"
