"""Figures and tables of the study ``pools``: the document's numbers beside ours, and the document's faults.

The document has only tables. For three columns of its tables 1 and 2 (mean time, processor, memory) a figure here draws
lines over the size of the pool. The document's figures 1 and 2 are pictures of JMeter's tables. Here one figure of
throughput replaces both. A further figure has the processor time of a request over the number of connections. The table
of ratios has a row for each declared ratio over several cells. The functions are pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from experiments.design.levels import Level
from experiments.judge.stats import exact
from experiments.judge.stress import StressJudged
from experiments.judge.table import OF_THE_LOAD, CellJudged, TableJudged
from experiments.kinds.table import Cell
from experiments.show.content import Section, Seen
from experiments.show.figures import curves
from experiments.show.figures.curves import Line, Panel, Scale
from experiments.show.figures.style import LIMITED, Picture
from experiments.show.numbers import NOTHING, counted, number, ratio_words
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, Table
from experiments.studies.pools import original
from experiments.studies.pools.design import BOTH, CONNECTIONS, LANGUAGES, POOL, POOLS, QUANTITIES, VERBS

DRAWN = {
    "response_ms": ("response", "Mean time of a request", "Mean time, ms", True),
    "cpu_percent": ("processor", "Processor use of the server, all cores free", "Processor, % of a core", False),
    "memory_percent": ("memory", "Memory of the server", "Memory, % of the machine's", True),
}
"""Figures, by the column of tables 1 and 2 that a figure draws. An entry has a name, a title, the label of the axis,
and True or False: True where the figure has our pinned cells, False where the figure has our free cells.
"""

HOLLOW = f"{LIMITED}; so is all of the document"


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figures over the pool for each column of ``DRAWN`` and each verb, the figure over connections, and the figure of
    the stress test."""
    drawn: list[Picture] = []
    if (cells := seen.of(TableJudged)) is not None:
        for quantity, (name, title, unit, pinned) in DRAWN.items():
            ticks = [(float(pool), str(pool)) for pool in POOLS]
            scale = Scale("Threads in the pool", unit, ticks, hollow=HOLLOW, columns=2)
            if quantity == "response_ms":  # with ten times the connections a request waits ten times as long
                scale = replace(scale, shared="row")
            if quantity == "memory_percent":  # memory differs tenfold between servers; a larger pool adds only a third
                scale = replace(scale, log_y=True)
            panels = {verb: list(_panels(cells, quantity, verb, pinned)) for verb in VERBS}
            for verb, own in panels.items():
                told = f"{title}: {verb.upper()}, by the size of the server's pool"
                drawn.append(curves.picture(f"{name}_{verb}", told, scale, own, list(panels.values())))
        drawn.append(_connections(cells))
    if (stress := seen.of(StressJudged)) is not None:
        drawn.append(_stress(stress))
    return tuple(drawn)


def _panels(seen: TableJudged, quantity: str, verb: str, pinned: bool) -> Iterator[Panel]:
    """Panels of a figure over the pool, two for each number of connections: the document's panel and ours. A panel has
    a line for each language."""
    for connections in CONNECTIONS:
        table = [row for row in original.TABLES[verb] if row.connections == connections]
        points = [(row.language, float(row.pool), _printed(row, quantity)) for row in table]
        theirs = _lines_of_document(points, quantity in OF_THE_LOAD)
        if ours := _lines(seen, quantity, "workers", pinned, mix=verb, connections=connections):
            yield Panel(f"{connections:,} connections: the document", theirs)
            yield Panel(f"{connections:,} connections: here", ours)


def _connections(seen: TableJudged) -> Picture:
    """Figure of the processor time of a request by connections, with a row of the document's panels and a row of our
    panels."""
    document, here = list[Panel](), list[Panel]()
    for verb in VERBS:
        table = [row for row in original.TABLES[verb] if row.pool == POOL]
        theirs = _lines_of_document([(row.language, float(row.connections), original.cpu_us(row)) for row in table])
        ours = _lines(seen, "cpu_us", "connections", pinned=True, mix=verb, workers=POOL)
        document.append(Panel(f"{verb.upper()}: the document", theirs))
        here.append(Panel(f"{verb.upper()}: here, on a scale of its own", ours))
    ticks = [(float(each), f"{each:,}") for each in CONNECTIONS]
    scale = Scale("Connections", "Processor time, µs", ticks, columns=2, shared="row")
    title = f"Processor time of a request by connections, {POOL} threads"
    return curves.picture("connections", title, scale, [*document, *here])


