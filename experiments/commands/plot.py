"""``plot``: redraws the figures of a folder of results."""

import argparse

from experiments.commands.recording import add_results as add_options
from experiments.commands.recording import read
from experiments.show import gallery

__all__ = ["add_options", "run"]


def run(options: argparse.Namespace) -> int:
    """Draws the figures, and prints the paths of their files. Raises UsageError, OSError."""
    for path in gallery.draw(options.results / gallery.FOLDER, read(options.results).pictures):
        print(path)
    return 0
