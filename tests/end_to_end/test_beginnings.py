"""Servers in a poor start: with closed standard streams, with few files to open, and stopped before they are ready."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.running import until
from tests.covering import each_once
from tests.end_to_end.process import ROOT, STARTS, WAIT_S, Ended, Running

pytestmark = pytest.mark.slow

START_OF = {**STARTS, "processes": (*STARTS["socket_server"], "--processes", "2")}
STREAMS = {"stdin": "<&-", "all": "<&- >&- 2>&-"}


def closed(streams: str) -> tuple[str, ...]:
    """The shell's words that start ``python -m`` with some standard streams closed."""
    return ("/bin/sh", "-c", f'exec "{sys.executable}" -m "$@" {streams}', "sh")


def free_address() -> tuple[str, int]:
    """An address at which no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return ("127.0.0.1", free.getsockname()[1])


@pytest.mark.parametrize(
    ("streams", "start"), [("stdin", "socket_server"), ("all", "grpc_server"), ("all", "processes")]
)
def test_closed_standard_streams_change_nothing(streams: str, start: str) -> None:
    """With closed standard streams the server serves, and ends with 0 after SIGTERM."""
    address = free_address()
    with Running(*START_OF[start], "--port", str(address[1]), program=closed(STREAMS[streams])) as server:
        until(lambda: reached(address) or not server.runs(), "it listens")
        server.signal(signal.SIGTERM)
        assert server.ended().code == 0


BEGINNINGS = ("socket_server", "grpc_server", "serve_sockets", "processes")
"""A command for each module that a server begins with, and a command with several processes."""


@pytest.mark.parametrize(("start", "reader"), each_once(BEGINNINGS, ("full", "gone")))
def test_a_ready_line_that_cannot_be_written_ends_the_server(start: str, reader: str) -> None:
    """A ready line that cannot be written ends the server: one line, exit code 1, and no process is left."""
    address = free_address()
    words = (*START_OF[start], "--port", str(address[1]), "--drain-s", "600")
    ended = unread(reader, *words)
    assert ended.code == 1
    assert "the ready line could not be written on standard output" in ended.error
    assert not reached(address)


def test_a_successor_without_a_ready_line_leaves_the_last_server_serving(tmp_path: Path) -> None:
    """The successor stops before the last server ends. The last server keeps its socket, and serves on."""
    offer = tmp_path / "run.socket"
    words = (*STARTS["socket_server"][:1], "--store", f"sqlite:{tmp_path}/stocks.sqlite3", "--hand-over", str(offer))
    address = free_address()
    with Running(*words, "--port", str(address[1])) as first:
        assert first.line().startswith("ready")
        ended = unread("full", *words, "--port", str(address[1]))
        assert (first.runs(), ended.code) == (True, 1)
        assert reached(address)
        assert offer.exists()
        first.signal(signal.SIGTERM)
        assert first.ended().code == 0
    assert "Traceback" not in ended.stderr
    assert "the ready line could not be written" in ended.stderr
    assert not offer.exists()
    assert not reached(address)


def unread(reader: str, *arguments: str) -> Ended:
    """Runs ``python -m`` to its end. Standard output is full, or its reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as gone, open("/dev/full", "wb") as full:
        output = gone if reader == "gone" else full
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=WAIT_S,
            check=False,
        )
    return Ended(done.returncode, "", done.stderr.decode())


def reached(address: tuple[str, int]) -> bool:
    """True if a server listens at the address."""
    try:
        socket.create_connection(address, 10.0).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(("start", "number"), each_once(BEGINNINGS, (signal.SIGTERM, signal.SIGINT)))
def test_a_signal_before_it_is_ready_stops_it(start: str, number: signal.Signals) -> None:
    """A signal during the imports acts as a later one: exit code 0, and an empty log."""
    with Running(*START_OF[start], "--port", "0") as server:
        maps = Path(f"/proc/{server.pid}/maps")
        until(lambda: "upb" in maps.read_text() or not server.runs(), "it has loaded protobuf")
        server.signal(number)
        ended = server.ended()
        assert (ended.code, ended.stderr) == (0, "")
        assert ended.stdout.count("\n") <= 1, "its ready line at most"


@pytest.mark.parametrize(
    ("files", "said"), [(64, "got 64, allowed: 4160 or more"), (100, "got 4096, allowed: up to 36")]
)
def test_too_few_files_to_open_is_said(files: int, said: str) -> None:
    """With too few descriptors, a line names the limit that is too small: the option, or the system's limit."""
    shell = ("/bin/sh", "-c", f'ulimit -n {files}; exec "{sys.executable}" -m "$@"', "sh")
    with Running(*STARTS["socket_server"], "--port", "0", program=shell) as server:
        ended = server.ended()
        assert (ended.code, ended.stdout) == (2, "")
        assert said in ended.error
