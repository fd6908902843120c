"""Bad options and bad files: exit code 2, and one line that names the option, what was given and what is allowed."""

import os
import socket
from pathlib import Path

import pytest

from tests.end_to_end.process import STARTS, Server, run

pytestmark = pytest.mark.slow

BAD_OPTIONS: list[tuple[list[str], str, str, str]] = [
    (["--port", "x"], "--port", "'x'", "a whole number from 0 to 65535"),
    (["--port", "65536"], "--port", "'65536'", "a whole number from 0 to 65535"),
    (["--port", "-1"], "--port", "'-1'", "a whole number from 0 to 65535"),
    (["--port"], "--port", "", "expected one argument"),
    (["--workers", "0"], "--workers", "'0'", "a whole number from 1 to 1024"),
    (["--workers", "1e3"], "--workers", "'1e3'", "a whole number from 1 to 1024"),
    (["--queue-limit", "-1"], "--queue-limit", "'-1'", "from 0 to 1000000"),
    (["--grace-s", "nan"], "--grace-s", "'nan'", "seconds, from 0 to 3600"),
    (["--grace-s", "inf"], "--grace-s", "'inf'", "seconds, from 0 to 3600"),
    (["--grace-s", "-0.1"], "--grace-s", "'-0.1'", "seconds, from 0 to 3600"),
    (["--idle-s", "0"], "--idle-s", "'0'", "seconds, from 0.05 to 86400"),
    (["--frame-bytes-max", "63"], "--frame-bytes-max", "'63'", "from 64 to 1073741824"),
    (["--pipeline-max", "0"], "--pipeline-max", "'0'", "from 1 to 65536"),
    (["--connections-max", "0"], "--connections-max", "'0'", "from 1 to 1000000"),
    (["--connections-max", "1000000"], "--connections-max", "1000000", "allowed: up to"),
    (["--locking", "none"], "--locking", "'none'", "allowed: mutex, per-stock"),
    (["--executor", ""], "--executor", "''", "allowed: static-pool"),
    (["--host", "0.0.0.0"], "--host", "'0.0.0.0'", "loopback address"),
    (["--host", "192.0.2.1"], "--host", "'192.0.2.1'", "loopback address"),
    (["--host", "example.com"], "--host", "'example.com'", "loopback address"),
    (["--host", "::"], "--host", "'::'", "loopback address"),
    (["--host", ""], "--host", "''", "loopback address"),
    (["--host", "192.0.2.1", "--insecure"], "--host", "192.0.2.1", "allowed"),
    (["--host", "a..b", "--insecure"], "--host", "a..b", "allowed"),
    (["--catalog", "no/such/file"], "--catalog", "'no/such/file'", "a readable file (No such file or directory)"),
    (["--catalog", "tests"], "--catalog", "'tests'", "a readable file (Is a directory)"),
    (["--timeline", "no/such/folder/file"], "--timeline", "no/such/folder/file", "allowed"),
    (["--timeline", "tests"], "--timeline", "tests", "allowed"),
    (["--work", "3"], "", "--work", "unrecognized arguments"),
    (["surplus"], "", "surplus", "unrecognized arguments"),
]
"""Options, and what the line must say: the option, what was given, what is allowed."""

ON_SOCKETS: list[tuple[list[str], str, str, str]] = [
    (["--read-s", "0.01"], "--read-s", "'0.01'", "seconds, from 0.05 to 3600"),
    (["--dispatch", "both"], "--dispatch", "'both'", "allowed: request, connection"),
]

STOCK = 'name = "A"\nprice = 1.00\nvolume_limit = 5\n'


def stocks(*tables: str) -> str:
    """A catalog's text."""
    return "".join(f"[[stocks]]\n{table}" for table in tables)


BAD_CATALOGS: dict[str, tuple[str | bytes, str, str]] = {
    "empty": ("", "stocks", "1 to 100000 tables [[stocks]]"),
    "no_toml": ("stocks: []", "--catalog", "a file in TOML (Expected '=' after a key"),
    "no_text": (b'[[stocks]]\nname = "\xff"', "--catalog", "a file in UTF-8 (byte 19 is not)"),
    "a_table": ("[stocks]\n" + STOCK, "stocks", "tables [[stocks]]"),
    "no_tables": ("stocks = [1]", "stocks[1]", "a table with name, price and volume_limit"),
    "another_key": ("[other]\n" + stocks(STOCK), "other", "no key but [[stocks]]"),
    "a_key_of_two_lines": ('"a\\nb" = 1\n' + stocks(STOCK), "b", "no key but [[stocks]]"),
    "key_missing": (stocks('name = "A"\nprice = 1'), "stocks[1].volume_limit", "a value"),
    "key_unknown": (stocks(STOCK, STOCK + "limit = 3"), "stocks[2].limit", "no key but name, price and volume_limit"),
    "name_twice": (stocks(STOCK, STOCK), "stocks[2].name", "a name that no stock before it has"),
    "name_empty": (stocks(STOCK.replace("A", "")), "stocks[1].name", "a text of 1 to 64 characters"),
    "name_overlong": (stocks(STOCK.replace("A", "A" * 65)), "stocks[1].name", "a text of 1 to 64 characters"),
    "name_no_text": (stocks(STOCK.replace('"A"', "7")), "stocks[1].name", "a text of 1 to 64 characters"),
    **{
        f"price_{price}": (stocks(STOCK.replace("1.00", price)), "stocks[1].price", "dollars, 0 or more")
        for price in ("-0.01", "0.001", "nan", "inf", "'1'", "true", "1e30", "1e999999999")
    },
    **{
        f"limit_{limit}": (stocks(STOCK.replace("5", limit)), "stocks[1].volume_limit", "a whole number of shares")
        for limit in ("-1", "1.5", "'5'", "true", "9223372036854775808")
    },
    "number_of_5000_digits": (stocks(STOCK.replace("5", "9" * 5000)), "", "allowed"),
    "nested_5000_deep": ("stocks = " + "[" * 5000, "--catalog", "allowed"),
}
"""A file's text, the place that the line must name, and what is allowed there."""


