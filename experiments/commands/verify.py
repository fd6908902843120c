"""``verify``: recomputes a recording, and names the differences."""

import argparse
from itertools import chain

from experiments.commands.recording import DIFFERS_EXIT, add_results, expected
from experiments.results.files import SWEEP_FILE
from experiments.verify import differences
from stock_service.rpc.process.command_line import Parser


def add_options(parser: Parser) -> None:
    """Adds the argument RESULTS, the folder to be verified."""
    add_results(parser, "a folder that 'run' or 'compare --out' wrote")


def run(options: argparse.Namespace) -> int:
    """Prints a line for each difference, in the folder and in all folders inside it, and returns the exit code.

    Raises UsageError for a damaged folder, after the differences in earlier folders have been printed.
    """
    folders = sorted(file.parent for file in options.results.rglob(SWEEP_FILE)) or [options.results]
    code = 0
    for line in chain.from_iterable(differences(folder, expected) for folder in folders):
        code = DIFFERS_EXIT
        print(line, flush=True)
    if not code:
        print(f"{options.results}: everything agrees with the blocks")
    return code
