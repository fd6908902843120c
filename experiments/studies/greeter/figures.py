"""Figures and tables of the study: the original's numbers beside ours, cold runs, rates, clocks. Pure functions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from experiments.judge.stats import exact
from experiments.judge.verdicts import Judged, Judgement
from experiments.kinds.cold import ColdRow
from experiments.show.content import Section, Seen
from experiments.show.figures import bars, costs, ratios
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, value_words
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, Table
from experiments.studies.greeter import design
from experiments.studies.greeter.design import IN_FLIGHT, LABELS, LIBRARY, ONE, TWO, asynchronous
from experiments.studies.greeter.rates import all_from_cold, by_language, cold_runs, from_cold, milliseconds, rates

ORIGINAL = "the original, C++"
"""Name that rows with the original's numbers have in place of a transport. Figures colour rows by this name."""

GRPC = "grpc"


def pictures(seen: Seen) -> Sequence[Picture]:
    """Figures of first calls and warm calls, throughput, clocks, comparisons, and A/A pairs."""
    first = "A fresh client's first call, and the other calls: time of a call, ms"
    throughput = "Greeter on gRPC, throughput: each client's, and the server's"
    compared = "Ratios of a call of the greeter: clients, asynchronous calls, C++ ÷ Python"
    same = "Greeter on gRPC, time of a call: one server ÷ the same server, started again"
    return (
        costs.picture("first_call", first, _calls(seen), log=True),
        costs.picture("throughput", throughput, (_rates(seen.main),)),
        bars.picture("clocks", _clocks_title(seen.main), tuple(_clocks(seen.main))),
        ratios.picture("answers", compared, list(seen.main.comparisons("headline"))),
        ratios.picture("same", same, list(_same(seen.main))),
    )


def _calls(seen: Seen) -> list[costs.Panel]:
    """Panels of cold runs: connecting with the first call, the first call alone, and the other calls."""
    found, (low, high) = all_from_cold(seen), design.LATENCY_MS
    panels = {
        "Connecting and the first call, as the original timed it, ms": (
            [_given("original, C++, at least", low), _given("original, C++, at most", high)],
            {name: run.as_timed_us for name, run in found.items()},
        ),
        "The first call alone, ms": ([], {name: run.first_us for name, run in found.items()}),
        "The other calls, ms": (
            [_given("original, C++, from its rate", design.implied_ms())],
            {name: run.rest_us for name, run in found.items()},
        ),
    }
    return [
        costs.Panel(title, [*theirs, *(costs.Row(f"ours, {name}", GRPC, at.over(1000)) for name, at in ours.items())])
        for title, (theirs, ours) in panels.items()
    ]


def _rates(judgement: Judgement) -> costs.Panel:
    rows = [
        _given("original, C++, 1 client", design.ONE_CLIENT_HZ),
        _given("original, C++, 2 clients: one's share", design.TWO_CLIENTS_HZ),
    ]
    ones, pairs = by_language(judgement, ONE), by_language(judgement, TWO)
    for name in (name for name in ones if name in pairs):
        rows.append(costs.Row(f"ours, {name}, 1 client", GRPC, ones[name].total_hz))
        rows.append(costs.Row(f"ours, {name}, 2 clients: each", GRPC, pairs[name].client_hz))
        rows.append(costs.Row(f"ours, {name}, 2 clients: the server", GRPC, pairs[name].total_hz))
    return costs.Panel("Replies a second", rows)


def _clocks_title(judgement: Judgement) -> str:
    found = sorted(each.wall_us.value / each.client_cpu_us.value for each in by_language(judgement, ONE).values())
    if not found:
        return "Greeter on gRPC: time for each reply, by three clocks"
    between = " to ".join(dict.fromkeys(f"{each:.1f}" for each in (found[0], found[-1])))
    return f"Greeter on gRPC: with 1 client the wall clock reads {between} times the client's processor time"


