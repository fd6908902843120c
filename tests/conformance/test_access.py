"""Rights: every transport that knows callers, in each mode of TLS, with each credential, for each method."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from clients.load.plan.load_plan import LoadPlan
from clients.load.send.lean import connecting
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.process.credentials import make
from stock_service.rpc.security import Access
from stock_service.rpc.tls import ClientCredentials, ServerTls, TlsFiles, read_token
from stock_service.rpc.transports import TRANSPORTS, ServeOptions, load
from stock_service.trading.service import LOOKUP, STOCK_SERVICE, TRADE, UPDATE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.running import ECHO, WAIT_S, Kind, Limits, Probe, Running, outcome
from tests.conformance.transports import fresh_exchange
from tests.covering import half

KINDS = [Kind(name, load(name).DEFAULT_EXECUTOR) for name in TRANSPORTS] + [
    Kind("grpc_aio", "static-pool", "loop"),
    Kind("sockets", "static-pool", "connection"),
]
"""Transports that know callers, and their dispatch models after the first."""

MODES = ("plain", "tls", "mtls")

NOTHING = f"/{STOCK_SERVICE}/Nothing"

REQUESTS = {
    LOOKUP: stock_pb2.LookupRequest(name="GameStart").SerializeToString(),
    TRADE: stock_pb2.TradeRequest(name="GameStart", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString(),
    UPDATE: stock_pb2.UpdateRequest(name="GameStart", price_cents=5).SerializeToString(),
    NOTHING: b"",
}
"""A path of each method, and a path of no method."""

OK = None
UNKNOWN, DENIED, NOBODY = FaultCode.UNAUTHENTICATED, FaultCode.PERMISSION_DENIED, FaultCode.UNAVAILABLE
MISSING = FaultCode.UNIMPLEMENTED

Outcomes = tuple[FaultCode | None, ...]

TRADER: Outcomes = (OK, OK, DENIED, MISSING)
ADMIN: Outcomes = (OK, OK, OK, MISSING)
STRANGER: Outcomes = (UNKNOWN, UNKNOWN, UNKNOWN, MISSING)
CLOSED: Outcomes = (NOBODY, NOBODY, NOBODY, NOBODY)

TOKENS: dict[tuple[str, str], Outcomes] = {
    ("", ""): STRANGER,
    ("", "trader"): TRADER,
    ("", "admin"): ADMIN,
    ("", "wrong"): STRANGER,
}
"""Callers by certificate and token, where clients need no certificate."""

CERTIFICATES: dict[tuple[str, str], Outcomes] = {
    ("", ""): CLOSED,
    ("", "admin"): CLOSED,
    ("foreign", "admin"): CLOSED,
    ("trader", ""): TRADER,
    ("admin", ""): ADMIN,
    ("trader", "admin"): ADMIN,
    ("admin", "trader"): ADMIN,
    ("admin", "wrong"): STRANGER,
    ("unlisted", ""): (DENIED, DENIED, DENIED, MISSING),
    ("unlisted", "trader"): TRADER,
}
"""Callers where clients need a certificate."""

TABLE = {"plain": TOKENS, "tls": TOKENS, "mtls": CERTIFICATES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Credentials of one authority, and in ``foreign`` those of another authority."""
    return made(tmp_path_factory.mktemp("access") / "own")


def made(folder: Path) -> Path:
    """The same credentials, in a folder that is made."""
    make(folder, callers=("admin", "trader", "unlisted"))
    make(folder / "foreign", callers=("admin", "trader"))
    file = folder / "access.toml"
    listed = file.read_text().split("[[callers]]")[:3]
    file.write_text("[[callers]]".join(listed))
    return folder


def options_of(kind: Kind, mode: str, folder: Path) -> ServeOptions:
    """Options of a server in a mode of TLS, which knows the folder's callers."""
    options = ServeOptions(access=Access(folder / "access.toml"))
    if mode == "plain":
        return options
    authority = folder / "ca.pem" if mode == "mtls" else None
    files = TlsFiles(folder / "server.pem", folder / "server-key.pem", authority)
    return replace(options, tls=ServerTls(files, load(kind.transport).TLS_PROTOCOLS))


def credentials_of(mode: str, folder: Path, certificate: str, token: str) -> ClientCredentials:
    """The credentials that a client shows."""
    shown = "w" * 43 if token == "wrong" else read_token(folder / f"{token}.token") if token else ""
    if mode == "plain":
        return ClientCredentials(token=shown)
    own = folder / "foreign" / "admin.pem" if certificate == "foreign" else folder / f"{certificate}.pem"
    if not certificate:
        return ClientCredentials(folder / "ca.pem", token=shown)
    return ClientCredentials(folder / "ca.pem", own, own.with_name(f"{own.stem}-key.pem"), shown)


@contextmanager
def served(kind: Kind, options: ServeOptions) -> Iterator[Running]:
    """A server of stocks."""
    with Running(kind, stock_service(fresh_exchange()), Limits(options=options)) as running:
        yield running


