"""``verify``: computes a recording anew, and names what differs."""

import argparse

from experiments.commands.recording import DIFFERS_EXIT, computed
from experiments.commands.recording import add_results as add_options
from experiments.verify import differences

__all__ = ["add_options", "run"]


def run(options: argparse.Namespace) -> int:
    """Prints a line for each difference."""
    found = list(differences(options.results, computed))
    print("\n".join(found) if found else f"{options.results}: everything is as its blocks have it")
    return DIFFERS_EXIT if found else 0