def _clocks(judgement: Judgement) -> Iterator[bars.Panel]:
    measured = {"1 client": by_language(judgement, ONE), "2 clients": by_language(judgement, TWO)}
    for name in LABELS.values():
        shown = []
        for what, of in ((what, found[name]) for what, found in measured.items() if name in found):
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
    """Row of a figure for a number of the document. Such a number has no interval."""
    return costs.Row(name, ORIGINAL, exact(value))


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections: the original's numbers beside ours; cold runs; rates and clocks of every load."""
    return (
        Section("The original beside ours", original_table(seen)),
        Section("From cold: connecting, first call, the others", cold_table(cold_runs(seen).rows)),
        Section("Rates and clocks", rates_table(seen.main)),
    )


def original_table(seen: Seen) -> str:
    """Table of every number of the document, with our number in each language beside it."""
    cold, one, pair = all_from_cold(seen), by_language(seen.main, ONE), by_language(seen.main, TWO)
    low, high = design.LATENCY_MS
    two_hz = f"about {design.TWO_CLIENTS_HZ:,.0f}/s ({design.TERMINAL_HZ:,}/s on the terminal)"
    by_rate = f"not given; its rate means {design.implied_ms():.2f} ms"
    rows = {
        ("One call of a fresh client, connecting within it", f"{low:g} to {high:g} ms"): {
            name: milliseconds(each.as_timed_us) for name, each in cold.items()
        },
        ("The other calls, mean", by_rate): {name: milliseconds(each.rest_us) for name, each in cold.items()},
        ("Throughput, 1 client", f"about {design.ONE_CLIENT_HZ:,.0f}/s"): {
            name: value_words(each.total_hz, "/s") for name, each in one.items()
        },
        ("Throughput, 2 clients: one's share", two_hz): {
            name: value_words(each.client_hz, "/s") for name, each in pair.items()
        },
        ("Throughput, 2 clients: the server's", "not given"): {
            name: value_words(each.total_hz, "/s") for name, each in pair.items()
        },
    }
    lines = tuple((*given, *(ours.get(each, NOTHING) for each in LABELS.values())) for given, ours in rows.items())
    notes = ("The original ran on another machine. Its numbers are context, and no goal.",)
    head = ("what", "the original, C++", *(f"ours, {each}" for each in LABELS.values()))
    return Table(head, lines, 4, notes).markdown


def cold_table(rows: Sequence[ColdRow]) -> str:
    """Table of the cold runs of each client: times in ms of connecting, of the first call and of the other calls, and
    ratios of these times."""
    clients = {f"{name}: its greeter client": ONE[language] for language, name in LABELS.items()}
    lines = tuple(
        (
            name,
            *(value_words(each.over(1000)) for each in (run.connect_us, run.first_us, run.rest_us)),
            *map(value_words, (run.first_over_rest, run.as_timed_over_rest)),
        )
        for name, of in (clients | {"Python: our load client on grpcio": LIBRARY}).items()
        if (run := from_cold(rows, of))
    )
    times = ("connecting, ms", "first call, ms", "other calls, ms")
    return Table(("client", *times, "first ÷ others", "with connecting ÷ others"), lines).markdown


def rates_table(judgement: Judgement) -> str:
    """Table of the rates and clocks of each language's server under every load."""
    lines, limited = [], False
    for language, name in LABELS.items():
        for what, of in (
            ("1 client", ONE[language]),
            ("2 clients", TWO[language]),
            ("1 client, asynchronous", asynchronous(language)),
            (f"1 client, asynchronous, {IN_FLIGHT} at once", asynchronous(language, IN_FLIGHT)),
        ):
            if found := rates(judgement, of):
                limited = limited or found.load_limited
                clients = f"{name}, {what}" + f" {LIMITED_MARK}" * found.load_limited
                rates_hz = (found.client_hz, found.total_hz)
                times = (found.response_us, found.wall_us, found.client_cpu_us, found.server_cpu_us)
                lines.append((clients, *map(value_words, (*rates_hz, *times))))
    clocks = ("wall clock a reply, µs", "client's processor, µs", "server's processor, µs")
    head = ("clients", "each client, /s", "the server, /s", "a call, µs", *clocks)
    return Table(head, tuple(lines), notes=(LIMITED_NOTE,) * limited).markdown