def _lines_of_document(points: Sequence[tuple[str, float, float]], limited: bool = False) -> list[Line]:
    """Lines of the document's languages. ``points``: language, place on the axis, and value of each point. ``limited``:
    True for hollow points. A hollow point marks that the load was at its limit, as in every cell of the document."""
    lines = []
    for language in BOTH:
        own = [(x, exact(y)) for name, x, y in points if name == language]
        lines.append(Line(language.capitalize(), "", own, hollow=[x for x, _ in own] * limited))
    return lines


def _printed(row: original.Row, quantity: str) -> float:
    """Value of a column in a row of the document. The mean time is computed from the total time, because five of the
    printed means contradict Little's law.
    """
    return row.little_ms if quantity == "response_ms" else float(getattr(row, quantity))


def _lines(seen: TableJudged, quantity: str, over: str, pinned: bool, **levels: Level) -> list[Line]:
    """Lines of our languages over the factor ``over``, for the cells with these levels. A language without a value has
    no line. Points of cells in which the load was near its limit are hollow."""
    lines = []
    for language in LANGUAGES:
        wanted = {"language": language, **levels}
        cells = (c for c in seen.plan.cells if c.pinned == pinned)
        own = [c for c in cells if all(c.setting[name] == level for name, level in wanted.items())]
        places = {float(c.setting.whole(over)): c for c in sorted(own, key=lambda c: c.setting.whole(over))}
        found = [(place, value) for place, c in places.items() if (value := seen.estimate(c, quantity))]
        limited = [place for place, c in places.items() if quantity in OF_THE_LOAD and seen.is_load_limited(c)]
        lines += [Line(language.capitalize(), "", found, hollow=limited)] if found else []
    return lines


def _stress(seen: StressJudged) -> Picture:
    """Figure of the requests a second of each kind of request, and of all kinds together. The title has the number of
    errors, since the test is about errors."""
    kinds = {kind: float(place) for place, kind in enumerate(dict.fromkeys(row.kind for row in seen.rows))}
    kinds |= {"TOTAL": len(kinds) - 0.3}
    total = [row for row in seen.rows if row.kind == "TOTAL"]
    errors, samples = sum(row.errors for row in total), sum(row.samples for row in total)
    theirs = _lines_of_document([(row.language, kinds[row.kind], row.throughput_hz) for row in original.JMETER])
    ours = []
    for server in seen.plan.servers:
        points = [(kinds[row.kind], row.throughput_hz) for row in seen.rows if row.server == server]
        ours.append(Line(server.text("language").capitalize(), "", points))
    scale = Scale(
        "TOTAL: all ÷ the whole time",
        "Requests a second",
        [(place, kind.replace(" data", "")) for kind, place in kinds.items()],
        log_x=False,
        joined=False,
        shared="none",
    )
    at = f"{seen.plan.connections:,} connections for each kind"
    panels = [
        Panel("The document: one kind after another; another machine", theirs),
        Panel(f"Here: all kinds at once, {at}; a scale of its own", ours),
    ]
    title = f"Stress test, here: {errors:,} errors in {samples:,} requests to all servers. Rates measure no speed"
    return curves.picture("stress", title, scale, panels)


COLUMNS = {
    "cpu_percent": "avg CPU, %",
    "cpu_percent_max": "max CPU, %",
    "memory_percent": "avg memory, %",
    "memory_percent_max": "max memory, %",
    "total_s": "total, s",
    "response_ms": "mean, ms",
    "received_kb_s": "received, KB/s",
    "sent_kb_s": "sent, KB/s",
    "connect_ms": "connect, ms",
    "processing_ms": "processing, ms",
}
"""Heads of the columns of tables 1 and 2 that follow language, pool, requests and connections, by quantity."""

LITTLE = "N ÷ throughput, ms"
"""Head of the column with N ÷ throughput, where N is the number of connections. In a closed loop the mean time nearly
equals this value (Little's law)."""

