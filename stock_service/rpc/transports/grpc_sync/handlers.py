"""The service's methods as handlers of grpcio, which begin a call or refuse it, and count the calls under way.

A handler does not begin a call whose client has given up, whose deadline has passed, or which has waited too long for
its thread while the server is overloaded. ``server_core/admission.py`` has the limit; here a wait begins when grpcio
gives the call to the executor. The handler itself decodes, so that undecodable bytes are INVALID_ARGUMENT; grpcio's
generated code would report INTERNAL.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import grpc

from stock_service.rpc.errors import DeadlineExceeded, Fault, Overloaded
from stock_service.rpc.grpcio.securing import Checks
from stock_service.rpc.grpcio.serving import STATUS, Behaviour, behaviour_of, fault_of, stamped
from stock_service.rpc.metrics import Metrics
from stock_service.rpc.server_core.admission import DelayTarget
from stock_service.rpc.service import Method
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports.grpc_sync.calls import Arrival

Handler = Callable[[bytes, grpc.ServicerContext], bytes]
"""A method as grpcio calls it."""

EMPTY_NS = 1_000_000
"""Longest wait of a call for which the queue counts as empty: waking a thread takes a tenth of this time."""

TIMEOUT_MS_MAX = 3_600_000
"""Longest time limit that counts: a call with a longer time limit counts as a call without a time limit."""


class Handlers:
    """Makes the handlers of one server. Any thread may call a handler."""

    def __init__(
        self, arrival: Arrival, delay_target_ms: float, metrics: Metrics | None, timeline: Timeline | None
    ) -> None:
        self.under_way: set[grpc.ServicerContext] = set()
        """Calls that were begun, and whose reply has not been sent."""
        self._arrival = arrival
        self._delay = DelayTarget(delay_target_ms)
        self._metrics = metrics
        self._timeline = timeline

    def handler(self, path: str, method: Method[Any, Any], checks: Checks) -> Handler:
        """The function that grpcio calls for a method. Admits only callers with the right to the method."""
        behaviour = behaviour_of(method)
        if self._timeline is not None:
            behaviour = stamped(behaviour, self._timeline, path)
        return partial(self._handle, checks.checked(behaviour, path))

    def _handle(self, behaviour: Behaviour, payload: bytes, context: grpc.ServicerContext) -> bytes:
        refused = self._refusal(context)
        if refused is not None:
            if self._metrics is not None:
                self._metrics.refused("request", refused.code.name)
            abort(context, refused)
        self.under_way.add(context)
        if not context.add_callback(partial(self.under_way.discard, context)):
            self.under_way.discard(context)  # its client has given up
            return b""
        return answered(behaviour, payload, context)

    def _refusal(self, context: grpc.ServicerContext) -> Fault | None:
        """Fault that refuses the call of this thread; None for a call that may begin."""
        arrival, delay = self._arrival, self._delay
        left_s = context.time_remaining()
        if arrival.refused is not None:
            return arrival.refused
        if not left_s:
            return DeadlineExceeded("its time was over before it was begun")
        waited_ns, now_ns = arrival.waited_ns, arrival.began_ns
        if waited_ns <= EMPTY_NS:
            delay.emptied(now_ns)
            return None
        timeout_ms = int(left_s * 1e3 + waited_ns / 1e6)
        limit_ns = delay.limit_ns(timeout_ms if timeout_ms <= TIMEOUT_MS_MAX else 0, now_ns)
        if not limit_ns or waited_ns <= limit_ns:
            return None
        delay.refused(now_ns)
        return Overloaded(f"it has waited {waited_ns / 1e6:.0f} ms for a thread")


def answered(behaviour: Behaviour, payload: bytes, context: grpc.ServicerContext) -> bytes:
    """A method's answer; ends the call with grpcio's status where the method raises."""
    try:
        return behaviour(payload, context)
    except BaseException as error:  # SystemExit too: every request gets its reply
        abort(context, error)


def abort(context: grpc.ServicerContext, error: BaseException) -> NoReturn:
    """Ends a call with the status of a fault, or of a handler that failed."""
    fault = fault_of(error)
    context.abort(STATUS[fault.code], fault.detail)
