"""Answers to the study's five questions, and report sections on graphs, receivers, throughput and lines of code.

The functions are pure.
"""

from dataclasses import replace

from experiments.judge.delivery import DeliveryRatio, ratios
from experiments.judge.verdicts import Judgement
from experiments.show.content import Answer, Section, Seen
from experiments.show.numbers import NOTHING, has_interval, number, ratio_words, times_between, value_words
from experiments.show.sentences import to_decide
from experiments.show.tables import Table
from experiments.studies.sockets import design
from experiments.studies.sockets.design import APIS, BASE, GRAPHS, HEADLINE, NAMES, RATES, of, throughput_of, words
from experiments.studies.sockets.figures import SOONEST, fault_table, spread_table
from experiments.studies.sockets.wording import ABSENT, brief, delivered, over_cells, reported, standing

NOT_CONCLUDED = (
    "How the APIs compare between two machines: here all programs are on one machine.",
    "How the APIs compare with many clients, with other patterns, or with other options.",
    "How the APIs compare on more cores: each side has one core.",
    "How our times compare with the document's: machines and versions differ.",
)

THROUGHPUT_PAIRS = (("nanomsg", BASE), ("nanomsg", "zeromq"), ("zeromq", BASE), ("nng", "nanomsg"))


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to the questions of the main part, and to the question on Python bindings where the bindings were
    measured."""
    beside = seen.after.get("socket_bindings")
    also = () if beside is None else (replace(_compared(ON_BINDINGS, beside), deciding=()),)
    return (_soonest(seen), _timer(seen), _most(seen), _lines(), *also)


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections of graphs, tables, and the document's faults."""
    return (
        Section("Graphs 1 to 4", GRAPHS_TEXT, tuple(f"graph_{number}" for number in GRAPHS.values())),
        Section("Times at the receivers", timer_table(seen)),
        Section("Throughput", throughput_table(seen), ("graph_5",)),
        Section("Table 2", Table(design.HEAD, tuple(design.table()), notes=(LINES_NOTE,)).markdown),
        Section("Spread of samples, and interval of the mean", spread_table(seen.main)),
        Section("Faults of the document, by our own data", fault_table(seen)),
    )


GRAPHS_TEXT = (
    "The document's axes: the APIs, and response time. The left panel has the time at the client, the right panel the "
    "time by the document's timer. The text of the document has no numbers for its graphs, so its bars are not drawn."
)

LINES_NOTE = (
    "Lines of the measured C programs, between the marks of each step; blank lines and comments are not counted. Each "
    "program checks its errors. The document's way to count is not known."
)


ON_BINDINGS = "What does a library cost from Python, beside C and beside sockets in Python?"


