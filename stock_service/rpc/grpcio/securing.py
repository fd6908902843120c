"""What a server on grpcio does about TLS and callers: its port, and the check of one call by its context."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import grpc

from stock_service.rpc.grpcio.serving import check_free
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.security import AUTHORIZATION, Access, Guard, Right, shown_in
from stock_service.rpc.service import Service
from stock_service.rpc.tls import Pems, ServerTls

REFLECTION = b"reflection"
"""What ``Checks`` is asked for a stream of reflection, of either version."""


class Context(Protocol):
    """A call's context: that of grpcio's thread-based server, or of its asyncio one."""

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """What the client sent beside the request."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """What is known of the connection's other end."""


class Checks:
    """Whether a call may be answered. Any thread."""

    def __init__(self, access: Access, service: Service) -> None:
        rights = {path.encode(): method.right for path, method in service.methods.items()}
        self._guard = Guard(access, {**rights, REFLECTION: Right.TRADER})

    def check(self, path: bytes, context: Context) -> None:
        """Returns where it may. Raises Unauthenticated, PermissionDenied."""
        metadata = context.invocation_metadata() or ()
        shown = shown_in(str(value) for name, value in metadata if name == AUTHORIZATION)
        names = tuple(context.auth_context().get("x509_common_name", ()))
        self._guard.check(path, shown, names[0].decode(errors="replace") if len(names) == 1 else "")


def checks_of(access: Access | None, service: Service) -> Checks | None:
    """None where the server knows no callers."""
    return None if access is None else Checks(access, service)


class PortAdder(Protocol):
    """Either server of grpcio."""

    def add_insecure_port(self, address: str) -> int:
        """Listens."""

    def add_secure_port(self, address: str, server_credentials: grpc.ServerCredentials) -> int:
        """Listens for TLS."""


def add_port(server: PortAdder, address: tuple[str, int], tls: ServerTls | None, shares_port: bool) -> int:
    """Has a server listen; gives its port. Raises OSError, which says why."""
    target = shown_address(address)
    try:
        return server.add_insecure_port(target) if tls is None else server.add_secure_port(target, _credentials(tls))
    except RuntimeError as error:  # which does not say why
        check_free(*address, shares_port)
        raise OSError(f"cannot listen on {target}") from error


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """What connections are encrypted with."""
    given, demands = tls.pems, tls.files.client_authority is not None
    renewing = Renewing(tls, given)
    return grpc.dynamic_ssl_server_credentials(_configuration(given), renewing, demands)  # type: ignore[arg-type]  # None


class Renewing:
    """Asked by gRPC core at each handshake, one at a time: what is new since it was last asked; None: nothing.

    To give the same again would end the process: gRPC core (1.85) replaces what another thread's handshake is about to
    use, without a lock. Of five servers with some hundred handshakes a second, three were gone within 2 s. Now it does
    so at a renewal alone.
    """

    def __init__(self, tls: ServerTls, given: Pems) -> None:
        self._tls, self._given = tls, given

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        """See the class."""
        pems = self._tls.pems
        if pems == self._given:
            return None
        self._given = pems
        return _configuration(pems)


def _configuration(pems: Pems) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(pems.key, pems.certificate)], pems.authority or None)
