"""A client process of a block. The process is connected to the servers of its loads, and sends requests in the turns of
these loads. A turn is a slice of time in which one load sends.

Over a pipe the process sends CONNECTED, receives turns, and sends back the records of the turns. The process ends when
it receives None in place of turns. If a load has a price updater, the last process is this updater. Garbage collection
is off in the process, as in every load client.
"""

import random
import time
from collections.abc import Iterator, MutableSequence, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from typing import Protocol

import numpy as np

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import fault_outcome
from clients.load.plan.turns import Turn, TurnLoad
from clients.load.plan.workload import Workload
from clients.load.record.records import Deadline, Records
from clients.load.record.turn_records import TurnRecords, taken
from clients.load.run.client_process import settle
from clients.load.run.counters import loopback_bytes, processes_cpu_ns
from clients.load.run.turn_lines import Line, lines
from clients.load.send.driver import Surroundings
from clients.load.send.lanes import Lanes
from clients.load.send.lean import connecting, lean_codec, lean_context
from clients.load.send.turns import Blocking, Board, Multiplexed, Sender, wait_until
from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Connection

CONNECTED = "connected"
"""First message of a process. The process sends this message when all its connections are made."""

_READ_BEFORE_NS = 500_000
"""Time in nanoseconds before a turn's end at which the server's processor clock is read again. All requests are usually
answered by this moment.
"""

_FOREVER = 2**62


class Part(Protocol):
    """Task of a process in the turns: to send as a client, or as the price updater."""

    def open(self) -> None:
        """Connects. Raises a Fault."""

    def follow(self, turns: Sequence[Turn]) -> TurnRecords:
        """Sends requests in the turns of this process. Blocks until the last turn has ended."""

    def close(self) -> None:
        """Closes all connections."""


def run_turn_client(
    pipe: Pipe, loads: tuple[TurnLoad, ...], client: int, updater: bool, board: MutableSequence[int]
) -> None:
    """Runs the process. Ends without an error if the parent has ended."""
    connections = sum(line.plan.connections_per_client for line in lines(loads))
    settle(replace(loads[0].plan, connections_per_client=connections))
    part: Part = Updater(loads, client) if updater else Client(loads, client, Board(board))
    try:
        try:
            part.open()
        except Fault as fault:
            pipe.send(str(fault))
            return
        pipe.send(CONNECTED)
        while (turns := pipe.recv()) is not None:
            try:
                pipe.send(part.follow(turns))
            except Fault as fault:
                pipe.send(str(fault))
                return
    except (EOFError, BrokenPipeError):
        return
    finally:
        part.close()
        pipe.close()


class Client:
    """Task of a client process in the turns."""

    def __init__(self, loads: Sequence[TurnLoad], client: int, board: Board) -> None:
        self._loads = loads
        self._client = client
        own = [line for line in lines(loads) if client < line.plan.clients]
        self._senders = {line.number: _senders(line, loads, client, board) for line in own}
        self._line_of = {place: line for line in own for place in line.loads if client < loads[place].plan.clients}
        most = max((line.senders for line in own), default=1)
        self._threads = ThreadPoolExecutor(most, "turns") if most > 1 else None

    def open(self) -> None:
        """Implements ``Part.open``."""
        for sender in self._every():
            sender.open()

    def follow(self, turns: Sequence[Turn]) -> TurnRecords:
        """Implements ``Part.follow``."""
        client_cpu_ns, server_cpu_ns, wire_bytes = np.zeros((3, len(turns)), dtype=np.int64)
        for number, turn in enumerate(turns):
            if turn.load not in self._line_of:
                continue
            wait_until(turn.begin_ns, time.perf_counter_ns, time.sleep)
            pids = self._loads[turn.load].server_pids if self._client == 0 else ()
            before = (processes_cpu_ns(pids), loopback_bytes()) if pids else None
            own_ns = time.process_time_ns()
            self._send(turn)
            client_cpu_ns[number] = time.process_time_ns() - own_ns
            if before is not None:
                wait_until(turn.end_ns - _READ_BEFORE_NS, time.perf_counter_ns, time.sleep)
                if time.perf_counter_ns() < turn.end_ns:  # a later reading would include the time of the next turns
                    server_cpu_ns[number] = processes_cpu_ns(pids) - before[0]
                    wire_bytes[number] = loopback_bytes() - before[1]
        records = [
            taken(number, each)
            for number, senders in self._senders.items()
            for sender in senders
            for each in sender.recorded()
        ]
        return TurnRecords(self._client, tuple(records), client_cpu_ns, server_cpu_ns, wire_bytes)

    def close(self) -> None:
        """Implements ``Part.close``."""
        for sender in self._every():
            sender.close()
        if self._threads is not None:
            self._threads.shutdown()

    def _every(self) -> Iterator[Sender]:
        for senders in self._senders.values():
            yield from senders

    def _send(self, turn: Turn) -> None:
        """Sends requests during one turn, on all connections of this process to the turn's server."""
        line = self._line_of[turn.load]
        places = line.places(self._loads[turn.load].plan.clients)
        senders = self._senders[line.number]
        if len(senders) == 1:
            senders[0].send(turn, line.place(self._client, 0), places)
            return
        assert self._threads is not None
        sending = [
            self._threads.submit(sender.send, turn, line.place(self._client, number), places)
            for number, sender in enumerate(senders)
        ]
        for each in sending:
            each.result()


