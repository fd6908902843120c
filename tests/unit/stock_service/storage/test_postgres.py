"""The catalog that replicas share in a PostgreSQL: groups, Lookups, the window of ids and their plan, histories, and
sessions that are lost before, at and after a commit."""

import random
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from clients.load.history.by_sequence import violations
from clients.load.history.operations import contended
from stock_service.rpc.errors import Overloaded, Unavailable
from stock_service.storage import postgres_session
from stock_service.storage.postgres import PostgresCatalog
from stock_service.storage.postgres_session import REQUESTS, Session
from stock_service.trading.catalog import Version
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply
from stock_service.trading.once import RETRY_WINDOW
from tests.conformance.running import until
from tests.postgres import STANDBY, Postgres, begin, buy, of_each_replica, replica, replicas
from tests.races.history import plan, record

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_leaks")]

STOCKS = (Stock("GameStart", 1599, 10), Stock("FishCo", 4250, 1_000_000))

WAIT_S = 20.0

CONTENDED_MIN = 0.3
"""Clients of the histories over servers."""


def test_trades_that_wait_share_a_commit(postgres: Postgres) -> None:
    """All trades that wait at a replica's turn share a commit, also those that came during another's turn. Each has its
    own reply."""
    dsn = postgres.store(STOCKS)
    with replica(dsn) as catalog, psycopg.connect(dsn) as other:
        other.execute("SELECT * FROM stock_service.state FOR UPDATE")
        first = begin(catalog, "0")
        catalog.flush(False)
        until(lambda: waits_for_a_lock(postgres), "the replica waits for its turn")
        later = [begin(catalog, f"{number}") for number in range(1, 5)]
        other.rollback()
        assert [reply().sequence for reply in (first, *later)] == [1, 2, 3, 4, 5]
        assert postgres.query("SELECT count(DISTINCT xmin::text) FROM stock_service.requests", dsn) == [(1,)]


def waits_for_a_lock(postgres: Postgres) -> bool:
    """True while a session waits for another's lock."""
    return postgres.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == [(1,)]


