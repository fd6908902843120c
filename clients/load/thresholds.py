"""Limits that a run must keep, for scripts: ``p99>20ms``, ``errors>0.1%``, ``lookup.p50>=1ms``, ``throughput<5000``.

A condition describes a fault: if the condition is true for a run, the run has failed. For a condition on a percentile,
at least ten replies must take longer than the percentile. A run with fewer replies has failed too, since the run cannot
show that the limit was kept. Throughput is the number of replies a second within the window, as in the summary's column
``per s``. ``errors`` counts the errors of the whole run, warm-up and connecting included; ``lookup.errors`` counts the
errors of requests that were due in the window.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from clients.load.record.result import ALL, LoadResult, RequestResult
from clients.load.summary import PERCENTILES, replies_for, span, told

_TIMES = {"mean": "mean_us", "max": "max_us"} | {name: field for name, (field, _) in PERCENTILES.items()}
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_UNITS_US = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}

_CONDITION = re.compile(
    r"(?:(?P<request>[A-Za-z_]\w*)\.)?(?P<what>p50|p90|p99\.9|p99|mean|max|errors|throughput|starved)\s*"
    r"(?P<operator>>=|<=|>|<)\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>us|µs|ms|s|%)?"
)

ALLOWED = (
    "[REQUEST.]p50|p90|p99|p99.9|mean|max, then > >= < or <=, then a time such as 20ms; errors>0.1% or errors>3; "
    "throughput<5000; starved>0"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that no run may meet, such as ``p99>20ms``."""

    text: str
    request: str
    what: str
    operator: str
    value: float
    """Bound of the quantity. A time is in µs. A share is from 0 to 1."""
    share: bool = False


def parse(text: str) -> Condition:
    """Reads a condition. Raises ValueError with the allowed conditions."""
    found = _CONDITION.fullmatch(text.strip())
    if found is None:
        raise ValueError(ALLOWED)
    what, unit, value = found["what"], found["unit"], float(found["value"])
    if (what in _TIMES) != (unit in _UNITS_US) or (unit == "%" and what != "errors"):
        raise ValueError(ALLOWED)
    request = found["request"] or ALL
    if what == "starved" and request != ALL:
        raise ValueError(ALLOWED)
    scale = _UNITS_US.get(unit or "", 0.01 if unit == "%" else 1.0)
    return Condition(text.strip(), request, what, found["operator"], value * scale, unit == "%")


def broken(conditions: Sequence[Condition], result: LoadResult) -> Iterator[str]:
    """A line for every condition that is true for the run, and for every condition that the run cannot decide."""
    for condition in conditions:
        request = result.requests.get(condition.request)
        if request is None:
            yield f"{condition.text}: the run has no {condition.request}"
            continue
        said = _said(condition, request, result)
        if said is not None:
            yield f"{condition.text}: {said}"


def replies_needed(conditions: Sequence[Condition]) -> int:
    """Smallest number of replies with which a run can decide all conditions on percentiles."""
    shares = (PERCENTILES[condition.what][1] for condition in conditions if condition.what in PERCENTILES)
    return max(map(replies_for, shares), default=1)


def _said(condition: Condition, request: RequestResult, result: LoadResult) -> str | None:
    """Text with the reason why the condition is true for a run, or why the run cannot decide the condition. None if the
    condition is false."""
    what, holds = condition.what, _OPERATORS[condition.operator]
    if what in _TIMES:
        value = getattr(request, _TIMES[what]) if request.count else None
        if what in PERCENTILES:
            value = told(value, request.count, PERCENTILES[what][1])
        if value is None:
            return f"cannot be told from {request.count:,} replies: {replies_needed([condition]):,} are needed"
        return f"it was {span(value)}" if holds(value, condition.value) else None
    if what == "throughput":
        seen_hz = result.answered_hz(condition.request)
        return f"it was {seen_hz:.1f} replies/s within the window" if holds(seen_hz, condition.value) else None
    if what == "starved":
        starved = result.starved_connections
        return f"{starved:,} connections were" if holds(starved, condition.value) else None
    errors = sum((result.errors if condition.request == ALL else request.errors).values())
    requests = result.recorded if condition.request == ALL else request.count + errors
    value = errors / max(1, requests) if condition.share else errors
    return f"there were {errors:,} errors and {requests:,} requests" if holds(value, condition.value) else None
