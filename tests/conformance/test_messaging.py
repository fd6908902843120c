"""What ZeroMQ and NNG have in common: bounds kept a library's own way or not at all, and a library that is missing."""

import socket
import subprocess
import sys
import time

import pytest

from stock_service.rpc.errors import DeadlineExceeded, InvalidRequest, Unavailable, UsageError
from stock_service.rpc.messaging.answering import DROPPED_TIMES
from stock_service.rpc.transports import ServeOptions, load
from stock_service.rpc.transports.nng.client import NngConnection
from stock_service.rpc.wire.messages import HEADER_BYTES_MAX
from tests.conformance.running import ECHO, WAIT_S, Kind, Limits, Probe, maker, until
from tests.conformance.transport_lifecycle import answers

both = pytest.mark.parametrize("transport", ["zeromq", "nng"])

FRAME_BYTES_MAX = 1000


@both
def test_a_sender_of_far_too_much_is_dropped(transport: str) -> None:
    """A request over the limit is told so up to four times the limit; over that its connection is lost."""
    options = ServeOptions(frame_bytes_max=FRAME_BYTES_MAX)
    with maker(Kind(transport, "static-pool"))(Probe().service, Limits(options=options)) as running:
        client = running.connect()
        most = DROPPED_TIMES * FRAME_BYTES_MAX
        with pytest.raises(InvalidRequest, match=f"allowed: {FRAME_BYTES_MAX}"):
            client.call(ECHO, bytes(most - HEADER_BYTES_MAX), WAIT_S)
        with pytest.raises(Unavailable, match="lost"):
            client.call(ECHO, bytes(most), WAIT_S)
        assert client.call(ECHO, b"again", WAIT_S) == b"again"


@pytest.mark.parametrize(
    ("transport", "limit"),
    [("zeromq", "connections_max"), ("zeromq", "pipeline_max"), ("nng", "idle_s"), ("nng", "pipeline_max")],
)
def test_a_limit_that_the_library_keeps_from_being_kept_is_refused(transport: str, limit: str) -> None:
    """And not ignored: the server does not start."""
    options = ServeOptions(**{limit: 7})  # type: ignore[arg-type]  # each a number
    with pytest.raises(UsageError, match=f"--{limit.replace('_', '-')}: got 7, allowed: to leave it out"):
        maker(Kind(transport, "static-pool"))(Probe().service, Limits(options=options))


def test_nng_closes_a_connection_that_is_one_too_many() -> None:
    """Those there go on, and when one leaves there is room again."""
    options = ServeOptions(connections_max=2)
    with maker(Kind("nng", "static-pool"))(Probe().service, Limits(options=options)) as running:
        first, second = running.connect(), running.connect()
        assert [each.call(ECHO, b"0", WAIT_S) for each in (first, second)] == [b"0", b"0"]  # the server has both
        with pytest.raises(Unavailable):
            running.connect().call(ECHO, b"3", WAIT_S)
        assert [each.call(ECHO, b"1", WAIT_S) for each in (first, second)] == [b"1", b"1"]
        first.close()
        until(lambda: answers(running.connect()), "there is room again")


class ToldLate(list[object]):
    """Lost connections: empty at the first look, since NNG tells of a loss after the connection is gone."""

    looks = 0

    def __bool__(self) -> bool:
        self.looks += 1
        return self.looks > 1


def test_a_loss_that_nng_tells_late_ends_a_call_soon() -> None:
    """A call that begins between the two is told at its next look, and not at its timeout."""
    with maker(Kind("nng", "static-pool"))(Probe().service) as running:
        client = running.connect()
        assert isinstance(client, NngConnection)
        assert running.stop()
        until(lambda: bool(client._lost), "the client is told")
        client._lost = ToldLate()
        began_s = time.monotonic()
        with pytest.raises(Unavailable, match="lost: the server closed it"):
            client.call(ECHO, b"1", WAIT_S)
        assert time.monotonic() - began_s < WAIT_S / 2


@both
@pytest.mark.parametrize("backlog", [0, 1], ids=["no room", "no word"])
def test_connecting_keeps_its_timeout(transport: str, backlog: int) -> None:
    """To a port whose backlog is full, and to one where nobody says hello: DeadlineExceeded, in time."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as silent:
        address = silent.getsockname()
        with socket.create_connection(address, WAIT_S):
            began_s = time.monotonic()
            with pytest.raises(DeadlineExceeded, match=r"within 0\.1 s"):
                load(transport).connect(address, 0.1)
            assert 0.1 <= time.monotonic() - began_s < WAIT_S / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "stock_service serve --port 0 --store memory",
        "clients.trader lookup FishCo",
        "clients.price_updater --duration-s 1",
        "clients.load --client library --duration-s 1",
    ],
)
@pytest.mark.parametrize(("transport", "package"), [("zeromq", "zmq"), ("nng", "pynng")])
def test_a_missing_library_is_one_line(transport: str, package: str, words: str) -> None:
    """Which names it; exit code 2."""
    hidden = f"import sys, runpy; sys.modules[{package!r}] = None; sys.argv = sys.argv[1:]; "
    program = hidden + "runpy.run_module(sys.argv[0], run_name='__main__')"
    arguments = [*words.split(), "--transport", transport]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert f"--transport: got '{transport}', allowed: another, or this one with its library: py" in done.stderr