def outcomes(running: Running, credentials: ClientCredentials) -> Outcomes:
    """For each path, the fault in which a request by a new connection ends; None: an answer."""
    try:
        with closing(load(running.kind.transport).connect(running.address, WAIT_S, credentials)) as connection:
            return tuple(outcome(connection, path, payload) for path, payload in REQUESTS.items())
    except Fault as fault:
        return (fault.code,) * len(REQUESTS)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [(kind, mode) for kind in KINDS for mode in MODES if mode == "plain" or kind.dispatch != "connection"],
    ids=str,
)
def test_the_table(kind: Kind, mode: str, folder: Path) -> None:
    """Every credential has for every method the outcome of the table, and nothing is done that was refused."""
    with served(kind, options_of(kind, mode, folder)) as running:
        for (certificate, token), expected in TABLE[mode].items():
            credentials = credentials_of(mode, folder, certificate, token)
            found = outcomes(running, credentials)
            if kind.transport == "sockets" and expected == STRANGER and token:
                found = (*found[:3], MISSING) if found[3] is UNKNOWN else found  # its hello is refused before
            assert (certificate, token, found) == (certificate, token, expected)


@pytest.mark.parametrize(("kind", "mode"), half([kind for kind in KINDS if kind.dispatch == "request"], MODES), ids=str)
def test_the_lean_client_shows_what_it_is_given(kind: Kind, mode: str, folder: Path) -> None:
    """The lean client shows its credentials on one connection for all requests, as each transport's own client does."""
    with served(kind, options_of(kind, mode, folder)) as running:
        for (certificate, token), expected in TABLE[mode].items():
            if expected != CLOSED:
                shown = credentials_of(mode, folder, certificate, token)
                at, mix = running.address, {"lookup": 1.0}
                plan = LoadPlan(kind.transport, at, 1, mix, ("FishCo",), 0, 1, credentials=shown)
                with closing(connecting(plan)(WAIT_S)) as connection:
                    found = tuple(outcome(connection, path, payload) for path, payload in REQUESTS.items())
                assert (certificate, token, found) == (certificate, token, expected)
        shown = credentials_of(mode, folder, "trader" if mode == "mtls" else "", "trader")
        with closing(connecting(replace(plan, client="library", credentials=shown))(WAIT_S)) as connection:
            assert outcome(connection, LOOKUP, REQUESTS[LOOKUP]) is OK


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.transport.startswith("grpc")], ids=str)
def test_health_is_open_and_reflection_is_not(kind: Kind, folder: Path) -> None:
    """Callers who may trade may use reflection. Everybody may ask for health."""
    with served(kind, options_of(kind, "plain", folder)) as running:
        with grpc.insecure_channel(shown_address(running.address)) as channel:
            check = HealthStub(channel).Check
            assert check(HealthCheckRequest(), timeout=WAIT_S).status == HealthCheckResponse.SERVING
            asked = [ServerReflectionRequest(list_services="")]
            for token, expected in (("", UNKNOWN), ("wrong", UNKNOWN), ("trader", OK)):
                shown = credentials_of("plain", folder, "", token).token
                metadata = (("authorization", f"Bearer {shown}"),) if shown else ()
                stream = ServerReflectionStub(channel).ServerReflectionInfo(iter(asked), WAIT_S, metadata)
                assert _ended(stream) == expected


def _ended(stream: Iterator[object]) -> FaultCode | None:
    try:
        assert len(list(stream)) == 1
    except grpc.RpcError as error:
        return FaultCode(error.code().value[0])
    return None


SLY = (
    f"/{UPDATE}",
    f"{UPDATE}/",
    UPDATE.lower(),
    UPDATE.upper(),
    f"{UPDATE}%20",
    f"http://localhost{UPDATE}/",
    f"{UPDATE};x",
)
"""Paths that some reader might take for that of Update."""


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_only_looks_like_a_method_is_none(kind: Kind, folder: Path) -> None:
    """A path that only resembles a method gives no access, even to an admin. A method under another name needs its
    right."""
    with served(kind, options_of(kind, "plain", folder)) as running, ExitStack() as opened:
        for token in ("", "trader", "admin"):
            shown = credentials_of("plain", folder, "", token)
            connection = opened.enter_context(closing(load(kind.transport).connect(running.address, WAIT_S, shown)))
            for path in SLY:
                assert (token, path, outcome(connection, path, REQUESTS[UPDATE])) == (token, path, MISSING)
            is_let = kind.transport == "http1" and token == "admin"
            assert (outcome(connection, f"{UPDATE}?x=1", REQUESTS[UPDATE]) is OK) == is_let


def test_a_method_that_declares_no_right_needs_an_admins(folder: Path) -> None:
    """A new method is closed until its right is declared."""
    kind = KINDS[0]
    with Running(kind, Probe().service, Limits(options=options_of(kind, "plain", folder))) as running:
        for token, expected in (("", UNKNOWN), ("trader", DENIED), ("admin", OK)):
            with closing(
                load(kind.transport).connect(running.address, WAIT_S, credentials_of("plain", folder, "", token))
            ) as connection:
                assert outcome(connection, ECHO) == expected
