"""The servers of a part with fixed loads, under the numbers of clients that the user gives.

Most parts have fixed loads, such as 16 connections, or the number of calls in the original document. For such a part
``run NAME --clients 1 2 4`` measures the sweep of this module instead of the part's own sweep. Each server of the part
gets its usual requests, in a closed loop, from each number of clients. The latency under the largest number of clients
is compared with the latency under the smallest number. Servers that differ in the transport alone are compared with
each other under the largest number. A load program opens a connection for each client.

Some peers (programs in other languages) have a load program that makes only one client. Where our lean client speaks
the peer's protocol, the lean client replaces the load program. Otherwise the server is left out.

With ``--cluster`` the clients are on other hosts. Then this module measures every part, in windows. Servers that listen
on the loopback alone are left out. Load programs and the peers' own clients are left out too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import median

from clients.load.plan.load_plan import CLIENT_KINDS
from experiments.design.arms import GROUP_ARMS, Arm, Comparison, Group
from experiments.design.factors import FACTORS, LOAD_PROGRAMS
from experiments.design.levels import shown
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep, Windows
from experiments.judge.points import Point, points
from experiments.judge.verdicts import Judged
from experiments.peers import PEER_CLIENT, PEERS, PYTHON, RELEASE, client_takes
from experiments.results.observed import ALL, HostSeen
from experiments.services import SERVICES, STOCK
from experiments.show.content import Answer, Section, Seen
from experiments.show.figures import clients as figure
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, number
from experiments.show.sentences import ratio_sentence
from experiments.show.tables import Table
from experiments.studies.study import Part, Scale
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import TRANSPORTS

SUFFIX = "_clients"
"""Suffix of the names of the parts that this module makes."""

FIGURE = "clients"

LINES_MAX = 6
"""Largest number of lines in a figure."""

FROM_HOSTS, ROUNDS_FROM_HOSTS = Windows(warm_up_s=0.5, duration_s=1.5), 2
"""Windows and number of rounds in a block, where other hosts send the load. The windows are long, since the hosts may
begin up to 0.1 s apart."""

BEYOND = (
    "How the servers compare without the network: each latency includes the round trip to the hosts, and a long round "
    "trip makes all ratios nearly 1."
)
"""Text at the end of each answer where other hosts sent the load. The text says why the ratios tell little about the
servers alone."""

_OWN_LOAD = ("clients", "connections", "rate_hz", "arrivals")
"""Factors of a part's fixed load. The numbers of clients that the user gives replace the levels of these factors."""


def by_clients(name: str, part: Part) -> Part:
    """Part that measures the servers of ``part`` under any numbers of clients. ``name``: the name of ``part``."""
    return Part(
        title=f"{part.title}, by the number of clients",
        sweep=partial(_sweep, name, part),
        answers=_answers,
        clients=part.clients,
        pictures=_pictures,
        sections=_sections,
        peers=tuple(each for each in part.peers if not PEERS[each].client or PEERS[each].transport in TRANSPORTS),
    )


def is_fixed(part: Part, scale: Scale) -> bool:
    """True where the loads of a part do not depend on the scale's numbers of clients."""
    try:
        one, other = (part.sweep(replace(scale, clients=clients)) for clients in ((1, 2), (1, 3)))
    except ValueError:  # the scale has too few blocks to decide anything
        return False
    return one == other


