"""``list``: prints the studies and parts whose names ``run`` accepts."""

import argparse

from experiments.studies import PARTS, STUDIES
from stock_service.rpc.process.command_line import Parser


def add_options(_: Parser) -> None:
    """Adds no options."""


def run(_: argparse.Namespace) -> int:
    """Prints a line for each part: the part's name and, for a main part, the study's question. For any other part the
    line has the part's title.
    """
    width = max(map(len, PARTS))
    for name, (study, part) in PARTS.items():
        print(f"{name:{width}}  {study.question if name in STUDIES else part.title}")
    return 0
