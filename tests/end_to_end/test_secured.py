"""Servers with credentials, as processes: credentials are made by one command, used by the clients, renewed without a
restart, and never shown."""

import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from clients import trader
from stock_service.rpc.errors import Fault, Unauthenticated
from stock_service.rpc.option_types import address
from stock_service.rpc.process.credentials import make
from stock_service.rpc.tls import ClientCredentials, read_token
from stock_service.rpc.transports import TRANSPORTS, load
from stock_service.rpc.wire.framing import encode_request
from stock_service.trading.service import LOOKUP, TRADE
from tests.conformance.running import until
from tests.end_to_end.process import LOOKUP_ONE, TRADE_ONE, Server, metrics_pages, run
from tests.tls import credentials

pytestmark = pytest.mark.slow


def options_of(folder: Path) -> tuple[str, ...]:
    """Options of TLS and of callers, with the files of a folder."""
    return (
        *("--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server-key.pem")),
        *("--access", str(folder / "access.toml")),
    )


@contextmanager
def secured(transport: str, folder: Path, *options: str) -> Iterator[Server]:
    """A server with the folder's credentials; without a store unless ``options`` are given."""
    start = ("stock_service", "serve", "--transport", transport, *(options or ("--store", "memory")))
    with Server(start, *options_of(folder)) as server:
        yield server


def looked_up(transport: str, at: tuple[str, int], shown: ClientCredentials) -> bool:
    """True if a new connection gets an answer. Otherwise raises a Fault."""
    with closing(load(transport).connect(at, 10.0, shown)) as connection:
        return bool(connection.call(LOOKUP, LOOKUP_ONE, 10.0))


