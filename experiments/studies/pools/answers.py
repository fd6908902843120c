"""Answers of ``pools``: the servers' speed, pool and connections, the debug build, the stress test. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from experiments.design.arms import Measure
from experiments.judge.stress import StressJudged
from experiments.judge.table import TableJudged
from experiments.judge.verdicts import Judged, Judgement
from experiments.show.content import Answer, Seen
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.studies.pools.claims import words
from experiments.studies.pools.design import AT, CONNECTIONS, FEW, HEADLINE, LANGUAGES, MANY, ONE, PAIRS, POOL, VERBS

ESTIMAND = (
    "mean time of a request with a connection of its own, from before it connects until the server has closed. The "
    f"pool has {POOL} threads; the load is {ONE} connection in a closed loop. "
    f"Processor time is the server's for each request, {AT} connections."
)

PROCESSES = {"rust": "the server in Rust", "go": "the server in Go", "python": "the server in Python"}

MEASURES = ("", "_cpu")
"""Ends of comparisons' names: by time, and by processor time."""

TITLES: Mapping[Measure, str] = {
    "response": f"time of a request with {ONE} connection, {POOL} threads",
    "cpu": f"processor time of a request with {AT} connections, {POOL} threads",
}
"""Ends of titles of the figures of ratios: time and processor time are measured under loads that differ."""

NOT_CONCLUDED = (
    "How many requests a server takes on connections that stay.",
    "How the languages compare on more cores, or over a network.",
    "How much time a server needs, where a † stands: the load was near its limit. Processor time is the server's own.",
)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to the measured ones of the five questions."""
    found = [_languages(seen), _debug(seen.main)]
    if (cells := seen.of(TableJudged)) is not None:
        found += [_pool(cells), _connections(cells)]
    if (stress := seen.of(StressJudged)) is not None:
        found.append(_stress(stress))
    return tuple(found)


def _judged(judgement: Judgement, names: Iterable[str]) -> dict[str, Judged]:
    return {name: judgement.judged[name] for name in names if name in judgement.judged}


def _titled(what: str) -> Mapping[Measure, str]:
    return {measure: f"{what}: {end}" for measure, end in TITLES.items()}


def _languages(seen: Seen) -> Answer:
    judgement = seen.main
    question = "Which of the three servers answers a request sooner?"
    names = {
        f"{one}_{other}_{verb}{measure}": (one, other, verb)
        for one, other in PAIRS
        for measure in MEASURES
        for verb in VERBS
    }
    found = _judged(judgement, names)
    if not found:
        return Answer(question, "Not measured: the servers in Rust and Go are not built here; `make peers`.", ())
    told = [
        f"{verb.upper()}: {ratio_sentence(each, PROCESSES[one], PROCESSES[other])}"
        for name, each in found.items()
        for one, other, verb in (names[name],)
    ]
    return Answer(
        question,
        " ".join((*told[: 2 * len(VERBS)], *_at_its_levels(seen))),
        tuple(found.values()),
        details=tuple(told[2 * len(VERBS) :]),
        estimand=ESTIMAND,
        not_concluded=NOT_CONCLUDED,
        titles=_titled("Rust, Go and Python"),
        to_decide=to_decide(judgement, [name for name, each in found.items() if each.comparison.family == HEADLINE]),
    )


def _at_its_levels(seen: Seen) -> Iterator[str]:
    """Sentence on the document's own numbers of connections, where the sweep by turns has other numbers."""
    names = [f"rust_go_response_ms_{verb}" for verb in VERBS]
    cells = seen.of(TableJudged)
    own = [] if cells is None else [cells.judged[name] for name in names if name in cells.judged]
    if own:
        levels = ", ".join(f"{each:,}" for each in CONNECTIONS)
        told = "; ".join(map(words, own))
        yield (
            f"{ONE} connection is a level that the document has not. At its own, {levels} connections, times are of "
            f"client and server together: {told}."
        )


def _debug(judgement: Judgement) -> Answer:
    question = "How much longer does a debug build of the Rust server take than a release build?"
    found = _judged(judgement, [f"debug_{verb}{measure}" for measure in MEASURES for verb in VERBS])
    if not found:
        return Answer(question, "Not measured: the debug build is not here; `make peers` builds it.", ())
    told = [
        f"{verb.upper()}: {ratio_sentence(found[name], 'the debug build', 'the release build')}"
        for measure in MEASURES
        for verb in VERBS
        if (name := f"debug_{verb}{measure}") in found
    ]
    return Answer(
        question,
        " ".join(told),
        tuple(found.values()),
        estimand=ESTIMAND,
        not_concluded=("What a debug build of another program costs.",),
        titles=_titled("Rust in debug and in release"),
        to_decide=to_decide(judgement, list(found)),
    )


def _pool(cells: TableJudged) -> Answer:
    details = [
        f"{what}: {_of_languages(cells, f'pool_{quantity}')}."
        for what, quantity in (
            ("Processor time a request", "cpu_us"),
            ("Share of the processor, all cores free", "cpu_percent"),
            ("Memory", "memory_mib"),
        )
    ]
    return Answer(
        f"What do {MANY} threads do that {FEW} do not?",
        f"Time of a request: {_of_languages(cells, 'pool_response_ms')}.",
        (),
        details=tuple(details),
        estimand="geometric mean over connections, GET and PUT; one server at a time",
        not_concluded=("What a pool is good for where a request waits.",),
        figure="response_get",
    )


def _of_languages(cells: TableJudged, name: str) -> str:
    """Ratios of this name in each language that was measured."""
    found = (cells.judged.get(f"{name}_{language}") for language in LANGUAGES)
    return "; ".join(words(each) for each in found if each is not None)


def _connections(cells: TableJudged) -> Answer:
    details = [
        f"{what}: {_of_languages(cells, f'connections_{quantity}')}."
        for what, quantity in (
            ("Connecting", "connect_ms"),
            ("Processing", "processing_ms"),
            ("Share of the processor, all cores free", "cpu_percent"),
        )
    ]
    return Answer(
        "What do 1,000 connections cost that 10 do not?",
        f"Processor time a request: {_of_languages(cells, 'connections_cpu_us')}.",
        (),
        details=tuple(details),
        estimand="geometric mean over pools, GET and PUT; one server at a time",
        not_concluded=("That a server is slower: in a closed loop N times the connections wait N times as long.",),
        figure="connections",
    )


def _stress(seen: StressJudged) -> Answer:
    rows = [row for row in seen.rows if row.kind == "TOTAL"]
    errors, samples = sum(row.errors for row in rows), sum(row.samples for row in rows)
    wrong, right = sum(seen.wrong.values()), sum(seen.right.values())
    return Answer(
        "Does every key end as its last writer left it, with three kinds of request at once?",
        f"{errors} errors in {samples:,} requests; {right:,} of {right + wrong:,} keys are as they should be.",
        (),
        estimand="every key read after the load, one by one; an updated key must have one of its two values, whole",
        not_concluded=("That there is no race: a test with Go's race detector looks for that.",),
        figure="stress",
    )
