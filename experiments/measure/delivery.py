"""Delivery runs: a fresh server of a peer, the peer's own client, and the report that the server prints at its end.

A peer's server with its ``report`` option prints lines of JSON when it stops: for each of the first messages
``{"what":"message","answer_ns":…,"cycle_ns":…}``, and for each second since the first message
``{"what":"second","messages":…,"bytes":…}``. Its client prints the lines that ``peer_clients`` reads; where no replies
come back, ``{"what":"sent","messages":…}``.
"""

from collections.abc import Iterator, Sequence

import msgspec

from experiments.design.arms import Arm
from experiments.kinds.block import Run
from experiments.kinds.delivery import Delivered, DeliveryCell, DeliveryPlan
from experiments.measure.bench import Bench, server_command
from experiments.measure.others import MachineWatch
from experiments.measure.programs import Program, ProgramFailed, finished
from experiments.peers import PEERS, client_command, peer_of

SPARE_S = 0.2
"""Seconds for which a client without a rate sends longer, so that the last second is whole."""

CALLS_HZ_MAX = 100_000
"""Calls a second that a client without a rate keeps room for; some 20,000 a second come and go here."""

TIMED_MAX = 1_000_000
"""Messages of a rate that a receiver times, at most. Without a rate it counts, and times none."""

EXTRA_S = 30.0
"""Seconds that a client may take beyond its schedule."""


class _Line(msgspec.Struct):
    """A line of the receiver or of the sender. A line has some of these fields."""

    what: str
    ns: int = 0
    answer_ns: int = 0
    cycle_ns: int = 0
    messages: int = 0
    bytes: int = 0


def runs(plan: DeliveryPlan, number: int, bench: Bench) -> Iterator[Run[Delivered]]:
    """Observes a block's runs. Blocks for as long as it takes.

    Raises ProgramFailed where a server or a client fails, or their reports contradict each other; UsageError for a
    peer that is not there.
    """
    for place in plan.order(number):
        machine = MachineWatch()
        yield Run(place, _told(plan.cells[place], bench), machine.seen())


def _told(cell: DeliveryCell, bench: Bench) -> Delivered:
    """One run: the reports of both sides, once both are known to be of the same messages."""
    of = cell.setting
    name = peer_of(of.text("service"), of.text("language"), of.text("transport"))
    rate_hz = of["rate_hz"]
    limited = isinstance(rate_hz, float)
    calls = round(rate_hz * cell.seconds) + 1 if isinstance(rate_hz, float) else CALLS_HZ_MAX * cell.seconds
    sends_s = cell.seconds + (EXTRA_S if limited else SPARE_S)
    timed = min(calls, TIMED_MAX) if limited else 1
    command = [*server_command(Arm(of).server, bench.catalog), PEERS[name].report, str(timed)]
    with Program(command, bench.server_cores) as server:
        host, port = server.ready()
        client = client_command(name, f"{host}:{port}", calls, dict(of.levels), sends_s)
        sent = _lines(client, finished(client, bench.load_cores, sends_s + EXTRA_S))
        came = _lines(command, server.ended())
    return _agreed(cell, command, came, sent)


def _agreed(cell: DeliveryCell, command: Sequence[str], came: Sequence[_Line], sent: Sequence[_Line]) -> Delivered:
    seconds = [each for each in came if each.what == "second"]
    messages = [each for each in came if each.what == "message"][1:]
    calls = [each for each in sent if each.what == "call"]
    received = sum(each.messages for each in seconds)
    size = cell.setting["size"]
    if isinstance(size, int) and sum(each.bytes for each in seconds) != size * received:
        raise ProgramFailed(command, f"{received} messages came, but not whole, each of {size} bytes", "")
    if calls and received != len(calls) + 1:
        raise ProgramFailed(command, f"{received} messages came, {len(calls) + 1} were answered", "")
    if len(seconds) < cell.seconds:
        raise ProgramFailed(command, f"messages of {len(seconds)} s came, not of {cell.seconds} s", "")
    return Delivered(
        seconds=tuple(each.messages for each in seconds[: cell.seconds]),
        timed=len(messages),
        answer_ns=sum(each.answer_ns for each in messages),
        cycle_ns=sum(each.cycle_ns for each in messages),
        answered=len(calls),
        response_ns=sum(each.ns for each in calls),
    )


def _lines(command: Sequence[str], said: str) -> list[_Line]:
    try:
        return msgspec.json.Decoder(_Line).decode_lines(said)
    except msgspec.DecodeError as error:
        raise ProgramFailed(command, f"a line that is no JSON of what came or went: {error}", "") from error
