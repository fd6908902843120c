"""``verify``: computes a recording anew, and names the differences."""

import argparse

from experiments.commands.recording import DIFFERS_EXIT, add_results, expected
from experiments.results.files import SWEEP_FILE
from experiments.verify import differences
from stock_service.rpc.process.command_line import Parser


def add_options(parser: Parser) -> None:
    """Adds the option for the folder."""
    add_results(parser, "a folder that 'run' or 'compare --out' wrote")


def run(options: argparse.Namespace) -> int:
    """Prints a line for each difference, in the folder and in the folders inside it, at any depth."""
    inside = sorted(file.parent for file in options.results.rglob(SWEEP_FILE))
    folders = inside or [options.results]
    found = [each for folder in folders for each in differences(folder, expected)]
    print("\n".join(found) if found else f"{options.results}: everything is as its blocks have it")
    return DIFFERS_EXIT if found else 0
