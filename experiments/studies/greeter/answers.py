"""The questions of the study, answered: a sentence, its numbers, and what does not follow. Pure.

The document asks three: the round trip of one client; throughput with one client and with two; and how both were
measured, which is two here: wall clock or processor time, synchronous or asynchronous. The fifth is this project's.
"""

from collections.abc import Iterator

from experiments.judge.verdicts import Judged, Judgement
from experiments.show.content import Answer, Seen
from experiments.show.numbers import number
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.studies.greeter import original
from experiments.studies.greeter.rates import cold_runs, from_cold, rates
from experiments.studies.greeter.sweeps import IN_FLIGHT, LABELS, ONE, two
from experiments.studies.greeter.wording import NOT_MEASURED, microseconds, milliseconds, per_second


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to all five questions, in order."""
    return (_round_trip(seen), _throughput(seen.main), _clocks(seen.main), _style(seen.main), _language(seen.main))


def _round_trip(seen: Seen) -> Answer:
    told = []
    for language, name in LABELS.items():
        run = from_cold(cold_runs(seen).rows, ONE[language])
        if run is not None:
            told.append(
                f"In {name} a call takes {milliseconds(run.rest_us)} once it is warm. The first call of a fresh client "
                f"takes {milliseconds(run.first_us)}, and connecting before it {milliseconds(run.connect_us)}."
            )
    return Answer(
        "How long is the round trip of a message between one client and one server?",
        " ".join(told) or "No cold run counts.",
        (),
        details=tuple(_little(seen.main)),
        estimand=(
            f"means over runs of {original.CALLS} calls, each of a fresh client program; the server is warm. Intervals "
            "are of 95 %, over blocks"
        ),
        not_concluded=(
            "The round trip between two machines: here both ends are on one, over the loopback.",
            "What a connection costs where names are looked up, or TLS is spoken.",
        ),
        figure="first_call",
    )


def _little(judgement: Judgement) -> Iterator[str]:
    for language, name in LABELS.items():
        found = rates(judgement, ONE[language])
        if found is not None:
            yield (
                f"In {name}, with one call at a time, rate × mean time is {number(found.rate_times_response.value)}. "
                f"So {per_second(found.total_hz)} and {milliseconds(found.response_us)} are one number, told twice."
            )


def _throughput(judgement: Judgement) -> Answer:
    told, deciding = [], []
    for language, name in LABELS.items():
        one, pair = rates(judgement, ONE[language]), rates(judgement, two(language))
        if one is not None and pair is not None:
            told.append(
                f"In {name} the server answers {per_second(one.total_hz)} with one client. With two, each client gets "
                f"{per_second(pair.client_hz)}, and the server answers {per_second(pair.total_hz)}."
            )
        if (judged := judgement.judged.get(f"clients_{language}")) is not None:
            told.append(ratio_sentence(judged, f"2 clients in {name}", "1 client"))
            deciding.append(judged)
    return Answer(
        "What is the throughput of one server with one client, and with two?",
        " ".join(told) or NOT_MEASURED,
        tuple(deciding),
        estimand="replies a second, of each client over its own time, and of the server over the time of both",
        not_concluded=(
            "How much a server can answer at most: two clients that wait for each reply are a small load.",
            "What two clients get on cores of their own: here both share one, and the server has the other.",
        ),
        figure="throughput",
        to_decide=to_decide(judgement, [each.comparison.name for each in deciding]),
    )


def _clocks(judgement: Judgement) -> Answer:
    told = []
    for language, name in LABELS.items():
        found = rates(judgement, ONE[language])
        if found is not None:
            told.append(
                f"In {name}, with one client, a reply takes {microseconds(found.wall_us)} by the wall clock. It takes "
                f"{microseconds(found.client_cpu_us)} of processor time in the client, and "
                f"{microseconds(found.server_cpu_us)} in the server."
            )
    return Answer(
        "Wall clock or processor time: does it matter which is read?",
        " ".join(told) or NOT_MEASURED,
        (),
        estimand="for each reply; processor time is of a program's whole process, gRPC's own threads in it",
        not_concluded=("What the kernel does for others: its work on interrupts is in no program's time.",),
        figure="clocks",
    )


def _style(judgement: Judgement) -> Answer:
    told, deciding = [], []
    for language, name in LABELS.items():
        several = f"{IN_FLIGHT} asynchronous calls at once in {name}"
        for kind, above, below in (
            ("style", f"an asynchronous call in {name}", "a synchronous one"),
            ("in_flight", several, "one at a time"),
        ):
            if (judged := judgement.judged.get(f"{kind}_{language}")) is not None:
                told.append(ratio_sentence(judged, above, below))
                deciding.append(judged)
    return Answer(
        "Synchronous or asynchronous calls?",
        " ".join(told) or NOT_MEASURED,
        tuple(deciding),
        estimand=(
            "one call at a time: the mean time of a call. Several at once: the wall clock for each reply, 1 ÷ rate"
        ),
        not_concluded=(
            "That asynchronous calls are answered sooner: more of them are under way at once.",
            "What Python's futures take: its asynchronous client is asyncio's. C++'s is that of a completion queue.",
        ),
        to_decide=to_decide(judgement, [each.comparison.name for each in deciding]),
    )


def _language(judgement: Judgement) -> Answer:
    asked = (
        ("language", "a call with both ends in C++", "one with both in Python"),
        ("server", "a call of our lean client to the C++ server", "one to the Python server"),
        ("language_cpu", "a call in C++", "one in Python"),
    )
    found: list[tuple[Judged, str]] = [
        (judgement.judged[name], ratio_sentence(judgement.judged[name], above, below))
        for name, above, below in asked
        if name in judgement.judged
    ]
    return Answer(
        "C++ or Python?",
        " ".join(said for _, said in found[:2]) or NOT_MEASURED,
        tuple(judged for judged, _ in found[:2]),
        tuple(judged for judged, _ in found[2:]),
        tuple(said for _, said in found[2:]),
        "the mean time of a synchronous call of one client",
        ("That the language alone makes it: the executor differs too.",),
        to_decide=to_decide(judgement, [judged.comparison.name for judged, _ in found[:2]]) if found else None,
    )
