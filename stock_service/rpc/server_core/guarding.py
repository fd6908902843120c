"""A protocol that answers a request only if its caller has the right to it. No I/O.

A server that does not know its callers uses the protocol without a guard, at no cost.
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
    """A protocol whose requests can show a token."""

    def asked(self, request: Request) -> Asked | None:
        """Path of the method that a request is resolved to, and the token that the request shows.

        ``answer`` refuses a request without a method. None: the request was granted already.
        """


class Guarded(Generic[Request]):
    """A guarded protocol: ``answer`` checks the caller first. Every other method is the method of the protocol itself
    (``server_core.protocol.WireProtocol``).
    """

    def __init__(self, protocol: Guardable[Request], guard: Guard) -> None:
        self._guard, self._access = guard, guard.access
        self._asked, self._answer = protocol.asked, protocol.answer
        self.path, self.refusal, self.timeout_ms = protocol.path, protocol.refusal, protocol.timeout_ms
        self.decoder, self.objection = protocol.decoder, protocol.objection
        self.farewell, self.goodbye = protocol.farewell, protocol.goodbye

    def answer(self, request: Request, arrived_ns: int, peer: Address) -> bytes:
        """The protocol's answer, or its refusal."""
        asked = self._asked(request)
        if asked is not None and asked not in self._access.granted:
            wait = here.wait
            path, shown = asked
            if path is not None and (wait is None or wait.on is None):  # else it has begun, and goes on to its end
                try:
                    self._guard.check(path, shown, certificate_of(peer))
                except Fault as fault:
                    return self.refusal(request, fault.code, fault.detail)
        return self._answer(request, arrived_ns, peer)


def guarded(
    protocol: Guardable[Request], access: Access | None, service: Service, own: Mapping[bytes, Right] | None = None
) -> WireProtocol[Request]:
    """The protocol of a server with these callers.

    The service names the rights to its own methods; ``own`` has the rights to the protocol's own methods.
    """
    if access is None:
        return protocol
    return Guarded(protocol, Guard(access, {**service.rights(), **(own or {})}))
