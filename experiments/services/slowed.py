"""A service whose every answer takes longer by a known time: to see whether the instrument finds it.

The time is spent computing, not asleep: a sleep ends some 60 µs late, and lets others have the interpreter meanwhile.
"""

import time

from stock_service.rpc.service import Answer, Service

EXTRA_US_MAX = 100_000.0


def slowed(service: Service, extra_us: float) -> Service:
    """The service, each of its methods computing ``extra_us`` longer; the very same for 0."""
    if not extra_us:
        return service
    extra_ns = round(extra_us * 1000)

    def longer(answer: Answer) -> Answer:
        def answered(payload: bytes) -> bytes:
            until_ns = time.perf_counter_ns() + extra_ns
            reply = answer(payload)
            while time.perf_counter_ns() < until_ns:
                pass
            return reply

        return answered

    return Service(service.name, {path: longer(answer) for path, answer in service.methods.items()})
