"""``python -m experiments.services.grpc_aio_pattern`` serves stocks on asyncio, written as in grpcio's guide.

This server's throughput ÷ the throughput of our transport ``grpc_aio`` shows the cost of our code in addition to
grpcio:

    python -m experiments compare grpc_aio 'python -m experiments.services.grpc_aio_pattern' --transport grpc_aio \\
        --load library --connections 8

A coroutine answers each method. The server has the stocks that our servers have in an experiment. SIGTERM ends the
server at once, without waiting for accepted requests. Left out: the limits of our servers, such as the number of
requests under way.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import grpc

from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.catalog_file import load
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.service import stock_service

HOST = "127.0.0.1"

STOCKS = Path(__file__).parents[1] / "measure" / "catalog.toml"
"""File of the stocks that every server of an experiment serves."""


def handler(answer: Callable[[bytes], bytes]) -> "grpc.RpcMethodHandler[bytes, bytes]":
    """Makes grpcio's handler of a method with one request and one reply. A coroutine calls ``answer`` with the encoded
    request, and returns the encoded reply.
    """

    async def handle(payload: bytes, _: object) -> bytes:
        return answer(payload)

    return grpc.unary_unary_rpc_method_handler(handle)


async def serve() -> None:
    """Prints ``ready HOST:PORT``, and serves until SIGTERM ends the process."""
    service = stock_service(Exchange(MemoryCatalog(load(STOCKS), Mutex)))
    server = grpc.aio.server()
    handlers = {path.rpartition("/")[2]: handler(method.answer()) for path, method in service.methods.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    print(f"ready {HOST}:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve())
