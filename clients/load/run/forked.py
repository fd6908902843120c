"""Beginning of a client process, forked by the fork server: it ends when the process that started that server is gone.

The fork server ends when the last holder of its pipe is gone. It gives that pipe to all whom it forks, since they might
fork too. Ours do not, so they let it go. Then the fork server ends with the program that started it, however that ends.
The clients end with the fork server, in the middle of whatever they do.
"""

import os
from collections.abc import Callable
from multiprocessing import forkserver

from stock_service.rpc.process.lifeline import end_with_parent


def run_forked(process: Callable[..., None], *arguments: object) -> None:
    """Calls what the process is to do, in a process that ends with its parent as soon as it has begun."""
    end_with_parent()  # who is there, as long as the pipe is held
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    process(*arguments)
