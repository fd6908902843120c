"""The numbers of the document, and the study's sweep and cold runs of SayHello over gRPC.

The document timed ``SayHello`` of gRPC's C++ example with ``std::chrono::high_resolution_clock``, in containers on the
author's machine. The document's numbers are context, since they were measured on another machine. The docstring of each
number has the unit of the number, and its place in the document.

In a window a fresh load program makes 1000 calls for each client, as the original's program did. Client and server are
in one language: C++, as in the original, or Python with grpcio. So C++ ÷ Python compares clients and servers together.
The two servers are also compared under the same client: our lean client, which uses no gRPC library.

Each language has four loads: one client, two clients, one asynchronous client, and one asynchronous client with ten
calls under way. A client's program measures the client's rate and processor time. Each language has an A/A pair with
two clients, the largest load. Both servers of the pair carry all other loads too. Where the peer of a language is not
built, the language and its comparisons are left out.

A cold run makes the same 1000 calls, and times three things separately: connecting, the first call and the other calls.
"""

from collections.abc import Sequence
from dataclasses import replace

from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.setting import Setting, setting
from experiments.design.sweep import BLOCKS_MIN, Sweep, Windows
from experiments.kinds.cold import ColdCell, ColdPlan
from experiments.studies.study import Scale

LATENCY_MS = (1.0, 2.0)
"""Question 1: least and greatest round-trip time of one call of one client, in ms."""

ONE_CLIENT_HZ = 3600.0
"""Question 2: throughput with one client, in messages a second. The document says "about"."""

TWO_CLIENTS_HZ = 3300.0
"""Question 2: throughput with two clients, in messages a second. The document says "about". One of the two clients
printed this rate."""

TERMINAL_HZ = 3297.24
"""Question 2: throughput in messages a second, from the last line of one client's terminal: 1000 calls ÷ the time of
the loop."""

CALLS = 1000
"""Question 3: number of calls that a client made in the timed loop."""

CLIENTS = (1, 2)
"""Question 2: numbers of clients at the same time. A client was a program in its own terminal."""


def implied_ms() -> float:
    """Time of a call, in ms, that follows from the throughput with one client. One call at a time takes 1 ÷ rate."""
    return 1000 / ONE_CLIENT_HZ


HEADLINE = "headline"

PEER = "cpp-greeter"
"""Name of the peer (program in another language) that every arm in C++ uses."""

LABELS = {"cpp": "C++", "python": "Python"}
"""Names of the languages in texts, by language, in the order of tables and figures."""

IN_FLIGHT = 10
"""Number of calls that an asynchronous client has under way at once, in the load with several calls."""

COLD_RUNS = 3
"""Number of cold runs of each cell in a block. A block has several, since the time of a first call varies."""

_GREETER = setting(service="greeter", transport="grpc", mix="say-hello")

ONE = {each: _GREETER.but(language=each, client="peer") for each in LABELS}
"""Setting of one client with one call at a time, by language. Client and server have the same language."""

TWO = {language: of.but(clients=2) for language, of in ONE.items()}
"""Setting of two clients, each with one call at a time, by the language of clients and server."""

SAME_CLIENT = {each: _GREETER.but(language=each, client="lean") for each in LABELS}
"""Setting of a server under our lean client, by the server's language."""

LIBRARY = _GREETER.but(client="library")
"""Setting of our load client on grpcio. A table has the cold runs of this client beside the cold runs of the Python
program."""


def asynchronous(language: str, in_flight: int = 1) -> Setting:
    """Setting of one asynchronous client, with ``in_flight`` calls under way."""
    return ONE[language].but(call_style="async", in_flight=in_flight)


def languages(scale: Scale) -> tuple[str, ...]:
    """Languages whose programs are built here."""
    return tuple(each for each in LABELS if each == "python" or PEER in scale.peers)


def greeter(scale: Scale) -> Sweep:
    """Sweep of the comparisons within each language, and of C++ ÷ Python where the C++ peer is built here."""
    own, groups, comparisons = languages(scale), list[Group](), list[Comparison]()
    for added, asked in (*map(_within, own), *([_between()] if len(own) > 1 else [])):
        groups += added
        comparisons += asked
    loaded, turns = equally_loaded(groups, comparisons), Windows(calls=CALLS, duration_s=0.3)
    return Sweep("greeter", "greeter", loaded, tuple(comparisons), scale.rounds, scale.looks, scale.seed, turns)


def cold(scale: Scale) -> ColdPlan:
    """Plan of the cold runs of each language's program, and of our grpcio client."""
    runs, blocks = (1, 1) if scale.looks[-1] < BLOCKS_MIN else (COLD_RUNS, scale.looks[0])
    cells = [ColdCell(each, CALLS, runs) for each in (*(ONE[language] for language in languages(scale)), LIBRARY)]
    return ColdPlan("greeter", "greeter", tuple(cells), blocks, scale.seed)


def _within(language: str) -> tuple[Sequence[Group], Sequence[Comparison]]:
    """Groups and comparisons of one language: two clients ÷ one client, asynchronous ÷ synchronous calls, several calls
    under way ÷ one call, and an A/A pair."""
    name, one, pair = LABELS[language], Arm(ONE[language]), Arm(TWO[language])
    called_back, several = Arm(asynchronous(language)), Arm(asynchronous(language, IN_FLIGHT))
    same, _, again = twins(pair.setting, "same")
    by_clients = f"{name}: 2 ÷ 1 clients"
    by_style = f"{name}: asynchronous ÷ synchronous, one call at a time"
    at_once = f"{name}, asynchronous: {IN_FLIGHT} calls under way ÷ 1, time per reply"
    comparisons = (
        Comparison(f"clients_{language}", by_clients, pair, one, ("clients",), "growth", family=HEADLINE),
        Comparison(f"style_{language}", by_style, called_back, one, ("call_style",), family=HEADLINE),
        Comparison(
            f"in_flight_{language}", at_once, several, called_back, ("in_flight",), measure="wall", family=HEADLINE
        ),
        same,
    )
    return (Group((one, pair, again)), Group((one, called_back, several))), comparisons


def _between() -> tuple[Sequence[Group], Sequence[Comparison]]:
    """Groups and comparisons of C++ ÷ Python: for both ends together, and for the server alone."""
    cpp, python = (Arm(ONE[each]) for each in LABELS)
    cpp_served, python_served = (Arm(SAME_CLIENT[each]) for each in LABELS)
    differ, by_end, by_server = (
        ("language", "executor"),
        "Client and server: C++ ÷ Python",
        "The server, same client: C++ ÷ Python",
    )
    ends = Comparison("language", by_end, cpp, python, differ, family=HEADLINE)
    server = Comparison("server", by_server, cpp_served, python_served, differ, family=HEADLINE)
    of_cpu = f"{by_end}, processor time of the server"
    cpu = replace(ends, name="language_cpu", title=of_cpu, measure="cpu", family="further")
    return (Group((cpp, python)), Group((cpp_served, python_served))), (ends, server, cpu)
