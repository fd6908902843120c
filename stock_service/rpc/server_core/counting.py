"""What a server of this core counts that its service does not see: refusals, and how long requests waited for a thread.

A server without metrics has the bare protocol and the bare executor, and so pays nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.metrics import ONE_IN, Metrics, now_ns
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.served_stream import RequestDecoder


class CountedRefusals(Generic[Request]):
    """A protocol whose refusals are counted, of requests and of connections; see ``protocol.WireProtocol``."""

    def __init__(self, protocol: WireProtocol[Request], metrics: Metrics) -> None:
        self._protocol = protocol
        self._refused = metrics.refused

    def answer(self, request: Request, arrived_ns: int, peer: Address) -> bytes:
        """The protocol's."""
        return self._protocol.answer(request, arrived_ns, peer)

    def path(self, request: Request) -> bytes | None:
        """The protocol's."""
        return self._protocol.path(request)

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """The protocol's, counted."""
        self._refused("request", code.name)
        return self._protocol.refusal(request, code, detail)

    def decoder(self) -> RequestDecoder[Request]:
        """The protocol's."""
        return self._protocol.decoder()

    def timeout_ms(self, request: Request) -> int:
        """The protocol's."""
        return self._protocol.timeout_ms(request)

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """The protocol's, counted."""
        self._refused("connection", code.name)
        return self._protocol.farewell(code, detail)

    def goodbye(self) -> bytes:
        """The protocol's."""
        return self._protocol.goodbye()

    def objection(self, error: FramingError) -> bytes:
        """The protocol's, counted."""
        self._refused("connection", error.code.name)
        return self._protocol.objection(error)


class WaitSamples:
    """How long requests waited for a thread since they arrived: of one request in ``ONE_IN``. For one thread."""

    def __init__(self, serve: Callable[[Any, Any, int], None], metrics: Metrics) -> None:
        """``serve`` is what the tasks call, with three arguments, of which the last is when the request arrived."""
        self._serve, self._observe = serve, metrics.waited_s
        self._due = 0

    def take(self, batch: list["partial[None]"]) -> None:
        """Has some of a batch's tasks note how long they waited, in the place of the bare tasks."""
        self._due -= len(batch)
        while self._due < 0:  # counted from the batch's end
            batch[self._due] = partial(self._serve_noting, *batch[self._due].args)
            self._due += ONE_IN

    def _serve_noting(self, connection: Any, request: Any, arrived_ns: int) -> None:
        self._observe((now_ns() - arrived_ns) / 1e9)
        self._serve(connection, request, arrived_ns)
