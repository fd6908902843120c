"""Rates and clocks of each arm over the blocks, and the study's figures and tables with these values. Pure functions.

An arm is one server under one load. An arm has two rates: the rate of each client, and the rate of all clients
together. The clocks (wall clock, and processor time of client and server) give the cost of a reply. Each quantity is
computed for each block. The interval of a quantity is Student's t interval over the logarithms of the blocks' values,
so that the interval lies above 0. Blocks that a gate refuses are left out. Rounds in which other programs took the
cores are left out too. Only the rate of each client has all rounds. In a block of cold runs a quantity is the mean over
the block's runs. Figures and tables have the original's numbers beside ours.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import harmonic_mean

import numpy as np

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge.cold import ColdJudged
from experiments.judge.gates import arm_refusals, is_load_limited
from experiments.judge.points import CONFIDENCE
from experiments.judge.ratios import arm_cpu_us, arm_mean_us, column, used
from experiments.judge.stats import Estimate, exact, geometric_interval
from experiments.judge.verdicts import Judged, Judgement
from experiments.kinds.cold import ColdRow
from experiments.results.observed import ALL, Block
from experiments.show.content import Section, Seen
from experiments.show.figures import bars, costs, ratios
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, value_words
from experiments.show.sentences import ratio_sentence
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, Table
from experiments.studies.greeter import design
from experiments.studies.greeter.design import CALLS, IN_FLIGHT, LABELS, LIBRARY, ONE, PEER, TWO, asynchronous

NOT_MEASURED = f"Not measured: the peer {PEER} was not built. `make peers` builds it."


def brief(judgement: Judgement, name: str, above: str, below: str) -> str:
    """Sentence on a comparison, or on the reason why the comparison has no value. ``above``, ``below``: texts for the
    two arms."""
    judged = judgement.judged.get(name)
    if judged is not None:
        return ratio_sentence(judged, above, below)
    declared = any(each.name == name for each in judgement.sweep.comparisons)
    return "No block passed the gates; the report says why." if declared else NOT_MEASURED


def milliseconds(of: Estimate) -> str:
    """Text in milliseconds of a time in µs: ``0.105 ms (0.102 to 0.108)``."""
    return value_words(of.over(1000), " ms")


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates and times of an arm. Rates are in replies a second; times are in µs for each reply."""

    load_limited: bool
    """True where the clients took over 80 % of their core. Client and server together then determine rates and
    times."""
    total_hz: Estimate
    """Number of replies that the server sends in a second, to all clients together."""
    client_hz: Estimate
    """Number of replies that one client gets in a second of its own time: the mean over the clients."""
    response_us: Estimate
    """Mean time of a call."""
    wall_us: Estimate
    """Wall-clock time for each reply of the server: 1 ÷ the rate of all clients together."""
    client_cpu_us: Estimate
    """Processor time of the clients' program for each reply, with all threads."""
    server_cpu_us: Estimate
    """Processor time of the server for each reply, with all threads."""
    wall_over_cpu: Estimate
    """Ratio: wall-clock time ÷ processor time of the clients' program."""
    rate_times_response: Estimate
    """Rate of the server × mean time of a call: by Little's law the mean number of calls under way."""


@dataclass(frozen=True, slots=True)
class FromCold:
    """Times of cold runs in µs. A cold run is a fresh client program with a fresh connection."""

    connect_us: Estimate
    """Time of connecting."""
    first_us: Estimate
    """Time of the first call, without connecting."""
    as_timed_us: Estimate
    """Time of connecting and of the first call together. The original's program connected within its first call, and so
    measured this time.
    """
    rest_us: Estimate
    """Mean time of the other calls of a run."""
    first_over_rest: Estimate
    """Ratio: time of the first call ÷ mean time of the other calls."""
    as_timed_over_rest: Estimate
    """Ratio: time of connecting and of the first call together ÷ mean time of the other calls."""


