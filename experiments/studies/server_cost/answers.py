"""Answers, figures and tables of the parts ``server_cost``, ``languages`` and ``options``. Pure functions.

Modules of other parts also use the functions that make tables, and the rows and panels of figures.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from experiments.design.arms import Arm
from experiments.judge.points import points
from experiments.judge.standalone import LoneJudged, StandaloneJudged
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ALL
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import costs
from experiments.show.figures.style import Picture, label
from experiments.show.numbers import NOTHING, percent
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.show.tables import Table
from experiments.studies.server_cost.goals import Goal, connections, estimate, goals, option_goals
from experiments.studies.server_cost.split import CLIENT, NAMES, QUANTITY, speed
from experiments.studies.server_cost.sweeps import CONNECTIONS, OTHERS

ESTIMAND = (
    "processor time of the server process, all its threads, for each request answered. The load is a closed loop on "
    f"{CONNECTIONS} kept connections. Ratios are typical of pairs of neighbouring slices."
)

NOT_MEASURED = "Not measured."

NO_CLIENT = "No request is sent: idle connections"

OPTIONS = {
    "tls": "over TLS",
    "token": "on a connection that showed a token",
    "metrics": "on a server with metrics",
    "store": "from a store on disk",
}
"""Texts for a Lookup with an option, by the name of the comparison in the part ``options``."""

NOT_CONCLUDED = (
    "What a request costs with fewer connections.",
    "What it costs on a machine with other cores or another kernel.",
)


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers of the part ``server_cost``: gRPC compared with sockets, and a Lookup compared with a bare echo."""
    return _transport(seen.main), _service(seen.main)


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections with the tables of goals and of arms. A further section has the table of servers alone, where servers
    were measured alone.
    """
    told = (goal_section(goals(seen.main, _servers(seen))), *arms(seen))
    return (*told, Section("Servers by themselves", alone_table(_servers(seen)))) if _servers(seen) else told


def goal_section(all_goals: Iterable[Goal]) -> Section:
    """Section with a table of goals. A line has the goal, its bound, its measurement and its state."""
    lines = tuple((each.part, each.bound, each.shown, each.said) for each in all_goals)
    head = ("what", "goal", "measured, with interval", "the goal is")
    return Section("Goals", Table(head, lines, texts=4).markdown)


def _servers(seen: Seen) -> Sequence[LoneJudged]:
    """Judgement of each server that was measured alone. Empty where no server was measured alone."""
    return (seen.of(StandaloneJudged) or StandaloneJudged()).servers


def arms(seen: Seen) -> tuple[Section, ...]:
    """Section with the processor time of a request on each arm. An arm is a server under a load."""
    return (Section("Arms", arm_table(seen.main)),)


def panels_of_times(
    judgement: Judgement, arms: Sequence[Arm], quantity: str, titles: Mapping[int, str], name: Callable[[Arm], str]
) -> list[costs.Panel]:
    """Panels with the mean response times of arms, a panel for each number of connections.

    ``quantity``: label of the axis. ``titles``: titles of the panels, by the number of connections. ``name``: gives the
    label of an arm.
    """
    own = {number: [arm for arm in arms if arm.connections == number] for number in titles}
    times = {number: costs.rows_of(judgement, of, name, attrgetter("mean_us")) for number, of in own.items()}
    return [costs.Panel(quantity, times[number], title) for number, title in titles.items()]


def _panel(seen: Seen, quantity: str, name: Callable[[Arm], str]) -> costs.Panel:
    """Panel of a figure: the processor time of a request on every arm."""
    arms = (arm for arm in seen.main.sweep.arms if not arm.copy)
    return costs.Panel(quantity, costs.rows_of(seen.main, arms, name), CLIENT + speed(seen.environment))


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the processor time of a request on each arm, and of the processor time of idle servers."""
    idle = [
        costs.Row(f"{label(transport)}, {connections(held.connections)}", transport, held.idle_share.over(0.01))
        for lone in _servers(seen)
        for transport in (lone.server.setting.text("transport"),)
        for held in lone.holding
    ]
    panels = [_panel(seen, "Processor time of the server for each request, µs", _name)]
    panels += [costs.Panel("Processor time of an idle server, % of a core", idle, NO_CLIENT)] if idle else []
    return (costs.picture("cost", "What a request costs the server, and what idling costs", panels),)


