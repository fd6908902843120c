"""A certificate is renewed without a dropped request: a single renewal; ``renewals.py`` tries ten."""

import pytest

from tests.reliability.renewals import UNDER_CONNECTS, renewed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("transport", ["grpc_static", "grpc"])
def test_a_renewal_fails_no_request(transport: str) -> None:
    """A renewal fails no request and no new connection, although its files are half-written for a while. On grpcio the
    test opens no new connection. The command tries every transport."""
    staying, dialing = renewed(transport, 1)
    assert [client.failures for client in (*staying, *dialing)] == [[]] * (4 if transport in UNDER_CONNECTS else 2)
