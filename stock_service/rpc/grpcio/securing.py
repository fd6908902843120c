"""Security of a server on grpcio: the port with TLS, and the check of a call's caller by the call's context."""

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
    """Checks of callers, for the methods of one server. Any thread may use them."""

    def __init__(self, access: Access | None, service: Service) -> None:
        """``access`` is None if the server knows no callers."""
        reflecting = reflection(service.name)
        rights = replace(service, streams=reflecting).rights()
        self._guard = None if access is None else Guard(access, rights)
        answer = reflecting[REFLECTION[0]].answer_stream()

        def reflect(payload: bytes, _: Context) -> Iterator[bytes]:
            return answer(Call(payload))

        self.reflect = self.checked(reflect, REFLECTION[0])
        """Function that answers a question to reflection; raises a Fault."""

    def checked(self, answer: Callable[[bytes, Asker], Answer], path: str) -> Callable[[bytes, Asker], Answer]:
        """Wraps ``answer`` in a check of the caller's right to the method. The wrapped function raises Unauthenticated
        or PermissionDenied for other callers.
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
    """Makes a server listen; returns its port. Raises OSError with the reason where it cannot listen."""
    target, tls = shown_address((options.host, options.port)), options.tls
    try:
        return server.add_insecure_port(target) if tls is None else server.add_secure_port(target, _credentials(tls))
    except RuntimeError as error:  # it does not tell the reason
        check_free(options)
        raise OSError(f"cannot listen on {target}") from error


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """Credentials with which connections are encrypted."""
    given, demands = tls.pems, tls.files.client_authority is not None
    renewing = Renewing(tls, given)
    return grpc.dynamic_ssl_server_credentials(_configuration(given), renewing, demands)  # type: ignore[arg-type]  # None


class Renewing:
    """Function that gRPC core calls at each handshake, one call at a time. Returns the renewed certificates, or None if
    the certificates did not change since the last call.

    Returning unchanged certificates could crash the process: gRPC core (1.85) replaces, without a lock, the
    configuration that another thread's handshake is about to use. Of five servers with some hundred handshakes a
    second, three crashed within 2 s. With None, gRPC core replaces the configuration only at a renewal.
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
