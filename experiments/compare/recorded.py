"""``python -m experiments.compare.recorded --picture FILE A B …``: runs ``compare`` in a terminal, and keeps the screen
as text and as a picture.

``compare`` rewrites one line while it measures. The text begins with two states of this line: at the end of the second
block, and at the end of the last block. The final output follows. The text is printed on standard output. The picture
of the text is written into FILE, and is shown in ``README.md``.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path

from rich.console import Console

from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.process.lifeline import tied

COLUMNS = 118
"""Number of columns of the terminal: the length of the longest rewritten line."""

REWRITTEN = "\r\x1b[K"
"""Characters that ``Progress`` writes before each version of its line."""

_BLOCK = re.compile(r"block (\d+) of")


def main(arguments: Sequence[str]) -> int:
    """Runs ``compare``, and returns its exit code. Blocks until ``compare`` has ended."""
    parser = Parser("python -m experiments.compare.recorded", "Runs compare in a terminal, and keeps the screen.")
    parser.add_argument("--picture", type=Path, required=True, metavar="FILE", help="file for the picture, in SVG")
    parser.add_argument("words", nargs="+", metavar="A B", help="the arguments of compare")
    options, rest = parser.parse_known_args(arguments)
    words = ["compare", *options.words, *rest]
    said, code = in_terminal([sys.executable, "-m", "experiments", *words])
    lines = [f"$ python -m experiments {shlex.join(words)}", *screen(said)]
    print("\n".join(lines))
    options.picture.write_text(picture(lines), encoding="utf-8")
    return code


def in_terminal(command: Sequence[str]) -> tuple[str, int]:
    """Runs a program in a terminal. Returns its output and its exit code. Blocks until the program has ended."""
    ours, its = pty.openpty()
    try:
        termios.tcsetwinsize(its, (40, COLUMNS))
        process = subprocess.Popen(tied(command), stdin=its, stdout=its, stderr=its)
    finally:
        os.close(its)
    parts = []
    with os.fdopen(ours, "rb", buffering=0) as screen, suppress(OSError):  # EIO: the other end is closed
        while part := screen.read(65536):
            parts.append(part)
    return b"".join(parts).decode(), process.wait()


def screen(said: str) -> list[str]:
    """Lines of the text: the rewritten line at the end of the second block and of the last block, then the final
    output."""
    *states, end = said.replace("\r\n", "\n").split(REWRITTEN)
    last_of = {match[1]: state.strip() for state in states if (match := _BLOCK.match(state))}
    seen = list(last_of.values())
    return [*dict.fromkeys((*seen[1:2], *seen[-1:])), *end.rstrip("\n").split("\n")]


def picture(lines: Sequence[str]) -> str:
    """Picture of the lines in a terminal, in SVG. The picture loads no other file, and uses the fonts of the reader's
    system."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(line, soft_wrap=False)
    return re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="compare"), flags=re.DOTALL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
