"""The answers to the study's questions, and the replication card: every claim, judged by our data. Pure functions.

The document asks three questions. Question 1 is on the round trip of one client. Question 2 is on the throughput with
one client and with two clients. Question 3 is on the document's way of measuring. Here question 3 becomes two
questions: wall clock or processor time, and synchronous or asynchronous calls. The fifth question, C++ or Python, is
this project's own.

The document's programs are in C++. So our measurements of the programs in C++ decide a claim. The text also has the
measurements of the programs in Python. Verdicts on comparisons decide the claims about comparisons. Claims about clocks
and first calls are decided by an interval of 95 % over blocks, once the sweep is at a look (a declared number of
blocks). A claim about the document's machine alone is NOT TESTABLE. A claim that needs C++ is NOT TESTABLE where the
C++ peer is not built.
"""

from collections.abc import Callable, Iterable, Mapping

from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.show.content import Answer, Claim, ClaimVerdict, Entry, Finding, Seen, decided
from experiments.show.numbers import number, value_words
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.studies.greeter import design
from experiments.studies.greeter.design import IN_FLIGHT, LABELS, ONE, TWO
from experiments.studies.greeter.figures import NOT_MEASURED, all_from_cold, brief, by_language, cold_runs, milliseconds


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to all five questions, in order."""
    main = seen.main
    return _asked_round_trip(seen), _throughput(main), _clocks(main), _style(main), _language(main)


def _asked_round_trip(seen: Seen) -> Answer:
    told = [
        f"In {name} a call takes {milliseconds(run.rest_us)} once it is warm. The first call of a fresh client takes "
        f"{milliseconds(run.first_us)}, and connecting before it {milliseconds(run.connect_us)}."
        for name, run in all_from_cold(seen).items()
    ]
    little = (
        f"In {name}, with one call at a time, rate × mean time is {number(found.rate_times_response.value)}. "
        f"So {value_words(found.total_hz, '/s')} and {milliseconds(found.response_us)} are the same number in two "
        "forms."
        for name, found in by_language(seen.main, ONE).items()
    )
    return Answer(
        "How long is the round trip of a message between one client and one server?",
        " ".join(told) or "No cold run passed the gates.",
        (),
        details=tuple(little),
        estimand=(
            f"means over runs of {design.CALLS} calls. Each run has a fresh client program; the server is warm. "
            "Intervals are 95 % intervals over blocks"
        ),
        not_concluded=(
            "The round trip between two machines: here client and server are on one machine, over the loopback.",
            "The cost of a connection where names are looked up, or TLS is spoken.",
        ),
        figure="first_call",
    )


def _throughput(judgement: Judgement) -> Answer:
    ones, pairs, told = by_language(judgement, ONE), by_language(judgement, TWO), list[str]()
    asked = {f"clients_{language}": (f"2 clients in {name}", "1 client") for language, name in LABELS.items()}
    deciding, said = _told(judgement, asked)
    for language, name in LABELS.items():
        if name in ones and name in pairs:
            told.append(
                f"In {name} the server answers {value_words(ones[name].total_hz, '/s')} with one client. With two, "
                f"each client gets {value_words(pairs[name].client_hz, '/s')}, and the server answers "
                f"{value_words(pairs[name].total_hz, '/s')}."
            )
        told.append(said.get(f"clients_{language}", ""))
    return Answer(
        "What is the throughput of one server with one client, and with two?",
        " ".join(filter(None, told)) or NOT_MEASURED,
        deciding,
        estimand="replies a second: of each client, over its time; of the server, over the time of both clients",
        not_concluded=(
            "The largest throughput of a server: two clients that wait for each reply are too small a load.",
            "The throughput of two clients on a core each: here both clients share one core, and the server has the "
            "other core.",
        ),
        figure="throughput",
        to_decide=to_decide(judgement, list(said)),
    )


def _clocks(judgement: Judgement) -> Answer:
    told = [
        f"In {name}, with one client, a reply takes {value_words(found.wall_us, ' µs')} by the wall clock. It takes "
        f"{value_words(found.client_cpu_us, ' µs')} of processor time in the client, and "
        f"{value_words(found.server_cpu_us, ' µs')} in the server."
        for name, found in by_language(judgement, ONE).items()
    ]
    return Answer(
        "Does it matter if a timer reads the wall clock or the processor time?",
        " ".join(told) or NOT_MEASURED,
        (),
        estimand="time for each reply; processor time is that of a whole process, with gRPC's own threads",
        not_concluded=("Processor time in the kernel for interrupts: the time of a program does not contain it.",),
        figure="clocks",
    )


def _style(judgement: Judgement) -> Answer:
    asked = {}
    for language, name in LABELS.items():
        asked[f"style_{language}"] = (f"an asynchronous call in {name}", "a synchronous one")
        asked[f"in_flight_{language}"] = (f"{IN_FLIGHT} asynchronous calls at once in {name}", "one at a time")
    deciding, said = _told(judgement, asked)
    return Answer(
        "Which calls are faster: synchronous or asynchronous?",
        " ".join(said.values()) or NOT_MEASURED,
        deciding,
        estimand=(
            "with one call at a time: the mean time of a call. With several calls at once: the wall-clock time for "
            "each reply, 1 ÷ rate"
        ),
        not_concluded=(
            "That an asynchronous call is answered sooner: the higher rate comes from more calls at once.",
            "The cost of Python's futures: its asynchronous client is asyncio's. C++'s client uses a completion queue.",
        ),
        titles={
            "response": "Greeter on gRPC, mean time of a call, one at a time: asynchronous ÷ synchronous",
            "wall": f"Greeter on gRPC, asynchronous, time for each reply: {IN_FLIGHT} calls under way ÷ 1 call",
        },
        to_decide=to_decide(judgement, list(said)),
    )


def _language(judgement: Judgement) -> Answer:
    deciding, said = _told(
        judgement,
        {
            "language": ("a call with both ends in C++", "one with both in Python"),
            "server": ("a call of our lean client to the C++ server", "one to the Python server"),
        },
    )
    further, of_cpu = _told(judgement, {"language_cpu": ("a call in C++", "one in Python")})
    return Answer(
        "Which language is faster: C++ or Python?",
        " ".join(said.values()) or NOT_MEASURED,
        deciding,
        further,
        tuple(of_cpu.values()),
        "the mean time of a synchronous call of one client",
        ("That the language alone makes the difference: the executor differs too.",),
        titles={"response": "Greeter on gRPC, mean time of a call: C++ ÷ Python"},
        to_decide=to_decide(judgement, list(said)) if said else None,
    )


def _told(judgement: Judgement, asked: Mapping[str, tuple[str, str]]) -> tuple[tuple[Judged, ...], dict[str, str]]:
    """Comparisons that have a value, and a sentence on each of these comparisons, by the comparison's name. ``asked``:
    texts for the two arms of each comparison, by the comparison's name.
    """
    found = {name: judgement.judged[name] for name in asked if name in judgement.judged}
    return tuple(found.values()), {name: ratio_sentence(each, *asked[name]) for name, each in found.items()}


_LATENCY = f"{design.LATENCY_MS[0]:g} to {design.LATENCY_MS[1]:g} ms"

_CONTEXT = "Another machine: context only."


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the document's order."""
    return tuple(entry.claim(seen) for entry in ENTRIES)


