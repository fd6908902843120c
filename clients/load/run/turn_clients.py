"""The client processes of a block: started together, given turns, listened to, always reaped.

They come from the fork server that every load run here uses. Ctrl-C is the parent's: they never get it, and end with
the block. Left out: what is said of their records.
"""

import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerProcess
from multiprocessing.sharedctypes import RawArray
from types import TracebackType
from typing import Self

from clients.load.plan.turns import Turn, TurnLoad
from clients.load.record.turn_records import TurnRecords
from clients.load.run import fleet
from clients.load.run.forked import run_forked
from clients.load.run.turn_client import CONNECTED, run_turn_client
from clients.load.run.turn_lines import lines
from stock_service.rpc.errors import Unavailable

CONNECT_S = 60.0
"""Longest time for all processes to connect; ten take half a second."""

REPORT_S = 30.0
"""Longest time for a process to report after the last turn's end, without a timeout for the last reply."""

REAP_S = 5.0
"""Longest time for a process to end before it is killed."""


class TurnClients:
    """The processes. One thread's. Leaving ``with`` ends them."""

    def __init__(self, loads: Sequence[TurnLoad]) -> None:
        """Starts them; each connects to every server that it has a load on. Blocks until all have.

        Raises Unavailable where one cannot connect or dies, UsageError where this process may not have so many files.
        """
        self._loads = tuple(loads)
        self._clients = max(each.plan.clients for each in loads)
        self._end_ns = 0
        self._timeout_s = max(each.plan.timeout_s for each in loads)
        with_updater = any(each.updates_interval_s is not None for each in loads)
        fleet.make_room(self._clients + 1)
        fleet.warm()
        board = RawArray("q", max(line.places(line.plan.clients).stop for line in lines(loads)))
        self._processes: list[ForkServerProcess] = []
        self._pipes: list[Pipe] = []
        context = multiprocessing.get_context("forkserver")
        try:
            for client in range(self._clients + with_updater):
                mine, its = context.Pipe()
                arguments = (run_turn_client, self._loads, client, client == self._clients, its, board)
                process = context.Process(target=run_forked, args=arguments, name=f"load-client-{client}")
                process.start()
                its.close()
                self._processes.append(process)
                self._pipes.append(mine)
            for pipe in self._pipes:
                said = self._heard(pipe, CONNECT_S)
                if said != CONNECTED:
                    raise Unavailable(str(said))
        except BaseException:
            self.end()
            raise

    def begin(self, turns: Sequence[Turn]) -> None:
        """Has them follow these turns, whose moments are on the clock. Returns at once."""
        self._end_ns = turns[-1].end_ns
        for pipe in self._pipes:
            pipe.send(tuple(turns))

    def gather(self) -> list[TurnRecords]:
        """Records of the turns that have begun. Blocks until all processes have reported.

        Raises Unavailable where a process has died.
        """
        left_s = max(0, self._end_ns - time.perf_counter_ns()) / 1e9
        reports: list[TurnRecords] = []
        for pipe in self._pipes:
            said = self._heard(pipe, left_s + self._timeout_s + REPORT_S)
            if not isinstance(said, TurnRecords):
                raise Unavailable(str(said))
            reports.append(said)
        return reports

    def end(self) -> None:
        """Ends every process, and waits for all. May be repeated."""
        for pipe in self._pipes:
            try:
                pipe.send(None)
            except OSError:
                pass  # it has died
            pipe.close()
        deadline_s = time.monotonic() + REAP_S
        for process in self._processes:
            process.join(max(0.0, deadline_s - time.monotonic()))
            if process.exitcode is None:
                process.kill()
            process.join()
            process.close()
        self._pipes, self._processes = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def _heard(self, pipe: Pipe, within_s: float) -> object:
        """Message of a process; a text with the reason where none comes."""
        try:
            return pipe.recv() if pipe.poll(within_s) else f"a client process said nothing for {within_s:.0f} s"
        except (EOFError, ConnectionResetError):
            return "a client process has died"
