"""``python -m experiments.services.library_patterns TRANSPORT`` serves stocks in a library's own pattern.

What a transport costs above its library is its throughput beside this one's, by turns:

    python -m experiments compare nng 'python -m experiments.services.library_patterns nng' --transport nng \\
        --load library --connections 8

The pattern of each is that of the library's guide. ZeroMQ has a ROUTER for clients and a DEALER for workers. NNG has a
context for each worker, gRPC a coroutine on asyncio. Requests and replies are those of our transports, and so are
the stocks. Left out: limits, and finishing what was accepted: SIGTERM ends it at once.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import grpc

from stock_service.rpc.messaging.answering import Messages
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.server_core.options import NOBODY, ServeOptions
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.service import Service
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.catalog_file import load
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.service import stock_service

WORKERS = 8
"""As many as a server here has unless told otherwise."""

HOST = "127.0.0.1"

STOCKS = Path(__file__).parents[1] / "measure" / "catalog.toml"
"""What every server of an experiment serves."""


def stocks() -> Service:
    """The stock service as a server here makes it unless told otherwise."""
    return stock_service(Exchange(MemoryCatalog(load(STOCKS), Mutex)))


def answering() -> Callable[[bytes], bytes]:
    """A message to its reply's."""
    answer = Messages(methods_of(stocks()), ServeOptions().frame_bytes_max).answer
    return lambda message: answer(message, time.monotonic_ns(), NOBODY)


def zeromq() -> None:
    """A ROUTER for clients and a DEALER for workers, with libzmq's proxy between."""
    import zmq

    answer = answering()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    port = router.bind_to_random_port(f"tcp://{HOST}")
    dealer.bind("inproc://workers")

    def work() -> None:
        worker = context.socket(zmq.DEALER)
        worker.connect("inproc://workers")
        while True:
            *envelope, message = worker.recv_multipart()
            worker.send_multipart([*envelope, answer(message)])

    _start(work)
    _say_ready(port)
    zmq.proxy(router, dealer)


def nng() -> None:
    """A REP with a context for each worker."""
    import socket

    import pynng

    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    answer, rep = answering(), pynng.Rep0(listen=f"tcp://{HOST}:{port}")

    def work() -> None:
        context = rep.new_context()
        while True:
            context.send(answer(context.recv()))

    _start(work)
    _say_ready(port)


def grpc_aio() -> None:
    """A server on asyncio with a coroutine for each method."""
    service = stocks()

    def handler(answer: Callable[[bytes], bytes]) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def handle(payload: bytes, _: object) -> bytes:
            return answer(payload)

        return grpc.unary_unary_rpc_method_handler(handle)

    async def serve() -> None:
        server = grpc.aio.server()
        handlers = {path.rpartition("/")[2]: handler(method.answer()) for path, method in service.methods.items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        port = server.add_insecure_port(f"{HOST}:0")
        await server.start()
        _say_ready(port)
        await server.wait_for_termination()

    asyncio.run(serve())


def _end_at_signal() -> None:
    signal.sigwait((signal.SIGTERM,))
    os._exit(0)


def _start(work: Callable[[], None]) -> None:
    for _ in range(WORKERS):
        Thread(target=work).start()


def _say_ready(port: int) -> None:
    print(f"ready {HOST}:{port}", flush=True)


PATTERNS = {"zeromq": zeromq, "nng": nng, "grpc_aio": grpc_aio}
"""By the transport that is compared with it."""

if __name__ == "__main__":
    parser = Parser("python -m experiments.services.library_patterns", "Stocks in a library's own pattern.")
    parser.add_argument("transport", choices=PATTERNS, help="whose library; it needs the extra `transports`")
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))  # before there are threads, which leave it to one
    Thread(target=_end_at_signal).start()
    PATTERNS[parser.parse_args(sys.argv[1:]).transport]()
