"""Computes a block's slices and arms from the send and reply times of every request. Pure arithmetic on arrays.

An arm is a server under a load, and a slice is a short load of one arm. A request **counts** if the request was sent in
the counted part of its slice. A slice is **kept** if all connections sent before the counted part, and if all counted
requests were answered before the end of the slice. Pairs are made of kept slices. Means and histograms also include
slices with late answers, and so include long pauses of the server. In a **robbed** round, other processes took too much
of the cores' time. Pairs, means and histograms leave out robbed rounds. Errors are counted in every slice.

Requests of one slice are not independent, since a stall slows several requests. So a slice is a cluster of a cluster
sample, and the effective sample size of n requests is n ÷ design effect. The design effect is a ratio of two variances
of the share of requests above the 99th percentile. One variance follows from the differences between slices. The other
variance is that of independent requests (Cochran, "Sampling Techniques", 1977; the name is from Kish, 1965).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from clients.load.plan.load_plan import REQUEST_TYPES_MAX
from clients.load.plan.outcomes import ERROR_KINDS, FAULT_FIRST, STATUS_NAMES, TYPE_STEP
from clients.load.plan.turns import Turn, TurnLoad
from clients.load.record.dependence import cluster_effect
from clients.load.record.times import Times
from clients.load.record.turn_records import TurnRecords
from clients.load.run.turn_lines import lines
from experiments.results.observed import (
    ALL,
    ANSWERED_LATE,
    KEPT,
    SILENT,
    STARTED_LATE,
    Answered,
    ArmSeen,
    SliceColumns,
)

Nanoseconds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sent:
    """Requests of all clients, as columns of equal length."""

    slice: npt.NDArray[np.int64]
    connection: npt.NDArray[np.int64]
    """Number of the connection. The connections of all processes are numbered together."""
    sent_ns: Nanoseconds
    done_ns: Nanoseconds
    outcome: npt.NDArray[np.int64]
    counted: npt.NDArray[np.bool_]


def fold(
    order: Sequence[tuple[int, int]],
    turns: Sequence[Turn],
    loads: Sequence[TurnLoad],
    reports: Sequence[TurnRecords],
    robbed: Collection[int] = (),
) -> tuple[SliceColumns, list[ArmSeen]]:
    """Slices and arms of a block, from the records of the block's client processes.

    A turn has the times and the load of one slice. ``order`` has the round and the appearance of each turn. ``loads``
    are the loads of all arms, in the sweep's order. ``robbed`` has the numbers of the robbed rounds.
    """
    clients = [report for report in reports if report.client < max(load.plan.clients for load in loads)]
    sent = _sent(turns, loads, clients)
    fates = _fates(sent, turns, loads)
    spared = np.array([number not in robbed for number, _ in order], dtype=np.bool_)
    whole = ((fates == KEPT) | (fates == ANSWERED_LATE)) & spared
    arm = np.array([turn.load for turn in turns], dtype=np.int64)
    answered = (sent.outcome % TYPE_STEP) < FAULT_FIRST
    counts: dict[str, list[int]] = {}
    sums: dict[str, list[int]] = {}
    for name, of_type in _types(sent, loads, arm).items():
        chosen = sent.counted & answered & of_type
        counts[name] = _by_slice(sent.slice[chosen], len(turns)).tolist()
        sums[name] = _by_slice(sent.slice[chosen], len(turns), (sent.done_ns - sent.sent_ns)[chosen]).tolist()
    last_ns = np.array([turn.begin_ns for turn in turns], dtype=np.int64)
    np.maximum.at(last_ns, sent.slice, sent.done_ns)
    slices = SliceColumns(
        round=[each[0] for each in order],
        appearance=[each[1] for each in order],
        arm=arm.tolist(),
        fate=fates.tolist(),
        counted_ns=[turn.last_ns - turn.first_ns for turn in turns],
        requests=_by_slice(sent.slice[answered], len(turns)).tolist(),
        active_ns=[int(last) - turn.begin_ns for last, turn in zip(last_ns, turns, strict=True)],
        server_cpu_ns=_sum(report.server_cpu_ns for report in clients),
        client_cpu_ns=_sum(report.client_cpu_ns for report in clients),
        wire_bytes=_sum(report.wire_bytes for report in clients),
        counts=counts,
        sums_ns=sums,
    )
    (updates, failed), unrecorded = _updates(turns, loads, reports), _unrecorded(loads, clients)
    arms = [
        replace(
            _arm(place, sent, whole, arm, load),
            unrecorded=unrecorded[place],
            updates=updates[place],
            update_errors=failed[place],
        )
        for place, load in enumerate(loads)
    ]
    return slices, arms


def mean_responses_s(slices: SliceColumns) -> list[float]:
    """Mean response time of each slice in seconds, also of slices that are not kept.

    If no request was sent in the counted part, an earlier request lasted through the whole counted part. The value of
    such a slice is the time from the slice's start until the last reply. The value of a slice without requests is 0.
    """
    columns = zip(slices.sums_ns[ALL], slices.counts[ALL], slices.active_ns, strict=True)
    return [(total_ns / count if count else active_ns) / 1e9 for total_ns, count, active_ns in columns]


def _sent(turns: Sequence[Turn], loads: Sequence[TurnLoad], clients: Sequence[TurnRecords]) -> Sent:
    """All requests, each with its slice. A late client may still send requests to the server of the preceding slice.
    The result leaves out these requests."""
    parts = [part for report in clients for part in report.requests]
    sent_ns = _joined([part.sent_ns for part in parts])
    connection = np.repeat(np.arange(len(parts)), [len(part.sent_ns) for part in parts])
    begins = np.array([turn.begin_ns for turn in turns], dtype=np.int64)
    place = np.searchsorted(begins, sent_ns, side="right") - 1
    line_of = {load: line.number for line in lines(loads) for load in line.loads}
    expected = np.array([line_of[turn.load] for turn in turns], dtype=np.int64)
    line = np.repeat(np.array([part.line for part in parts], dtype=np.int64), [len(part.sent_ns) for part in parts])
    inside = (place >= 0) & (line == expected[place])  # a connection's first call may be before the first turn
    place, sent_ns, connection = place[inside], sent_ns[inside], connection[inside]
    first_ns = np.array([turn.first_ns for turn in turns], dtype=np.int64)[place]
    last_ns = np.array([turn.last_ns for turn in turns], dtype=np.int64)[place]
    return Sent(
        place,
        connection,
        sent_ns,
        _joined([part.done_ns for part in parts])[inside],
        _joined([part.outcomes.astype(np.int64) for part in parts])[inside],
        (sent_ns >= first_ns) & (sent_ns < last_ns),
    )


def _fates(sent: Sent, turns: Sequence[Turn], loads: Sequence[TurnLoad]) -> npt.NDArray[np.int64]:
    """Fate of each slice: the first of these four fates that applies.

    - ``SILENT``: no request was sent in the counted part.
    - ``ANSWERED_LATE``: some counted request was answered after the end of the slice.
    - ``STARTED_LATE``: some connection sent no request before the counted part.
    - ``KEPT``: otherwise.
    """
    fates = np.full(len(turns), KEPT, dtype=np.int64)
    first_ns = np.array([turn.first_ns for turn in turns], dtype=np.int64)[sent.slice]
    end_ns = np.array([turn.end_ns for turn in turns], dtype=np.int64)[sent.slice]
    settling = sent.sent_ns < first_ns
    width = int(sent.connection.max(initial=0)) + 1
    begun = np.unique(sent.slice[settling] * width + sent.connection[settling]) // width
    expected = np.array([loads[turn.load].plan.connections for turn in turns], dtype=np.int64)
    fates[_by_slice(begun, len(turns)) < expected] = STARTED_LATE
    fates[np.unique(sent.slice[sent.counted & (sent.done_ns > end_ns)])] = ANSWERED_LATE
    fates[_by_slice(sent.slice[sent.counted], len(turns)) == 0] = SILENT
    return fates


def _types(sent: Sent, loads: Sequence[TurnLoad], arm: Nanoseconds) -> dict[str, npt.NDArray[np.bool_]]:
    """Masks over all requests, by request type. A mask is True for each request of its type. The mask ``all`` is True
    for every request."""
    names = [list(load.plan.mix) + [""] * (REQUEST_TYPES_MAX - len(load.plan.mix)) for load in loads]
    every = sorted({name for load in loads for name in load.plan.mix})
    number = np.array([[every.index(name) if name else -1 for name in row] for row in names], dtype=np.int64)
    of = number[arm[sent.slice], sent.outcome // TYPE_STEP]
    found = {name: of == place for place, name in enumerate(every)}
    return found | {ALL: np.ones(len(of), dtype=np.bool_)}


def _arm(place: int, sent: Sent, whole: npt.NDArray[np.bool_], arm: Nanoseconds, load: TurnLoad) -> ArmSeen:
    """Observation of one arm: times from the slices that ``whole`` selects, and errors from all its slices."""
    every = sent.counted & (arm[sent.slice] == place)
    own = every & (whole[sent.slice] | (sent.outcome % TYPE_STEP >= FAULT_FIRST))
    answered = {
        name: _answered(sent, own & (sent.outcome // TYPE_STEP == number)) for number, name in enumerate(load.plan.mix)
    }
    think_ns, span_ns = _laws(sent, every & whole[sent.slice])
    return ArmSeen(answered | {ALL: _answered(sent, own)}, think_ns, span_ns)


def _answered(sent: Sent, chosen: npt.NDArray[np.bool_]) -> Answered:
    times = Times()
    valid = chosen & (sent.outcome % TYPE_STEP < FAULT_FIRST)
    response_ns = (sent.done_ns - sent.sent_ns)[valid]
    times.record(response_ns)
    kinds = np.bincount(sent.outcome[chosen] % TYPE_STEP, minlength=TYPE_STEP).tolist()
    return Answered(
        times,
        {name: kinds[number] for number, name in STATUS_NAMES.items() if kinds[number]},
        {name: kinds[number] for number, name in ERROR_KINDS.items() if kinds[number]},
        effective(response_ns, sent.slice[valid]),
    )


def effective(response_ns: Nanoseconds, clusters: npt.NDArray[np.int64]) -> float:
    """Effective sample size of these requests for the 99th percentile: number of requests ÷ design effect. 0 without
    requests.

    ``clusters`` has the slice of each request. The requests of one slice are not independent. The design effect is the
    factor by which this dependence enlarges a variance.
    """
    if not len(response_ns):
        return 0.0
    above = response_ns > np.percentile(response_ns, 99)
    _, place = np.unique(clusters, return_inverse=True)
    effect = cluster_effect(np.bincount(place), np.bincount(place, weights=above), float(above.var()))
    return len(above) / effect


def _laws(sent: Sent, own: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Two sums over all slices and connections, in nanoseconds: the sum of the think times between counted requests,
    and the sum of the spans.

    A span is the time from a connection's first counted send to its last counted reply in a slice.
    """
    order = np.lexsort((sent.sent_ns[own], sent.connection[own], sent.slice[own]))
    key = (sent.slice[own] * (int(sent.connection.max(initial=0)) + 1) + sent.connection[own])[order]
    sent_ns, done_ns = sent.sent_ns[own][order], sent.done_ns[own][order]
    if not len(key):
        return 0, 0
    same = key[1:] == key[:-1]
    think_ns = int((sent_ns[1:] - done_ns[:-1])[same].sum())
    firsts, lasts = np.r_[True, ~same], np.r_[~same, True]
    return think_ns, int((done_ns[lasts] - sent_ns[firsts]).sum())