def test_lookups_that_wait_share_a_read(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookups that wait share one read, begun after they came. A Lookup during a read gets the next one."""
    asked: list[list[str]] = []
    read = Session.read

    def noted(session: Session, names: Iterable[str]) -> dict[str, Version]:
        asked.append(list(names))
        return read(session, asked[-1])

    monkeypatch.setattr(Session, "read", noted)
    dsn = postgres.store(STOCKS)
    with replica(dsn) as catalog, psycopg.connect(dsn) as other, ThreadPoolExecutor(5) as pool:
        other.execute("LOCK TABLE stock_service.stocks")
        first = pool.submit(Exchange(catalog).lookup, "FishCo")
        until(lambda: waits_for_a_lock(postgres), "the read waits")
        others = [pool.submit(Exchange(catalog).lookup, name) for name in ("FishCo", "GameStart") * 2]
        until(lambda: len(catalog._readings._waiting) == 4, "they wait")
        other.execute("UPDATE stock_service.stocks SET volume = 7, sequence = 1 WHERE name = 'FishCo'")
        other.commit()
        assert {each.result(WAIT_S).volume for each in (first, *others[::2])} == {7}
        assert [len(names) for names in asked] == [1, 4]


def test_a_stock_that_stands_is_the_same_object(postgres: Postgres) -> None:
    """An unchanged stock stays the same object, so that the response to a Lookup is made once."""
    with replicas(postgres.store(STOCKS), 2) as (one, other):
        before = one.read("FishCo")
        assert one.read("FishCo") is before
        buy(other)
        assert one.read("FishCo") == (Stock("FishCo", 4250, 1_000_000, 1), 1)


def test_the_window_is_bounded_in_the_tables(postgres: Postgres) -> None:
    """The last ids stay, as a catalog remembers them; a replica that was idle meanwhile knows them, and a new one."""
    dsn = postgres.store(STOCKS)
    with replicas(dsn, 2, window=20) as (busy, idle):
        assert buy(idle, "0").volume == 1
        for number in range(1, 50):
            buy(busy, f"{number}")
        stored = postgres.query("SELECT count(*), min(number), max(number) FROM stock_service.requests", dsn)
        assert stored == [(20, 31, 50)]
        with replica(dsn, 20) as new:
            for catalog in (busy, idle, new):
                assert buy(catalog, "30").sequence == 31
        assert [buy(catalog, "0").sequence for catalog in (idle, busy)] == [51, 51]


def test_a_replica_far_behind_reads_before_its_turn(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica lets its turn go: no other waits while it reads the commits that it lacks."""
    monkeypatch.setattr(postgres_session, "BEHIND_MAX", 5)
    caught_up: list[bool] = []
    catch_up = Session.catch_up

    def noted(session: Session) -> None:
        caught_up.append(session._connection.info.transaction_status is TransactionStatus.IDLE)
        catch_up(session)

    with replicas(postgres.store(STOCKS), 2) as (busy, idle):
        monkeypatch.setattr(Session, "catch_up", noted)
        for number in range(10):
            buy(busy, f"{number}")
        assert not caught_up
        assert buy(idle, "3").sequence == 4
        assert caught_up == [True]


FILL = """
INSERT INTO stock_service.requests SELECT at, convert_to('filled' || at, 'UTF8'), decode(repeat('00', 42), 'hex')
FROM generate_series((SELECT last_request FROM stock_service.state) + 1, {rows}) AS at;
UPDATE stock_service.state SET last_request = {rows}
"""


@pytest.mark.parametrize("analysed", [False, True])
def test_ids_are_read_by_their_index(postgres: Postgres, analysed: bool) -> None:
    """EXPLAIN says so of a full window, whether PostgreSQL has looked at the table since it was filled or not."""
    dsn = postgres.store(STOCKS)
    postgres.query(FILL.format(rows=RETRY_WINDOW), dsn)
    if analysed:
        postgres.query("VACUUM ANALYZE stock_service.requests", dsn)
    with psycopg.connect(dsn) as connection:
        for behind in (1, 64, 1000):
            bounds = RETRY_WINDOW - behind, RETRY_WINDOW
            plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {REQUESTS}", bounds))
            assert "requests_pkey" in plan
            assert "Seq Scan" not in plan


def test_no_plan_of_a_small_table_is_kept(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that began when there were few ids does not read all of them once there are many."""
    began, rows = 100_000, 50_000  # numbers of one size: psycopg prepares anew for larger ones
    monkeypatch.setattr(postgres_session, "BEHIND_MAX", rows)  # it forgets what it prepared where a turn is let go
    dsn = postgres.store(STOCKS)
    postgres.query(f"UPDATE stock_service.state SET first_request = {began + 1}, last_request = {began}", dsn)
    with replicas(dsn, 2, window=RETRY_WINDOW) as catalogs:
        for number in range(40):
            buy(catalogs[number % 2], f"{number}")
            if number == 20:
                postgres.query("VACUUM ANALYZE stock_service.requests", dsn)
        postgres.query(FILL.format(rows=began + rows), dsn)
        for number in range(40, 80):
            buy(catalogs[number % 2], f"{number}")
    ((read,),) = postgres.query("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'requests'", dsn)
    assert isinstance(read, int)  # known once a session has ended
    assert read < rows


def test_histories_over_replicas_are_linearizable(postgres: Postgres, rng: random.Random) -> None:
    """Clients of three replicas, with retries of each other's requests, get replies as from a sequential order."""
    asked = plan(rng, 6, rounds=8)
    with replicas(postgres.store(asked.stocks), 3) as catalogs:
        history = record(of_each_replica(catalogs), asked)
    assert violations(asked.stocks, history) == []
    assert contended(history) >= CONTENDED_MIN


def read_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Lookup tells what this replica saw last."""
    monkeypatch.setattr(PostgresCatalog, "read", lambda catalog, name: catalog._known.get(name))


def own_ids_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted replica that does not read the others' ids."""
    monkeypatch.setattr(Session, "_keep", lambda *_: None)


@pytest.mark.parametrize("plant", [read_from_memory, own_ids_alone], ids=lambda part: part.__name__)
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    postgres: Postgres,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Histories over replicas can be found wrong."""
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        test_histories_over_replicas_are_linearizable(postgres, rng)


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