def _sweep(name: str, part: Part, scale: Scale) -> Sweep:
    """Sweep of each server of the part under each number of clients.

    Raises UsageError in two cases: every load program makes only one client, or other hosts send the load but no server
    listens for them. Raises ValueError where no server of the part is built here.
    """
    bases = _bases(part.sweep(replace(scale, peers=frozenset(part.peers))))
    if not bases:
        given = " ".join(map(str, scale.clients))
        raise UsageError("--clients", given, f"none with {name}: the programs of its peers make one client each")
    if scale.hosts and not any(map(_reachable, bases)):
        raise UsageError("--cluster", f"with {name}", "a part with servers of ours under our own load client")
    of = part.sweep(scale)
    bases = tuple(base for base in _bases(of) if not scale.hosts or _reachable(base))
    if not bases:
        raise ValueError(f"{name} has no server here")
    labels, few, most = _labels(bases), min(scale.clients), max(scale.clients)
    groups, comparisons = list[Group](), list[Comparison]()
    for base in bases:
        arms = {clients: Arm(_of(base, clients)) for clients in (few, most, *scale.clients)}
        every = tuple(arms.values())
        groups += [Group(every[at : at + GROUP_ARMS[-1]]) for at in range(0, len(every), GROUP_ARMS[-1])]
        if most > few:
            title = f"{labels[base]}: {most} ÷ {counted(few, 'client')}"
            differ, own = (_factor(base),), f"growth {base}"
            comparisons.append(Comparison(own, title, arms[most], arms[few], differ, "growth", family=own))
    for above, below in _pairs(bases):
        one, other = Arm(_of(above, most)), Arm(_of(below, most))
        groups.append(Group((one, other)))
        title, own = f"{counted(most, 'client')}: {labels[above]} ÷ {labels[below]}", f"transport {above} {below}"
        comparisons.append(Comparison(own, title, one, other, ("transport",), family="transport"))
    rounds, turns = of.rounds, of.turns
    if scale.hosts:
        in_turn = isinstance(turns, Windows) and turns.in_turn
        rounds, turns = ROUNDS_FROM_HOSTS, replace(FROM_HOSTS, in_turn=in_turn)
    part_name = f"{name}{SUFFIX}"
    return Sweep(of.study, part_name, tuple(groups), tuple(comparisons), rounds, scale.looks, of.seed, turns)


def unreachable(part: Part, scale: Scale) -> Sequence[str]:
    """Labels of the part's servers that clients on other hosts cannot load."""
    bases = _bases(part.sweep(scale))
    labels = _labels(bases) if bases else {}
    return [labels[base] for base in bases if not _reachable(base)]


def _reachable(base: Setting) -> bool:
    """True for a server that other hosts can load: a server of this project, under this project's load client, and
    without a price updater. Other servers listen on the loopback alone. The updater runs on this machine alone."""
    ours = base["language"] == PYTHON and base["build"] == RELEASE and base["service"] in (STOCK, *SERVICES)
    return ours and base["transport"] in TRANSPORTS and base["client"] in CLIENT_KINDS and not base["updater"]


def _pairs(bases: Sequence[Setting]) -> Iterator[tuple[Setting, Setting]]:
    """Pairs of servers that differ in the transport alone. A server on sockets comes first in a pair."""
    for one, other in combinations(bases, 2):
        if one.unlike(other) == ("transport",):
            yield (one, other) if one["transport"] == "sockets" else (other, one)


def _bases(of: Sweep) -> tuple[Setting, ...]:
    """Settings of a sweep's servers, each under one client. Where a server's load program can make only one client, the
    lean client replaces the program, or the server is left out."""
    found = dict.fromkeys(_base(arm.setting) for arm in of.arms if not arm.copy)
    return tuple(base for base in found if base is not None)


def _base(of: Setting) -> Setting | None:
    served = of.text("service"), of.text("language"), of.text("transport")
    one = {name: FACTORS[name].default_among({}) for name in _OWN_LOAD}
    if of["client"] != PEER_CLIENT or client_takes(served, "clients"):
        return of.but(**one)
    if of["transport"] not in TRANSPORTS:
        return None
    return of.but(**one, client="lean", call_style="sync", in_flight=1)


def _factor(base: Setting) -> str:
    return "connections" if base["client"] in LOAD_PROGRAMS else "clients"


def _of(base: Setting, clients: int) -> Setting:
    return base.but(**{_factor(base): clients})


def _labels(bases: Sequence[Setting]) -> Mapping[Setting, str]:
    """Labels of servers, by setting. A label has the transport, and each level in which the servers differ."""
    said = {base: [f"{name}={shown(level)}" for name, level in base.said() if name != "transport"] for base in bases}
    alike = set.intersection(*map(set, said.values()))
    return {
        base: " ".join((base.text("transport"), *(word for word in words if word not in alike)))
        for base, words in said.items()
    }


def _lines(seen: Seen) -> Sequence[figure.Line]:
    """Lines of the figures, one line for each server. The points of a line are in ascending order of clients."""
    sweep = seen.main.sweep
    found = points(sweep, seen.main.blocks)
    labels, of_base = _labels(_bases(sweep)), dict[Setting, list[Point]]()
    for arm in sorted(sweep.arms, key=lambda each: each.connections):
        base = _base(arm.setting)
        if base is not None and (arm, ALL) in found:
            of_base.setdefault(base, []).append(found[arm, ALL])
    ordered = [(base, of_base[base]) for base in labels if base in of_base]
    return [figure.Line(labels[base], base.text("transport"), of) for base, of in ordered]


