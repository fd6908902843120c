"""The tables of the study's report: the original's numbers beside ours, calls from cold, rates and clocks. Pure."""

from collections.abc import Sequence

from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement
from experiments.kinds.cold import ColdRow
from experiments.show.content import Section, Seen
from experiments.show.numbers import NOTHING, number
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, Table
from experiments.studies.greeter import original
from experiments.studies.greeter.rates import FromCold, Rates, cold_runs, from_cold, rates
from experiments.studies.greeter.sweeps import IN_FLIGHT, LABELS, LIBRARY, ONE, asynchronous, two
from experiments.studies.greeter.wording import ends, milliseconds, per_second


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
    low, high = original.LATENCY_MS
    lines = (
        (
            "One call of a fresh client, connecting within it",
            f"{low:g} to {high:g} ms",
            *(milliseconds(each.as_timed_us) if each else NOTHING for each in cold.values()),
        ),
        (
            "The other calls, mean",
            f"not given; its rate means {original.implied_ms():.2f} ms",
            *(milliseconds(each.rest_us) if each else NOTHING for each in cold.values()),
        ),
        (
            "Throughput, 1 client",
            f"about {original.ONE_CLIENT_HZ:,.0f}/s",
            *(per_second(each.total_hz) if each else NOTHING for each in one.values()),
        ),
        (
            "Throughput, 2 clients: one's share",
            f"about {original.TWO_CLIENTS_HZ:,.0f}/s ({original.TERMINAL_HZ:,}/s on the terminal)",
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