def _of_cpp(finding: Callable[[Seen], Finding]) -> Callable[[Seen], Finding]:
    """Function that gives the result of ``finding`` where arms in C++, the original's language, were measured.
    Otherwise the function gives NOT TESTABLE."""

    def found(seen: Seen) -> Finding:
        has_cpp = any(arm.setting == ONE["cpp"] for arm in seen.main.sweep.arms)
        return finding(seen) if has_cpp else ("NOT TESTABLE", NOT_MEASURED)

    return found


def _round_trip(seen: Seen) -> Finding:
    told = ", ".join(f"{milliseconds(run.as_timed_us)} in {name}" for name, run in all_from_cold(seen).items())
    return "NOT TESTABLE", f"{_CONTEXT} Here a call that connects takes {told}." if told else _CONTEXT


def _one_call_is_the_latency(seen: Seen) -> Finding:
    """Finding on the document's claim that the time of one call is the latency. The document timed one period: a fresh
    client connected, and made its first call. CONTRADICTED where this period, in our cold runs, differs by over 5 %
    from the mean time of the other calls.
    """
    run, beside = (all_from_cold(seen).get(each) for each in LABELS.values())
    if run is None:
        return "INCONCLUSIVE", "No cold run passed the gates."
    said = (
        "Timed as in the document, the first call takes "
        f"{value_words(run.as_timed_over_rest, ' times as long as the other calls of its run')}: "
        f"{milliseconds(run.as_timed_us)} and {milliseconds(run.rest_us)}. "
        f"Without connecting, the factor is {value_words(run.first_over_rest)}."
    )
    if beside is not None:
        said += f" Python: {value_words(beside.as_timed_over_rest, ' times')}."
    return (_same(seen.main, run.as_timed_over_rest) if cold_runs(seen).is_whole else "INCONCLUSIVE"), said