def patterns(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``socket_patterns``: time with the pattern pair ÷ time with the pattern request-reply."""
    return (_compared("Does an exclusive pair answer sooner than request-reply?", seen.main),)


def bindings(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``socket_bindings``: libraries called from Python, compared with the same libraries in C and
    with sockets in Python."""
    return (_compared(ON_BINDINGS, seen.main),)


def _compared(question: str, judgement: Judgement) -> Answer:
    """Answer that lists every comparison of a part, without its A/A pairs."""
    names = [each.name for each in judgement.sweep.comparisons if each.kind != "same"]
    deciding = tuple(judgement.judged[name] for name in names if name in judgement.judged)
    told = " ".join(map(brief, deciding)) or ABSENT
    return Answer(question, told, deciding, estimand=ESTIMAND, to_decide=to_decide(judgement, names))


ESTIMAND = (
    "response time at the client, from the send to the whole reply. The ratio is that of typical pairs of neighbouring "
    "windows. Each client's first call is left out."
)


def _soonest(seen: Seen) -> Answer:
    judgement = seen.main
    pairs = [(above, BASE) for above in APIS if above != BASE] + [("nanomsg", "zeromq"), ("nng", "nanomsg")]
    deciding = tuple(judgement.comparisons(HEADLINE))
    further = tuple(each for pair in pairs for each in over_cells(judgement, *pair) if each not in deciding)
    size = judgement.judged.get("size")
    names = [each.name for each in judgement.sweep.comparisons if each.family == HEADLINE]
    return Answer(
        question="Which API answers soonest, at each rate and size?",
        sentence=" ".join(standing(judgement, *pair) for pair in pairs[:2]),
        deciding=deciding,
        further=(*further, *((size,) if size is not None else ())),
        details=(*(standing(judgement, *pair) for pair in pairs[2:]), brief(size)),
        estimand=ESTIMAND,
        not_concluded=NOT_CONCLUDED,
        figure=SOONEST,
        to_decide=to_decide(judgement, names),
    )


def _timer(seen: Seen) -> Answer:
    question = "How much of the document's response time is waiting for the next message to arrive?"
    told = []
    for rate_hz in RATES:
        of_rate = [of(api, *cell) for cell in GRAPHS if cell[0] == rate_hz for api in APIS]
        cycles, true = (
            [each.value for at in of_rate if (each := reported(seen, at, column))]
            for column in ("cycle_us", "response_us")
        )
        if cycles and true:
            told.append(
                f"At {rate_hz:g} messages a second the document's timer reads {_between(cycles)} ms, whatever the API "
                f"and size. A message is due every {1000 / rate_hz:.3g} ms. At the client a message takes "
                f"{_between(true)} ms."
            )
    return Answer(question, " ".join(told) or "Not measured.", (), figure="graph_1")


def _between(values_us: list[float]) -> str:
    least, most = number(min(values_us) / 1000), number(max(values_us) / 1000)
    return least if least == most else f"{least} to {most}"


def _most(seen: Seen) -> Answer:
    question = "Which API carries the most messages of 100 KB a second?"
    told = [ratio_told(each) for each in throughput_ratios(seen)]
    return Answer(question, " ".join(told) or "Not measured.", (), figure="graph_5")


def throughput_ratios(seen: Seen) -> tuple[DeliveryRatio, ...]:
    """Ratios of throughputs, one for each measured pair of APIs. Holm's correction covers all these ratios."""
    pairs = [(throughput_of(above), throughput_of(below)) for above, below in THROUGHPUT_PAIRS]
    return ratios(delivered(seen).rows, pairs, lambda row: row.received_hz)


def ratio_told(each: DeliveryRatio) -> str:
    """Sentence on a ratio: ``nanomsg carries 0.42 times as many as Berkeley sockets, 0.38 to 0.46.``"""
    above, below = (NAMES[setting.text("transport")] for setting in (each.above, each.below))
    value, ends = ratio_words(each.ratio)
    apart = "" if each.differs else " These blocks do not show a difference."
    return f"{above} carries {value} times as many messages as {below}{f', {ends}' * has_interval(each.ratio)}.{apart}"


def _lines() -> Answer:
    totals = ", ".join(f"{NAMES[api]} {sum(design.counted(api).values())}" for api in APIS)
    question = "How many lines of C does each API take to create, connect, send, receive and close?"
    return Answer(question, f"Counted in the programs that were measured: {totals}.", ())


def timer_table(seen: Seen) -> str:
    """Table with a row for each API, rate and size. A row has the time by the document's timer, the time that the
    receiver takes to answer, and the response time at the client.
    """
    found = []
    for cell in GRAPHS:
        for api in APIS:
            columns = (("cycle_us", 1000), ("answer_us", 1), ("response_us", 1))
            times = [(reported(seen, of(api, *cell), column), unit) for column, unit in columns]
            if times[0][0] is not None:
                shown = (value_words(each.over(unit)) if each else NOTHING for each, unit in times)
                found.append((NAMES[api], words(*cell), *shown))
    head = ("API", "messages", "document’s timer, ms", "answering, µs", "response at the client, µs")
    note = (
        "The document’s timer begins before the receive, so its time contains the wait for the next message. "
        "Answering is the time from the arrival of a message until its reply was sent. 95 % intervals over blocks."
    )
    return Table(head, tuple(found), 2, (note,)).markdown


def throughput_table(seen: Seen) -> str:
    """Table with a row for each API. A row has the throughput in messages a second and in MB/s, the numbers of messages
    in the slowest and in the fastest second, and the number of counted seconds.
    """
    found = []
    for api in APIS:
        at = throughput_of(api)
        if rate := reported(seen, at, "received_hz"):
            seconds = [count for row in delivered(seen).rows if row.cell.setting == at for count in row.seconds]
            counts = (f"{each:,}" for each in (min(seconds), max(seconds), len(seconds)))
            megabytes = number(rate.value * at.whole("size") / 1e6)
            found.append((NAMES[api], number(rate.value), times_between(rate, 1), megabytes, *counts))
    head = ("API", "messages a second", "95 % interval", "MB/s", "slowest second", "fastest second", "seconds")
    note = "Messages are counted at the receiver, in whole seconds. A client sends as fast as it can. No reply comes."
    return Table(head, tuple(found), 1, (note,)).markdown
