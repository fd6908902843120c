"""The C client for HTTP/1.1: counts of requests and replies, checks of replies, and times."""

import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from experiments.design.arms import Arm
from experiments.design.setting import setting
from experiments.design.sweep import Windows
from experiments.measure.bench import CATALOG, bench
from experiments.measure.http_load import HttpAsk, run
from experiments.measure.load_programs import LoadProgram, c_http, load_programs
from experiments.measure.programs import ProgramFailed
from experiments.measure.runner import measure_block
from experiments.results.observed import ALL, KEPT, SILENT
from stock_service.rpc.transports import Address
from tests.unit.experiments.blocks import on_servers

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler as cc")]


@pytest.fixture(scope="module")
def load() -> Iterator[Path]:
    """The program, built once."""
    with load_programs(("c-http",)) as built:
        program = built["c-http"]
        assert isinstance(program, LoadProgram)
        yield program.program


@contextmanager
def server(*bodies: bytes, status: bytes = b"200 OK") -> Iterator[tuple[Address, dict[int, bytes]]]:
    """A server that answers one request on each connection with the next body, or with the last body, and closes. The
    mapping gets each request, by the moment before its answer."""
    asked: dict[int, bytes] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:

        def serve() -> None:
            while True:
                connection, _ = listening.accept()
                with connection:
                    request = connection.recv(4096)
                    if not request:
                        return
                    body = bodies[min(len(asked), len(bodies) - 1)]
                    length = str(len(body)).encode()
                    asked[time.monotonic_ns()] = request
                    connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %s\r\n\r\n%s" % (status, length, body))

        serving = threading.Thread(target=serve, name="one-reply-server")
        serving.start()
        try:
            yield listening.getsockname(), asked
        finally:
            socket.create_connection(listening.getsockname()).close()
            serving.join()


def test_every_request_is_counted(load: Path, tmp_path: Path) -> None:
    """Requests of the warm-up are counted separately. Bytes are of whole requests and replies. The file has every
    counted time in ns, with 64 bits."""
    with server(b"{}") as (address, asked):
        ask = HttpAsk(address, "PUT /a/{id}", '{"id":{id}}', connections=2, requests=40, warm_up=5, per_id=2)
        seen = run(load, ask, tmp_path / "times")
    assert (seen.requests, seen.errors, seen.all_requests, len(asked)) == (40, 0, 45, 45)
    assert seen.first_reply == b"{}"
    assert seen.received_bytes == 40 * len(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    assert seen.sent_bytes == sum(
        map(len, sorted(asked.values(), key=lambda each: int(each.split(b"/")[2].split()[0]))[5:])
    )
    assert 0 < seen.connect_us < seen.response_us
    assert seen.ended_ns - seen.began_ns == pytest.approx(seen.total_s * 1e9, rel=1e-3)
    assert seen.response_us * seen.requests <= 2 * seen.total_s * 1e6
    times_ns = np.fromfile(tmp_path / "times", dtype=np.int64)
    assert len(times_ns) == 40
    assert times_ns.mean() / 1000 == pytest.approx(seen.response_us, abs=0.01)
    assert 0 < seen.cpu_s <= seen.elapsed_s * 1.01, "one thread took more than all of the load's time"


def test_what_counts_begins_behind_the_warm_up(load: Path) -> None:
    """The counted requests begin after the end of the last warm-up request."""
    with server(b"{}") as (address, asked):
        seen = run(load, HttpAsk(address, "GET /", connections=5, requests=40, warm_up=20))
    answered_ns = [*asked]
    assert (seen.requests, len(answered_ns)) == (40, 60)
    assert answered_ns[19] < seen.began_ns < answered_ns[20]
    assert seen.response_us <= 5 * seen.total_s * 1e6 / seen.requests, "Little's law"


def test_a_connection_that_cannot_begin_is_an_error(load: Path) -> None:
    """A connection that cannot begin, or that the port refuses, is an error. A hundred connections that cannot begin
    end the program with the reason."""
    nobody = "255.255.255.255", 9  # an address that TCP refuses before it sends anything
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closed = listening.getsockname()
    assert [run(load, HttpAsk(at, "GET /", requests=7)).errors for at in (nobody, closed)] == [7, 7]
    with pytest.raises(ProgramFailed, match="100 connections could not begin"):
        run(load, HttpAsk(nobody, "GET /", requests=1000))


def test_a_broken_pipe_does_not_end_it(load: Path) -> None:
    """SIGPIPE does not end the client while it waits for a reply."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        at = ":".join(map(str, listening.getsockname()))
        command = [str(load), "--address", at, "--request", "GET /", "--requests", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                program.send_signal(signal.SIGPIPE)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            said, _ = program.communicate(timeout=10)
    assert program.returncode == 0
    assert b'"requests": 1' in said


def test_the_key_is_filled_in(load: Path) -> None:
    """Key and turn are filled into path, body and expected reply, for each request of each key."""
    with server(*(b"is %d" % (each // 2) for each in range(7, 17))) as (address, asked):
        ask = HttpAsk(address, "PUT /a/{id}", "{turn} of {id}", requests=6, first_id=3, per_id=2, expect="is {id}")
        seen = run(load, ask)
    sent = [(each.split(b" ")[1], each.rpartition(b"\r\n\r\n")[2]) for each in asked.values()]
    assert sent == [(b"/a/%d" % key, b"%d of %d" % (turn, key)) for key in (3, 4, 5) for turn in (0, 1)]
    assert (seen.requests, seen.errors) == (3, 3), "the server counts in halves from another number"


def test_another_reply_is_an_error(load: Path) -> None:
    """A reply with another body than the first reply is an error, and so is a status other than 200."""
    with server(b"a", b"a", b"b", b"a") as (address, _):
        assert (seen := run(load, HttpAsk(address, "GET /", requests=10))).errors == 1
        assert seen.requests == 9
    with server(b"a", status=b"404 Not Found") as (address, _):
        seen = run(load, HttpAsk(address, "GET /", requests=10))
    assert (seen.requests, seen.errors, seen.throughput_hz, seen.response_us) == (0, 10, 0, 0)


def test_bad_options_end_it(load: Path) -> None:
    """Options with neither a number of requests nor a time end the program."""
    with pytest.raises(ProgramFailed, match="--requests or --seconds"):
        run(load, HttpAsk(("127.0.0.1", 1), "GET /"))


def test_it_drives_an_arm_in_windows(load: Path) -> None:
    """Windows have the client's processor time, and the server's processor time of all requests. A window with wrong
    replies is silent."""
    base = setting(service="entity", transport="http1", client="c-http", connections=3, connection="per-request")
    arms = tuple(Arm(base.but(mix=mix)) for mix in ("get", "put"))
    served = "-m experiments.services serve echo --transport http1 --port 0"
    echo = shlex.join([sys.executable, *served.split()])
    other = Arm(base.but(service=echo, mix="get"))
    sweep = on_servers(Windows(0.05, 0.3), *arms, other)
    block = measure_block(sweep, 1, 1, bench(CATALOG, load_programs={"c-http": LoadProgram(load, c_http)}))
    fates = dict(zip(block.slices.arm, block.slices.fate, strict=True))
    assert fates == {0: KEPT, 1: KEPT, 2: SILENT}
    for place, arm in enumerate(block.slices.arm):
        if arm == 2:
            continue
        counted = block.slices.counts[ALL][place]
        assert 0 < counted < block.slices.requests[place]
        assert block.slices.server_cpu_ns[place] > 0
        assert block.slices.client_cpu_ns[place] > 0
    assert [sum(arm.answered[ALL].errors.values()) > 0 for arm in block.arms] == [False, False, True]
