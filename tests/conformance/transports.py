"""Answers of every transport, whatever its executor and dispatch: each check takes a maker of one kind.

Add a transport to ``TRANSPORTS`` and all of it is tried. ``transport_lifecycle.py`` has the ends of servers and
clients.
"""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest

from clients.load.history.operations import Lookup, Reply, Request, Trade, Update
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import (
    FAULTS,
    DeadlineExceeded,
    Fault,
    FaultCode,
    InternalFault,
    InvalidRequest,
    Overloaded,
    UnknownMethod,
)
from stock_service.rpc.transports import Connection, ServeOptions
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.model import INT64_MAX, LookupReply, Side, Status, Stock, TradeReply, UpdateReply
from stock_service.trading.service import LOOKUP, TRADE, UPDATE, stock_service
from tests.conformance.running import BLOCK, ECHO, FAIL, PROBE, WAIT_S, Limits, Maker, Probe, until
from tests.races.history import answer

BUY, SELL = Side.BUY, Side.SELL
OK, SUSPENDED, UNKNOWN = Status.OK, Status.SUSPENDED, Status.UNKNOWN_STOCK
QUANTITY, PRICE, SIDE = Status.INVALID_QUANTITY, Status.INVALID_PRICE, Status.INVALID_SIDE

STOCKS = (Stock("GameStart", 1599, 100), Stock("ß" * 64, 1, 5), Stock("Full", 7, 0))


def fresh_exchange() -> Exchange:
    """An exchange with the stocks of these checks, as new."""
    return Exchange(MemoryCatalog(STOCKS, Mutex))


OUTCOMES: list[tuple[Request, Reply]] = [
    (Lookup("GameStart"), LookupReply(OK, 1599, 0, 0)),
    (Trade("GameStart", 10, BUY), TradeReply(OK, 10, 1)),
    (Trade("GameStart", 5, SELL), TradeReply(OK, 15, 2)),
    (Lookup("GameStart"), LookupReply(OK, 1599, 15, 2)),
    (Update("GameStart", 0), UpdateReply(OK, 3)),
    (Update("GameStart", 0), UpdateReply(OK, 4)),
    (Update("GameStart", -1), UpdateReply(PRICE)),
    (Update("GameStart", -INT64_MAX), UpdateReply(PRICE)),
    (Lookup("GameStart"), LookupReply(OK, 0, 15, 4)),
    (Update("GameStart", INT64_MAX), UpdateReply(OK, 5)),
    (Trade("GameStart", 86, BUY), TradeReply(SUSPENDED, 15)),
    (Trade("GameStart", 85, SELL), TradeReply(OK, 100, 6)),
    (Lookup("GameStart"), LookupReply(SUSPENDED, INT64_MAX, 100, 6)),
    (Trade("GameStart", 1, BUY), TradeReply(SUSPENDED, 100)),
    (Trade("GameStart", 2**31 - 1, BUY), TradeReply(SUSPENDED, 100)),
    *((Trade("GameStart", quantity, BUY), TradeReply(QUANTITY)) for quantity in (0, -1, -INT64_MAX, 2**31)),
    *((Trade("GameStart", 1, side), TradeReply(SIDE)) for side in (0, 3, -1, 2**31 - 1)),
    (Trade("GameStart", 0, 0), TradeReply(QUANTITY)),
    (Trade("none", 0, 0), TradeReply(UNKNOWN)),
    (Trade("none", 1, 0), TradeReply(UNKNOWN)),
    (Trade("none", 1, BUY), TradeReply(UNKNOWN)),
    (Update("none", -1), UpdateReply(UNKNOWN)),
    (Update("none", 1), UpdateReply(UNKNOWN)),
    *((Lookup(name), LookupReply(UNKNOWN)) for name in ("", "ß" * 65, "gamestart", "GameStart ", "none")),
    (Lookup("Full"), LookupReply(SUSPENDED, 7, 0, 0)),
    (Trade("Full", 1, BUY), TradeReply(SUSPENDED)),
    (Trade("ß" * 64, 5, BUY), TradeReply(OK, 5, 7)),
]
"""The six outcomes of the specification's table, and the order of the checks, in sequence."""


def check_outcomes(make: Maker) -> None:
    """A server gives the six outcomes, with the specification's values and order of checks. The exchange itself gives
    the same."""
    exchange = fresh_exchange()
    with make(stock_service(fresh_exchange())) as running:
        remote = RemoteExchange(running.connect(), WAIT_S)
        for request, expected in OUTCOMES:
            assert (request, answer(remote, request)) == (request, expected)
            assert answer(exchange, request) == expected


def check_undecodable(make: Maker) -> None:
    """Bytes that are not a message of the method are INVALID_ARGUMENT, for every method, and the next request is
    answered."""
    with make(stock_service(fresh_exchange())) as running:
        connection = running.connect()
        for path in (LOOKUP, TRADE, UPDATE):
            for payload in (b"\xff", b"\x0a\x05abc", b"\x0a\x02\xc3\x28", b"\x00" * 9):
                with pytest.raises(InvalidRequest, match=f"{len(payload)} bytes that are no"):
                    connection.call(path, payload, WAIT_S)
        assert connection.call(LOOKUP, b"", WAIT_S), "an empty message is one: a Lookup of no name"


