"""A service whose every answer takes longer by a known time: to see whether the instrument finds it.

The time is spent computing, not asleep: a sleep ends some 60 µs late, and lets others have the interpreter meanwhile.
"""

import time
from dataclasses import replace
from typing import Any

from stock_service.rpc.service import Method, Service

EXTRA_US_MAX = 100_000.0


def slowed(service: Service, extra_us: float) -> Service:
    """The service, each of its methods computing ``extra_us`` longer; the very same for 0."""
    if not extra_us:
        return service
    extra_ns = round(extra_us * 1000)

    def longer(method: Method[Any, Any]) -> Method[Any, Any]:
        function = method.function

        def slow(*arguments: Any) -> Any:
            reply = function(*arguments)
            until_ns = time.perf_counter_ns() + extra_ns
            while time.perf_counter_ns() < until_ns:
                pass
            return reply

        return replace(method, function=slow)

    return Service(service.name, {path: longer(method) for path, method in service.methods.items()})
