"""Observes delivery runs: starts a peer's server and client, and reads the reports of both.

A peer is a server of another language or project. With the option ``report``, a peer's server prints lines of JSON when
the server stops. Each timed message (one of the first messages) has a line
``{"what":"message","answer_ns":…,"cycle_ns":…}``. Each second since the first message has a line
``{"what":"second","messages":…,"bytes":…}``. The peer's client prints the lines that ``peer_clients`` reads. If the
server sends no replies, the client prints ``{"what":"sent","messages":…}``. A cell is a setting and a time
(``kinds/delivery.py``).
"""

from collections.abc import Iterator, Sequence

from experiments.design.arms import Arm
from experiments.kinds.block import Run
from experiments.kinds.delivery import Delivered, DeliveryCell, DeliveryPlan
from experiments.measure.bench import Bench, server_command
from experiments.measure.others import watched
from experiments.measure.peer_clients import Line, lines_of
from experiments.measure.programs import Program, ProgramFailed, finished
from experiments.peers import PEERS, client_command, peer_of

SPARE_S = 0.2
"""Time in seconds for which a client without a rate sends after the last counted second, so that this second is
complete."""

CALLS_HZ_MAX = 100_000
"""Limit of a client without a rate: the client makes at most this number of calls for each second of its run. Some
20,000 calls per second are usual."""

TIMED_MAX = 1_000_000
"""Largest number of messages that a receiver times, if the client has a rate. If the client has no rate, the receiver
times only the first message. This message does not count."""

EXTRA_S = 30.0
"""Spare time of a client, in seconds. A client with a rate may send for this time after its planned end. A client that
still runs for this time after its last allowed send is killed."""


def runs(plan: DeliveryPlan, number: int, bench: Bench) -> Iterator[Run[Delivered]]:
    """Observes the runs of a block. Each step of the iterator waits for one run.

    Raises ProgramFailed if a server or a client fails, or if their reports contradict each other; UsageError for a peer
    that is not built.
    """
    return watched(plan.order(number), lambda place: _told(plan.cells[place], bench))


def _told(cell: DeliveryCell, bench: Bench) -> Delivered:
    """Runs the server and the client of a cell to their end. Makes one observation from the reports of both."""
    of = cell.setting
    name = peer_of(of.text("service"), of.text("language"), of.text("transport"))
    if isinstance(rate_hz := of["rate_hz"], float):
        calls, sends_s = round(rate_hz * cell.seconds) + 1, cell.seconds + EXTRA_S
        timed = min(calls, TIMED_MAX)
    else:
        calls, sends_s, timed = CALLS_HZ_MAX * cell.seconds, cell.seconds + SPARE_S, 1
    command = [*server_command(Arm(of).server, bench.catalog), PEERS[name].report, str(timed)]
    with Program(command, bench.server_cores) as server:
        host, port = server.ready()
        client = client_command(name, f"{host}:{port}", calls, dict(of.levels), sends_s)
        sent = lines_of(client, finished(client, bench.load_cores, sends_s + EXTRA_S))
        came = lines_of(command, server.ended())
    return _agreed(cell, command, came, sent)


def _agreed(cell: DeliveryCell, command: Sequence[str], came: Sequence[Line], sent: Sequence[Line]) -> Delivered:
    """Observation from the receiver's report ``came`` and the sender's report ``sent``.

    Raises ProgramFailed if the reports contradict each other, or if messages came for a shorter time than the cell's.
    """
    seconds = [each for each in came if each.what == "second"]
    messages = [each for each in came if each.what == "message"][1:]
    calls = [each for each in sent if each.what == "call"]
    received = sum(each.messages for each in seconds)
    size = cell.setting["size"]
    if isinstance(size, int) and sum(each.bytes for each in seconds) != size * received:
        raise ProgramFailed(command, f"{received} messages came, but not all of {size} bytes", "")
    if calls and received != len(calls) + 1:
        raise ProgramFailed(command, f"{received} messages came, but {len(calls) + 1} had a reply", "")
    if len(seconds) < cell.seconds:
        raise ProgramFailed(command, f"messages came for {len(seconds)} s, instead of {cell.seconds} s", "")
    return Delivered(
        seconds=tuple(each.messages for each in seconds[: cell.seconds]),
        timed=len(messages),
        answer_ns=sum(each.answer_ns for each in messages),
        cycle_ns=sum(each.cycle_ns for each in messages),
        answered=len(calls),
        response_ns=sum(each.ns for each in calls),
    )