def _senders(line: Line, loads: Sequence[TurnLoad], client: int, board: Board) -> tuple[Sender, ...]:
    """Makes the senders of one process for one line. A line is the group of loads that share connections."""
    plan = line.plan
    workloads = {place: Workload(loads[place].plan) for place in line.loads}
    if line.multiplexed:
        around = Surroundings(
            deadline=Deadline(_FOREVER),
            timeout_s=plan.timeout_s,
            records_max=_FOREVER,
            progress=[0],
            place=0,
            context=lean_context(plan),
        )
        drawn = {
            place: [workload.drawn(client, number) for number in range(plan.connections_per_client)]
            for place, workload in workloads.items()
        }
        first = line.loads[0]
        lanes = Lanes(plan.address, lean_codec(plan), workloads[first], drawn[first], around)
        requests = {place: lanes.sequences(workloads[place], drawn[place]) for place in line.loads}
        return (Multiplexed(lanes, requests, board),)
    connect = connecting(plan)
    return tuple(
        Blocking(
            connect,
            {place: workload.requests(client, number) for place, workload in workloads.items()},
            plan.timeout_s,
            board,
        )
        for number in range(line.senders)
    )


class Updater:
    """Task of the price updater in the turns: sends Updates at random moments.

    For each load, the moments are drawn on a time axis on which the load's turns follow each other without gaps. So the
    updater's rate does not depend on the length of the turns.
    """

    def __init__(self, loads: Sequence[TurnLoad], client: int) -> None:
        self._loads = loads
        self._client = client
        self._connections: dict[int, Connection] = {}  # by the line's number
        self._line_of: dict[int, int] = {}
        self._plans: dict[int, LoadPlan] = {}
        for line in lines(loads):
            with_updater = [place for place in line.loads if loads[place].updates_interval_s is not None]
            self._line_of |= dict.fromkeys(with_updater, line.number)
            if with_updater:
                self._plans[line.number] = replace(line.plan, mix={"update": 1.0})
        self._records = {number: Records() for number in self._plans}
        self._requests = {number: Workload(plan).requests(client, 0) for number, plan in self._plans.items()}
        self._rng = random.Random(f"{loads[0].plan.seed}/updater")
        self._left_ns = dict.fromkeys(self._line_of, 0)
        """For each load, the time until the next update, in nanoseconds. Only the time in the load's turns counts."""

    def open(self) -> None:
        """Implements ``Part.open``."""
        for number, plan in self._plans.items():
            self._connections[number] = connecting(plan)(plan.timeout_s)
        for place in self._line_of:
            self._left_ns[place] = self._pause_ns(place)

    def follow(self, turns: Sequence[Turn]) -> TurnRecords:
        """Implements ``Part.follow``."""
        for turn in turns:
            if turn.load not in self._line_of:
                continue
            due_ns = turn.begin_ns + self._left_ns[turn.load]
            if time.perf_counter_ns() >= turn.stop_ns:
                continue
            while due_ns < turn.stop_ns:
                wait_until(due_ns, time.perf_counter_ns, time.sleep)
                self._update(self._line_of[turn.load])
                due_ns += self._pause_ns(turn.load)
            self._left_ns[turn.load] = due_ns - turn.stop_ns
        none = np.zeros(len(turns), dtype=np.int64)
        requests = tuple(taken(number, records) for number, records in self._records.items())
        return TurnRecords(self._client, requests, none, none, none)

    def close(self) -> None:
        """Implements ``Part.close``."""
        for connection in self._connections.values():
            connection.close()

    def _pause_ns(self, load_place: int) -> int:
        interval_s = self._loads[load_place].updates_interval_s
        assert interval_s is not None
        return round(self._rng.expovariate(1 / interval_s) * 1e9)

    def _update(self, line: int) -> None:
        request, plan, records = next(self._requests[line]), self._plans[line], self._records[line]
        records.started += 1
        sent_ns = time.perf_counter_ns()
        try:
            reply = self._connections[line].call(request.path, request.payload, plan.timeout_s)
            outcome = request.known.get(reply) or request.check(reply)
        except Fault as fault:
            outcome = request.first + fault_outcome(fault)
        records.note(sent_ns, time.perf_counter_ns(), outcome)
