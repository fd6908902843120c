"""The report of a folder of results: ``report.md``, and ``report.html`` that is one file and works offline.

Rules: every sentence that states a result comes from the study's predicates over the rows, or prints a number of them;
what is fixed here only explains. The four answers come first. A folder that holds a part of the study gives the report
of that part, and few blocks give an honest, undecided one. Nothing is measured; figures are drawn where they are
missing or older than the results. Left out: HTML, which ``report_html`` makes of the Markdown.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from experiments import environment, gallery, report_gates
from experiments.environment import Busy, Environment
from experiments.figures.series import P99_COUNT_MIN
from experiments.gallery import Picture, Results
from experiments.report_html import page
from experiments.report_tables import lock_table, markdown_table, measured_table, summary_table, verdict_table
from experiments.results import Row
from experiments.stats import BLOCKS_MIN
from experiments.studies import STUDIES
from experiments.studies.stock.claims import Status, card
from experiments.studies.stock.comparisons import judge
from experiments.studies.stock.declared import families
from experiments.studies.stock.questions import NOT_RUN, Answer, answers, lock_costs
from experiments.studies.stock.wording import brief
from stock_service.rpc.errors import UsageError

STOCK = "stock"
ORIGINAL_PARTS = ("figure_1", "figure_2", "figure_3", "figure_4", "figure_5")
EXTENSIONS = (
    "stages",
    "offered_load",
    "client_kind",
    "socket_trade",
    "pool_by_clients",
    "dispatch",
    "connection_policy",
    "updater",
    "lock_strategies",
)

_OPENING = (
    "A stock-trading service is offered twice, on raw sockets with a static pool of threads and on gRPC. Which answers "
    "sooner, what do more clients do to it, what does the lock cost, and what happens when the clients outnumber the "
    "threads?"
)

_LOOPS = {
    "closed": (
        "In a closed loop each client sends again as soon as it is answered. Latency is the time from sending to "
        "having the reply.",
        "**N/X** is the connections that sent ÷ throughput. By Little’s law it is, in a closed loop, the mean latency "
        "and the client’s own time between two requests together, so that they check each other, and a latency that "
        "grows with the clients need not mean a slower server.",
    ),
    "open": (
        "In an open loop requests are due at a given rate, whatever the server does. Latency is the time from when a "
        "request was due to having the reply: what it waits before it is sent is part of it.",
    ),
}
"""What holds for the runs of one loop, and for no others."""

_METHOD = (
    "Clients are processes that start together behind a barrier; a warm-up is not part of the latency. Every reply is "
    "validated. Times are by a clock that never runs backwards.",
    "Percentiles are taken within a run, the 99th only where every run of the setting has replies that are worth "
    f"{P99_COUNT_MIN:,} independent ones; what is printed is their mean over runs.",
)

_JUDGED = (
    "A comparison is a ratio within a block. Its 95 % interval is Student’s t on the logarithms of the blocks’ ratios; "
    "its p is that of a sign-flip test, corrected after Holm over its declared family.",
    "**EQUIVALENT**: the interval lies inside 0.95 to 1.05. **FASTER**, **SLOWER**: it excludes 1, and the corrected p "
    "is under 0.05; in A ÷ B, FASTER means that A takes less time than B. Of a latency per client (mean latency ÷ "
    "number of clients) it says that latency grew by a smaller factor than the clients did, and not that a request "
    "took less time. **INCONCLUSIVE**: neither.",
)

_ANSWERS_FAMILY = (
    "The family of the four answers is six comparisons: sockets ÷ gRPC, growth on each server, Trade ÷ Lookup, and two "
    "at the pool. The other families stand under “All other comparisons”."
)

_AVOIDED = (
    ("Transport and lock changed together.", "Both servers here have the same locking, pool and catalog."),
    (
        "Connections were made inside the timing of one side.",
        "Where they are kept: made before it, and timed apart, on both.",
    ),
    ("Latency of N clients in a closed loop read as a property of the server.", "N ÷ throughput stands beside it."),
    ("The lock was given the blame without a measurement.", "The wait for it is measured, under every strategy."),
    ("Means without intervals.", "Intervals over runs, with fresh servers and in random order."),
    ("“Similar” concluded from two similar means.", "EQUIVALENT only where the whole interval says so."),
)


MARKDOWN, HTML = "report.md", "report.html"


def write(results_dir: Path) -> tuple[Path, Path]:
    """Writes both files into the folder and returns their paths. Takes seconds. UsageError, OSError."""
    text = markdown(results_dir)
    gallery.draw_if_older(results_dir)
    (results_dir / MARKDOWN).write_text(text, encoding="utf-8")
    title = text.splitlines()[0].removeprefix("# ")
    (results_dir / HTML).write_text(page(text, title, results_dir), encoding="utf-8")
    return results_dir / MARKDOWN, results_dir / HTML


def markdown(results_dir: Path) -> str:
    """The report's text: the same for the same results. UsageError."""
    results = gallery.read(results_dir)
    if not results.rows:
        raise UsageError(str(results_dir), "no whole run", "results of one run at least")
    study = results.rows[0].study
    sections = _stock(results, results_dir) if study == STOCK else _other(study, results, results_dir)
    return "\n\n".join(section for section in sections if section) + "\n"


