"""Access control for any protocol: the server answers a request only if its caller has the right to the method. No I/O.

A server without access control does not use this module, so its requests take no additional time.
"""

from collections.abc import Mapping
from typing import Generic, Protocol

from stock_service.rpc.errors import Fault
from stock_service.rpc.security import Access, Asked, Guard, Right
from stock_service.rpc.server_core.options import Address, certificate_of
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.service import Service
from stock_service.rpc.waiting import here


class Guardable(WireProtocol[Request], Protocol[Request]):
    """A protocol whose requests can show a credential."""

    def asked(self, request: Request) -> Asked | None:
        """Returns the path of a request's method, and the credential that the request shows.

        The path is None for an unknown method, which ``answer`` refuses. The result is None if the server has checked
        the caller's right before.
        """


class Guarded(Generic[Request]):
    """A protocol with access control: ``answer`` checks the caller's right first. Every other method is the method of
    the protocol itself (``server_core.protocol.WireProtocol``).
    """

    def __init__(self, protocol: Guardable[Request], guard: Guard) -> None:
        self._guard, self._access = guard, guard.access
        self._asked, self._answer = protocol.asked, protocol.answer
        self.path, self.refusal, self.timeout_ms = protocol.path, protocol.refusal, protocol.timeout_ms
        self.decoder, self.objection = protocol.decoder, protocol.objection
        self.farewell, self.goodbye = protocol.farewell, protocol.goodbye

    def answer(self, request: Request, arrived_ns: int, peer: Address) -> bytes:
        """Returns the protocol's answer, or the protocol's refusal if the caller does not have the right."""
        asked = self._asked(request)
        if asked is not None and asked not in self._access.granted:
            wait = here.wait
            path, shown = asked
            if path is not None and (wait is None or wait.on is None):  # a request that has waited was checked before
                try:
                    self._guard.check(path, shown, certificate_of(peer))
                except Fault as fault:
                    return self.refusal(request, fault.code, fault.detail)
        return self._answer(request, arrived_ns, peer)


def guarded(
    protocol: Guardable[Request], access: Access | None, service: Service, own: Mapping[bytes, Right] | None = None
) -> WireProtocol[Request]:
    """Adds access control to a protocol. Returns the protocol itself if ``access`` is None.

    ``service`` states the right that a caller needs for each of the service's methods. ``own`` states the right for
    each method of the protocol itself.
    """
    if access is None:
        return protocol
    return Guarded(protocol, Guard(access, {**service.rights(), **(own or {})}))
