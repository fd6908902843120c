"""The lean client's connections by transport: the timeout that the server gets."""

from contextlib import closing

import pytest

from clients.load.plan.load_plan import LoadPlan
from clients.load.send.lean import connecting
from stock_service.rpc.errors import DeadlineExceeded
from tests.unit.clients.load.send.lanes_bench import Peer

pytestmark = pytest.mark.usefixtures("no_leaks")


def test_the_time_for_connecting_is_not_told_as_the_calls() -> None:
    """The server gets the timeout of a reply, and not the timeout of connecting."""
    for transport, told in (("grpc", b"2500m"), ("sockets", (2500).to_bytes(4, "big"))):
        with Peer() as peer:
            plan = LoadPlan(transport, peer.address, 1, {"lookup": 1.0}, ("A",), 0, 1, timeout_s=2.5)
            with closing(connecting(plan)(7.0)) as connection:
                accepted = peer.accept()
                with pytest.raises(DeadlineExceeded):
                    connection.call("/a.B/C", b"", 0.001)
                assert told in accepted.read()
