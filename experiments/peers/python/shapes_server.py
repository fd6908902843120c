"""Test servers for ``recommend``: the greeter of gRPC's examples on grpcio alone. Each request does some work.

    python -m experiments.peers.python.shapes_server --shape connections --workers 10 --port 50051

The command ``recommend`` is tested with servers that others could have written. So a server has a
``ThreadPoolExecutor``, no reflection, no ready line, and no code of this project. A **shape** is a function of this
module that does the work of a request. The function's docstring describes the work. SIGTERM ends the server at once.
"""

import argparse
import json
import random
import sqlite3
import threading
import time
import zlib
from concurrent import futures

import grpc

from experiments.helloworld import greeter_pb2, greeter_pb2_grpc

_FEATURES = [(latitude, longitude) for latitude in range(10) for longitude in range(10)]
_ORDER = [{"name": f"stock {number}", "price": number / 7, "tags": ["a", "b"]} for number in range(300)]
_TEXT = random.Random(1).randbytes(40_000).hex().encode()
_LOCK = threading.Lock()
_THREE, _TWELVE = threading.Semaphore(3), threading.Semaphore(12)
_DATABASE = threading.local()


def helloworld() -> None:
    """Does no work, like the method ``SayHello`` in gRPC's examples."""


def route_guide() -> None:
    """Searches a list of 100 features for a random feature, like ``GetFeature`` of gRPC's example ``route_guide``."""
    wanted = random.choice(_FEATURES)
    next(feature for feature in _FEATURES if feature[0] == wanted[0] and feature[1] == wanted[1])


def lock() -> None:
    """Takes a lock that all requests share, and holds the lock for 3 ms, without computing."""
    with _LOCK:
        time.sleep(0.003)


def wait_and_lock() -> None:
    """Waits 10 ms. Then takes a lock that all requests share, and holds the lock for 2.5 ms, without computing."""
    time.sleep(0.010)
    with _LOCK:
        time.sleep(0.0025)


def connections() -> None:
    """Takes one of 3 connections (a semaphore), which all requests share, and holds the connection for 9 ms."""
    with _THREE:
        time.sleep(0.009)


def many_connections() -> None:
    """Takes one of 12 connections (a semaphore), which all requests share, and holds the connection for 30 ms."""
    with _TWELVE:
        time.sleep(0.030)


def bimodal() -> None:
    """Waits 5 ms in 80 % of the requests, and 50 ms in 20 %, at random. Then sums up 15,000 squares."""
    time.sleep(0.050 if random.random() < 0.2 else 0.005)
    sum(number * number for number in range(15_000))


def bimodal_computing() -> None:
    """Sums up 4,000 squares in 95 % of the requests, and 150,000 squares in 5 %, at random."""
    sum(number * number for number in range(150_000 if random.random() < 0.05 else 4_000))


def documents() -> None:
    """Writes 300 objects as JSON, and reads the JSON."""
    json.loads(json.dumps(_ORDER))


def compression() -> None:
    """Compresses 80 kB. The GIL is released meanwhile, so other requests can compute at the same time."""
    zlib.compress(_TEXT, 1)


def database() -> None:
    """Sums up 5,000 rows of a SQLite database, with one connection for each thread."""
    if not hasattr(_DATABASE, "connection"):
        _DATABASE.connection = sqlite3.connect(":memory:")
        _DATABASE.connection.execute("CREATE TABLE trades (price REAL)")
        _DATABASE.connection.executemany("INSERT INTO trades VALUES (?)", [(price,) for price in range(5_000)])
    _DATABASE.connection.execute("SELECT SUM(price * 2) FROM trades").fetchone()


def backend() -> None:
    """Waits for a random time, like a call of another service: exponentially distributed, 12 ms on average. Then sums
    up 10,000 squares.
    """
    time.sleep(random.expovariate(1 / 0.012))
    sum(number * number for number in range(10_000))


SHAPES = {
    shape.__name__: shape
    for shape in (
        helloworld,
        route_guide,
        lock,
        wait_and_lock,
        connections,
        many_connections,
        bimodal,
        bimodal_computing,
        documents,
        compression,
        database,
        backend,
    )
}


class Greeter(greeter_pb2_grpc.GreeterServicer):
    """Servicer of the greeter, which replies after the shape's work."""

    def __init__(self, shape: str) -> None:
        self._work = SHAPES[shape]

    def SayHello(  # noqa: N802
        self, request: greeter_pb2.HelloRequest, context: grpc.ServicerContext
    ) -> greeter_pb2.HelloReply:
        """Does the shape's work, and replies ``Hello NAME``."""
        self._work()
        return greeter_pb2.HelloReply(message=f"Hello {request.name}")


def main() -> None:
    """Serves until a signal ends the server."""
    parser = argparse.ArgumentParser(description="The greeter of gRPC's examples, whose requests take various things.")
    parser.add_argument("--shape", choices=SHAPES, required=True, help="what a request does")
    parser.add_argument("--workers", type=int, default=10, help="threads of the pool (default: 10)")
    parser.add_argument("--port", type=int, default=50051, help="where to listen, on 127.0.0.1 (default: 50051)")
    options = parser.parse_args()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=options.workers))
    greeter_pb2_grpc.add_GreeterServicer_to_server(Greeter(options.shape), server)
    server.add_insecure_port(f"127.0.0.1:{options.port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
