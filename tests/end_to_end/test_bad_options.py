"""Bad options and bad files: exit code 2, and one line that names the option, the given and the allowed values."""

import signal
from collections.abc import Iterator

import pytest

from stock_service import __main__ as serve_or_list
from stock_service import grpc_server, stock_server
from stock_service.rpc.transports import TRANSPORTS
from tests.end_to_end.process import STARTS, Server, run, serve

pytestmark = pytest.mark.slow

BAD_OPTIONS: list[tuple[list[str], str, str, str]] = [
    (["--port", "65536"], "--port", "'65536'", "a whole number from 0 to 65535"),
    (["--workers", "0"], "--workers", "'0'", "a whole number from 1 to 1024"),
    (["--queue-limit", "-1"], "--queue-limit", "'-1'", "from 0 to 1000000"),
    (["--grace-s", "nan"], "--grace-s", "'nan'", "seconds, from 0 to 3600"),
    (["--idle-timeout-s", "0"], "--idle-timeout-s", "'0'", "seconds, from 0.05 to 86400"),
    (["--frame-bytes-max", "63"], "--frame-bytes-max", "'63'", "from 64 to 1073741824"),
    (["--pipeline-max", "0"], "--pipeline-max", "'0'", "from 1 to 65536"),
    (["--connections-max", "0"], "--connections-max", "'0'", "from 1 to 1000000"),
    (["--locking", "none"], "--locking", "'none'", "allowed: mutex, per-stock"),
    (["--store", "disk"], "--store", "'disk'", "allowed: memory, sqlite:PATH"),
    (["--store", "sqlite:"], "--store", "'sqlite:'", "allowed: memory, sqlite:PATH"),
    (["--store", "postgres:"], "--store", "'postgres:'", "allowed: memory, sqlite:PATH, postgres:DSN"),
    (["--store", "sqlite:no/such/folder/file"], "store file", "'no/such/folder/file'", "(No such file or directory)"),
    (["--store", "sqlite:tests"], "store file", "'tests'", "(Is a directory)"),
    (["--store", "sqlite:no", "--locking", "mutex"], "--locking", "'mutex'", "with --store memory alone"),
    (["--store", "sqlite:no", "--processes", "2"], "--processes", "2", "1 with a store in a file, which is one"),
    (["--processes", "65"], "--processes", "'65'", "a whole number"),
    (["--processes", "2", "--locking", "snapshot"], "--locking", "'snapshot'", "mutex with"),
    (["--executor", ""], "--executor", "''", "allowed: static-pool"),
    (["--host", "0.0.0.0"], "--host", "'0.0.0.0'", "loopback address"),
    (["--host", "example.com"], "--host", "'example.com'", "loopback address"),
    (["--host", ""], "--host", "''", "loopback address"),
    (["--catalog", "no/such/file"], "--catalog", "'no/such/file'", "a readable file (No such file or directory)"),
    (["--timeline", "no/such/folder/file"], "--timeline", "no/such/folder/file", "allowed"),
    (["--metrics", "0.0.0.0:0"], "--metrics", "'0.0.0.0:0'", "a loopback address"),
    (["--read-timeout-s", "0.01"], "--read-timeout-s", "'0.01'", "seconds, from 0.05 to 3600"),
    (
        ["--dispatch", "connection", "--connection-age-s", "1"],
        "--connection-age-s",
        "1",
        "0 with --dispatch connection",
    ),
    (["--dispatch", "both"], "--dispatch", "'both'", "allowed: request, connection"),
]
"""Options, and the words of the line: the option, the given value, the allowed values."""


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """Restores the blocked signals. A server blocks the signals that stop it, and here the tests' process plays the
    server."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize(
    ("options", "option", "given", "allowed"),
    BAD_OPTIONS,
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_option_on_sockets(
    options: list[str], option: str, given: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad option is exit code 2 before the server listens. The line names the option, the given and the allowed
    value."""
    with pytest.raises(SystemExit, match="2"):
        stock_server.main("python -m stock_service.socket_server", "sockets", ("--store", "memory", *options))
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("python -m stock_service.socket_server: ")
    assert all(part in printed.err for part in (option, given, allowed))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--server", "aio"], "--server: got 'aio', allowed: grpcio, static"),
        (["--server"], "--server: expected one argument"),
        (
            ["--buffered-bytes-max", "1"],
            "unrecognized arguments: --buffered-bytes-max 1 (did you mean --frame-bytes-max?)",
        ),
        (
            ["--server", "grpcio", "--buffered-bytes-max", "1"],
            "unrecognized arguments: --buffered-bytes-max 1 (did you mean --frame-bytes-max?)",
        ),
        (
            ["--read-timeout-s", "0.01", "--server", "static"],
            "--read-timeout-s: got '0.01', allowed: seconds, from 0.05 to 3600",
        ),
        (["--server=static", "--store", "memory", "--dispatch", "loop"], "unrecognized arguments: --dispatch loop"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_options_are_those_of_the_server_that_is_asked_for(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--server`` chooses the options, at any place of the command line. An unknown value is refused."""
    with pytest.raises(SystemExit, match="2"):
        grpc_server.main(options)
    assert capsys.readouterr().err == f"python -m stock_service.grpc_server: {said} (--help lists the options)\n"


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        ("socket_server", "--work 3", "unrecognized arguments: --work"),
        ("socket_server", "--host 192.0.2.1 --insecure", "--host 192.0.2.1 --port 0: "),
        ("grpc_server", "--host a..b --insecure", "--host a..b --port 0: "),
        ("grpc_aio", "--host 0.0.0.0 --insecure", "--host: got '0.0.0.0', allowed: a loopback address"),
    ],
)
def test_a_server_exits_so(program: str, options: str, said: str) -> None:
    """A server's process exits with 2 for a fault of the command line, and for one that the system finds later. Only
    ``grpc_aio`` refuses an address beyond the loopback even with ``--insecure``."""
    ended = run(*STARTS.get(program, serve(program)), "--port", "0", *options.split())
    assert (ended.code, ended.stdout) == (2, ""), ended.stderr
    assert ended.error.startswith("python -m stock_service")
    assert said in ended.error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "the following arguments are required: serve|list|store|credentials"),
        ("run", "serve|list|store|credentials: got 'run', allowed: serve, list, store, credentials"),
        ("serve", f"--transport: missing, allowed: {', '.join(TRANSPORTS)}"),
        ("serve --transport http", "'http'"),
        ("serve --transport sockets --port x", "--port: got 'x'"),
        ("list --all", "unrecognized arguments: --all"),
    ],
)
def test_a_bad_command(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``python -m stock_service`` refuses a bad command in one line, as the servers do."""
    with pytest.raises(SystemExit, match="2"):
        serve_or_list.main(arguments.split())
    line = capsys.readouterr().err
    assert line.startswith("python -m stock_service")
    assert (said in line, line.count("\n")) == (True, 1)


@pytest.mark.parametrize(("start", "host"), [("socket_server", "localhost"), ("grpc_server", "0.0.0.0")])
def test_a_host_that_is_allowed(start: str, host: str) -> None:
    """A loopback address needs no further option. Any address needs ``--insecure``."""
    with Server(STARTS[start], "--host", host, *(["--insecure"] if host == "0.0.0.0" else [])) as server:
        assert server.stopped().code == 0
