"""Tokens that a server of our own got: it keeps only their digests, also in its heads, caches and decoders."""

import gc
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import replace
from types import FunctionType, ModuleType

import grpc
import pytest

from clients.load.plan.load_plan import ClientKind, LoadPlan
from clients.load.send.lean import connecting
from stock_service.rpc.call import Call
from stock_service.rpc.errors import Unauthenticated
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.security import Access
from stock_service.rpc.service import Service
from stock_service.rpc.tls import ClientCredentials, read_token
from stock_service.rpc.transports import ServeOptions
from stock_service.trading.service import LOOKUP, STOCK_SERVICE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.kept import GRPC
from tests.conformance.running import KINDS, WAIT_S, Kind, Limits, Running, one_executor_each, until
from tests.conformance.transports import fresh_exchange
from tests.covering import half
from tests.raw_service import raw_call
from tests.tls import credentials

SERVERS = [kind for kind in KINDS if kind.transport in ("sockets", "http1", "grpc_static")]

REQUEST = stock_pb2.LookupRequest(name="GameStart").SerializeToString()

CLIENTS: tuple[ClientKind, ...] = ("lean", "library")

NEVER = (ModuleType, type)
"""Kinds of objects that lead to all others in memory."""


def texts(root: object) -> Iterator[bytes]:
    """Every text and every bytes that can be reached from an object, but by the globals of a function."""
    seen, waiting = {id(root)}, [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each.encode(errors="replace")
        elif isinstance(each, bytes | bytearray | memoryview):
            yield bytes(each)
        else:
            found = (each.__closure__, each.__defaults__) if isinstance(each, FunctionType) else gc.get_referents(each)
            fresh = [other for other in found if id(other) not in seen and not isinstance(other, NEVER)]
            seen.update(map(id, fresh))
            waiting += fresh


@pytest.mark.parametrize(("kind", "client"), half(SERVERS, CLIENTS), ids=str)
def test_no_token_is_kept(kind: Kind, client: ClientKind) -> None:
    """No token is kept of open or closed connections that have shown it three times, for known and unknown callers."""
    known, wrong = read_token(credentials() / "trader.token"), "wrong-" + "w" * 32
    options = ServeOptions(access=Access(credentials() / "access.toml"))
    with Running(kind, stock_service(fresh_exchange()), Limits(options=options)) as running, ExitStack() as opened:
        for token, stays in ((known, False), (wrong, False), (known, True)):
            plan = LoadPlan(kind.transport, running.address, 1, {"lookup": 1.0}, ("GameStart",), 0, 1, client=client)
            plan = replace(plan, credentials=ClientCredentials(token=token))
            answered = []
            with suppress(Unauthenticated), ExitStack() as closed:
                connection = (opened if stays else closed).enter_context(closing(connecting(plan)(WAIT_S)))
                for _ in range(3):
                    with nullcontext() if token == known else suppress(Unauthenticated):
                        answered.append(connection.call(LOOKUP, REQUEST, WAIT_S))
            assert len(answered) == (3 if token == known else 0)
        if kind.dispatch == "request":  # its thread has the request until just after the reply
            until(lambda: "thread-per-task" not in [each.name for each in threading.enumerate()], "all requests ended")
        kept = [*texts(running.server)]
    assert any(LOOKUP.encode() in text for text in kept), "the search reaches what is kept"
    assert [text for text in kept if known.encode() in text or wrong.encode() in text] == []


@pytest.mark.parametrize("kind", [kind for kind in one_executor_each(2) if kind.transport in GRPC], ids=str)
def test_a_handler_is_given_no_token(kind: Kind) -> None:
    """All other metadata is given to the handler."""
    given: list[Call] = []

    def keep(call: Call) -> bytes:
        given.append(call)
        return b""

    with Running(kind, Service(STOCK_SERVICE, {LOOKUP: raw_call(keep)}), Limits()) as running:
        with grpc.insecure_channel(shown_address(running.address)) as channel:
            call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(LOOKUP)
            for _ in range(3):
                call(REQUEST, WAIT_S, metadata=(("authorization", "Bearer " + "t" * 43), ("a", "b")))
    names = [[name for name, _ in each.metadata if name in ("authorization", "a")] for each in given]
    assert names == [["a"]] * 3
