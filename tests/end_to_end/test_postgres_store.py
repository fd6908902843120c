"""Servers that share a PostgreSQL, as processes: made, refused, killed under load; a DSN's password is never shown."""

from contextlib import closing
from pathlib import Path

import pytest

from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import load
from stock_service.storage.postgres import PostgresCatalog
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.model import Stock
from tests.end_to_end.process import WAIT_S, Server, run
from tests.end_to_end.test_store import assert_all_there, killed, sent
from tests.postgres import Postgres

pytestmark = pytest.mark.slow

SECRET = "open-sesame"

CLIENTS, KILLS, TRADES = 6, 3, 60


def served(dsn: str, transport: str = "sockets") -> tuple[str, ...]:
    """The command of a replica."""
    return ("stock_service", "serve", "--transport", transport, "--store", f"postgres:{dsn}")


def test_a_store_is_made_once_and_served(postgres: Postgres, tmp_path: Path) -> None:
    """``store init`` makes a store once, from a file or with the default stocks. A server prints the place of its
    stocks. Two processes of it show the same trades."""
    (tmp_path / "stocks.toml").write_text('[[stocks]]\nname = "One"\nprice = 1\nvolume_limit = 5\n')
    catalog = ("--catalog", str(tmp_path / "stocks.toml"))
    dsn = f"{postgres.database()} password={SECRET}"
    ended = run(*served(dsn), "--port", "0")
    assert (ended.code, "store init DSN" in ended.error) == (2, True)
    made = run("stock_service", "store", "init", dsn, *catalog)
    assert (made.code, made.stdout[:26], made.stderr) == (0, "a store of 1 stocks is mad", "")
    assert "there is one" in run("stock_service", "store", "init", dsn).error
    with Server((*served(dsn, "grpc_static"), *catalog), "--processes", "2") as server:
        for _ in range(2):
            connection = load("grpc_static").connect(server.address, WAIT_S)
            assert sent(connection, "an id").sequence == 0  # FishCo is unknown
            connection.close()
        ended = server.stopped()
    assert (ended.code, ended.stdout) == (0, "")
    place = f"PostgreSQL host=127.0.0.1 port={postgres.port} dbname={dsn.split()[3][7:]} user=tester"
    assert set(ended.stderr.splitlines()) == {f"stocks are kept in {place}"}


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_postgres_without_a_safe_disk_is_refused(postgres: Postgres, setting: str) -> None:
    """A PostgreSQL with ``fsync`` off is refused with the setting's name. Once it is on, the server starts."""
    dsn = postgres.store(DEFAULT_STOCKS)
    postgres.set(setting, "off")
    try:
        with pytest.raises(UsageError, match=f"with {setting} = on; this one has off"):
            PostgresCatalog(dsn)
    finally:
        postgres.set(setting, "on")
    PostgresCatalog(dsn).close()


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("UPDATE stock_service.state SET format = 7", "a store of format 1; this one has 7"),
        ("DELETE FROM stock_service.stocks WHERE name = 'FishCo'", "the file alone has 'FishCo' with 1000000"),
        ("UPDATE stock_service.stocks SET volume_limit = 5 WHERE name = 'FishCo'", "the store alone has 'FishCo'"),
        ("DROP TABLE stock_service.state", "a store: make it by"),
        ("ALTER DATABASE {} SET synchronous_commit = off", "with synchronous_commit = on; this one has off"),
        ("ALTER DATABASE {} SET default_transaction_read_only = on", "session is read-only"),
    ],
)
def test_a_store_that_does_not_fit_is_refused(postgres: Postgres, statement: str, allowed: str) -> None:
    """A store of a different format is refused. So is a store whose stocks differ from the stocks of ``--catalog``, and
    a PostgreSQL that may lose trades, or takes no changes, as a standby."""
    dsn = postgres.store(DEFAULT_STOCKS)
    postgres.query(statement.format(dsn.split("dbname=")[1]), dsn)
    with pytest.raises(UsageError, match=allowed):
        PostgresCatalog(dsn, [Stock(stock.name, 100, stock.volume_limit) for stock in DEFAULT_STOCKS])


def test_kills_of_a_replica_lose_and_double_nothing(postgres: Postgres) -> None:
    """One of two replicas is killed under load. The other one goes on, and shows every trade that the first one
    acknowledged."""
    dsn = postgres.store(DEFAULT_STOCKS)
    commits: dict[str, int] = {}
    with Server(served(dsn)) as other:
        with closing(load("sockets").connect(other.address, WAIT_S)) as survivor:
            for kill in range(KILLS):
                with Server(served(dsn)) as server:
                    told, doubtful = killed(server, CLIENTS, TRADES, f"{kill}")
                commits |= told
                assert_all_there(survivor, commits, doubtful)
        assert other.stopped().code == 0
    assert len(commits) >= KILLS * TRADES
    assert postgres.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stock_service'") == [(0,)]
