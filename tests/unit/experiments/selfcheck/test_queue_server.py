"""The queue server: known service times, computed departures, and the log."""

import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from clients.load.run import priority
from experiments.selfcheck.load import queue_server
from experiments.selfcheck.queue_server import Log, Options, QueueServer, main, read_log, service_times_ns
from experiments.selfcheck.theory import lindley
from stock_service.rpc.wire.framing import ReplyFrame, encode_request, reply_decoder
from stock_service.trading.service import LOOKUP


@contextmanager
def serving(options: Options) -> Iterator[QueueServer]:
    """Context of a server in a thread. At the end of the context the server is stopped and has written its log."""
    server = QueueServer(options)
    thread = threading.Thread(target=server.serve, name="queue-server")
    thread.start()
    try:
        yield server
    finally:
        with socket.socket(fileno=server.stop_descriptor) as stop:
            stop.send(b"\0")
            stop.detach()
        thread.join()
        server.close()


def replies(connected: socket.socket, count: int) -> list[ReplyFrame]:
    """The next replies on a connection."""
    decoder = reply_decoder()
    got: list[ReplyFrame] = []
    while len(got) < count:
        data = connected.recv(65536)
        assert data, "the server closed the connection"
        got += decoder.feed(data)
    return got


def exchange(options: Options, requests: int) -> tuple[list[int], Log]:
    """Sends requests together on one connection: the calls in the order of their replies, and the log."""
    with serving(options) as server, socket.create_connection(("127.0.0.1", server.port), 10) as connected:
        connected.sendall(b"".join(encode_request(call, 0, LOOKUP.encode(), b"") for call in range(1, requests + 1)))
        calls = [reply.call for reply in replies(connected, requests)]
    assert options.log is not None
    return calls, read_log(options.log)


def test_service_times_are_known() -> None:
    """A seed gives one sequence of service times, another seed another. The mean is the asked one."""
    first, again, other = (list(itertools.islice(service_times_ns(0.002, seed), 20_000)) for seed in (1, 1, 2))
    assert first == again != other
    assert np.mean(first) == pytest.approx(2e6, rel=0.03)
    assert np.std(first) == pytest.approx(2e6, rel=0.05)


@pytest.mark.parametrize("servers", [1, 3])
def test_departures_are_those_of_the_recursion(servers: int, tmp_path: Path) -> None:
    """The log's arrivals and the seed alone give every logged departure. Replies leave in that order."""
    options = Options(servers, mean_s=0.0005, seed=3, log=tmp_path / "log")
    calls, log = exchange(options, 40)
    services = service_times_ns(0.0005, 3)
    assert (log.departure_ns - log.arrival_ns).tolist() == lindley(log.arrival_ns.tolist(), services, servers)
    assert calls == log.call[np.argsort(log.departure_ns, kind="stable")].tolist()
    assert (log.sent_ns >= log.departure_ns).all()
    assert log.call.tolist() == list(range(1, 41))


def test_queues_are_chosen_by_a_seeded_coin(tmp_path: Path) -> None:
    """The seed decides the queue of each request. Each queue gets about its part, and is served apart from the
    others."""
    options = Options(queues=4, mean_s=0.0001, seed=5, log=tmp_path / "log")
    _, log = exchange(options, 400)
    _, again = exchange(options, 400)
    assert log.queue.tolist() == again.queue.tolist()
    assert np.bincount(log.queue, minlength=4).min() > 60
    services = np.array(list(itertools.islice(service_times_ns(0.0001, 5), 400)))
    for queue in range(4):
        here = log.queue == queue
        expected = lindley(log.arrival_ns[here].tolist(), services[here].tolist(), 1)
        assert (log.departure_ns - log.arrival_ns)[here].tolist() == expected


def test_connections_are_numbered_as_they_came(tmp_path: Path) -> None:
    """The log names connections in the order in which they were made; calls by the client's number."""
    options = Options(mean_s=0.0, log=tmp_path / "log")
    with serving(options) as server:
        address = ("127.0.0.1", server.port)
        with socket.create_connection(address, 10) as first, socket.create_connection(address, 10) as second:
            for connected, call in ((second, 7), (first, 9)):
                connected.sendall(encode_request(call, 0, LOOKUP.encode(), b""))
                assert [reply.call for reply in replies(connected, 1)] == [call]
    assert options.log is not None
    log = read_log(options.log)
    assert (log.connection.tolist(), log.call.tolist()) == ([1, 0], [7, 9])


def test_what_arrived_departs_after_the_stop(tmp_path: Path) -> None:
    """A reply that is still to come when the server is stopped is sent before it ends."""
    options = Options(mean_s=0.05, log=tmp_path / "log")
    with serving(options) as server:
        connected = socket.create_connection(("127.0.0.1", server.port), 10)
        connected.sendall(b"".join(encode_request(call, 0, LOOKUP.encode(), b"") for call in (1, 2)))
        assert [reply.call for reply in replies(connected, 1)] == [1]
    with connected:
        assert [reply.call for reply in replies(connected, 1)] == [2]
        assert connected.recv(1) == b""


def test_a_client_that_leaves_is_forgotten(tmp_path: Path) -> None:
    """Requests of a client that has left depart to nobody, and others are served. So it is after a client without
    frames."""
    options = Options(mean_s=0.001, log=tmp_path / "log")
    with serving(options) as server:
        address = ("127.0.0.1", server.port)
        with socket.create_connection(address, 10) as leaving:
            leaving.sendall(encode_request(1, 0, LOOKUP.encode(), b""))
        with socket.create_connection(address, 10) as wrong:
            wrong.sendall(b"\xff" * 64)
            assert wrong.recv(1) == b""
        with socket.create_connection(address, 10) as connected:
            connected.sendall(encode_request(2, 0, LOOKUP.encode(), b""))
            assert [reply.call for reply in replies(connected, 1)] == [2]


@pytest.mark.skipif(not priority.allowed(), reason="no right to real-time priority here: run as root")
@pytest.mark.parametrize("real_time", [True, False])
def test_it_has_real_time_priority_where_it_is_asked_for(real_time: bool) -> None:
    """The server has real-time priority before its ready line."""
    with queue_server(Options(real_time=real_time)) as (program, _):
        assert os.sched_getscheduler(program.pid) == (os.SCHED_FIFO if real_time else os.SCHED_OTHER)


def test_who_never_sleeps_gets_no_real_time_priority(capsys: pytest.CaptureFixture[str]) -> None:
    """A spinning server gets no real-time priority, which would keep all other programs off its core."""
    with pytest.raises(SystemExit):
        main(["--spin", "--real-time"])
    assert "--real-time: not allowed with argument --spin" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True], ids=["idle", "before a departure"])
def test_it_sleeps_unless_it_is_to_spin(waits: bool) -> None:
    """Without requests, and until shortly before a departure, a server that may sleep takes hardly any processor
    time."""
    with queue_server(Options(mean_s=0.5)) as (program, address):
        with socket.create_connection(address, 10) as connected:
            began_s, before_s = time.monotonic(), program.cpu_s()
            if waits:
                connected.sendall(encode_request(1, 0, LOOKUP.encode(), b""))
            connected.settimeout(0.4)
            with pytest.raises(TimeoutError):
                connected.recv(1)
            assert program.cpu_s() - before_s < 0.25 * (time.monotonic() - began_s)
