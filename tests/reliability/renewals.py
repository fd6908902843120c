"""Promise: a certificate is renewed without a dropped request, by writing its files while clients call and connect.

The authority changes with each renewal. The key is written after the certificate or before the certificate:
half-written files change nothing. On ``grpc`` and ``grpc_aio`` no client connects meanwhile, as
``stock_service/rpc/process/README.md`` asks. Open connections go on.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from stock_service.rpc.errors import Fault
from stock_service.rpc.process.credentials import make
from stock_service.rpc.tls import ClientCredentials, read_token
from stock_service.rpc.transports import load
from stock_service.trading.service import LOOKUP
from tests.end_to_end.process import LOOKUP_ONE, WAIT_S, Server
from tests.end_to_end.test_secured import is_served, looked_up, secured
from tests.reliability.restarts import Told
from tests.reliability.rows import Row
from tests.reliability.serving import within

RENEWALS, SOME = 10, 1
UNDER_CONNECTS = ("sockets", "http1", "grpc_static")
OPEN_ALONE = ("grpc", "grpc_aio")
CALLING = 2
"""Number of clients that keep their connection, and number of clients that connect for each request."""

TOGETHER = 3
"""Transports that are tried at a time."""

PARTS = ("server.pem", "server-key.pem")


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for a minute."""
    transports = (*UNDER_CONNECTS, *OPEN_ALONE) if minutes else UNDER_CONNECTS[:1]
    with ThreadPoolExecutor(TOGETHER) as threads:  # most of it is waiting for the servers to look
        return list(threads.map(partial(row, renewals=RENEWALS if minutes else SOME), transports))


def row(transport: str, renewals: int) -> Row:
    """Row on this number of renewals, and the clients' failures."""
    staying, dialing = renewed(transport, renewals)
    failures = [failure for client in (*staying, *dialing) for failure in client.failures]
    requests, connects = (sum(client.requests for client in clients) for clients in (staying, dialing))
    under = f"{connects:,} connects and " if dialing else ""
    first = f": {failures[0]}" if failures else ""
    figure = f"{len(failures)} of {under}{requests:,} requests in {renewals} renewals{first}"
    return Row(f"{transport}: certificates renewed", f"0 failures in {RENEWALS} renewals", figure, not failures)


def renewed(transport: str, renewals: int) -> tuple[list[Told], list[Told]]:
    """Replies to the clients that stayed connected, and to the clients that reconnected. Fails if a renewal is not
    seen."""
    with TemporaryDirectory() as name, ThreadPoolExecutor(2 * CALLING) as threads, ExitStack() as running:
        folder, others = Path(name) / "own", (Path(name) / "even", Path(name) / "odd")
        for each in (folder, *others):
            make(each)
        either = Path(name) / "authorities.pem"
        either.write_bytes(b"".join((each / "ca.pem").read_bytes() for each in (folder, *others)))
        shown = ClientCredentials(either, token=read_token(folder / "trader.token"))
        server, over = running.enter_context(secured(transport, folder)), threading.Event()
        running.callback(over.set)
        dials = CALLING if transport in UNDER_CONNECTS else 0
        staying = [threads.submit(stay, transport, server, shown, over) for _ in range(CALLING)]
        dialing = [threads.submit(until_over, dial(transport, server, shown), over) for _ in range(dials)]
        for number in range(renewals):
            renew(server, folder, others[number % 2], PARTS if number % 4 < 2 else PARTS[::-1])
            new = ClientCredentials(others[number % 2] / "ca.pem", token=shown.token)
            assert within(WAIT_S, partial(is_served, transport, server.address, new)), "the renewal is not seen"
        over.set()
        told = [client.result(WAIT_S) for client in staying], [client.result(WAIT_S) for client in dialing]
        assert server.stopped().code == 0
        assert all(client.requests > renewals for clients in told for client in clients)
        return told


def renew(server: Server, folder: Path, new: Path, parts: tuple[str, ...]) -> None:
    """Writes the new files. The second file comes after the server has noticed that the first file alone is
    unusable."""
    first, second = parts
    seen = server.said().count("cannot be used")
    (folder / first).write_bytes((new / first).read_bytes())
    assert within(WAIT_S, lambda: server.said().count("cannot be used") > seen), "what is half written is in no log"
    (folder / second).write_bytes((new / second).read_bytes())


def stay(transport: str, server: Server, shown: ClientCredentials, over: threading.Event) -> Told:
    """Makes all requests on one connection."""
    with closing(load(transport).connect(server.address, WAIT_S, shown)) as connection:
        return until_over(lambda: connection.call(LOOKUP, LOOKUP_ONE, WAIT_S), over)


def dial(transport: str, server: Server, shown: ClientCredentials) -> Callable[[], object]:
    """Function that sends a request on a new connection."""
    return lambda: looked_up(transport, server.address, shown)


def until_over(ask: Callable[[], object], over: threading.Event) -> Told:
    """Calls ``ask`` until ``over`` is set. Gives the replies."""
    told = Told()
    while not over.is_set():
        try:
            ask()
            told.requests += 1
        except Fault as fault:
            told.failures.append(str(fault))
            over.wait(0.01)  # where each fails, so that they stay few
    return told
