"""Documented behaviour of ``grpc.Server``, on grpcio and on ours: handlers, interceptors, ports, ends."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any

import grpc
import pytest

from stock_service.rpc.server import server
from stock_service.rpc.tls import ServerTls, TlsFiles
from tests.conformance.running import WAIT_S, until
from tests.conformance.servicers import (
    DIFFERENCES,
    NAME,
    SERVERS,
    UNARY,
    Code,
    Interceptor,
    Make,
    calling,
    channel,
    failed,
    generic,
    noted,
    started,
    unary,
)
from tests.tls import credentials

# ---- handlers and interceptors


def test_interceptors(make: Make) -> None:
    """The first one given comes first; one may answer by itself, also for a method that is not there."""
    told: list[Any] = []
    refuses: Any = grpc.unary_unary_rpc_method_handler(lambda _, context: context.abort(Code.UNAUTHENTICATED, "who?"))
    first, second = Interceptor("first", told), Interceptor("second", told)
    with calling(make, unary(lambda request, _: request), interceptors=(first, second)) as opened:
        assert opened.unary_unary(UNARY)(b"asked", WAIT_S, metadata=(("a", "1"),)) == b"asked"
        assert told == [("first", UNARY, "1"), ("second", UNARY, "1")]
        second.own = refuses
        for path in (UNARY, f"/{NAME}/None"):
            error = failed(partial(opened.unary_unary(path), b"", WAIT_S, metadata=(("a", "1"),)))
            assert (error.code(), error.details()) == (Code.UNAUTHENTICATED, "who?")
        second.own = None
        error = failed(lambda: opened.unary_unary(UNARY)(b"", WAIT_S))  # it raises KeyError
        assert error.code() is Code.UNKNOWN


def test_variables_of_a_call() -> None:
    """What an interceptor sets in ``contextvars`` its handler sees, and no other call; on grpcio of late too."""
    variable = ContextVar[str]("variable", default="none")

    class Sets(grpc.ServerInterceptor):
        def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
            if dict(handler_call_details.invocation_metadata).get("a"):
                variable.set("set")
            return continuation(handler_call_details)

    with calling(server, unary(lambda *_: variable.get().encode()), interceptors=(Sets(),), workers=1) as opened:
        assert opened.unary_unary(UNARY)(b"", WAIT_S, metadata=(("a", "1"),)) == b"set"
        assert opened.unary_unary(UNARY)(b"", WAIT_S) == b"none"


def test_unknown_methods(make: Make) -> None:
    """They are UNIMPLEMENTED."""
    with calling(make, unary(lambda request, _: request)) as opened:
        assert failed(lambda: opened.unary_unary(f"/{NAME}/None")(b"", WAIT_S)).code() is Code.UNIMPLEMENTED


def test_registered_handlers_come_first(make: Make) -> None:
    """A generic one of the same method is not asked; handlers may be given to the server as it is made."""
    asked_last = generic(unary(lambda *_: b"generic"))
    with ThreadPoolExecutor(1) as pool:
        served = make(pool, (asked_last,))
        served.add_registered_method_handlers(NAME, unary(lambda *_: b"registered"))
        port = served.add_insecure_port("127.0.0.1:0")
        served.start()
        with channel(f"127.0.0.1:{port}") as opened:
            assert opened.unary_unary(UNARY)(b"", WAIT_S) == b"registered"
        served.stop(None)
    with pytest.raises(AttributeError):
        served.add_generic_rpc_handlers((object(),))  # type: ignore[arg-type]  # what it is to refuse


def test_handlers_run_in_the_given_pool(make: Make) -> None:
    """On its threads, and no others."""
    named: list[str] = []
    with ThreadPoolExecutor(2, thread_name_prefix="given") as pool:
        served = make(pool)
        told = unary(lambda request, _: noted(named, threading.current_thread().name, request))
        served.add_generic_rpc_handlers((generic(told),))
        port = served.add_insecure_port("localhost:0")
        served.start()
        with channel(f"localhost:{port}") as opened:
            opened.unary_unary(UNARY)(b"", WAIT_S)
        served.stop(None)
    assert named[0].startswith("given")


def test_a_pool_that_its_user_has_ended() -> None:
    """Calls are UNAVAILABLE then."""
    with ThreadPoolExecutor(1) as pool:
        served = server(pool, (generic(unary(lambda request, _: request)),))
        port = served.add_insecure_port("127.0.0.1:0")
        served.start()
        with channel(f"127.0.0.1:{port}") as opened:
            assert opened.unary_unary(UNARY)(b"asked", WAIT_S) == b"asked"
            pool.shutdown()
            assert failed(lambda: opened.unary_unary(UNARY)(b"", WAIT_S)).code() is Code.UNAVAILABLE
        served.stop(None)


def test_maximum_concurrent_rpcs(make: Make) -> None:
    """One call more is RESOURCE_EXHAUSTED, and later ones are served."""
    begun, goes_on = threading.Semaphore(0), threading.Event()

    def handle(request: bytes, _: Any) -> bytes:
        begun.release()
        assert goes_on.wait(WAIT_S)
        return request

    with calling(make, unary(handle), maximum_concurrent_rpcs=2) as opened:
        calls: list[Any] = [opened.unary_unary(UNARY).future(b"asked", WAIT_S) for _ in range(2)]
        assert all(begun.acquire(timeout=WAIT_S) for _ in calls)
        assert failed(lambda: opened.unary_unary(UNARY)(b"", WAIT_S)).code() is Code.RESOURCE_EXHAUSTED
        goes_on.set()
        assert [call.result(WAIT_S) for call in calls] == [b"asked"] * 2
        until(lambda: opened.unary_unary(UNARY).future(b"", WAIT_S).code() is Code.OK, "there is room again")


# ---- the server's life


@pytest.mark.slow
def test_calls_that_wait_for_a_thread_are_all_served(make: Make) -> None:
    """None is refused because it waits, with or without a deadline."""

    def handle(request: bytes, _: Any) -> bytes:
        threading.Event().wait(0.02)
        return request

    with calling(make, unary(handle), workers=1) as opened:
        calls: list[Any] = [opened.unary_unary(UNARY).future(b"%d" % each) for each in range(30)]
        assert [call.result(WAIT_S) for call in calls] == [b"%d" % each for each in range(30)]


def test_start_and_stop(make: Make) -> None:
    """A server starts once, and says when it has ended."""
    with ThreadPoolExecutor(1) as pool:
        served = make(pool)
        served.add_insecure_port("127.0.0.1:0")
        served.start()
        with pytest.raises(ValueError, match="start"):
            served.start()
        assert served.wait_for_termination(0.01)
        assert served.stop(None).is_set()
        assert not served.wait_for_termination(WAIT_S)
        assert served.stop(1).is_set()


def test_an_address_that_cannot_be_opened(make: Make) -> None:
    """It is a RuntimeError, which names it."""
    with ThreadPoolExecutor(1) as pool:
        served = make(pool, options=[("grpc.so_reuseport", 0)])
        taken = f"127.0.0.1:{served.add_insecure_port('127.0.0.1:0')}"
        served.start()
        with pytest.raises(RuntimeError, match=f"Failed to bind to address {taken}"):
            served.add_insecure_port(taken)
        served.stop(None)


def test_both_families(make: Make) -> None:
    """``[::]`` is for clients of IPv4 as well, who are told apart."""
    peers: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        served = make(pool)
        served.add_registered_method_handlers(NAME, unary(lambda _, context: noted(peers, context.peer(), b"")))
        port = served.add_insecure_port("[::]:0")
        served.start()
        for host in ("127.0.0.1", "[::1]"):
            with channel(f"{host}:{port}") as opened:
                opened.unary_unary(UNARY)(b"", WAIT_S)
        served.stop(None)
    assert [peer.rpartition(":")[0] for peer in peers] == ["ipv4:127.0.0.1", "ipv6:%5B::1%5D"]


def test_stop_with_grace_loses_no_accepted_call(make: Make) -> None:
    """Those under way are answered, and no new one is taken."""
    begun, goes_on = threading.Semaphore(0), threading.Event()

    def handle(request: bytes, _: Any) -> bytes:
        begun.release()
        assert goes_on.wait(WAIT_S)
        return request

    with started(make, unary(handle)) as (served, address), channel(address) as opened:
        calls: list[Any] = [opened.unary_unary(UNARY).future(b"asked", WAIT_S) for _ in range(4)]
        assert all(begun.acquire(timeout=WAIT_S) for _ in calls)
        ended = served.stop(WAIT_S)
        with channel(address) as other:
            assert failed(lambda: other.unary_unary(UNARY)(b"", WAIT_S)).code() is Code.UNAVAILABLE
        assert not ended.is_set()
        goes_on.set()
        assert [call.result(WAIT_S) for call in calls] == [b"asked"] * 4
        assert ended.wait(WAIT_S)


@pytest.mark.parametrize("graces", [(None,), (0.1,), (WAIT_S, 0.1), (WAIT_S, None)], ids=str)
def test_stop_cancels_what_takes_longer(make: Make, graces: tuple[float | None, ...]) -> None:
    """The handler hears of it, and so does its client; a second stop may come sooner."""
    begun, ended = threading.Event(), threading.Event()

    def handle(request: bytes, context: Any) -> bytes:
        context.add_callback(ended.set)
        begun.set()
        assert ended.wait(WAIT_S)
        return request

    with started(make, unary(handle)) as (served, address), channel(address) as opened:
        call: Any = opened.unary_unary(UNARY).future(b"", WAIT_S)
        assert begun.wait(WAIT_S)
        began_s = time.monotonic()
        assert [served.stop(grace) for grace in graces][-1].wait(WAIT_S)
        assert time.monotonic() - began_s < WAIT_S / 2
        assert call.code() in (Code.CANCELLED, Code.UNAVAILABLE)


ENDS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import grpc
from stock_service.rpc.server import server
from stock_service.rpc.tls import ServerTls, TlsFiles
served = {"grpcio": grpc.server, "ours": server}[sys.argv[1]](ThreadPoolExecutor(1))
served.add_insecure_port("127.0.0.1:0")
served.start()
sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_a_program_that_ends_is_not_held_up(name: str) -> None:
    """By a server that it has not stopped."""
    assert subprocess.run([sys.executable, "-c", ENDS, name], timeout=3 * WAIT_S, check=False).returncode == 3


# ---- TLS, which takes other credentials here


def test_tls_and_a_client_that_shows_a_certificate() -> None:
    """A handler is told its common name."""
    folder, told = credentials(), list[Any]()
    pems = ((folder / name).read_bytes() for name in ("ca.pem", "trader-key.pem", "trader.pem"))
    files = TlsFiles(folder / "server.pem", folder / "server-key.pem", folder / "ca.pem")

    def tell(request: bytes, context: Any) -> bytes:
        told.extend((context.peer_identity_key(), list(context.peer_identities()), context.auth_context()))
        return request

    with ThreadPoolExecutor(1) as pool:
        served = server(pool)
        served.add_registered_method_handlers(NAME, unary(tell))
        port = served.add_secure_port("127.0.0.1:0", ServerTls(files, ["h2"]))
        served.start()
        with grpc.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(*pems)) as opened:
            stub: Any = opened.unary_unary(UNARY)
            assert stub(b"asked", WAIT_S) == b"asked"
        served.stop(None)
    assert told[1] == told[2][told[0]] == [b"trader"]
    assert told[2]["transport_security_type"] == [b"ssl"]


# ---- what is refused by name


@pytest.mark.parametrize("option", [("grpc.max_send_message_length", 1), ("grpc.max_connection_age_ms", "1")], ids=str)
def test_an_option_that_is_not_kept_is_refused(option: tuple[str, Any]) -> None:
    """By its name."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=option[0]):
        server(pool, options=[option])


def test_what_else_is_refused() -> None:
    """A compression, and grpcio's credentials, each by its name."""
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="Deflate"):
            server(pool, compression=grpc.Compression.Deflate)
        served = server(pool)
        with pytest.raises(TypeError, match="ServerTls"):
            served.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(b"", b"")]))
        served.stop(None)


def test_few_things_differ() -> None:
    """Five at most, each with its reason."""
    assert len(DIFFERENCES) <= 5
