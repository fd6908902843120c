"""The figures and tables of the study: the original's numbers beside ours, calls from cold, rates and clocks. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from experiments.judge.stats import Estimate, exact
from experiments.judge.verdicts import Judged, Judgement
from experiments.kinds.cold import ColdRow
from experiments.show.content import Section, Seen
from experiments.show.figures import bars, costs, ratios
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, number
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, Table
from experiments.studies.greeter import design
from experiments.studies.greeter.design import IN_FLIGHT, LABELS, LIBRARY, ONE, asynchronous, two
from experiments.studies.greeter.rates import (
    FromCold,
    Rates,
    cold_runs,
    ends,
    from_cold,
    milliseconds,
    per_second,
    rates,
)

ORIGINAL = "the original, C++"
"""Transport of the original's numbers: another gRPC on another machine has a colour of its own."""

GRPC = "grpc"


def pictures(seen: Seen) -> Sequence[Picture]:
    """First calls and warm ones, throughput, clocks, and the comparisons."""
    return (
        costs.picture(
            "first_call",
            "A fresh client's first call, and the other calls: time of a call, ms",
            tuple(_calls(cold_runs(seen).rows)),
            log=True,
        ),
        costs.picture(
            "throughput", "Greeter on gRPC, throughput: each client's, and the server's", (_rates(seen.main),)
        ),
        bars.picture("clocks", _clocks_title(seen.main), tuple(_clocks(seen.main))),
        ratios.picture(
            "answers",
            "Ratios of a call of the greeter: clients, asynchronous calls, C++ ÷ Python",
            list(seen.main.comparisons("headline")),
        ),
        ratios.picture(
            "same",
            "Greeter on gRPC, time of a call: one server ÷ the same server, started again",
            list(_same(seen.main)),
        ),
    )


def _calls(rows: Sequence[ColdRow]) -> Iterator[costs.Panel]:
    found = {
        f"ours, {name}": run for language, name in LABELS.items() if (run := from_cold(rows, ONE[language])) is not None
    }
    timed = [
        _given("original, C++, at least", design.LATENCY_MS[0]),
        _given("original, C++, at most", design.LATENCY_MS[1]),
    ]
    timed += [costs.Row(name, GRPC, run.as_timed_us.over(1000)) for name, run in found.items()]
    yield costs.Panel("Connecting and the first call, as the original timed it, ms", timed)
    first = [costs.Row(name, GRPC, run.first_us.over(1000)) for name, run in found.items()]
    yield costs.Panel("The first call alone, ms", first)
    others = [_given("original, C++, from its rate", design.implied_ms())]
    others += [costs.Row(name, GRPC, run.rest_us.over(1000)) for name, run in found.items()]
    yield costs.Panel("The other calls, ms", others)


def _rates(judgement: Judgement) -> costs.Panel:
    rows = [
        _given("original, C++, 1 client", design.ONE_CLIENT_HZ),
        _given("original, C++, 2 clients: one's share", design.TWO_CLIENTS_HZ),
    ]
    for language, name in LABELS.items():
        one, pair = rates(judgement, ONE[language]), rates(judgement, two(language))
        if one is not None and pair is not None:
            rows.append(costs.Row(f"ours, {name}, 1 client", GRPC, one.total_hz))
            rows.append(costs.Row(f"ours, {name}, 2 clients: each", GRPC, pair.client_hz))
            rows.append(costs.Row(f"ours, {name}, 2 clients: the server", GRPC, pair.total_hz))
    return costs.Panel("Replies a second", rows)


def _clocks_title(judgement: Judgement) -> str:
    found = [of for language in LABELS if (of := rates(judgement, ONE[language])) is not None]
    ratios_ = sorted(of.wall_us.value / of.client_cpu_us.value for of in found)
    if not ratios_:
        return "Greeter on gRPC: time for each reply, by three clocks"
    between = " to ".join(dict.fromkeys(f"{each:.1f}" for each in (ratios_[0], ratios_[-1])))
    return f"Greeter on gRPC: with 1 client the wall clock reads {between} times the client's processor time"


def _clocks(judgement: Judgement) -> Iterator[bars.Panel]:
    for language, name in LABELS.items():
        shown = []
        for what, of in (("1 client", rates(judgement, ONE[language])), ("2 clients", rates(judgement, two(language)))):
            if of is not None:
                shown.append(bars.Bar(what, of.wall_us, "wall clock"))
                shown.append(bars.Bar(what, of.client_cpu_us, "client's processor time"))
                shown.append(bars.Bar(what, of.server_cpu_us, "server's processor time"))
        if shown:
            yield bars.Panel(name, "Time for each reply, µs", shown)