HEAD = ("language", "pool", "requests", "connections", *COLUMNS.values())


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections with the tables that were measured, and with the document's faults."""
    found: list[Section] = []
    if (cells := seen.of(TableJudged)) is not None:
        for place, verb in enumerate(VERBS, 1):
            found += _tables(cells, verb, f"Table {place}")
        found.append(Section("All cells, compared", ratio_table(cells.judged.values())))
    if (stress := seen.of(StressJudged)) is not None:
        found.append(Section("Stress test, as JMeter has it", stress_table(stress), ("stress",)))
    found.append(Section("What is wrong in the document's tables", "\n".join(f"- {each}" for each in faults())))
    return tuple(found)


def _tables(seen: TableJudged, verb: str, table: str) -> Iterator[Section]:
    """Sections of one of the document's tables: our table of pinned cells, our table of free cells, and the document's
    table."""
    of, pinned, free = verb.upper(), cell_table(seen, verb, pinned=True), cell_table(seen, verb, pinned=False)
    yield Section(f"{table}: {of}, server and load on a core each", pinned, (f"response_{verb}", f"memory_{verb}"))
    yield Section(f"{table}: {of}, all cores free", free, (f"processor_{verb}",))
    yield Section(f"{table} of the document: {of}", original_table(verb))


def cell_table(seen: TableJudged, verb: str, pinned: bool) -> str:
    """Table of our cells with the document's columns, the processor time a request, and the load's share of its core.
    Values are means over blocks."""
    own = [cell for cell in seen.plan.cells if cell.setting["mix"] == verb and cell.pinned == pinned]
    lines = []
    for cell in own:
        of, connections = cell.setting, cell.setting.whole("connections")
        rate = seen.estimate(cell, "throughput_hz")
        lines.append(
            (
                *(of.text("language"), of.text("workers"), f"{cell.requests:,}", f"{connections:,}"),
                *(_value(seen, cell, each) for each in COLUMNS),
                NOTHING if rate is None else number(1000 * connections / rate.value),
                _value(seen, cell, "cpu_us"),
                _value(seen, cell, "client_percent") + LIMITED_MARK * seen.is_load_limited(cell),
                f"{seen.errors(cell):,}",
            )
        )
    head = (*HEAD, LITTLE, "CPU a request, µs", "load's CPU, %", "errors")
    note = (
        f"Means over {counted(len(seen.blocks), 'block')}; requests are of one block. CPU is in % of one core, memory "
        "in % of the machine's memory. A time ends when the server has closed the connection, as `ab`'s does. The "
        f"mean is under {LITTLE.removesuffix(', ms')} by up to N ÷ (2 × requests): at the end some connections idle."
    )
    limited = any(seen.is_load_limited(cell) for cell in own)
    return Table(head, tuple(lines), notes=(note, *((LIMITED_NOTE,) * limited))).markdown


def original_table(verb: str) -> str:
    """Table of the document for a verb, as printed. ‡ marks a mean time that breaks Little's law."""
    lines = []
    for row in original.TABLES[verb]:
        cells = {name: f"{getattr(row, name):g}" for name in COLUMNS}
        cells["response_ms"] += " ‡" * row.breaks_littles_law
        named = (row.language, str(row.pool), f"{original.REQUESTS:,}", f"{row.connections:,}")
        lines.append((*named, *cells.values(), number(original.cpu_us(row))))
    note = "Context: another machine. ‡ N connections × total ÷ requests is ten times this mean or more: a misprint."
    head = (*HEAD, "CPU a request, µs (computed)")
    notes = (note,) * any(each.breaks_littles_law for each in original.TABLES[verb])
    return Table(head, tuple(lines), notes=notes).markdown


def _value(seen: TableJudged, cell: Cell, quantity: str) -> str:
    found = seen.estimate(cell, quantity)
    return NOTHING if found is None else number(found.value)