def _title(study: str) -> str:
    return "Sockets and gRPC: study stock" if study == STOCK else f"Study {study}"


def _stock(results: Results, results_dir: Path) -> Iterator[str]:
    """The whole study's report; of an extension alone, what it bears on of questions and claims, and no more."""
    rows, shown = results.rows, list(gallery.pictures(results))
    whole = any(row.part in ORIGINAL_PARTS for row in rows)
    others = [] if whole or _extensions(rows) else [part for part in STUDIES[STOCK].parts if _of(part, rows)]
    names = _extensions(rows) or others
    yield f"# {_title(STOCK)}" if whole else f"# Study stock: {', '.join(names)}"
    yield _OPENING if whole else " ".join(f"{STUDIES[STOCK].parts[part].title}." for part in names)
    yield from state(rows)
    found = [one for one in answers(rows) if whole or one.comparisons or one.details]
    if found:
        yield "## The four answers" if whole else "## What it adds to the four answers"
        if whole or any(one.deciding for one in found):
            yield summary_table(found)
        yield from _pictures("answers", shown, rows)
    for one in found:
        yield from answer(one)
    if whole:
        yield "## The five figures"
        for part in ORIGINAL_PARTS:
            yield from _part(part, rows, shown)
    yield from report_gates.section(rows)
    if claims := list(replication_card(rows, whole)):
        yield "## What the original claims"
        yield from claims
    yield from _locks(rows, shown)
    yield from _beyond(rows, shown)
    if set(others) - {"locks"}:
        yield "## What was measured"
        for part in (part for part in others if part != "locks"):  # which have a section of their own
            yield from _part(part, rows, shown)
    yield from _further_comparisons(rows)
    yield from _background(rows, results_dir)
    if whole:
        yield "## Faults of the original that are avoided"
        yield markdown_table(("In the original", "Here"), _AVOIDED, 2)


def _extensions(rows: Sequence[Row]) -> list[str]:
    """The parts that the original did not measure, in the study's order."""
    return [part for part in EXTENSIONS if _of(part, rows)]


def _of(part: str, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.part == part]


def _beyond(rows: Sequence[Row], shown: Sequence[Picture]) -> Iterator[str]:
    """What the original did not measure."""
    names = _extensions(rows)
    if names or any(picture.part == "distributions" for picture in shown):
        yield "## Beyond the original"
    for picture in shown:
        if picture.part == "distributions":
            yield f"### {picture.title}"
            yield _picture(picture, rows)
    for part in names:
        yield from _part(part, rows, shown)


