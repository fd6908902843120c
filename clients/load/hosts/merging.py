"""The sum of several hosts' results: counts are added, and histograms are merged bucket by bucket."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clients.load.record.recorder import merged
from clients.load.record.result import LoadResult, merged_requests
from clients.load.record.times import total


@dataclass(frozen=True, slots=True)
class HostResult:
    """The result of one host's share of a run."""

    name: str
    began_within_s: float
    """Upper bound of the time between the first host's start and this host's start, in seconds."""
    result: LoadResult


def together(rate_hz: float | None, results: Sequence[LoadResult]) -> LoadResult:
    """Combines the results of all hosts into one result. The hosts must have equal requests, and windows of equal
    length. The times of single requests are left out, because the hosts have different clocks."""
    first = results[0]
    cores = [each.cores for each in results if each.cores is not None]
    return replace(
        first,
        rate_hz=rate_hz,
        parts={name: merged_requests([each.parts[name] for each in results], first.loop) for name in first.parts},
        connects=total([each.connects for each in results]),
        first_calls=total([each.first_calls for each in results]),
        late=total([each.late for each in results]),
        think=total([each.think for each in results]),
        began=sum(each.began for each in results),
        recorded=sum(each.recorded for each in results),
        arrivals=tuple(check for each in results for check in each.arrivals),
        started_clients=sum(each.started_clients for each in results),
        served_clients=sum(each.served_clients for each in results),
        sending_connections=sum(each.sending_connections for each in results),
        client_cpu_each_s=tuple(cpu_s for each in results for cpu_s in each.client_cpu_each_s),
        errors=merged(each.errors for each in results),
        interrupted=any(each.interrupted for each in results),
        cores=sum(cores) if len(cores) == len(results) else None,
        unanswered=sum(each.unanswered for each in results),
        raw=None,
    )
