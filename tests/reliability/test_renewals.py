"""A certificate is renewed without a dropped request: one renewal of the ten that ``renewals.py`` tries."""

import pytest

from tests.reliability.renewals import UNDER_CONNECTS, renewed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("transport", ["grpc_static", "grpc"])
def test_a_renewal_fails_no_request(transport: str) -> None:
    """Nor a connect, though the files are half written for a while; on grpcio nobody connects meanwhile.

    The command tries every transport.
    """
    staying, dialing = renewed(transport, 1)
    assert [client.failures for client in (*staying, *dialing)] == [[]] * (4 if transport in UNDER_CONNECTS else 2)
