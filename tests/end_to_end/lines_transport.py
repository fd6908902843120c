"""A transport in one file, as a newcomer would add one: a request is a line of text, and so is its reply.

Used by ``test_recipes.py`` alone. Left out: TLS, callers, limits, deadlines, a stop that waits for requests
under way.
"""

import argparse
import socket
from functools import partial
from threading import Lock, Thread

from stock_service.rpc.call import Call
from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import FAULTS, Fault, Unavailable, UnknownMethod
from stock_service.rpc.option_types import integer
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server

LABEL = "lines of text"
DEFAULT_PORT = 50099
DEFAULT_EXECUTOR = "static-pool"
REFUSED_EXECUTORS: dict[str, str] = {"leader-followers": "a thread reads one connection"}
TAKES_LISTENER = False
TLS_PROTOCOLS = ()


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--waiting``."""
    parser.add_argument("--waiting", type=integer(1, 1000), required=True, help="connections that may wait")


def own_options(options: argparse.Namespace) -> int:
    """The options that were given."""
    waiting: int = options.waiting
    return waiting


def codec(_address: Address) -> None:
    """No codec: only this file speaks the protocol."""


def null_answers(_reply: bytes) -> None:
    """No null server: only this file speaks the protocol."""


class _Server:
    """See ``transports.Server``. A connection is a task."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        assert isinstance(options.own, int)
        self._answers = {path: method.answer_call() for path, method in service.methods.items()}
        self._executor = executor
        self._listener = socket.create_server((options.host, options.port), backlog=options.own)
        self.address: Address = self._listener.getsockname()
        self._lock = Lock()  # guards _open and the closing of each socket in it
        self._open: set[socket.socket] = set()
        self._thread = Thread(target=self._accept, name="lines-acceptor")
        self._thread.start()

    def stop(self, grace_s: float) -> bool:
        if self._thread.is_alive():
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._listener.close()
        with self._lock:
            for connection in self._open:
                connection.shutdown(socket.SHUT_RDWR)
        return True

    def _accept(self) -> None:
        while True:
            try:
                accepted, peer = self._listener.accept()
            except OSError:  # stopped
                return
            with self._lock:
                self._open.add(accepted)
            self._executor.execute(partial(self._serve, accepted, f"{peer[0]}:{peer[1]}"))

    def _serve(self, connection: socket.socket, peer: str) -> None:
        with connection.makefile("rwb") as lines:
            for line in lines:
                path, payload = line.decode().rstrip("\n").split(" ")
                lines.write(self._answered(path, Call(bytes.fromhex(payload), peer)).encode() + b"\n")
                lines.flush()
        with self._lock:
            self._open.discard(connection)
            connection.close()

    def _answered(self, path: str, call: Call) -> str:
        try:
            if path not in self._answers:
                raise UnknownMethod(path)
            return f"0 {self._answers[path](call).hex()}"
        except Fault as fault:
            return f"{fault.code:d} {fault.detail.encode().hex()}"


class _Connection:
    """See ``transports.Connection``."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        try:
            self._socket = socket.create_connection(address, timeout_s)
        except OSError as error:
            raise Unavailable(str(error)) from error
        self._lines = self._socket.makefile("rwb")

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        self._lines.write(f"{path} {payload.hex()}\n".encode())
        self._lines.flush()
        code, _, reply = self._lines.readline().decode().partition(" ")
        if code != "0":
            raise FAULTS[int(code)](bytes.fromhex(reply).decode())
        return bytes.fromhex(reply)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns."""
    return _Server(service, executor, options)


def connect(address: Address, timeout_s: float) -> Connection:
    """A connection that is made when this returns."""
    return _Connection(address, timeout_s)
