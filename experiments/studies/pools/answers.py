"""Answers of the study ``pools``: on the servers' time and processor time, pools, connections, the stress test.

The functions are pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from experiments.design.arms import Measure
from experiments.judge.stress import StressJudged
from experiments.judge.table import TableJudged
from experiments.judge.verdicts import Judgement
from experiments.show.content import Answer, Seen
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.studies.pools.claims import words
from experiments.studies.pools.design import (
    AT,
    CONNECTIONS,
    FEW,
    HEADLINE,
    LANGUAGES,
    MANY,
    ONE,
    PAIRS,
    POOL,
    QUANTITIES,
    VERBS,
)

ESTIMAND = (
    "mean time of a request with a connection of its own, from before the connect until the server has closed the "
    f"connection. The pool has {POOL} threads; the load is {ONE} connection in a closed loop. Processor time is that "
    f"of the server for each request, with {AT} connections."
)

PROCESSES = {"rust": "the server in Rust", "go": "the server in Go", "python": "the server in Python"}

MEASURES = ("", "_cpu")
"""Suffixes of the names of comparisons: empty for the time of a request, ``_cpu`` for processor time."""

TITLES: Mapping[Measure, str] = {
    "response": f"time of a request with {ONE} connection, {POOL} threads",
    "cpu": f"processor time of a request with {AT} connections, {POOL} threads",
}
"""Last words of the titles of figures of ratios, by measure. Time and processor time are measured under different
loads.
"""

NOT_CONCLUDED = (
    "How many requests a server takes on connections that stay.",
    "How the languages compare on more cores, or over a network.",
    "How much time a server needs, where a † stands: the load was near its limit. Processor times are of the server "
    "alone.",
)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to the five questions. A question on cells, or on the stress test, is left out where its measurements are
    absent."""
    found = [_languages(seen), _debug(seen.main)]
    if (cells := seen.of(TableJudged)) is not None:
        found += [_pool(cells), _connections(cells)]
    if (stress := seen.of(StressJudged)) is not None:
        found.append(_stress(stress))
    return tuple(found)


def _told(judgement: Judgement, sides: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Sentences on the measured comparisons, by name: for GET and PUT, each for time and for processor time.

    ``sides``: texts for the two arms of a comparison, by the first words of the comparison's name.
    """
    told = {}
    for begin, measure, verb in product(sides, MEASURES, VERBS):
        name = f"{begin}_{verb}{measure}"
        if name in judgement.judged:
            told[name] = f"{verb.upper()}: {ratio_sentence(judgement.judged[name], *sides[begin])}"
    return told


def _languages(seen: Seen) -> Answer:
    judgement, question = seen.main, "Which of the three servers answers a request sooner?"
    told = _told(judgement, {f"{one}_{other}": (PROCESSES[one], PROCESSES[other]) for one, other in PAIRS})
    if not told:
        return Answer(question, "Not measured: the servers in Rust and Go are not built; `make peers` builds them.", ())
    deciding, sentences = tuple(judgement.judged[name] for name in told), list(told.values())
    headline = [each.comparison.name for each in deciding if each.comparison.family == HEADLINE]
    return Answer(
        question,
        " ".join((*sentences[: 2 * len(VERBS)], *_at_its_levels(seen))),
        deciding,
        details=tuple(sentences[2 * len(VERBS) :]),
        estimand=ESTIMAND,
        not_concluded=NOT_CONCLUDED,
        titles={measure: f"Rust, Go and Python: {end}" for measure, end in TITLES.items()},
        to_decide=to_decide(judgement, headline),
    )


def _at_its_levels(seen: Seen) -> Iterator[str]:
    """Sentence on time in Rust ÷ time in Go, from the cells. The cells have the document's numbers of connections. The
    sweep by turns measures times with one connection only. Empty where the cells were not measured.
    """
    names = [f"rust_go_response_ms_{verb}" for verb in VERBS]
    cells = seen.of(TableJudged)
    own = [] if cells is None else [cells.judged[name] for name in names if name in cells.judged]
    if own:
        levels = ", ".join(f"{each:,}" for each in CONNECTIONS)
        told = "; ".join(map(words, own))
        yield (
            f"The document did not measure {ONE} connection. With the document's {levels} connections, times are of "
            f"client and server together: {told}."
        )


def _debug(judgement: Judgement) -> Answer:
    question = "How much longer does a debug build of the Rust server take than a release build?"
    told = _told(judgement, {"debug": ("the debug build", "the release build")})
    if not told:
        return Answer(question, "Not measured: the debug build is not here; `make peers` builds it.", ())
    return Answer(
        question,
        " ".join(told.values()),
        tuple(judgement.judged[name] for name in told),
        estimand=ESTIMAND,
        not_concluded=("What a debug build of another program costs.",),
        titles={measure: f"Rust in debug and in release: {end}" for measure, end in TITLES.items()},
        to_decide=to_decide(judgement, list(told)),
    )


def _pool(cells: TableJudged) -> Answer:
    first, *details = _of_languages(cells, "pool", ("response_ms", "cpu_us", "cpu_percent", "memory_mib"))
    return Answer(
        f"What do {MANY} threads change, compared with {FEW}?",
        first,
        (),
        details=tuple(details),
        estimand="geometric mean over connections, GET and PUT; one server at a time",
        not_concluded=("What a pool gains where a request waits.",),
        figure="response_get",
    )


def _of_languages(cells: TableJudged, name: str, quantities: Sequence[str]) -> Iterator[str]:
    """Sentences, one for each quantity. A sentence has a ratio for every measured language. ``name``: first words of
    the ratios' names.
    """
    for quantity in quantities:
        found = (cells.judged.get(f"{name}_{quantity}_{language}") for language in LANGUAGES)
        told = "; ".join(words(each) for each in found if each is not None)
        yield f"{QUANTITIES[quantity].capitalize()}: {told or 'not measured'}."


def _connections(cells: TableJudged) -> Answer:
    first, *details = _of_languages(cells, "connections", ("cpu_us", "connect_ms", "processing_ms", "cpu_percent"))
    return Answer(
        "What do 1,000 connections cost, compared with 10?",
        first,
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
        "With three kinds of request at once, does every key end with the value of a writer?",
        f"{errors} errors in {samples:,} requests; {right:,} of {right + wrong:,} keys are as they should be.",
        (),
        estimand="every key read after the load, one by one; an updated key must have one of its two values, whole",
        not_concluded=("That there is no race: a test with Go's race detector looks for that.",),
        figure="stress",
    )