def _pictures(seen: Seen) -> Sequence[Picture]:
    lines = _lines(seen)
    title = "Mean latency by the number of clients"
    return [
        figure.picture(FIGURE if not at else f"{FIGURE}_{at // LINES_MAX + 1}", title, [figure.Panel("", own)])
        for at in range(0, max(1, len(lines)), LINES_MAX)
        for own in (lines[at : at + LINES_MAX],)
    ]


def _answers(seen: Seen) -> Sequence[Answer]:
    judged = tuple(seen.main.judged.values())
    growths = tuple(each for each in judged if each.comparison.kind == "growth")
    told, beyond = [_growth(each) for each in growths] or list(_means(_lines(seen))), (BEYOND,) * _is_from_hosts(seen)
    question = "How does latency change as clients are added?"
    answers = [Answer(question, " ".join(told), growths, not_concluded=beyond, figure=FIGURE)]
    if others := tuple(each for each in judged if each not in growths):
        sooner = " ".join(_sooner(each) for each in others)
        question = "Which transport answers sooner, under the most clients?"
        answers.append(Answer(question, sooner, others, not_concluded=beyond))
    return answers


def _growth(of: Judged) -> str:
    """Sentence on the growth of a server's latency with the number of clients. The sentence names the server."""
    above, below = (counted(arm.connections, "client") for arm in (of.comparison.above, of.comparison.below))
    return f"On {of.comparison.title.rpartition(': ')[0]}: {ratio_sentence(of, above, below)}"


def _sooner(of: Judged) -> str:
    """Sentence on two transports under one number of clients. The sentence names the transport that answers sooner."""
    clients, _, servers = of.comparison.title.partition(": ")
    return f"With {clients}: {ratio_sentence(of, *servers.split(' ÷ '))}"


def _sections(seen: Seen) -> Sequence[Section]:
    """Section on the hosts that sent the load; empty where this machine sent the load."""
    arms = {arm: list(_shares(seen, place)) for place, arm in enumerate(seen.main.sweep.arms)}
    every = [share for shares in arms.values() for share in shares]
    if not every:
        return ()
    names, within_ms = sorted({share.name for share in every}), [1000 * share.began_within_s for share in every]
    text = (
        f"The load came from the hosts {', '.join(names)}. In a window each host began at most {max(within_ms):.1f} ms "
        f"after the first host (median: {median(within_ms):.1f} ms). Each host's mean latency, µs:"
    )
    labels, lines = _labels(_bases(seen.main.sweep)), list[tuple[str, ...]]()
    for arm, shares in sorted(arms.items(), key=lambda each: (each[0].server, each[0].connections)):
        base = _base(arm.setting)
        assert base is not None
        means = (_mean([share for share in shares if share.name == name]) for name in names)
        lines.append((labels[base], str(arm.connections), *means))
    table = Table(("Server", "Clients on all hosts", *names), tuple(lines), 1)
    return (Section("Hosts that sent the load", f"{text}\n\n{table.markdown}"),)


def _is_from_hosts(seen: Seen) -> bool:
    return any(window.hosts for block in seen.main.blocks for arm in block.arms for window in arm.windows)


def _shares(seen: Seen, place: int) -> Iterator[HostSeen]:
    return (host for block in seen.main.blocks for window in block.arms[place].windows for host in window.hosts)


def _mean(shares: Sequence[HostSeen]) -> str:
    """Text of a host's mean latency, in µs, over all answered requests in the host's windows."""
    answered = [(share.requests, share.mean_us) for share in shares if share.mean_us is not None]
    total = sum(requests for requests, _ in answered)
    return number(sum(requests * mean_us for requests, mean_us in answered) / total) if total else NOTHING


def _means(lines: Sequence[figure.Line]) -> Iterator[str]:
    """Sentences on the mean latency of each server, for a sweep with one number of clients."""
    for line in lines:
        for point in line.points:
            if point.mean_us is not None:
                clients = counted(point.arm.connections, "client")
                yield f"On {line.label}, {clients} waited {number(point.mean_us.value)} µs on average."
