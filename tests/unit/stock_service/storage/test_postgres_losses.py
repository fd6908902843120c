"""Sessions that the PostgreSQL of a catalog loses, before, at and after a commit: replies and effects."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import psycopg
import pytest

from stock_service.rpc.errors import Overloaded, Unavailable
from stock_service.storage import postgres_session
from stock_service.storage.postgres import PostgresCatalog
from stock_service.storage.postgres_session import Session
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply
from tests.conformance.running import until
from tests.postgres import STANDBY, Postgres, begin, buy, replica, replicas

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_leaks")]

STOCKS = (Stock("GameStart", 1599, 10), Stock("FishCo", 4250, 1_000_000))

WAIT_S = 20.0


def pid(session: Session) -> int:
    """The process of PostgreSQL that serves a session."""
    return session._connection.info.backend_pid


def losing(
    monkeypatch: pytest.MonkeyPatch, method: str, before: Callable[[Session], object], done: bool = False
) -> None:
    """Loses the session in the next call of a method, which does its work before only where ``done``."""
    original = getattr(Session, method)

    def lost(session: Session, *arguments: object) -> object:
        monkeypatch.setattr(Session, method, original)
        if done:
            original(session, *arguments)
            session.in_doubt = method == "commit"
        before(session)
        return original(session, *arguments)

    monkeypatch.setattr(Session, method, lost)


def cut(postgres: Postgres) -> Callable[[Session], object]:
    """Ends the process of PostgreSQL that serves a session, and waits for that."""
    return lambda session: postgres.query(f"SELECT pg_terminate_backend({pid(session)}, 10000)")


@pytest.mark.parametrize("method", ["lock", "stocks", "read"])
def test_a_session_lost_before_the_commit_is_not_noticed(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Nothing was done, and it is done with a new session."""
    with replica(postgres.store(STOCKS)) as catalog:
        losing(monkeypatch, method, cut(postgres))
        assert (buy(catalog).sequence, buy(catalog, "id").sequence) == (1, 2)
        assert Exchange(catalog).lookup("FishCo").volume == 2
        assert not catalog.sick()


@pytest.mark.parametrize("done", [False, True])
def test_a_trade_in_doubt_is_settled_by_its_id(postgres: Postgres, monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    """The trade has one effect, and its reply, be the commit done or not. Trades without an id, which shared the
    commit, are told that the outcome is unknown."""
    dsn = postgres.store(STOCKS)
    with replica(dsn) as catalog:
        losing(monkeypatch, "commit", cut(postgres), done)
        with_id, without = begin(catalog, "id"), begin(catalog)
        catalog.flush(False)
        with pytest.raises(Unavailable, match="outcome is unknown"):
            without()
        assert with_id() == TradeReply(Status.OK, 1, 1)
        assert buy(catalog, "id") == TradeReply(Status.OK, 1, 1)
        assert Exchange(catalog).lookup("FishCo").volume == (2 if done else 1)
        assert not catalog.sick()


def test_nothing_is_said_of_a_trade_in_doubt_until_a_primary_is_back(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trade in doubt is answered once a primary is back. Meanwhile others are refused without an effect, and so are
    Lookups. Then all goes on by itself."""
    with replica(postgres.store(STOCKS)) as catalog, ThreadPoolExecutor(1) as pool:
        told: list[bool] = []
        catalog.on_sick = lambda: told.append(catalog.sick())
        losing(monkeypatch, "commit", lambda _: postgres.stop(), done=True)
        doubtful = pool.submit(buy, catalog, "id")
        until(lambda: catalog.sick(), "it is away")
        with pytest.raises(Unavailable, match="is away: nothing was done"):
            buy(catalog, "other")
        with pytest.raises(Unavailable, match="is away: nothing was done"):
            Exchange(catalog).lookup("FishCo")
        assert not doubtful.done()
        postgres.start()
        assert doubtful.result(WAIT_S) == TradeReply(Status.OK, 1, 1)
        until(lambda: not catalog.sick(), "it is back")
        assert buy(catalog, "other").sequence == 2
        until(lambda: len(told) == 4, "each of the two threads has told of both")
        assert (told[0], told[-1]) == (True, False)


def test_a_catalog_that_is_closed_says_what_is_unknown(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trade in doubt does not keep a server from stopping, and its outcome is unknown. Later trades are refused."""
    with replica(postgres.store(STOCKS)) as catalog, ThreadPoolExecutor(1) as pool:
        losing(monkeypatch, "commit", lambda _: postgres.stop())
        doubtful = pool.submit(buy, catalog, "id")
        until(lambda: catalog.sick(), "it is away")
        assert catalog.close()
        with pytest.raises(Unavailable, match="outcome is unknown"):
            doubtful.result(WAIT_S)
        with pytest.raises(Unavailable, match="stopping"):
            buy(catalog)
        assert not catalog.sick()
    postgres.start()


def test_what_postgres_refuses_had_no_effect(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trade that PostgreSQL refuses had no effect, as where another session keeps the turn's row for too long. Later
    trades are taken."""
    monkeypatch.setattr(postgres_session, "LOCK_WAIT_MAX", "50ms")
    dsn = postgres.store(STOCKS)
    with replica(dsn) as catalog, psycopg.connect(dsn) as other:
        other.execute("SELECT * FROM stock_service.state FOR UPDATE")
        with pytest.raises(Overloaded, match=r"lock timeout\): nothing was done"):
            buy(catalog, "id")
        other.rollback()
        assert buy(catalog, "id").sequence == 1
        postgres.query("ALTER TABLE stock_service.stocks ADD CHECK (volume < 2)", dsn)
        with pytest.raises(Overloaded, match=r"check constraint .*\): nothing was done"):
            buy(catalog, "2")
        assert Exchange(catalog).lookup("FishCo") == LookupReply(Status.OK, 4250, 1, 1)


def test_a_replica_that_pauses_in_its_turn_loses_it(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that pauses in its turn loses it: the others go on, and its own trade is done once."""
    monkeypatch.setattr(postgres_session, "PAUSE_MAX", "100ms")
    with replicas(postgres.store(STOCKS), 2) as (paused, other), ThreadPoolExecutor(1) as pool:
        went_on = Event()
        losing(monkeypatch, "commit", lambda _: went_on.wait(WAIT_S))
        trade = pool.submit(buy, paused, "id")
        until(lambda: bool(paused._changes._drawn), "it has its turn")
        assert buy(other, "other").sequence == 1
        went_on.set()
        assert trade.result(WAIT_S).sequence == 2


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