def ratio_table(judged: Iterable[CellJudged]) -> str:
    """Table of the declared ratios over several cells. Ratios of single cells are left out: the findings on claims
    count the verdicts on single cells."""
    lines = [
        (
            each.ratio.title,
            QUANTITIES[each.ratio.quantity],
            (f"**{each.verdict.value}**" if each.verdict else "no verdict") + LIMITED_MARK * each.load_limited,
            *ratio_words(each.seen),
            f"{each.p_holm:.2g}",
            str(each.seen.n),
        )
        for each in judged
        if not each.ratio.family.startswith("each")
    ]
    note = (
        "Geometric means over all cells that differ in nothing else. LESS and MORE need an interval that excludes 1. "
        "They also need Holm's p of the sign-flip test over blocks under 0.05. "
        "EQUIVALENT is an interval inside 0.95 to 1.05. "
        "†: the load took over 80 % of its core, and the time or rate is never EQUIVALENT."
    )
    head = ("A ÷ B", "of", "Verdict", "Ratio", "95 % interval", "p (Holm)", "Blocks")
    return Table(head, tuple(lines), 3, notes=(note,)).markdown


def stress_table(seen: StressJudged) -> str:
    """Table of our stress test in JMeter's columns, with the document's rates. A note has the final state of all
    keys."""
    lines = []
    for row in seen.rows:
        language, share = row.server.text("language"), 100 * row.errors / row.samples if row.samples else 0.0
        rates = (number(each.value) for each in (row.throughput_hz, row.received_kb_s, row.sent_kb_s))
        printed = next((each for each in original.JMETER if (each.language, each.kind) == (language, row.kind)), None)
        theirs = (printed.throughput_hz, printed.received_kb_s, printed.sent_kb_s) if printed else ()
        beside = " / ".join(f"{each:,.1f}" for each in theirs) or NOTHING
        lines.append((language, row.kind, f"{row.samples:,}", f"{share:.2f}", *rates, beside))
    states = "; ".join(
        f"{server.text('language')} {seen.right[server]:,} right, {seen.wrong[server]:,} wrong" for server in seen.right
    )
    kinds, at = len(seen.plan.kinds), seen.plan.connections
    notes = (
        f"{kinds} kinds at once, {at:,} connections each, a new one for each request. The document's KB/s and rates "
        "are only context: JMeter ran on the server's machine.",
        f"Final values of all keys, read one by one afterwards: {states}.",
    )
    rates_head = "throughput, 1/s", "received, KB/s", "sent, KB/s"
    head = ("language", "label", "samples", "error, %", *rates_head, "the same three in the document")
    return Table(head, tuple(lines), 2, notes).markdown


def faults() -> Iterator[str]:
    """Sentences on the faults that this module finds in the document's numbers."""
    broken = original.impossible_means()
    told = "; ".join(f"{each.response_ms:g} for {each.little_ms:.3f} ms" for each in broken)
    yield f"{len(broken)} printed means break Little's law. All are Go's PUT at 100 connections: {told}."
    slower = original.rust_not_faster("put")
    cells = ", ".join(f"pool {rust.pool} at {rust.connections:,} connections" for rust, _ in slower)
    count = sum(1 for _ in original.pairs("put"))
    yield f"Rust is not faster in {len(slower)} of {count} PUT comparisons, by the totals. They are {cells}."
    for what, column in (("processor", "cpu_percent"), ("memory", "memory_percent")):
        lowered = [(verb, *case) for verb in VERBS for case in original.pool_lowers(column, verb)]
        cases = [f"{verb.upper()} of {language} at {at:,}" for verb, language, at in lowered]
        yield f"64 threads took no more {what} than 2 in {len(cases)} of 12 cases: {', '.join(cases)} connections."
    get, put = (original.go_connects_later(verb) for verb in VERBS)
    yield (
        f"Go connects later than Rust at 1,000 connections in {len(get)} of 6 pools of GET and {len(put)} of 6 of PUT. "
        "The text says that it connects sooner."
    )
    rust_rows, go_rows = original.JMETER[:4], original.JMETER[4:]
    ratios = [of_go.throughput_hz / of_rust.throughput_hz for of_rust, of_go in zip(rust_rows, go_rows, strict=True)]
    yield (
        f"By JMeter, Go is {min(ratios):.1f} to {max(ratios):.1f} times as fast as Rust; by tables 1 and 2, Rust is "
        "faster. The document says of its JMeter run that it is no measure of speed."
    )
    yield "The text says that the value is a float64; the Rust code has f32. Table 1 calls Go golang, table 2 go."