@pytest.mark.parametrize("transport", ["sockets", "grpc", "grpc_aio"])
def test_a_closed_server_on_ipv6_is_used_by_the_clients(
    transport: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clients use a closed server on IPv6, with its address in brackets. A trader's trade is stored. Only an admin may
    set a price."""
    folder, store = credentials(), f"sqlite:{tmp_path}/store.sqlite3"
    with secured(transport, folder, "--host", "::1", "--store", store) as server:
        at = server.ready.removeprefix("ready ")
        assert at.startswith("[::1]:")
        asked = ("--transport", transport, "--address", at, "--tls-ca", str(folder / "ca.pem"))
        by_trader = (*asked, "--token-file", str(folder / "trader.token"))
        assert trader.main([*by_trader, "trade", "FishCo", "3", "buy"]) == 0
        assert capsys.readouterr() == ("OK (1) FishCo volume 3 sequence 1\n", "")
        assert trader.main([*by_trader, "update", "FishCo", "5"]) == 3
        assert "PERMISSION_DENIED" in capsys.readouterr().err
        assert not is_served(transport, address(at), ClientCredentials()), "without TLS"
        ended = server.stopped()
        assert (ended.code, ended.stdout) == (0, "")


def is_served(transport: str, at: tuple[str, int], shown: ClientCredentials) -> bool:
    """True if a new connection gets an answer."""
    try:
        return looked_up(transport, at, shown)
    except Fault:
        return False


@pytest.mark.parametrize("transport", ["sockets", "grpc"])
def test_a_token_is_withdrawn_as_it_serves(transport: str, tmp_path: Path) -> None:
    """A new file of callers is read while the server runs. An open connection goes on with its token until the token is
    withdrawn. ``test_renewals.py`` renews certificates."""
    make(tmp_path / "own")
    access = tmp_path / "own" / "access.toml"
    shown = ClientCredentials(tmp_path / "own" / "ca.pem", token=read_token(tmp_path / "own" / "trader.token"))
    with secured(transport, tmp_path / "own") as server:
        with closing(load(transport).connect(server.address, 10.0, shown)) as connection:
            assert connection.call(LOOKUP, LOOKUP_ONE, 10.0)
            access.write_text(access.read_text().split("\n\n")[0])  # the admin is left

            def withdrawn() -> bool:
                try:
                    return not connection.call(LOOKUP, LOOKUP_ONE, 10.0)
                except Unauthenticated:
                    return True

            until(withdrawn, "the token is not known any more")
        assert server.stopped().code == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_no_secret_is_said(transport: str, tmp_path: Path) -> None:
    """No secret is in logs, replies, metrics, a timeline, the store or the process's arguments. Meanwhile a client uses
    its token in many ways, and the key's file is broken."""
    folder, kept = tmp_path / "own", tmp_path / "kept"
    make(folder)
    kept.mkdir()
    tokens = [read_token(folder / f"{name}.token") for name in ("admin", "trader")]
    wrong = "wrong-" + "w" * 40
    key = folder / "server-key.pem"
    replies: list[bytes] = []
    files = ("--store", f"sqlite:{kept}/store.sqlite3", "--timeline", str(kept / "timeline.npy"))
    with secured(transport, folder, *files, "--metrics", "127.0.0.1:0") as server:
        for token in (*tokens, wrong):
            try:
                traded(transport, server.address, ClientCredentials(folder / "ca.pem", token=token))
            except Fault as fault:
                replies.append(str(fault).encode())
            for said in said_with(token):
                replies += [*answers(server.address, said, None), *answers(server.address, said, trusting(transport))]
        key.write_text(key.read_text().replace("\n", "\n!", 1))
        until(lambda: "cannot be used" in server.said(), "the broken key is in the log")
        (page,) = metrics_pages(server)
        process = Path("/proc") / str(server.pid)
        seen = [(process / name).read_bytes() for name in ("cmdline", "environ")]
        stored = [file.read_bytes() for file in kept.iterdir()]
        ended = server.stopped(signal.SIGINT)
    assert ended.code == 0
    assert f'requests_total{{method="{TRADE}",outcome="OK"}} 2.0' in page
    stored += [file.read_bytes() for file in kept.iterdir()]
    assert any(b"FishCo" in content for content in stored)
    everything = b"".join((*seen, *replies, *stored, page.encode(), ended.stdout.encode(), ended.stderr.encode()))
    for secret in (*tokens, wrong, *key.read_text().replace("!", "").split("\n")[1:-2]):
        assert secret.encode() not in everything


def traded(transport: str, at: tuple[str, int], shown: ClientCredentials) -> None:
    """Trades on a new connection. Raises the Fault of a refusal."""
    with closing(load(transport).connect(at, 10.0, shown)) as connection:
        assert connection.call(TRADE, TRADE_ONE, 10.0)


def trusting(transport: str) -> ssl.SSLContext:
    """A client's TLS that trusts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(load(transport).TLS_PROTOCOLS) or ["none"])
    return context


def answers(at: tuple[str, int], said: bytes, tls: ssl.SSLContext | None) -> list[bytes]:
    """The bytes that a server replies to these, until it closes."""
    replies: list[bytes] = []
    with socket.create_connection(at, 5.0) as plain, plain if tls is None else tls.wrap_socket(plain) as client:
        with suppress(ConnectionError, ssl.SSLError):  # it closes without a farewell
            client.sendall(said)
            client.shutdown(socket.SHUT_WR)
            replies += iter(lambda: client.recv(65536), b"")  # at once
    return replies


def test_a_load_shows_a_token_and_says_none(tmp_path: Path) -> None:
    """A load shows its token to the server, and neither its output nor its results have it. Its history over TLS is
    linearizable."""
    folder, result = credentials(), tmp_path / "result.json"
    shown = ("--tls-ca", str(folder / "ca.pem"), "--token-file", str(folder / "trader.token"))
    with secured("sockets", folder) as server:
        load_of = ("clients.load", "--transport", "sockets", "--address", server.at, "--no-floor", *shown)
        short = ("--clients", "1", "--warm-up-s", "0", "--duration-s", "0.5", "--json", str(result))
        done = run(*load_of, *short, "--connections-per-client", "4", "--mix", "lookup,trade", "--check")
        assert done.code == 0
        assert "linearizable" in done.stdout
        assert '"OK": ' in result.read_text()
        assert read_token(folder / "trader.token") not in done.stdout + done.stderr + result.read_text()


def said_with(token: str) -> tuple[bytes, ...]:
    """Requests with the token in wrong places."""
    word = token.encode()
    head = (
        b"POST "
        + LOOKUP.encode()
        + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/protobuf\r\nContent-Length: 0\r\n"
    )
    return (
        word,
        encode_request(1, 0, b"hello/1", word),
        encode_request(1, 0, b"hello/2", word),
        encode_request(1, 0, word, word),
        encode_request(1, 0, LOOKUP.encode(), word),
        head + b"Authorization: " + word + b"\r\n\r\n",
        head + b"Authorization: Bearer " + word + b"\r\nAuthorization: Bearer " + word + b"\r\n\r\n",
        head + b"Authorization Bearer " + word + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + word,
    )
