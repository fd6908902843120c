"""The client process of a cold run: connects, makes one call after another, reports the times, and ends.

The fork server has loaded the modules before it forks the process. The process then loads the transport's library. So
no measured time includes an import. The process has made no earlier call, so the caches of the library and of the
interpreter are cold. Requests are drawn and encoded before the connection is made. Garbage collection is off, as in
every load client.
"""

import time
from multiprocessing.connection import Connection as Pipe

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import ERROR_KINDS, FAULT_FIRST, STATUS_NAMES, TYPE_STEP, fault_outcome
from clients.load.plan.workload import Workload
from clients.load.record.cold_run import ColdRun
from clients.load.record.records import Records
from clients.load.run.client_process import settle
from clients.load.send.lean import connecting
from stock_service.rpc.errors import Fault


def run_cold_client(pipe: Pipe, plan: LoadPlan, calls: int) -> None:
    """Runs the process, and sends a ColdRun to the parent. If the process cannot connect, sends a text with the reason.
    Ends without an error if the parent has ended.
    """
    settle(plan)
    try:
        try:
            said: ColdRun | str = cold_run(plan, calls)
        except Fault as fault:
            said = str(fault)
        pipe.send(said)
    except BrokenPipeError:
        return
    finally:
        pipe.close()


def cold_run(plan: LoadPlan, calls: int) -> ColdRun:
    """Connects, and makes this number of calls. Blocks until the last call is answered. Raises a Fault if connecting
    fails.
    """
    requests, records, clock_ns = Workload(plan).requests(0, 0), Records(), time.perf_counter_ns
    connect = connecting(plan)
    began_ns = clock_ns()
    connection = connect(plan.timeout_s)
    connect_ns = clock_ns() - began_ns
    call, timeout_s = connection.call, plan.timeout_s
    append_sent, append_done, append_outcome = records.sent.append, records.done.append, records.outcomes.append
    try:
        for _, (path, payload, known, check, first) in zip(range(calls), requests, strict=False):
            sent_ns = clock_ns()
            try:
                reply = call(path, payload, timeout_s)
            except Fault as fault:
                records.note(sent_ns, clock_ns(), first + fault_outcome(fault))
                continue
            append_done(clock_ns())
            append_sent(sent_ns)
            append_outcome(known.get(reply) or check(reply))
    finally:
        connection.close()
    return told(connect_ns, records)


def told(connect_ns: int, records: Records) -> ColdRun:
    """Makes a ColdRun from the records of one connection. The records must have at least one request."""
    ends = [outcome % TYPE_STEP for outcome in records.outcomes]
    times_ns = [
        done_ns - sent_ns if end < FAULT_FIRST else None
        for sent_ns, done_ns, end in zip(records.sent, records.done, ends, strict=True)
    ]
    rest_ns = [each for each in times_ns[1:] if each is not None]
    return ColdRun(
        connect_ns=connect_ns,
        first_ns=times_ns[0],
        rest_ns=sum(rest_ns),
        rest=len(rest_ns),
        outcomes={name: ends.count(number) for number, name in STATUS_NAMES.items() if number in ends},
        errors={name: ends.count(number) for number, name in ERROR_KINDS.items() if number in ends},
    )