def _one_rate(seen: Seen) -> Finding:
    return _context(
        f"{name} {value_words(found.total_hz, '/s')}" for name, found in by_language(seen.main, ONE).items()
    )


def _two_rate(seen: Seen) -> Finding:
    return _context(
        f"{name} {value_words(found.client_hz, '/s')} each, {value_words(found.total_hz, '/s')} in total"
        for name, found in by_language(seen.main, TWO).items()
    )


def _context(ours: Iterable[str]) -> Finding:
    told = ". ".join(ours)
    return "NOT TESTABLE", f"{_CONTEXT} Here: {told}." if told else _CONTEXT


def _latency_and_rate_agree(seen: Seen) -> Finding:
    """Finding on the claim that the document's latency and rate are of one client. With one call at a time, rate × mean
    time is 1. The product of the document's rate and latency is 3.6 to 7.2. So the claim is CONTRADICTED where the
    product of our rate and mean time is 1 to within 5 %.
    """
    found, hz = by_language(seen.main, ONE).get(LABELS["cpp"]), design.ONE_CLIENT_HZ
    low, high = (hz * each / 1000 for each in design.LATENCY_MS)
    said = f"The document's numbers give {low:.1f} to {high:.1f}; {hz:,.0f}/s would mean {design.implied_ms():.2f} ms."
    if found is None:
        return "INCONCLUSIVE", f"{said} No block of ours passed the gates."
    product = found.rate_times_response
    said = f"One call at a time: rate × mean time is {value_words(product)} here. {said}"
    return ("CONTRADICTED" if _same(seen.main, product) == "CONFIRMED" else "INCONCLUSIVE"), said


def _server_answers_less(seen: Seen) -> Finding:
    """Finding on the claim that the server answers fewer calls a second with two clients than with one client. The
    ratio is the rate of two clients together ÷ the rate of one client. The ratio is under 1 where the latency more than
    doubles.
    """
    return _growth(seen.main, 1, Verdict.SUPERLINEAR, "The server answers")


def _share_falls(seen: Seen) -> Finding:
    """Finding on the claim that each client's share falls with two clients. A client's rate is 1 ÷ latency. The ratio
    is the rate of one of two clients ÷ the rate of a client alone. So the ratio is under 1 where latency grows.
    """
    return _growth(seen.main, 0, Verdict.GROWS, "Each client gets")


def _growth(judgement: Judgement, ruling: int, confirming: Verdict, who: str) -> Finding:
    """Finding on a claim about rates, from the growth of latency. With one call at a time a client's rate is 1 ÷
    latency.

    ``ruling``: index of the ruling that decides the claim, in the comparison's rulings on growth. ``confirming``:
    verdict of this ruling that confirms the claim. ``who``: subject and verb of the sentence on the ratio of rates.
    """
    judged = judgement.judged.get("clients_cpp")
    said = brief(judgement, "clients_cpp", "2 clients", "1 client")
    if judged is None or not judged.rulings:
        return "INCONCLUSIVE", said
    verdict, of = judged.rulings[ruling].verdict, judged.typical.under(judged.rulings[ruling].against)
    said = f"{who} {value_words(of, ' times as many a second')}. {said}"
    return decided(verdict is confirming, verdict is not Verdict.INCONCLUSIVE), said


