"""The load client's floor is measured on a server that does nothing. Afterwards the server is gone."""

import os
import socket

import pytest

from clients.load.run.floor import floor, null_server


@pytest.mark.slow
def test_there_is_a_floor() -> None:
    """The floor's median and 99th percentile are over 0, in order. ``test_command.py`` measures the floor of
    sockets."""
    measured = floor("grpc", "lean", None)
    assert 0 < measured.floor_us_p50 <= measured.floor_us_p99


@pytest.mark.slow
def test_the_null_server_is_gone_afterwards() -> None:
    """Within the block the null server accepts connections, on a core that the client does not use. After the block no
    server listens."""
    with null_server("sockets", {max(os.sched_getaffinity(0))}) as address:
        socket.create_connection(address, 10).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 10)