def of_languages(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the processor time of a Lookup on servers in several languages."""
    panel = _panel(seen, QUANTITY, _server)
    return (costs.picture("languages", "What a Lookup costs servers in Python, Go and Rust", [panel]),)


def languages(seen: Seen) -> tuple[Answer, ...]:
    """Answers on two questions: the processor time that gRPC's protocol and implementation cost, and the processor time
    on servers in Go and Rust, compared with our server in Python.
    """
    apart = "What does gRPC's protocol cost the server, and what does its implementation?"
    python = "What does Python cost: the same service in Go and in Rust?"
    said = {
        each.name: (f"a Lookup on {_server(each.above)}", f"one on {_server(each.below)}")
        for each in seen.main.sweep.comparisons
    }
    ours = {name: said[name] for name in ("protocol", "implementation")}
    others = {name: said[name] for name in OTHERS if name in said}
    not_concluded = (
        "That the language makes the difference: the libraries differ too, grpc-go and tonic.",
        "What each server takes at full load.",
        *NOT_CONCLUDED,
    )
    return (
        _answer(seen.main, apart, ours, NOT_CONCLUDED, "languages"),
        _answer(seen.main, python, others, not_concluded, "languages"),
    )


def options(seen: Seen) -> tuple[Answer, ...]:
    """Answer on the processor time that each option costs."""
    question = "What do TLS, a token, metrics and a store on disk cost the server in processor time?"
    said = {name: (f"a Lookup {words}", "one without") for name, words in OPTIONS.items()}
    not_concluded = (
        "What a new connection costs: the TLS handshake and the token come once, before the counted requests.",
        "What a Trade costs on the disk: a Lookup writes nothing.",
    )
    return (_answer(seen.main, question, said, not_concluded, "options"),)


def of_options(seen: Seen) -> tuple[Picture, ...]:
    """Figure of the processor time of a Lookup with each option, and without options."""
    names = {each.above: OPTIONS[each.name] for each in seen.main.sweep.comparisons if each.name in OPTIONS}
    panel = _panel(seen, QUANTITY, lambda arm: f"a Lookup {names.get(arm, 'without any')}")
    return (costs.picture("options", "What TLS, a token, metrics and a store on disk cost a Lookup", [panel]),)


def with_goals(seen: Seen) -> tuple[Section, ...]:
    """Sections of the options' goals, and of the arms."""
    return goal_section(option_goals(seen.main)), *arms(seen)


def _answer(
    judgement: Judgement,
    question: str,
    said: Mapping[str, tuple[str, str]],
    not_concluded: tuple[str, ...],
    figure: str | None = None,
) -> Answer:
    """Answer with a sentence for each comparison that has a value. ``said``: texts for both arms of each comparison, by
    the comparison's name."""
    found = {name: judgement.judged[name] for name in said if name in judgement.judged}
    return Answer(
        question,
        " ".join(ratio_sentence(each, *said[name]) for name, each in found.items()) or NOT_MEASURED,
        tuple(found.values()),
        estimand=ESTIMAND,
        not_concluded=not_concluded,
        figure=figure if found else None,
        to_decide=to_decide(judgement, [*said]) if said else None,
    )


def _server(arm: Arm) -> str:
    """Name of an arm's server: ``grpcio``, ``grpc-go (Go)``."""
    names = {("go", "grpc"): "grpc-go (Go)", ("rust", "grpc"): "tonic (Rust)"}
    own = NAMES[arm.setting.text("transport")]
    return names.get((arm.setting.text("language"), arm.setting.text("transport")), own)


def _name(arm: Arm) -> str:
    """Label of an arm: ``Lookup on gRPC, static pool``."""
    what = arm.setting.text("mix").capitalize()
    return f"{what} on {label(arm.setting.text('transport'))}, {arm.setting.executor}"


def _lookup_on(arm: Arm) -> str:
    """Words for an arm inside a sentence: ``a Lookup on gRPC with the static pool``."""
    return f"a Lookup on {label(arm.setting.text('transport'))} with the {arm.setting.executor}"


def arm_table(judgement: Judgement) -> str:
    """Table of the processor time of a request on each arm: the geometric mean over blocks, with its 95 % interval."""
    lines = []
    for (arm, request), point in points(judgement.sweep, judgement.blocks).items():
        if request == ALL and point.server_cpu_us:
            load = NOTHING if point.load_share is None else f"{percent(point.load_share)} of its core"
            lines.append((arm.name, estimate(point.server_cpu_us, "µs"), load))
    return Table(("arm", "processor time a request", "load side"), tuple(lines), texts=1).markdown


def alone_table(alone: Sequence[LoneJudged]) -> str:
    """Table of start-up, memory and idle processor time of servers alone, with 95 % intervals over repetitions."""
    lines = []
    for lone in alone:
        for held in lone.holding:
            ready = NOTHING if held.connections else estimate(lone.ready_ms, "ms")
            added = estimate(held.added_mib, "MiB") if held.connections else NOTHING
            resident = estimate(held.resident_mib, "MiB")
            idle = percent(held.idle_share.value)
            lines.append((str(lone.server.setting), f"{held.connections:,}", ready, resident, added, idle))
    head = ("server", "connections held", "ready after", "memory", "added by them", "idle, of a core")
    note = (
        "Memory is the resident memory of the process. Shared pages count fully; the kernel's memory of sockets does "
        "not count. Each connection had made one call."
    )
    return Table(head, tuple(lines), notes=(note,)).markdown


def _transport(judgement: Judgement) -> Answer:
    answer = _answer(
        judgement,
        "How much more processor time does a request cost the server on gRPC than on sockets?",
        {"transport": ("a Lookup on gRPC with sockets' executor", "a Lookup on sockets")},
        NOT_CONCLUDED,
        "cost",
    )
    further = tuple(judgement.judged[name] for name in ("as_started", "executor") if name in judgement.judged)
    sides = ((each, map(_lookup_on, (each.comparison.above, each.comparison.below))) for each in further)
    return replace(answer, further=further, details=tuple(ratio_sentence(each, *words) for each, words in sides))


def _service(judgement: Judgement) -> Answer:
    transports = {"service_sockets": "sockets", "service_grpc": "gRPC"}
    return _answer(
        judgement,
        "What does the stock service cost beyond its transport?",
        {name: (f"a Lookup on {on}", f"a bare echo on {on}") for name, on in transports.items()},
        ("What a Trade costs, or a Lookup among very many stocks.",),
    )
