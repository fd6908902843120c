"""How a client process begins, forked by the fork server: so that it ends when whoever started that is gone.

The fork server ends when the last holder of its pipe is gone. It gives that pipe to all whom it forks, since they might
fork too. Ours do not, so they let it go. Then the fork server ends with the program that started it, however that ends.
The clients end with the fork server, in the middle of whatever they do.
"""

import os
from collections.abc import MutableSequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection as Pipe

from clients.lifeline import end_with_parent
from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.turns import TurnLoad
from clients.load.run.client_process import run_client
from clients.load.run.cold_client import run_cold_client
from clients.load.run.turn_client import run_turn_client


def run_forked(plan: LoadPlan, client: int, pipe: Pipe, progress: MutableSequence[int]) -> None:
    """The process; see ``run_client``. It ends with its parent as soon as it has begun."""
    _tie()
    run_client(plan, client, pipe, progress)


def run_forked_turns(
    loads: tuple[TurnLoad, ...], client: int, updater: bool, pipe: Pipe, board: MutableSequence[int]
) -> None:
    """The process; see ``run_turn_client``. It ends with its parent as soon as it has begun."""
    _tie()
    run_turn_client(loads, client, updater, pipe, board)


def run_forked_cold(plan: LoadPlan, calls: int, pipe: Pipe) -> None:
    """The process; see ``run_cold_client``. It ends with its parent as soon as it has begun."""
    _tie()
    run_cold_client(plan, calls, pipe)


def _tie() -> None:
    """Ends this process with its parent from now on."""
    end_with_parent()  # who is there, as long as the pipe is held
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