def rates(judgement: Judgement, of: Setting) -> Rates | None:
    """Rates of an arm in the blocks that no gate refuses. None without such a block, or where the clients do not report
    their clocks."""
    sweep, arm = judgement.sweep, Arm(of)
    blocks = [block for block in judgement.blocks if arm in sweep.arms and not any(arm_refusals(sweep, block, arm))]
    if not blocks:
        return None
    place = sweep.arms.index(arm)
    sums = [_sums(judgement, block, place) for block in blocks]

    def per(above: str, below: str, unit: float = 1.0) -> Estimate | None:
        return _over_blocks(each[above] / each[below] / unit if each[below] else None for each in sums)

    found = (
        per("replies", "wall_ns", 1e-9),
        _over_blocks(_mean_rate_hz(block, place) for block in blocks),
        _over_blocks(arm_mean_us(sweep, block, place, ALL) for block in blocks),
        per("wall_ns", "replies", 1000),
        per("cpu_ns", "replies", 1000),
        _over_blocks(arm_cpu_us(sweep, block, place) for block in blocks),
        per("wall_ns", "cpu_ns"),
        per("response_ns", "wall_ns"),
    )
    estimates = [each for each in found if each is not None]
    if len(estimates) < len(found):
        return None
    return Rates(is_load_limited(sweep, blocks, arm), *estimates)


def _sums(judgement: Judgement, block: Block, place: int) -> dict[str, float]:
    """Sums over an arm's windows in a block: number of replies, response times, wall-clock time, and the clients'
    processor time. Times are in ns. Windows that the comparison of pairs leaves out are left out here too.
    """
    slices = block.slices
    own = used(judgement.sweep.limits, block) & (column(slices.arm) == place)
    columns = {"replies": slices.counts[ALL], "response_ns": slices.sums_ns[ALL]}
    columns |= {"wall_ns": slices.active_ns, "cpu_ns": slices.client_cpu_ns}
    return {name: float(np.asarray(values)[own].sum()) for name, values in columns.items()}


def _mean_rate_hz(block: Block, place: int) -> float | None:
    """Mean rate of the clients over the windows of an arm in a block, in replies a second. None without a window.

    Every client makes the same number of calls in every window. So the mean (number of all calls ÷ sum of all times) is
    the harmonic mean of the clients' rates.
    """
    rates_hz = [hz for window in block.arms[place].windows for hz in window.clients_hz]
    return harmonic_mean(rates_hz) if rates_hz else None


def by_language(judgement: Judgement, settings: Mapping[str, Setting]) -> dict[str, Rates]:
    """Rates of each language's setting, by the language's name in texts. Languages that were not measured are left
    out."""
    found = ((LABELS[language], rates(judgement, of)) for language, of in settings.items())
    return {name: each for name, each in found if each is not None}


def cold_runs(seen: Seen) -> ColdJudged:
    """Judged cold runs, without rows where no cold run was measured."""
    return seen.of(ColdJudged) or ColdJudged()


def from_cold(rows: Sequence[ColdRow], of: Setting) -> FromCold | None:
    """Times of a setting's cold runs of 1,000 calls. None where these runs were not measured."""
    own = [row for row in rows if row.cell.setting == of and row.cell.calls == CALLS]

    def over(value: Callable[[ColdRow], float]) -> Estimate | None:
        return _over_blocks(map(value, own))

    found = (
        over(lambda row: row.connect_us),
        over(lambda row: row.first_call_us),
        over(lambda row: row.connect_us + row.first_call_us),
        over(lambda row: row.rest_us_mean or 0.0),
        over(lambda row: row.first_call_us / row.rest_us_mean if row.rest_us_mean else 0.0),
        over(lambda row: (row.connect_us + row.first_call_us) / row.rest_us_mean if row.rest_us_mean else 0.0),
    )
    estimates = [each for each in found if each is not None]
    return FromCold(*estimates) if len(estimates) == len(found) else None


def all_from_cold(seen: Seen) -> dict[str, FromCold]:
    """Times of cold runs, by the language's name in texts. Languages that were not measured are left out."""
    found = ((name, from_cold(cold_runs(seen).rows, ONE[language])) for language, name in LABELS.items())
    return {name: each for name, each in found if each is not None}


def _over_blocks(values: Iterable[float | None]) -> Estimate | None:
    return geometric_interval(values, CONFIDENCE)


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
