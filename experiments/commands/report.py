"""``report``: rewrites the report of a folder of results."""

import argparse

from experiments.commands.recording import add_results as add_options
from experiments.commands.recording import read
from experiments.show import report

__all__ = ["add_options", "run"]


def run(options: argparse.Namespace) -> int:
    """Writes the report, and prints the paths of its files. Raises UsageError, OSError."""
    print("\n".join(map(str, report.write(options.results, read(options.results)))))
    return 0