def _other(study: str, results: Results, results_dir: Path) -> Iterator[str]:
    """The report of a study that has no questions of its own here: what it measured, and what it concludes."""
    rows, shown = results.rows, list(gallery.pictures(results))
    yield f"# {_title(study)}"
    yield STUDIES[study].question
    yield from state(rows)
    conclude = STUDIES[study].conclude
    if conclude is not None:
        yield "## What it concludes"
        yield "```text\n" + conclude(rows).strip("\n") + "\n```"
    yield "## What was measured"
    for part in dict.fromkeys(row.part for row in rows):
        yield from _part(part, rows, shown)
    yield from _background(rows, results_dir)


def state(rows: Sequence[Row]) -> Iterator[str]:
    """How much was run; and, where that is too little to conclude anything, a warning."""
    blocks = len({row.block for row in rows})
    runs = len({row.run_id for row in rows})
    errors = sum(row.errors for row in rows if row.request == "all")
    replies = sum(row.count for row in rows if row.request == "all")
    seconds = sorted({round(row.duration_s, 1) for row in rows})
    length = f"{seconds[0]:g} s" if len(seconds) == 1 else f"{seconds[0]:g} to {seconds[-1]:g} s"
    pinned = "Server and clients had a core each." if all(row.pinned for row in rows) else "Not all runs were pinned."
    yield (
        f"{_counted(blocks, 'block')}, {_counted(runs, 'run')} of {length}, {replies:,} replies, "
        f"{_counted(errors, 'error')}. {pinned}"
    )
    if blocks < BLOCKS_MIN:
        yield (
            f"> **This is a trial run.** {_counted(blocks, 'block')} can show that the instrument works, and no more: "
            f"below {BLOCKS_MIN} blocks no comparison of times can be decided, whatever its ratio, and one of a larger "
            "family needs more, as its refusal says."
        )


def answer(found: Answer) -> Iterator[str]:
    """One of the four answers: in a sentence, as a table, what else was found, and what may not be concluded."""
    yield f"### {found.number} · {found.question}"
    if found.headline != NOT_RUN or not (found.comparisons or found.details):
        yield found.headline
    if not found.comparisons and not found.details:
        return
    if found.comparisons:
        yield verdict_table(found.comparisons)
    yield _list(found.details)
    yield f"*What the number is.* {found.estimand}"
    yield "*What may not be concluded.*"
    yield _list(found.not_concluded)


def _part(part: str, rows: Sequence[Row], shown: Sequence[Picture]) -> Iterator[str]:
    own = _of(part, rows)
    if not own:
        return
    pictures = [picture for picture in shown if picture.part == part]
    yield f"### {pictures[0].title if pictures else part.replace('_', ' ').capitalize()}"
    for picture in pictures:
        yield _picture(picture, rows)
    if not pictures:
        yield f"{STUDIES[rows[0].study].parts[part].title}."
    yield measured_table(own, rows if rows[0].study == STOCK else ())


def _pictures(part: str, shown: Sequence[Picture], rows: Sequence[Row]) -> Iterator[str]:
    for picture in shown:
        if picture.part == part:
            yield _picture(picture, rows)


def _picture(picture: Picture, rows: Sequence[Row]) -> str:
    """A figure with its text alternative, and as its caption how its lines grow, or what was set."""
    part = picture.part
    growth = (judged for name, judged in judge(rows).items() if name.startswith(f"growth_{part}_"))
    caption = "; ".join(f"{judged.contrast.text}: ratio {brief(judged)}" for judged in growth)
    parts = STUDIES[rows[0].study].parts
    caption = caption or (parts[part].title if picture.name == part and part in parts else picture.title)
    return f"![{picture.alternative}]({gallery.FOLDER}/{picture.name}.svg)\n*{caption}.*"


def replication_card(rows: Sequence[Row], whole: bool = True) -> Iterator[str]:
    """Every claim of the original, its status and the numbers behind it; unless ``whole``, those that can be tested."""
    claims = [entry for entry in card(rows) if whole or entry.status is not Status.NOT_TESTABLE]
    if not claims:
        return
    yield (
        "Each claim of the student report that this study repeats, against the data. Numbers in brackets are 95 % "
        "intervals. The original’s times come from another machine and stand as context only."
    )
    lines = [(entry.claim, entry.original, f"**{entry.status.value}**", entry.evidence) for entry in claims]
    yield markdown_table(("Claim", "In the original", "Status", "Data"), lines, 4)


