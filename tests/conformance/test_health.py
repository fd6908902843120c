"""The health call, on every transport: whether a server serves."""

import socket
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from stock_service.rpc.errors import NotFound
from stock_service.rpc.health import CHECK, Health
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.transports import Connection, ServeOptions
from stock_service.trading.service import stock_service
from tests.conformance.kept import GRPC
from tests.conformance.running import WAIT_S, Kind, Limits, Probe, maker, one_executor_each, stopping
from tests.conformance.transports import fresh_exchange

HAPROXY = Path(__file__).resolve().parents[2] / "stock_service" / "balancers" / "haproxy.cfg"


def asked(connection: Connection, name: str = "") -> int:
    """The status that the server says of itself."""
    reply = connection.call(CHECK, HealthCheckRequest(service=name).SerializeToString(), WAIT_S)
    return int(HealthCheckResponse.FromString(reply).status)


@pytest.mark.parametrize("kind", one_executor_each(1), ids=str)
def test_a_server_says_whether_it_serves(kind: Kind) -> None:
    """SERVING; NOT_SERVING as long as its service is sick, and once it stops; NOT_FOUND for another service."""
    service, sick = stock_service(fresh_exchange()), [False]
    health = Health(service.name, lambda: sick[0])
    with maker(kind)(replace(service, health=health)) as running:
        connection = running.connect()
        assert asked(connection) == asked(connection, service.name) == HealthCheckResponse.SERVING
        sick[0] = True
        assert asked(connection) == asked(connection, service.name) == HealthCheckResponse.NOT_SERVING
        sick[0] = False
        assert asked(connection) == HealthCheckResponse.SERVING
        health.stop()
        assert asked(connection) == HealthCheckResponse.NOT_SERVING
        with pytest.raises(NotFound):
            asked(connection, "another.Service")


on_some = pytest.mark.parametrize("kind", [kind for kind in one_executor_each(0) if kind.transport in GRPC], ids=str)


@on_some
def test_a_watch_says_each_change_at_once(kind: Kind) -> None:
    """A watch says that the service is sick, is well again, and that the server is about to stop; nothing twice."""
    service, sick = stock_service(fresh_exchange()), [False]
    health = Health(service.name, lambda: sick[0])
    with maker(kind)(replace(service, health=health)) as running:
        with grpc.insecure_channel("{}:{}".format(*running.address)) as channel:
            watches = [
                HealthStub(channel).Watch(HealthCheckRequest(service=name), WAIT_S) for name in ("", service.name)
            ]
            assert [next(watch).status for watch in watches] == [HealthCheckResponse.SERVING] * 2
            for sick[0] in (True, False):
                health.changed()
                health.changed()
                expected = HealthCheckResponse.NOT_SERVING if sick[0] else HealthCheckResponse.SERVING
                assert [next(watch).status for watch in watches] == [expected] * 2
            health.stop()
            assert [next(watch).status for watch in watches] == [HealthCheckResponse.NOT_SERVING] * 2
            assert asked(running.connect()) == HealthCheckResponse.NOT_SERVING, "it still serves"
            stop = stopping(running)
            assert [list(watch) for watch in watches] == [[], []]
            assert stop.result()


class Counting(Health):
    """Counts how often it was looked at for a watch."""

    looks = 0

    def watched(self, request: HealthCheckRequest) -> HealthCheckResponse:
        """See ``Health``."""
        self.looks += 1
        return super().watched(request)


@on_some
def test_a_watch_costs_what_one_does(kind: Kind) -> None:
    """A watch costs the same beside many others. A watch whose client has left costs nothing more. More watches than
    may wait for a thread hear of a change and of the stop."""
    number, health = 30, Counting("")
    limits = Limits()
    if kind.transport == "grpc_static":
        limits = Limits(1, 10, ServeOptions(own=ReadOptions(read_timeout_s=300.0)))  # so that no sweep comes in time
    with maker(kind)(replace(Probe().service, health=health), limits) as running:
        with grpc.insecure_channel("{}:{}".format(*running.address)) as channel:
            watch = HealthStub(channel).Watch
            for _ in range(number):
                left = watch(HealthCheckRequest(), WAIT_S)
                assert next(left).status == HealthCheckResponse.SERVING
                watch(HealthCheckRequest(), WAIT_S).cancel()
                left.cancel()
            stays = []
            for _ in range(number):
                stays.append(watch(HealthCheckRequest(), WAIT_S))
                assert next(stays[-1]).status == HealthCheckResponse.SERVING
            assert asked(running.connect()) == HealthCheckResponse.SERVING
            assert health.looks <= 8 * number
            health.looks = 0
            health.stop()
            assert [next(each).status for each in stays] == [HealthCheckResponse.NOT_SERVING] * number
            assert health.looks == number
            stop = stopping(running)
            assert [list(each) for each in stays] == [[]] * number
            assert stop.result()


@on_some
def test_the_check_of_haproxys_configuration_tells_a_server_that_serves(kind: Kind) -> None:
    """The bytes of HAProxy's check are a call of health. The answer has the bytes that HAProxy looks for while the
    server serves."""
    lines = [line.split() for line in HAPROXY.read_text().splitlines()]
    sent = bytes.fromhex("".join(words[2] for words in lines if words[:2] == ["tcp-check", "send-binary"]))
    (serving,) = [bytes.fromhex(words[3]) for words in lines if words[:3] == ["tcp-check", "expect", "binary"]]
    service = stock_service(fresh_exchange())
    health = Health(service.name)
    with maker(kind)(replace(service, health=health)) as running:
        for expected in (serving, serving[:-1] + bytes([HealthCheckResponse.NOT_SERVING])):
            with socket.create_connection(running.address, WAIT_S) as check:
                check.sendall(sent)
                answer = b""
                while expected not in answer:
                    answer += check.recv(4096)
                assert (serving in answer) == (expected == serving)
            health.stop()


@on_some
def test_a_watch_of_an_unknown_service_says_so_until_the_stop(kind: Kind) -> None:
    """SERVICE_UNKNOWN at once, and at the end the status OK."""
    with maker(kind)(Probe().service) as running, grpc.insecure_channel("{}:{}".format(*running.address)) as channel:
        watched = HealthStub(channel).Watch(HealthCheckRequest(service="other"), WAIT_S)
        assert next(watched).status == HealthCheckResponse.SERVICE_UNKNOWN
        stop = stopping(running)
        assert list(watched) == []
        assert stop.result()