def check_unknown_method(make: Maker) -> None:
    """A method that the service does not have is UNIMPLEMENTED, and the next request is answered."""
    with make(Probe().service) as running:
        connection = running.connect()
        for path in (f"/{PROBE}/None", "/no.such.Service/Echo", f"/{PROBE}/echo", f"/{PROBE}/Echo/"):
            with pytest.raises(UnknownMethod):
                connection.call(path, b"", WAIT_S)
        assert connection.call(ECHO, b"after", WAIT_S) == b"after"


def check_handler_that_raises(make: Maker) -> None:
    """A handler that raises is INTERNAL, without its message; a fault that it raises arrives as that fault."""
    with make(Probe().service, Limits(workers=1)) as running:
        connection = running.connect()
        for kind in (b"", b"exit", b""):
            with pytest.raises(InternalFault) as caught:
                connection.call(FAIL, kind, WAIT_S)
            assert "planted" not in caught.value.detail
        for code in FaultCode:
            with pytest.raises(FAULTS[code]) as fault:
                connection.call(FAIL, str(int(code)).encode(), WAIT_S)
            assert code is FaultCode.DEADLINE_EXCEEDED or f"planted {int(code)}" in fault.value.detail
        assert connection.call(ECHO, b"after", WAIT_S) == b"after"


def check_deadline(make: Maker) -> None:
    """No reply in time is DeadlineExceeded; the late reply is never taken for that of the next request."""
    probe = Probe()
    with make(probe.service) as running, probe:
        connection = running.connect()
        with pytest.raises(DeadlineExceeded, match=f"{running.address[0]}:{running.address[1]}"):
            connection.call(BLOCK, b"late", 0.1)
        probe.entered()
        probe.released.set()
        for payload in (b"1", b"2"):
            assert connection.call(ECHO, payload, WAIT_S) == payload


def check_overload(make: Maker) -> None:
    """Requests over workers and queue are RESOURCE_EXHAUSTED at once. The requests within them and later ones are
    answered."""
    probe, callers = Probe(), 6
    limits = Limits(workers=1, queue_limit=1)
    with make(probe.service, limits) as running, ThreadPoolExecutor(callers) as threads, probe:
        ended = [threads.submit(one_call, running.connect, BLOCK, b"held")]
        probe.entered()
        ended += [threads.submit(one_call, running.connect, BLOCK, b"next") for _ in range(callers - 1)]
        refused = [call.result() for call in islice(as_completed(ended, WAIT_S), callers - 2)]
        assert [reply.code for reply in refused if isinstance(reply, Fault)] == [Overloaded.code] * (callers - 2)
        probe.released.set()
        replies = {call.result() for call in ended} - set(refused)
        assert replies == {b"held", b"next"}
        until(lambda: one_call(running.connect, ECHO, b"later") == b"later", "the server has recovered")


def one_call(connect: Callable[[], Connection], path: str, payload: bytes) -> bytes | Fault:
    """The reply to one request on a connection of its own, or the fault; a missed deadline is raised."""
    connection = connect()
    try:
        return connection.call(path, payload, WAIT_S)
    except DeadlineExceeded:
        raise
    except Fault as fault:
        return fault
    finally:
        connection.close()


def check_concurrent_clients(make: Maker) -> None:
    """Each of eight clients at a time gets its own replies and no other's."""

    def client(number: int) -> bool:
        connection = running.connect()
        payloads = [f"{number} {request}".encode() for request in range(25)]
        return all(connection.call(ECHO, payload, WAIT_S) == payload for payload in payloads)

    room = Limits(workers=8, queue_limit=8 * 25)  # a thread per task may outlive its reply on a busy machine
    with make(Probe().service, room) as running, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(client, range(8)))


def check_payload_sizes(make: Maker) -> None:
    """Payloads of no byte to nearly ``frame_bytes_max`` arrive whole."""
    with make(Probe().service) as running:
        connection = running.connect()
        for size in (0, 1, 65535, 65536, ServeOptions().frame_bytes_max - 100):
            payload = random.Random(size).randbytes(size)
            assert connection.call(ECHO, payload, WAIT_S) == payload, f"{size} bytes came back as others"


def check_payload_too_long(make: Maker) -> None:
    """A request over ``frame_bytes_max``, by a byte or by far, is refused as such, and the server goes on."""
    for limit, size in ((1024, 1025), (ServeOptions().frame_bytes_max, 2 * ServeOptions().frame_bytes_max)):
        with make(Probe().service, Limits(options=ServeOptions(frame_bytes_max=limit))) as running:
            with pytest.raises((InvalidRequest, Overloaded)):
                running.connect().call(ECHO, bytes(size), WAIT_S)
            assert running.connect().call(ECHO, b"after", WAIT_S) == b"after"


CHECKS = (
    check_outcomes,
    check_undecodable,
    check_unknown_method,
    check_handler_that_raises,
    check_deadline,
    check_overload,
    check_concurrent_clients,
    check_payload_sizes,
    check_payload_too_long,
)