def _locks(rows: Sequence[Row], shown: Sequence[Picture]) -> Iterator[str]:
    if not any(row.part == "locks" for row in rows):
        return
    yield "## Waiting for the lock"
    yield (
        "From asking for the catalog’s lock to having it, measured in the server from its start, warm-up included; "
        "the typical share is of the same runs’ latency. Timing a wait costs about 1 µs a request, so these "
        "latencies are not those of the figures."
    )
    yield from _pictures("locks", shown, rows)
    yield lock_table(lock_costs(rows))


def _further_comparisons(rows: Sequence[Row]) -> Iterator[str]:
    """Every family but the answers', each a table of its own, since Holm's correction runs over it."""
    judged = judge(rows)
    tables = []
    for name, family in families(rows).items():
        found = [judged[contrast.name] for contrast in family if contrast.name in judged]
        if name != "answers" and found:
            tables.append((name, verdict_table(found)))
    if tables:
        yield "## All other comparisons"
        yield "Each table is a family of its own: Holm’s correction runs over its lines."
    for name, table in tables:
        yield f"### Family {name.replace('_', ' ')}"
        yield table


def _background(rows: Sequence[Row], results_dir: Path) -> Iterator[str]:
    yield "## The machine"
    try:
        yield _machine(environment.load(results_dir))
    except UsageError:
        yield "No record of the machine stands beside these results."
    yield "## How it was measured"
    yield _list(_method(rows))


def _method(rows: Sequence[Row]) -> Iterator[str]:
    """How these rows were measured: what does not hold for them is not said."""
    study = rows[0].study
    alone = [name for name, part in STUDIES[study].parts.items() if part.once]
    yield (
        "A **run** is one setting of all factors, with a server process of its own. A **block** has every setting "
        "once, in random order, so that whatever drifts on the machine meets all settings alike."
        + (f" What stands alone ({', '.join(alone)}) is run in the first block only." if alone else "")
    )
    policies = {row.connection for row in rows}
    if "kept-alive" in policies:
        yield "Where connections are kept, connecting and the first call are not part of the latency."
    if "per-request" in policies:
        yield "With a connection for every request, making it is part of the latency."
    yield from _METHOD
    for loop, sentences in _LOOPS.items():
        if any(row.loop == loop for row in rows):
            yield from sentences
    if study == STOCK and any(row.part in ORIGINAL_PARTS for row in rows):
        yield _ANSWERS_FAMILY
    if study == STOCK:
        yield from _JUDGED


def _machine(found: Environment) -> str:
    lines = [
        ("Processor", f"{found.cpu_model}, {found.machine}"),
        ("Cores used", str(found.cores)),
        ("Frequency governor", found.governor),
        ("Virtual machine", {True: "yes", False: "no", None: "unknown"}[found.hypervisor]),
        ("Memory", f"{found.memory_mib:,} MiB"),
        ("System", f"{found.system}, {found.kernel}"),
        ("Clock", found.clock),
        ("Python", f"{found.python}, {'with' if found.gil else 'without'} the global interpreter lock"),
        ("Packages", ", ".join(f"{name} {version}" for name, version in found.packages.items())),
        ("Commit", found.commit + {True: ", with changes", False: "", None: ""}[found.dirty]),
        ("Before", _busy(found.before)),
        ("After", _busy(found.after) if found.after else "the sweep had not ended"),
    ]
    if found.after:
        stolen = found.after.cpu_steal_s - found.before.cpu_steal_s
        lines.append(("Taken by the hypervisor meanwhile", f"{stolen:.1f} processor seconds"))
    return markdown_table(("Parameter", "Value"), lines, 2)


def _busy(busy: Busy) -> str:
    return f"load {busy.load_1_min:g}, {busy.memory_available_mib:,.0f} MiB free, {busy.at}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
