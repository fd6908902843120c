"""``python -m experiments.compare.recorded --picture FILE A B …``: runs ``compare`` in a terminal, and keeps the
screen.

It keeps the rewritten line at the end of the second block and of the last block, and the final output. They go to
standard output, and into the file as a picture, which ``README.md`` shows. Left out: the screen between these moments.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
import termios
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console

from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.process.lifeline import tied

COLUMNS = 118
"""Columns of the terminal: as many as the longest line that is rewritten."""

REWRITTEN = "\r\x1b[K"
"""Characters before every state of the line that ``Progress`` rewrites."""

_BLOCK = re.compile(r"block (\d+) of")


def main(arguments: Sequence[str]) -> int:
    """Runs ``compare``; gives its exit code. Blocks for as long as that takes."""
    parser = Parser("python -m experiments.compare.recorded", "Runs compare in a terminal, and keeps what is seen.")
    parser.add_argument("--picture", type=Path, required=True, metavar="FILE", help="where it goes, as SVG")
    parser.add_argument("words", nargs="+", metavar="A B", help="what compare is given")
    options, rest = parser.parse_known_args(arguments)
    words = ["compare", *options.words, *rest]
    said, code = in_terminal([sys.executable, "-m", "experiments", *words])
    lines = [f"$ python -m experiments {shlex.join(words)}", *screen(said)]
    print("\n".join(lines))
    options.picture.write_text(picture(lines), encoding="utf-8")
    return code


def in_terminal(command: Sequence[str]) -> tuple[str, int]:
    """Text that a program writes to a terminal, and the program's exit code. Blocks until the program has ended."""
    ours, its = pty.openpty()
    try:
        termios.tcsetwinsize(its, (40, COLUMNS))
        process = subprocess.Popen(tied(command), stdin=its, stdout=its, stderr=its)
    finally:
        os.close(its)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # EIO: the other end of the terminal is closed
        pass
    finally:
        os.close(ours)
    return b"".join(parts).decode(), process.wait()


def screen(said: str) -> list[str]:
    """The rewritten line at the ends of two blocks, and the output after it."""
    *states, end = said.replace("\r\n", "\n").split(REWRITTEN)
    last_of = {match[1]: state.strip() for state in states if (match := _BLOCK.match(state))}
    seen = list(last_of.values())
    return [*dict.fromkeys((*seen[1:2], *seen[-1:])), *end.rstrip("\n").split("\n")]


def picture(lines: Sequence[str]) -> str:
    """The lines as they stand in a terminal, as SVG that loads nothing: the reader's own fonts draw it."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(line, soft_wrap=False)
    return re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="compare"), flags=re.DOTALL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