def _timer_is_a_processor_clock(seen: Seen) -> Finding:
    """Finding on the claim that the document's timer is a processor clock, from the ratio wall-clock time ÷ processor
    time. CONTRADICTED where the two times differ by over 5 %. Never CONFIRMED: the two times are also equal where a
    client computes all the time.
    """
    found, beside = (by_language(seen.main, ONE).get(each) for each in LABELS.values())
    if found is None:
        return "INCONCLUSIVE", "No block passed the gates."
    said = (
        f"The document's timer is the wall clock. A reply takes {value_words(found.wall_us, ' µs')} by the wall clock, "
        f"and {value_words(found.client_cpu_us, ' µs')} of the client's processor time. The first is "
        f"{value_words(found.wall_over_cpu, ' times the second')}."
    )
    if beside is not None:
        said += f" Python: {value_words(beside.wall_over_cpu, ' times')}."
    return ("CONTRADICTED" if _same(seen.main, found.wall_over_cpu) == "CONTRADICTED" else "INCONCLUSIVE"), said


def _calls_are_synchronous(_: Seen) -> Finding:
    return "NOT TESTABLE", (
        "This is a fact of the document's client program: the client waits for each call before the next call. No "
        "measurement here contradicts the claim."
    )


def _server_makes_calls_synchronous(seen: Seen) -> Finding:
    """Finding on the claim that the server makes calls synchronous. CONTRADICTED where the same server answers several
    calls at once at a higher rate than one call at a time."""
    told = brief(seen.main, "in_flight_cpp", f"{IN_FLIGHT} asynchronous calls at once", "one at a time")
    said = f"The same synchronous server answered an asynchronous client. {told}"
    judged = seen.main.judged.get("in_flight_cpp")
    return ("CONTRADICTED" if judged is not None and judged.verdict is Verdict.FASTER else "INCONCLUSIVE"), said


def _same(judgement: Judgement, ratio: Estimate) -> ClaimVerdict:
    """Verdict on the claim that a ratio is 1, to within 5 %. INCONCLUSIVE where the sweep is at no look, or where the
    ratio has too few blocks.
    """
    low, high = judgement.sweep.limits.equivalent_low, judgement.sweep.limits.equivalent_high
    if judgement.look is None or ratio.n < BLOCKS_MIN:
        return "INCONCLUSIVE"
    return decided(low < ratio.low and ratio.high < high, ratio.high < low or ratio.low > high)


ENTRIES: tuple[Entry[Seen], ...] = (
    Entry(f"The round trip between one client and one server takes {_LATENCY}.", _round_trip, place="question 1"),
    Entry(
        "The latency is the time of one call of a client that has just started.",
        _of_cpp(_one_call_is_the_latency),
        place="questions 1 and 3",
    ),
    Entry(
        f"With one client, throughput is about {design.ONE_CLIENT_HZ:,.0f} messages/s.", _one_rate, place="question 2"
    ),
    Entry(
        f"{_LATENCY} and {design.ONE_CLIENT_HZ:,.0f} messages/s are of the same client, with one call at a time.",
        _of_cpp(_latency_and_rate_agree),
        place="questions 1 and 2",
    ),
    Entry(
        f"With two clients, throughput is about {design.TWO_CLIENTS_HZ:,.0f} messages/s "
        f"({design.TERMINAL_HZ:,} on the terminal).",
        _two_rate,
        place="question 2",
    ),
    Entry(
        "So the server answers fewer messages/s with two clients than with one: "
        f"{design.TWO_CLIENTS_HZ / design.ONE_CLIENT_HZ:.2f} times as many.",
        _of_cpp(_server_answers_less),
        place="question 2",
    ),
    Entry(
        "By the rate that a client's program printed, one of two clients gets fewer messages/s than one client alone.",
        _of_cpp(_share_falls),
        place="question 2, terminal",
    ),
    Entry(
        "The timer of C++'s chrono around a call is a CPU clock, since it times the process that runs.",
        _of_cpp(_timer_is_a_processor_clock),
        place="question 3",
    ),
    Entry("The calls are synchronous.", _calls_are_synchronous, place="question 3"),
    Entry(
        "The server's program shows that calls are synchronous: the program registers a synchronous service.",
        _of_cpp(_server_makes_calls_synchronous),
        place="question 3",
    ),
)
"""Every claim, in the document's order."""
