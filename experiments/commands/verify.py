"""``verify``: computes a recording anew, and names what differs."""

import argparse

from experiments.commands.recording import DIFFERS_EXIT, computed
from experiments.commands.recording import add_results as add_options
from experiments.results.files import SWEEP_FILE
from experiments.verify import differences

__all__ = ["add_options", "run"]


def run(options: argparse.Namespace) -> int:
    """Prints a line for each difference, in the folder and in those that it holds."""
    inside = sorted(file.parent for file in options.results.glob(f"*/{SWEEP_FILE}"))
    found = [each for folder in (options.results, *inside) for each in differences(folder, computed)]
    print("\n".join(found) if found else f"{options.results}: everything is as its blocks have it")
    return DIFFERS_EXIT if found else 0
