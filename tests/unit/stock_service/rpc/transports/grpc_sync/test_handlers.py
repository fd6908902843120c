"""Which calls of grpcio are begun, by what their thread and their context say of them."""

from collections.abc import Callable
from typing import NoReturn, cast

import grpc

from stock_service.rpc.errors import Unavailable
from stock_service.rpc.grpcio.securing import Checks
from stock_service.rpc.metrics import Metrics
from stock_service.rpc.transports.grpc_sync.calls import Arrival
from stock_service.rpc.transports.grpc_sync.handlers import Handlers
from tests.raw_service import raw_service

MS = 1_000_000
PATH = "/tests.v1.Probe/Echo"


class Aborted(Exception):
    """Exception of grpcio's ``abort``."""


class Context:
    """A call's context, as far as a handler asks it."""

    def __init__(self, left_s: float = 1e13, active: bool = True) -> None:
        self._left_s, self._active = left_s, active
        self.ended: list[Callable[[], None]] = []
        self.code: grpc.StatusCode | None = None

    def time_remaining(self) -> float:
        """Seconds; grpcio says a number without end where the client waits for ever, and never one below 0."""
        return self._left_s

    def add_callback(self, callback: Callable[[], None]) -> bool:
        """False once the call has ended."""
        self.ended.append(callback)
        return self._active

    def abort(self, code: grpc.StatusCode, _details: str) -> NoReturn:
        """Ends the call."""
        self.code = code
        raise Aborted


class Handled:
    """A method's handler, whose calls come as a test says."""

    def __init__(self, delay_target_ms: float = 20, metrics: Metrics | None = None) -> None:
        self.arrival = Arrival()
        self.handlers = Handlers(self.arrival, delay_target_ms, metrics, None)
        self.begun: list[bytes] = []
        service = raw_service("tests.v1.Probe", {PATH: self._note})
        self._handler = self.handlers.handler(PATH, service.methods[PATH], Checks(None, service))

    def _note(self, payload: bytes) -> bytes:
        self.begun.append(payload)
        return payload

    def call(self, context: Context, waited_ms: float = 0, at_ms: float = 0) -> grpc.StatusCode | None:
        """The end of a call that waited for its thread until a moment."""
        self.arrival.began_ns, self.arrival.waited_ns = int((1000 + at_ms) * MS), int(waited_ms * MS)
        try:
            self._handler(b"call", cast(grpc.ServicerContext, context))
        except Aborted:
            pass
        return context.code


def test_a_call_whose_deadline_has_passed_is_not_begun() -> None:
    """DEADLINE_EXCEEDED, and its method is not called, though grpcio has called the handler."""
    handled = Handled()
    assert handled.call(Context(left_s=0.0)) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert not handled.begun
    assert handled.call(Context(left_s=0.001)) is None
    assert handled.begun


def test_a_call_that_waited_past_the_target_is_not_begun() -> None:
    """RESOURCE_EXHAUSTED, where calls have waited for longer than an interval; in a burst, a third of its time."""
    for delay_target_ms, left_s, waited_ms, standing, refused in (
        (20, 1e13, 999, True, False),  # who does not say how long, is taken to wait for 4 s
        (20, 1e13, 1001, True, True),
        (20, 0.06, 21, True, True),
        (20, 0.2, 100, False, False),  # a third of it, in a burst
        (0, 1e13, 5000, True, False),
    ):
        handled = Handled(delay_target_ms)
        assert handled.call(Context(), waited_ms=0.5) is None, "the queue is empty now"
        code = handled.call(Context(left_s), waited_ms, at_ms=101 if standing else 99)
        assert code is (grpc.StatusCode.RESOURCE_EXHAUSTED if refused else None)
        assert len(handled.begun) == 1 + (not refused)


def test_a_call_is_under_way_until_its_reply_has_left() -> None:
    """A call is under way until grpcio's callback says that its reply has left. A call that has ended before is not
    begun."""
    handled, context = Handled(), Context()
    handled.call(context)
    assert len(handled.handlers.under_way) == 1
    for ended in context.ended:
        ended()
    assert not handled.handlers.under_way
    handled.call(Context(active=False))
    assert len(handled.begun) == 1
    assert not handled.handlers.under_way


def test_a_refusal_is_counted() -> None:
    """Refusals are counted: once the server stops, and for other reasons. They are not requests of the service."""
    metrics = Metrics()
    handled = Handled(metrics=metrics)
    handled.arrival.refused = Unavailable("the server is stopping")
    assert handled.call(Context()) is grpc.StatusCode.UNAVAILABLE
    counted = {"what": "request", "fault": "UNAVAILABLE"}
    assert metrics.registry.get_sample_value("stock_service_refusals_total", counted) == 1
    assert not handled.begun