def refused(*arguments: str) -> str:
    """The one line with which a program refuses its arguments."""
    ended = run(*arguments)
    assert (ended.code, ended.stdout) == (2, ""), ended.stderr
    return ended.error


@pytest.mark.parametrize(
    ("options", "option", "given", "allowed"),
    BAD_OPTIONS + ON_SOCKETS,
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_option_on_sockets(options: list[str], option: str, given: str, allowed: str) -> None:
    """Exit code 2 before anything listens; the line names option, given and allowed."""
    line = refused(*STARTS["socket_server"], *options)
    assert line.startswith("python -m stock_service.socket_server: ")
    assert option in line
    assert given in line
    assert allowed in line


@pytest.mark.parametrize(
    ("options", "option", "given", "allowed"),
    [
        *(case for case in BAD_OPTIONS if case[0][0] in ("--host", "--locking", "--timeline")),
        (["--dispatch", "request"], "", "--dispatch request", "unrecognized arguments"),
        (["--read-s", "1"], "", "--read-s 1", "unrecognized arguments"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_option_on_grpc(options: list[str], option: str, given: str, allowed: str) -> None:
    """As on sockets; and what only sockets have is unknown."""
    line = refused(*STARTS["grpc_server"], *options)
    assert line.startswith("python -m stock_service.grpc_server: ")
    assert option in line
    assert given in line
    assert allowed in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: serve|list"),
        (["run"], "serve|list: got 'run', allowed: serve, list"),
        (["serve"], "--transport: missing, allowed: grpc, sockets"),
        (["serve", "--transport", "http"], "'http'"),
        (["serve", "--transport", "sockets", "--port", "x"], "--port: got 'x'"),
        (["list", "--all"], "unrecognized arguments: --all"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_command(arguments: list[str], said: str) -> None:
    """``python -m stock_service`` refuses as the servers do."""
    line = refused("stock_service", *arguments)
    assert line.startswith("python -m stock_service")
    assert said in line


@pytest.mark.parametrize(("text", "place", "allowed"), BAD_CATALOGS.values(), ids=BAD_CATALOGS)
def test_a_bad_catalog(tmp_path: Path, text: str | bytes, place: str, allowed: str) -> None:
    """Exit code 2 before anything listens; the line names the file, the place, what stands there and what may."""
    catalog = tmp_path / "catalog.toml"
    catalog.write_bytes(text if isinstance(text, bytes) else text.encode())
    line = refused(*STARTS["socket_server"], "--catalog", str(catalog))
    assert str(catalog) in line
    assert place in line
    assert "got " in line or "missing, " in line
    assert allowed in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_catalog_that_may_not_be_read(tmp_path: Path) -> None:
    """Exit code 2, and why."""
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(stocks(STOCK))
    catalog.chmod(0)
    assert "a readable file (Permission denied)" in refused(*STARTS["socket_server"], "--catalog", str(catalog))


@pytest.mark.parametrize("start", STARTS)
def test_a_port_in_use(start: str) -> None:
    """Exit code 2; the line names the port and says what to do. The one that holds the port is not disturbed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(*STARTS[start], "--port", str(port))
        assert f": port {port} of 127.0.0.1 is taken; stop the server that has it, or give --port N (0: any" in line


@pytest.mark.parametrize("start", ["socket_server", "grpc_server"])
def test_a_second_server_on_the_same_port(start: str) -> None:
    """Two servers of one kind do not share a port: the second exits with 2, the first goes on."""
    with Server(STARTS[start]) as server:
        refused(*STARTS[start], "--port", str(server.address[1]))
        assert server.runs()
        assert server.stopped().code == 0


@pytest.mark.parametrize("start", ["socket_server", "grpc_server"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "0.0.0.0"])
def test_a_host_that_is_allowed(start: str, host: str) -> None:
    """Loopback by any name needs nothing more; everybody needs ``--insecure``."""
    with Server(STARTS[start], "--host", host, *(["--insecure"] if host == "0.0.0.0" else [])) as server:
        assert server.stopped().code == 0
