"""Clients that take turns: the error for a server that is gone."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from clients.load.plan.turns import Turn, TurnLoad
from clients.load.run.turn_clients import TurnClients
from stock_service.rpc.errors import Unavailable
from tests.unit.clients.load.send.lanes_bench import PLAN, ok, saying


@pytest.mark.slow
def test_a_server_whose_process_is_gone_is_said_in_a_line() -> None:
    """If the process of one of several servers is gone, its processor clock cannot be read: one line says so, and
    nothing is measured."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with saying(ok) as address:
        load = TurnLoad(replace(PLAN, address=address, clients=1), (gone.pid,))
        with TurnClients((load,)) as clients:
            now_ns = time.perf_counter_ns()
            clients.begin((Turn(0, now_ns, now_ns, now_ns + 10_000_000, now_ns + 20_000_000),))
            with pytest.raises(Unavailable, match="a process of the server is gone"):
                clients.gather()
