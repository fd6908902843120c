"""The project's programs as real processes: servers by their ready line, and programs that run to their end."""

import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Self

from stock_service.rpc.transports import Address
from stock_service.v1 import stock_pb2

ROOT = Path(__file__).resolve().parents[2]

WAIT_S = 30.0
"""Longest time for a program to start or to end, on a very busy machine; half a second is usual."""

STARTS: dict[str, tuple[str, ...]] = {
    "socket_server": ("stock_service.socket_server", "--store", "memory"),
    "grpc_server": ("stock_service.grpc_server", "--store", "memory"),
    "serve_sockets": ("stock_service", "serve", "--transport", "sockets", "--store", "memory"),
    "serve_grpc": ("stock_service", "serve", "--transport", "grpc", "--store", "memory"),
}
"""Every way to start a server, without a store: the words after ``python -m``."""

TRADE_ONE = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()
LOOKUP_ONE = stock_pb2.LookupRequest(name="FishCo").SerializeToString()

TRANSPORT_OF = {"socket_server": "sockets", "grpc_server": "grpc", "serve_sockets": "sockets", "serve_grpc": "grpc"}


def serve(transport: str, *options: str) -> tuple[str, ...]:
    """The words after ``python -m`` that start a server on a transport, without a store."""
    return ("stock_service", "serve", "--transport", transport, "--store", "memory", *options)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program: the exit code, standard output and standard error."""

    code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one line on standard error; fails if it is not one."""
        lines = self.stderr.splitlines()
        assert len(lines) == 1, f"{len(lines)} lines on standard error:\n{self.stderr}"
        return lines[0]


def run(*arguments: str, project: Path = ROOT, wait_s: float = WAIT_S) -> Ended:
    """Runs ``python -m`` with these arguments to its end, in a folder with the project's packages."""
    command, here = [sys.executable, "-m", *arguments], subprocess.DEVNULL
    done = subprocess.run(command, cwd=project, stdin=here, capture_output=True, text=True, timeout=wait_s, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


class Running:
    """A running program. The end of the ``with`` block kills the program if it still runs. The arguments go to ``python
    -m``, or to the command ``program``.
    """

    def __init__(self, *arguments: str, program: Sequence[str] = (sys.executable, "-m")) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._process = subprocess.Popen(
            [*program, *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def line(self) -> str:
        """The next line on standard output. Blocks for ``WAIT_S`` at most."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(WAIT_S), f"no line within {WAIT_S:g} s"
        return self._process.stdout.readline().removesuffix("\n")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._process.send_signal(number)

    def runs(self) -> bool:
        """True if the process has not ended."""
        return self._process.poll() is None

    def said(self) -> str:
        """The text on standard error so far."""
        return os.pread(self._stderr.fileno(), 1 << 20, 0).decode()

    def ended(self) -> Ended:
        """The end of the program, with the text since the last ``line``. Blocks for ``WAIT_S`` at most."""
        assert self._process.stdout is not None
        code = self._process.wait(WAIT_S)
        return Ended(code, self._process.stdout.read(), self.said())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._stderr.close()


class Server(Running):
    """A server on a free port, after its ready line. ``start`` follows ``python -m``, or is the whole command if
    ``program`` is empty."""

    def __init__(self, start: Sequence[str], *options: str, program: Sequence[str] = (sys.executable, "-m")) -> None:
        super().__init__(*start, "--port", "0", *options, program=program)
        try:
            self.ready = self.line()
            word, _, where = self.ready.partition(" ")
            assert word == "ready", f"its first line: {self.ready!r}"
            host, _, port = where.rpartition(":")
            self.address: Address = (host, int(port))
        except BaseException:
            self.__exit__(None, None, None)
            raise

    @property
    def at(self) -> str:
        """Address as HOST:PORT."""
        return f"{self.address[0]}:{self.address[1]}"

    def stopped(self, number: signal.Signals = signal.SIGTERM) -> Ended:
        """Sends the program SIGTERM. Gives its end, and its output after the ready line."""
        self.signal(number)
        return self.ended()


def metrics_pages(server: Running) -> list[str]:
    """The metrics of each process of a server, as read over HTTP."""
    pages = []
    for address in re.findall(r"^metrics at (.*)$", server.said(), re.MULTILINE):
        with closing(HTTPConnection(address, timeout=WAIT_S)) as asking:
            asking.request("GET", "/metrics")
            reply = asking.getresponse()
            assert reply.status == 200
            pages.append(reply.read().decode())
    return pages
