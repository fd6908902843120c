"""Handlers of the service's methods, for grpcio's server. A handler begins or refuses a call, and counts begun calls.

A handler does not begin a call that the client has cancelled, or whose deadline has passed. While the server is
overloaded, a handler also refuses a call that has waited too long for a thread (``server_core/admission.py`` has the
limit). This wait begins when grpcio gives the call to the executor. The handler itself decodes the request, and answers
undecodable bytes with INVALID_ARGUMENT. grpcio's generated code would answer with INTERNAL.
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
"""Function that grpcio calls for a method, with the encoded request. Returns the encoded response."""

EMPTY_NS = 1_000_000
"""Time in nanoseconds. If a call waited for a thread at most this time, the executor's queue counts as empty. Waking a
thread takes a tenth of this time.
"""

TIMEOUT_MS_MAX = 3_600_000
"""Largest time limit of a call, in milliseconds. A call with a longer time limit counts as a call without a time limit.
"""


class Handlers:
    """Factory of one server's handlers. The handlers are thread-safe."""

    def __init__(
        self, arrival: Arrival, delay_target_ms: float, metrics: Metrics | None, timeline: Timeline | None
    ) -> None:
        self.under_way: set[grpc.ServicerContext] = set()
        """Begun calls that grpcio has not ended yet."""
        self._arrival = arrival
        self._delay = DelayTarget(delay_target_ms)
        self._metrics = metrics
        self._timeline = timeline

    def handler(self, path: str, method: Method[Any, Any], checks: Checks) -> Handler:
        """Makes the handler of a method. The handler admits only callers with the right to the method."""
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
            self.under_way.discard(context)  # the client has cancelled the call
            return b""
        return answered(behaviour, payload, context)

    def _refusal(self, context: grpc.ServicerContext) -> Fault | None:
        """Returns the fault that refuses the current thread's call; None for a call that may begin."""
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
    """Calls a method, and returns its answer. If the method raises, ends the call with a gRPC status."""
    try:
        return behaviour(payload, context)
    except BaseException as error:  # also SystemExit, since every request must get a reply
        abort(context, error)


def abort(context: grpc.ServicerContext, error: BaseException) -> NoReturn:
    """Ends a call with the gRPC status of an exception: the fault's status, or INTERNAL for any other exception."""
    fault = fault_of(error)
    context.abort(STATUS[fault.code], fault.detail)
