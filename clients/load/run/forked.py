"""How a client process begins, forked by the fork server: so that it ends when whoever started that is gone.

The fork server waits for the last of those who hold its pipe, and gives that pipe to all whom it forks, so that a
client could fork too. Ours do not: they let it go. Then the fork server ends with the program that started it, however
that ends, and the clients end with the fork server, in the middle of whatever they do.
"""

import os
from collections.abc import MutableSequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection as Pipe

from clients.lifeline import end_with_parent
from clients.load.plan.load_plan import LoadPlan
from clients.load.run.client_process import run_client


def run_forked(plan: LoadPlan, client: int, pipe: Pipe, progress: MutableSequence[int]) -> None:
    """The process; see ``run_client``. It ends with its parent as soon as it has begun."""
    end_with_parent()  # who is there, as long as the pipe is held
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    run_client(plan, client, pipe, progress)
