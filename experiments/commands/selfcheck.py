"""``selfcheck``: checks the load client and the statistics against known results."""

import argparse
from pathlib import Path

from experiments.commands import FAILED_EXIT
from experiments.selfcheck import checks
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser


def add_options(parser: Parser) -> None:
    """Adds the options of ``selfcheck``."""
    add = parser.add_argument
    add("checks", nargs="*", metavar="CHECK", help=f"{', '.join(checks.CHECKS)} (default: all)")
    add("--overnight", action="store_true", help="run the long versions, which take hours")
    add("--out", type=Path, default=Path("results/selfcheck"), metavar="FOLDER", help="folder for the findings")


def run(options: argparse.Namespace) -> int:
    """Runs the named checks; all checks if none is named. Prints the report's path. Returns the exit code. Raises
    UsageError, OSError.
    """
    for name in options.checks:
        if name not in checks.CHECKS:
            raise UsageError("CHECK", name, ", ".join(checks.CHECKS))
    passed = checks.run(options.checks or tuple(checks.CHECKS), options.overnight, options.out)
    print(options.out / checks.REPORT)
    return 0 if passed else FAILED_EXIT
