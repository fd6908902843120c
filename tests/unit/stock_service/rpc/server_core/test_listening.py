"""A listener that goes from one server to the next: who accepts what waits."""

import resource
import select
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Literal

import pytest

from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.server_core.connection import arrived_bytes
from stock_service.rpc.server_core.listening import RECEIVE_BYTES, Listening
from stock_service.rpc.server_core.options import PassedListener, ServeOptions
from stock_service.rpc.transports.sockets import SocketOptions, serve
from tests.conformance.raw_socket import RawSocket
from tests.raw_service import raw_service

WAIT_S = 10.0


@pytest.fixture
def passed() -> Iterator[PassedListener]:
    """A listener that was passed on, on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield PassedListener(listener)


@pytest.mark.parametrize("dispatch", ["request", "connection"])
@pytest.mark.parametrize("passed_on", [True, False])
def test_a_server_that_stops_leaves_what_waits_to_the_next(
    dispatch: Literal["request", "connection"], passed_on: bool, passed: PassedListener
) -> None:
    """A server that stops leaves waiting connections to the next one, once the listener is passed on. Else they are
    taken and closed."""
    executor = EXECUTORS["static-pool"](1, 1)
    options = ServeOptions(listener=passed, own=SocketOptions(dispatch=dispatch))
    server = serve(raw_service("test", {"/test/echo": lambda payload: payload}), executor, options)
    passed.passed_on = passed_on
    with RawSocket(server.address):
        assert server.stop(WAIT_S)
        executor.stop(WAIT_S)
        passed.socket.setblocking(False)
        if passed_on:
            passed.socket.accept()[0].close()
        else:
            with pytest.raises(BlockingIOError):
                passed.socket.accept()


def test_what_waits_unread_is_bounded() -> None:
    """The kernel holds no more of an accepted connection than it was told, though its client sends on and on."""
    listening = Listening(ServeOptions(port=0), select.epoll)
    with closing(listening.epoll), closing(listening), socket.socket() as like_it:
        like_it.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        bound = like_it.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)  # what the kernel makes of it
        with socket.create_connection(listening.address, WAIT_S) as client:
            ((accepted, _),) = listening.accepted(1)
            with closing(accepted):
                client.setblocking(False)
                with suppress(BlockingIOError):
                    while True:
                        client.send(bytes(1 << 20))
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == bound
                assert 0 < arrived_bytes(accepted) <= bound <= 2 * RECEIVE_BYTES


def test_without_room_the_log_says_only_why(caplog: pytest.LogCaptureFixture) -> None:
    """Without room the log has only the reason. Each server decides when it accepts again: after a close, or after a
    while."""
    listening = Listening(ServeOptions(port=0), select.epoll)
    with closing(listening.epoll), closing(listening), RawSocket(listening.address):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
            assert [*listening.accepted(1)] == []
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caplog.messages == ["no room for another connection: Too many open files"]
    assert not listening.accepting


def test_a_closed_one_wakes_nobody(passed: PassedListener) -> None:
    """A connection that comes while another process has the listener wakes no thread of this one."""
    listening = Listening(ServeOptions(listener=passed), select.epoll)
    with closing(listening.epoll):
        listening.close()
        listening.close()
        with RawSocket(listening.address):
            assert listening.epoll.poll(0) == []
