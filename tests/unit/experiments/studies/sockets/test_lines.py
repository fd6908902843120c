"""Lines of code are counted from the sources that are measured."""

import pytest

from experiments.studies.sockets.design import STEPS, steps

BODY = "    a();\n\n    b(); // why\n    /* a comment */\n"
SOURCE = "".join(f"    /* step: {name} */\n{BODY}    /* end */\n" for name in STEPS)


def test_blank_lines_and_comments_are_no_code() -> None:
    """A comment behind code is on a line of code."""
    assert steps(SOURCE) == dict.fromkeys(STEPS, 2)


@pytest.mark.parametrize(
    ("source", "fault"),
    [(SOURCE.replace("step: send", "step: sent"), "no step send"), (SOURCE + SOURCE, "step create stands there twice")],
)
def test_steps_that_are_not_there_once_are_refused(source: str, fault: str) -> None:
    """A count of less would look like less code."""
    with pytest.raises(ValueError, match=fault):
        steps(source)
