"""Calls the greeter with grpcio, synchronously or asynchronously (``grpc.aio``), and prints the times of the calls.

    python -m experiments.peers.python.greeter_client --address HOST:PORT [--mode sync|async] [--clients N] [--count N]
        [--in-flight N]

The program does the same as ``greeter_client.cpp``, and prints the same lines. Two things differ in Python. A client is
a process, since only one thread of an interpreter runs at a time. An asynchronous client uses asyncio, as in gRPC's
example.

Each client has a channel of its own. First every client connects and makes its first call. Then all clients begin their
other calls at the same moment. Each client makes ``--count`` calls in total. Every reply is checked. The exit code is 1
after a failed call or a wrong reply, and 2 for a bad option. The total processor time is the sum over all clients'
processes. The processor time of each process is counted from the common moment to the client's last reply.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Barrier

import grpc
import grpc.aio

from experiments.helloworld.greeter_pb2 import HelloReply, HelloRequest
from experiments.helloworld.greeter_pb2_grpc import GreeterStub
from stock_service.rpc.process.command_line import Parser, integer

PROGRAM = "python -m experiments.peers.python.greeter_client"

CONNECT_S = 10.0
"""Longest time for a client to connect, in seconds."""

START_S = 60.0
"""Longest time in seconds for which a client waits until all clients have made their first call."""

NAME, REPLY = "world", "Hello world"


@dataclass(frozen=True, slots=True)
class Seen:
    """Values that one client measured, in nanoseconds. Moments are values of ``time.perf_counter_ns``."""

    connect_ns: int
    calls_ns: Sequence[int]
    """Times of the calls. The first value is the time of the first call."""
    began_ns: int
    """Moment at which this client began the calls after its first call."""
    ended_ns: int
    thread_ns: int
    """Processor time of the calling thread, for the calls after the first call."""
    process_ns: int
    """Processor time of all threads of the client's process, including gRPC's own threads."""


class Clock:
    """Three clocks for the calls after the first call: elapsed time, processor time of the thread, and processor time
    of the process. A new object waits at the barrier for all clients, and then reads the clocks.
    """

    def __init__(self, start: Barrier) -> None:
        start.wait(START_S)
        self._process_ns, self._thread_ns = time.process_time_ns(), time.thread_time_ns()
        self._began_ns = time.perf_counter_ns()

    def seen(self, connect_ns: int, calls_ns: Sequence[int]) -> Seen:
        """Reads the clocks again, and gives all values that the client measured."""
        ended_ns, thread_ns = time.perf_counter_ns(), time.thread_time_ns() - self._thread_ns
        process_ns = time.process_time_ns() - self._process_ns
        return Seen(connect_ns, calls_ns, self._began_ns, ended_ns, thread_ns, process_ns)


def check(reply: HelloReply) -> None:
    """Raises ValueError if the reply is not the greeting of ``NAME``."""
    if reply.message != REPLY:
        raise ValueError(f"a wrong reply: {reply.message!r}")


def call_in_turn(address: str, count: int, start: Barrier) -> Seen:
    """Makes ``count`` calls as one synchronous client. Each call begins after the reply to the previous call. Blocks
    until the last reply.
    """
    began_ns = time.perf_counter_ns()
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(CONNECT_S)
        connect_ns = time.perf_counter_ns() - began_ns
        say_hello, request, calls_ns = GreeterStub(channel).SayHello, HelloRequest(name=NAME), list[int]()

        def call() -> None:
            sent_ns = time.perf_counter_ns()
            reply = say_hello(request)
            calls_ns.append(time.perf_counter_ns() - sent_ns)
            check(reply)

        call()
        clock = Clock(start)
        for _ in range(count - 1):
            call()
        return clock.seen(connect_ns, calls_ns)


async def call_at_once(address: str, count: int, in_flight: int, start: Barrier) -> Seen:
    """Makes ``count`` calls as one asynchronous client. ``in_flight`` calls are under way at a time: after each reply
    the client sends the next call."""
    began_ns = time.perf_counter_ns()
    async with grpc.aio.insecure_channel(address) as channel:
        await asyncio.wait_for(channel.channel_ready(), CONNECT_S)
        connect_ns = time.perf_counter_ns() - began_ns
        # grpcio's stub also works with an asynchronous channel, although its types only name the synchronous channel.
        say_hello, request, calls_ns = GreeterStub(channel).SayHello, HelloRequest(name=NAME), list[int]()

        async def call(turns: Iterator[int]) -> None:
            for _ in turns:
                sent_ns = time.perf_counter_ns()
                reply = await say_hello(request)
                calls_ns.append(time.perf_counter_ns() - sent_ns)
                check(reply)

        await call(iter(range(1)))
        clock = Clock(start)
        turns = iter(range(count - 1))
        await asyncio.gather(*(call(turns) for _ in range(in_flight)))
        return clock.seen(connect_ns, calls_ns)


def run_client(options: argparse.Namespace, start: Barrier, pipe: Pipe) -> None:
    """Main function of a client's process: sends the measured values, or a text with the error, into ``pipe``.

    An error also breaks the barrier, so that the other clients do not wait.
    """
    gc.disable()  # as in every load client here, so that no call includes a garbage collection
    try:
        if options.mode == "sync":
            seen = call_in_turn(options.address, options.count, start)
        else:
            seen = asyncio.run(call_at_once(options.address, options.count, options.in_flight, start))
        pipe.send(seen)
    except Exception as error:  # any error ends the run, and the parent prints it
        start.abort()
        pipe.send(f"{type(error).__name__}: {error}")
    finally:
        pipe.close()


def told(seen: Sequence[Seen]) -> Iterator[dict[str, str | int]]:
    """Yields the lines to print. Each client has lines with its times, and a line with the sums of its calls. The last
    line has the sums over all clients.
    """
    for client, one in enumerate(seen):
        yield {"what": "connect", "client": client, "ns": one.connect_ns}
        for number, ns in enumerate(one.calls_ns):
            yield {"what": "call" if number else "first call", "client": client, "ns": ns}
        own = {"calls": len(one.calls_ns) - 1, "wall_ns": one.ended_ns - one.began_ns, "processor_ns": one.thread_ns}
        yield {"what": "client", "client": client, **own}
    calls = sum(len(one.calls_ns) - 1 for one in seen)
    wall_ns = max(one.ended_ns for one in seen) - min(one.began_ns for one in seen)
    yield {"what": "total", "calls": calls, "wall_ns": wall_ns, "processor_ns": sum(one.process_ns for one in seen)}


def main(arguments: Sequence[str]) -> int:
    """Runs the clients, and prints the times. Returns the exit code. Blocks until the last client has ended."""
    parser = Parser(PROGRAM, "Calls the greeter, and says how long that took.")
    parser.add_argument("--address", required=True, metavar="HOST:PORT", help="of the server")
    parser.add_argument("--mode", choices=("sync", "async"), default="sync", help="one call at a time, or by asyncio")
    parser.add_argument("--clients", type=integer(1, 256), default=1, metavar="N", help="processes that call")
    parser.add_argument("--count", type=integer(1, 10_000_000), default=1000, metavar="N", help="calls of each")
    parser.add_argument("--in-flight", type=integer(1, 1024), default=1, metavar="N", help="calls at once, of async")
    options = parser.parse_args(arguments)
    if options.in_flight > 1 and options.mode != "async":
        parser.error("--in-flight: got it with --mode sync, allowed: with --mode async")
    found = run(options)
    wrong = [each for each in found if isinstance(each, str)]
    for each in wrong:
        print(f"greeter_client: {each}", file=sys.stderr)
    if wrong:
        return 1
    print("\n".join(json.dumps(line) for line in told([each for each in found if isinstance(each, Seen)])))
    return 0


def run(options: argparse.Namespace) -> list[Seen | str]:
    """Runs the clients. Returns the measured values of each client, or the message of its failure. Blocks.

    Each client is forked before this process uses gRPC, since a fork after the use of gRPC is not safe.
    """
    context = multiprocessing.get_context("fork")
    start = context.Barrier(options.clients)
    ours: list[Pipe] = []
    processes = []
    for number in range(options.clients):
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=run_client, args=(options, start, sending), name=f"client-{number}")
        process.start()
        sending.close()
        ours.append(receiving)
        processes.append(process)
    found: list[Seen | str] = []
    for pipe in ours:
        with pipe:
            try:
                found.append(pipe.recv())
            except EOFError:
                found.append("a client ended without a word")
    for process in processes:
        process.join()
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
