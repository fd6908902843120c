"""A protocol whose requests are answered only where their callers may ask for it. No I/O.

A server that knows no callers has the bare protocol, and so pays nothing.
"""

from collections.abc import Mapping
from typing import Generic, Protocol

from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.security import Access, Asked, Guard, Right
from stock_service.rpc.server_core.options import Address, certificate_of
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.service import Service
from stock_service.rpc.waiting import here
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.served_stream import RequestDecoder


class Guardable(WireProtocol[Request], Protocol[Request]):
    """A protocol whose requests can show a token."""

    def asked(self, request: Request) -> Asked | None:
        """The method that a request is resolved to, and the token that it shows.

        One that is resolved to no method, ``answer`` does nothing but refuse. None: it was found to be granted already.
        """


class Guarded(Generic[Request]):
    """See the module, and ``server_core.protocol.WireProtocol``."""

    def __init__(self, protocol: Guardable[Request], guard: Guard) -> None:
        self._protocol = protocol
        self._guard, self._access = guard, guard.access
        self._asked, self._answer = protocol.asked, protocol.answer

    def answer(self, request: Request, arrived_ns: int, peer: Address) -> bytes:
        """The protocol's answer, or its refusal."""
        asked = self._asked(request)
        if asked is not None and asked not in self._access.granted:
            wait = here.wait
            path, shown = asked
            if path is not None and (wait is None or wait.on is None):  # else it was begun, and goes on to its end
                try:
                    self._guard.check(path, shown, certificate_of(peer))
                except Fault as fault:
                    return self._protocol.refusal(request, fault.code, fault.detail)
        return self._answer(request, arrived_ns, peer)

    def path(self, request: Request) -> bytes | None:
        """The protocol's."""
        return self._protocol.path(request)

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """The protocol's."""
        return self._protocol.refusal(request, code, detail)

    def decoder(self) -> RequestDecoder[Request]:
        """The protocol's."""
        return self._protocol.decoder()

    def timeout_ms(self, request: Request) -> int:
        """The protocol's."""
        return self._protocol.timeout_ms(request)

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """The protocol's."""
        return self._protocol.farewell(code, detail)

    def goodbye(self) -> bytes:
        """The protocol's."""
        return self._protocol.goodbye()

    def objection(self, error: FramingError) -> bytes:
        """The protocol's."""
        return self._protocol.objection(error)


def guarded(
    protocol: Guardable[Request], access: Access | None, service: Service, own: Mapping[bytes, Right] | None = None
) -> WireProtocol[Request]:
    """The protocol as a server with these callers has it. ``own``: rights for what it answers beside ``methods``."""
    if access is None:
        return protocol
    rights = {path.encode(): method.right for path, method in service.methods.items()}
    return Guarded(protocol, Guard(access, {**rights, **(own or {})}))
