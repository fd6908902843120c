"""The client processes of a block: their common start, turns, reports and end. The processes are forked by the fork
server of all load runs. Only the parent handles Ctrl-C: the processes never get the signal, and end with the block.
Left out: conclusions from the records.
"""

import time
from collections.abc import Sequence
from multiprocessing.connection import Connection as Pipe
from multiprocessing.sharedctypes import RawArray
from types import TracebackType
from typing import Self

from clients.load.plan.turns import Turn, TurnLoad
from clients.load.record.turn_records import TurnRecords
from clients.load.run.processes import REAP_S, Processes, heard, make_room, warm
from clients.load.run.turn_client import CONNECTED, run_turn_client
from clients.load.run.turn_lines import lines
from stock_service.rpc.errors import Unavailable

CONNECT_S = 60.0
"""Longest time for all processes to connect, in seconds. Ten processes take half a second."""

REPORT_S = 30.0
"""Longest time for a process to report, in seconds. This time begins one timeout after the last turn's end, when the
last reply has come.
"""


class TurnClients:
    """The client processes of a block. Not thread-safe. The end of the ``with`` block ends the processes."""

    def __init__(self, loads: Sequence[TurnLoad]) -> None:
        """Starts the processes. Each process connects to every server of its loads. Blocks until all processes are
        connected.

        Raises Unavailable if a process cannot connect or dies. Raises UsageError if the system allows this process too
        few descriptors.
        """
        self._loads = tuple(loads)
        self._clients = max(each.plan.clients for each in loads)
        self._end_ns = 0
        self._timeout_s = max(each.plan.timeout_s for each in loads)
        with_updater = any(each.updates_interval_s is not None for each in loads)
        make_room(self._clients + 1)
        warm()
        board = RawArray("q", max(line.places(line.plan.clients).stop for line in lines(loads)))
        self._processes = Processes()
        self._pipes: list[Pipe] = []
        try:
            for client in range(self._clients + with_updater):
                updater = client == self._clients
                self._pipes.append(self._processes.start(run_turn_client, self._loads, client, updater, board))
            for pipe in self._pipes:
                said = heard(pipe, CONNECT_S)
                if said != CONNECTED:
                    raise Unavailable(str(said))
        except BaseException:
            self.end()
            raise

    def begin(self, turns: Sequence[Turn]) -> None:
        """Gives turns to the processes, and returns at once. The moments of the turns are on the shared clock."""
        self._end_ns = turns[-1].end_ns
        for pipe in self._pipes:
            pipe.send(tuple(turns))

    def gather(self) -> list[TurnRecords]:
        """Returns the records of each process, for the turns of the last ``begin``. Blocks until all processes have
        reported.

        Raises Unavailable if a process has died.
        """
        left_s = max(0, self._end_ns - time.perf_counter_ns()) / 1e9
        reports: list[TurnRecords] = []
        for pipe in self._pipes:
            said = heard(pipe, left_s + self._timeout_s + REPORT_S)
            if not isinstance(said, TurnRecords):
                raise Unavailable(str(said))
            reports.append(said)
        return reports

    def end(self) -> None:
        """Ends every process, and waits until all have ended. A second call has no effect."""
        for pipe in self._pipes:
            try:
                pipe.send(None)
            except OSError:
                pass  # the process has died
        self._processes.reap(REAP_S)
        self._pipes = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()