def _unrecorded(loads: Sequence[TurnLoad], clients: Sequence[TurnRecords]) -> list[int]:
    """For each load, the number of requests that its connections began but did not record. 0 without a fault."""
    missing = Counter[int]()
    for part in (part for report in clients for part in report.requests):
        missing[part.line] += part.begun - len(part.sent_ns)
    line_of = {load: line.number for line in lines(loads) for load in line.loads}
    return [missing[line_of[place]] for place in range(len(loads))]


def _updates(
    turns: Sequence[Turn], loads: Sequence[TurnLoad], reports: Sequence[TurnRecords]
) -> tuple[list[int], list[int]]:
    """Two lists with a number for each load, summed over the load's slices: the updates that the price updater sent,
    and the updates that failed."""
    sent, failed = [0] * len(loads), [0] * len(loads)
    updater = max(load.plan.clients for load in loads)
    begins = np.array([turn.begin_ns for turn in turns], dtype=np.int64)
    for part in (part for report in reports if report.client == updater for part in report.requests):
        for sent_ns, outcome in zip(part.sent_ns, part.outcomes, strict=True):
            load = turns[int(np.searchsorted(begins, sent_ns, side="right")) - 1].load
            sent[load] += 1
            failed[load] += int(outcome) % TYPE_STEP >= FAULT_FIRST
    return sent, failed


def _by_slice(slices: npt.NDArray[np.int64], number: int, weights: Nanoseconds | None = None) -> Nanoseconds:
    """Number of requests in each slice. With ``weights``: sum of the requests' weights in each slice.

    ``slices`` has the slice of each request, and ``number`` is the number of slices. Sums below 2^53 ns (a hundred
    days) are exact.
    """
    return np.bincount(slices, weights=weights, minlength=number).astype(np.int64)


def _joined(parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _sum(columns: Iterable[Nanoseconds]) -> list[int]:
    total: list[int] = np.sum(list(columns), axis=0).tolist()
    return total
