"""What an asyncio server of gRPC can be told beyond what every server can."""

import argparse
from dataclasses import dataclass
from typing import Literal, get_args

Dispatch = Literal["loop", "request"]
"""Who answers a call: the event loop itself, or a thread of the executor, whose task it is."""

DISPATCHES = get_args(Dispatch)


@dataclass(frozen=True, slots=True)
class AioOptions:
    """The transport's own options."""

    dispatch: Dispatch = "loop"
    """Who answers a call."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--dispatch``."""
    help_text = "who answers a call: the event loop itself, or the executor, a task for each request"
    parser.add_argument("--dispatch", choices=DISPATCHES, default=AioOptions().dispatch, help=help_text)


def own_options(options: argparse.Namespace) -> AioOptions:
    """What was given."""
    return AioOptions(options.dispatch)
