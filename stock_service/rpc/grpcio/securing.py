"""Security of a server on grpcio: a port with TLS, and access checks. A check uses the token and the certificate in
grpcio's context of a call.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast

import grpc

from stock_service.rpc.call import Call
from stock_service.rpc.grpcio.serving import Context, Server, check_free
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.reflection import REFLECTION, reflection
from stock_service.rpc.security import AUTHORIZATION, Access, Guard, shown_in
from stock_service.rpc.server_core.options import ServeOptions
from stock_service.rpc.service import Service
from stock_service.rpc.tls import Pems, ServerTls

Asker = TypeVar("Asker", bound=Context)
Answer = TypeVar("Answer")


class Checks:
    """Access checks for the methods of one server. Thread-safe."""

    def __init__(self, access: Access | None, service: Service) -> None:
        """``access`` is None for a server without access control."""
        reflecting = reflection(service.name)
        rights = replace(service, streams=reflecting).rights()
        self._guard = None if access is None else Guard(access, rights)
        answer = reflecting[REFLECTION[0]].answer_stream()

        def reflect(payload: bytes, _: Context) -> Iterator[bytes]:
            return answer(Call(payload))

        self.reflect = self.checked(reflect, REFLECTION[0])
        """Function that checks the caller, and answers one question to server reflection. Raises a Fault."""

    def checked(self, answer: Callable[[bytes, Asker], Answer], path: str) -> Callable[[bytes, Asker], Answer]:
        """Wraps ``answer``. The result first checks the caller's right to the method ``path``. If the caller does not
        have the right, the result raises Unauthenticated or PermissionDenied.
        """
        guard, name = self._guard, path.encode()
        if guard is None:
            return answer

        def answer_checked(payload: bytes, context: Asker) -> Answer:
            metadata = context.invocation_metadata() or ()
            shown = shown_in(str(value) for key, value in metadata if key == AUTHORIZATION)
            known = cast(Mapping[str, Iterable[bytes]], context.auth_context())
            names = tuple(known.get("x509_common_name", ()))
            guard.check(name, shown, names[0].decode(errors="replace") if len(names) == 1 else "")
            return answer(payload, context)

        return answer_checked


def add_port(server: Server, options: ServeOptions) -> int:
    """Makes a server listen, with TLS if ``options`` have TLS files. Returns the port. Raises OSError with the reason
    if the server cannot listen.
    """
    target, tls = shown_address((options.host, options.port)), options.tls
    try:
        return server.add_insecure_port(target) if tls is None else server.add_secure_port(target, _credentials(tls))
    except RuntimeError as error:  # the error does not tell the reason, so ``check_free`` finds it
        check_free(options)
        raise OSError(f"cannot listen on {target}") from error


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """Makes grpcio's credentials of a server. At each handshake, gRPC core asks these credentials for a renewed
    certificate.
    """
    given, demands = tls.pems, tls.files.client_authority is not None
    renewing = Renewing(tls, given)
    return grpc.dynamic_ssl_server_credentials(_configuration(given), renewing, demands)  # type: ignore[arg-type]  # None


class Renewing:
    """Function object that gRPC core calls at each handshake, one call at a time. Returns the certificate if it has
    changed since the last call, otherwise None.

    Returning an unchanged certificate could crash the process: gRPC core (1.85) would replace its configuration without
    a lock, while another thread's handshake is about to use the old configuration. In a test, three of five servers
    with some hundred handshakes a second crashed within 2 s. If the result is None, gRPC core keeps its configuration.
    """

    def __init__(self, tls: ServerTls, given: Pems) -> None:
        self._tls, self._given = tls, given

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        """Returns grpcio's configuration with the new certificate; None if the certificate has not changed."""
        pems = self._tls.pems
        if pems == self._given:
            return None
        self._given = pems
        return _configuration(pems)


def _configuration(pems: Pems) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(pems.key, pems.certificate)], pems.authority or None)