def _same(judgement: Judgement) -> Iterator[Judged]:
    for each in judgement.comparisons("same"):
        of = each.comparison.above.setting
        title = f"{LABELS[of.text('language')]}, {counted(of.whole('clients'), 'client')}"
        yield replace(each, comparison=replace(each.comparison, title=title))


def _given(name: str, value: float) -> costs.Row:
    """A number of the document, which has no interval."""
    return costs.Row(name, ORIGINAL, exact(value))


def sections(seen: Seen) -> tuple[Section, ...]:
    """The original's numbers beside ours; calls from cold; what every arm's clients said of themselves."""
    return (
        Section("The original beside ours", original_table(seen)),
        Section("From cold: connecting, first call, the others", cold_table(cold_runs(seen).rows)),
        Section("Rates and clocks", rates_table(seen.main)),
    )


def original_table(seen: Seen) -> str:
    """Table of every number of the document, with ours in both languages."""
    cold = {language: from_cold(cold_runs(seen).rows, ONE[language]) for language in LABELS}
    one = {language: rates(seen.main, ONE[language]) for language in LABELS}
    pair = {language: rates(seen.main, two(language)) for language in LABELS}
    low, high = design.LATENCY_MS
    lines = (
        (
            "One call of a fresh client, connecting within it",
            f"{low:g} to {high:g} ms",
            *(milliseconds(each.as_timed_us) if each else NOTHING for each in cold.values()),
        ),
        (
            "The other calls, mean",
            f"not given; its rate means {design.implied_ms():.2f} ms",
            *(milliseconds(each.rest_us) if each else NOTHING for each in cold.values()),
        ),
        (
            "Throughput, 1 client",
            f"about {design.ONE_CLIENT_HZ:,.0f}/s",
            *(per_second(each.total_hz) if each else NOTHING for each in one.values()),
        ),
        (
            "Throughput, 2 clients: one's share",
            f"about {design.TWO_CLIENTS_HZ:,.0f}/s ({design.TERMINAL_HZ:,}/s on the terminal)",
            *(per_second(each.client_hz) if each else NOTHING for each in pair.values()),
        ),
        (
            "Throughput, 2 clients: the server's",
            "not given",
            *(per_second(each.total_hz) if each else NOTHING for each in pair.values()),
        ),
    )
    notes = ("The original ran on another machine. Its numbers are context, and no goal.",)
    return Table(
        ("what", "the original, C++", *(f"ours, {each}" for each in LABELS.values())), lines, 4, notes
    ).markdown


def cold_table(rows: Sequence[ColdRow]) -> str:
    """Table of each client's connecting, first call and others, ms."""
    named = {f"{name}: its greeter client": ONE[language] for language, name in LABELS.items()}
    found: list[tuple[str, FromCold]] = [
        (name, run)
        for name, of in (named | {"Python: our load client on grpcio": LIBRARY}).items()
        if (run := from_cold(rows, of)) is not None
    ]
    lines = tuple(
        (
            name,
            *(_with_ends(each, 1000) for each in (run.connect_us, run.first_us, run.rest_us)),
            *(_with_ends(each, 1) for each in (run.first_over_rest, run.as_timed_over_rest)),
        )
        for name, run in found
    )
    head = (
        "client",
        "connecting, ms",
        "first call, ms",
        "other calls, ms",
        "first ÷ others",
        "with connecting ÷ others",
    )
    return Table(head, lines).markdown


def rates_table(judgement: Judgement) -> str:
    """Table of every arm's rates and clocks."""
    lines, limited = [], False
    for language, name in LABELS.items():
        for what, of in (
            ("1 client", ONE[language]),
            ("2 clients", two(language)),
            ("1 client, asynchronous", asynchronous(language)),
            (f"1 client, asynchronous, {IN_FLIGHT} at once", asynchronous(language, IN_FLIGHT)),
        ):
            found = rates(judgement, of)
            if found is not None:
                limited = limited or found.load_limited
                lines.append(_rates_line(f"{name}, {what}", found))
    clocks = ("wall clock a reply, µs", "client's processor, µs", "server's processor, µs")
    head = ("clients", "each client, /s", "the server, /s", "a call, µs", *clocks)
    return Table(head, tuple(lines), notes=(LIMITED_NOTE,) * limited).markdown


def _rates_line(name: str, found: Rates) -> tuple[str, ...]:
    shown = (
        found.client_hz,
        found.total_hz,
        found.response_us,
        found.wall_us,
        found.client_cpu_us,
        found.server_cpu_us,
    )
    return (f"{name} {LIMITED_MARK}" if found.load_limited else name, *(_with_ends(each, 1) for each in shown))


def _with_ends(of: Estimate, factor: float) -> str:
    return f"{number(of.value / factor)}{ends(of, factor)}"
