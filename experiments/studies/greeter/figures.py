"""The figures of the study. The original has none: its numbers stand beside ours, in one style."""

from collections.abc import Iterator, Sequence

from experiments.judge.stats import exact
from experiments.judge.verdicts import Judgement
from experiments.kinds.cold import ColdRow
from experiments.show.content import Seen
from experiments.show.figures import costs, ratios
from experiments.show.figures.style import Picture
from experiments.studies.greeter import original
from experiments.studies.greeter.rates import Rates, cold_runs, from_cold, rates
from experiments.studies.greeter.sweeps import LABELS, ONE, two

ORIGINAL = "the original"
"""Transport of the original's numbers: another gRPC on another machine has a colour of its own."""

GRPC = "grpc"


def pictures(seen: Seen) -> Sequence[Picture]:
    """First calls and warm ones, throughput, clocks, and the comparisons."""
    return (
        costs.picture(
            "first_call", "The first call of a fresh client, and the others", tuple(_calls(cold_runs(seen).rows))
        ),
        costs.picture("throughput", "Throughput: each client's, and the server's", (_rates(seen.main),)),
        costs.picture("clocks", "What a reply takes, by three clocks", tuple(_clocks(seen.main)), shared=True),
        ratios.picture("answers", "Ratios that answer the questions", list(seen.main.comparisons("headline"))),
        ratios.picture("same", "A/A pairs: one setting, started as two servers", list(seen.main.comparisons("same"))),
    )


def _calls(rows: Sequence[ColdRow]) -> Iterator[costs.Panel]:
    found = {name: run for language, name in LABELS.items() if (run := from_cold(rows, ONE[language])) is not None}
    timed = [_given("original, at least", original.LATENCY_MS[0]), _given("original, at most", original.LATENCY_MS[1])]
    timed += [costs.Row(name, GRPC, run.as_timed_us.over(1000)) for name, run in found.items()]
    yield costs.Panel("Connecting and the first call, as the original timed it, ms", timed)
    first = [costs.Row(name, GRPC, run.first_us.over(1000)) for name, run in found.items()]
    yield costs.Panel("The first call alone, ms", first)
    others = [_given("original, from its rate", original.implied_ms())]
    others += [costs.Row(name, GRPC, run.rest_us.over(1000)) for name, run in found.items()]
    yield costs.Panel("The other calls, ms", others)


def _rates(judgement: Judgement) -> costs.Panel:
    rows = [
        _given("original, 1 client", original.ONE_CLIENT_HZ),
        _given("original, 2 clients: one's share", original.TWO_CLIENTS_HZ),
    ]
    for language, name in LABELS.items():
        one, pair = rates(judgement, ONE[language]), rates(judgement, two(language))
        if one is not None and pair is not None:
            rows.append(costs.Row(f"{name}, 1 client", GRPC, one.total_hz))
            rows.append(costs.Row(f"{name}, 2 clients: each", GRPC, pair.client_hz))
            rows.append(costs.Row(f"{name}, 2 clients: the server", GRPC, pair.total_hz))
    return costs.Panel("Replies a second", rows)


def _clocks(judgement: Judgement) -> Iterator[costs.Panel]:
    for language, name in LABELS.items():
        found = {
            what: of
            for what, of in (
                ("1 client", rates(judgement, ONE[language])),
                ("2 clients", rates(judgement, two(language))),
            )
            if of is not None
        }
        if found:
            rows = [row for what, of in found.items() for row in _clock_rows(what, of)]
            yield costs.Panel(f"{name}: time for each reply, µs", rows)


def _clock_rows(what: str, of: Rates) -> Iterator[costs.Row]:
    yield costs.Row(f"{what}: wall clock", GRPC, of.wall_us)
    yield costs.Row(f"{what}: client's processor time", GRPC, of.client_cpu_us)
    yield costs.Row(f"{what}: server's processor time", GRPC, of.server_cpu_us)


def _given(name: str, value: float) -> costs.Row:
    """A number of the document, which has no interval."""
    return costs.Row(name, ORIGINAL, exact(value))
