"""A standby that becomes the primary of a catalog."""

import signal
from contextlib import suppress

import pytest

from stock_service.rpc.errors import Unavailable
from stock_service.storage.postgres import PostgresCatalog
from stock_service.trading.model import Status, Stock, TradeReply
from tests.conformance.running import until
from tests.postgres import STANDBY, Postgres, buy, replica

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_leaks")]

TRADES = 20


def taken(catalog: PostgresCatalog, request_id: str) -> bool:
    """True where a trade is done; False where it is refused."""
    with suppress(Unavailable):
        return buy(catalog, request_id).status is Status.OK
    return False


def test_a_synchronous_standby_that_is_promoted_has_every_trade() -> None:
    """The replica finds the new primary by itself. Each id has its first reply there, and the numbers go on."""
    with Postgres() as primary, Postgres(primary) as standby:
        primary.set("synchronous_standby_names", STANDBY)
        dsn = primary.store((Stock("FishCo", 4250, 1_000_000),))
        both = dsn.replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1")
        both = both.replace(f"port={primary.port}", f"port={primary.port},{standby.port}")
        with replica(both) as catalog:
            for number in range(1, TRADES + 1):
                assert buy(catalog, f"{number}").sequence == number
            primary.stop(signal.SIGKILL)
            standby.query("SELECT pg_promote()")
            until(lambda: taken(catalog, "new"), "the new primary is found")
            assert buy(catalog, f"{TRADES}") == TradeReply(Status.OK, TRADES, TRADES)
            assert buy(catalog, "new") == TradeReply(Status.OK, TRADES + 1, TRADES + 1)
