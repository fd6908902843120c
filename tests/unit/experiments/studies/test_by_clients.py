"""Numbers of clients for parts with fixed loads."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.commands import verify
from experiments.judge.verdicts import judge
from experiments.peers import PEER_CLIENT
from experiments.results.observed import HostSeen, Window
from experiments.show import report
from experiments.show.content import Seen, content
from experiments.studies import PARTS
from experiments.studies.by_clients import BEYOND, FROM_HOSTS, ROUNDS_FROM_HOSTS, SUFFIX, is_fixed, unreachable
from experiments.studies.study import Scale
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import load
from tests.unit.experiments.judge.synthetic_blocks import block

FIXED = [name for name, (study, part) in PARTS.items() if is_fixed(part, study.scales["quick"])]

LONELY = {"sockets", "socket_patterns", "socket_bindings"}
"""Parts whose servers speak only with load programs that make one client each."""


def asked(name: str, *clients: int) -> Scale:
    """A study's usual scale, with these numbers."""
    return replace(PARTS[name][0].scales["quick"], clients=clients)


def test_the_parts_of_stock_take_numbers_of_clients_by_themselves() -> None:
    """The parts of stock take numbers of clients themselves. Parts of other studies have fixed loads."""
    assert "server_cost" in FIXED
    assert not {"stock", "pool_fills", "executors"} & set(FIXED)


@pytest.mark.parametrize("name", [name for name in FIXED if name not in LONELY])
def test_each_server_of_a_part_gets_every_number_of_clients(name: str) -> None:
    """Each server of a part gets every number of clients in a closed loop. The most are compared with the fewest."""
    scale = asked(name, 1, 2, 4)
    sweep, own = PARTS[f"{name}{SUFFIX}"][1].sweep(scale), PARTS[name][1].sweep(scale)
    assert {arm.connections for arm in sweep.arms} == {1, 2, 4}
    assert all(arm.setting["rate_hz"] is None for arm in sweep.arms)
    growths = [each for each in sweep.comparisons if each.kind == "growth"]
    assert len(growths) == len(sweep.arms) / 3
    assert {each.clients_ratio for each in growths} == {4}
    kept = {arm.server for arm in own.arms if not arm.copy and arm.setting["transport"] != "net-rpc"}
    assert set(sweep.servers) == kept


@pytest.mark.parametrize("name", sorted(LONELY))
def test_a_program_that_makes_one_client_is_told_of(name: str) -> None:
    """The line names the part."""
    with pytest.raises(UsageError, match=f"--clients: got '1 2', allowed: none with {name}: the programs of its"):
        PARTS[f"{name}{SUFFIX}"][1].sweep(asked(name, 1, 2))


def test_a_client_is_a_process_or_a_connection() -> None:
    """A client is a process, or a connection of a load program. The lean client replaces a program that makes one
    client."""

    def clients(name: str) -> set[tuple[object, object, object]]:
        arms = PARTS[f"{name}{SUFFIX}"][1].sweep(asked(name, 3)).arms
        return {tuple(arm.setting[each] for each in ("client", "clients", "connections")) for arm in arms}  # type: ignore[misc]

    assert clients("server_cost") == {("lean", 3, 1)}
    assert clients("pools") == {("c-http", 1, 3)}
    assert clients("greeter") == {(PEER_CLIENT, 3, 1), ("lean", 3, 1)}
    assert clients("sort") == {("lean", 3, 1)}


def test_other_names_are_no_parts() -> None:
    """Unknown names are not parts, and parts by clients are not listed."""
    assert "weather_clients" not in PARTS
    assert not [name for name in PARTS if name.endswith(SUFFIX) and name not in ("pool_by_clients", "real_clients")]


@pytest.mark.parametrize(
    ("clients", "said"),
    [
        ((1, 2, 4), "On grpc service=echo mix=echo: 4 clients have 3.00 times"),
        ((3,), "On grpc, 3 clients waited 200 µs on average."),
    ],
)
def test_each_server_has_a_sentence_and_a_line(clients: tuple[int, ...], said: str) -> None:
    """Each server has a sentence on its growth and a line. With one number of clients the sentence has its latency."""
    _, part = PARTS[f"server_cost{SUFFIX}"]
    sweep = part.sweep(asked("server_cost", *clients))
    means = {arm: 50.0 + 50 * arm.connections + 50 * (arm.connections > 3) for arm in sweep.arms}
    shown = content(part, Seen(judge(sweep, [block(sweep, means, each, 0.01) for each in range(1, 11)])))
    answer, *_ = shown.answers
    assert said in answer.sentence
    assert answer.sentence.count("On ") == 5
    assert shown.picture("clients").alternative.count("sockets") == 2


def test_servers_that_differ_in_the_transport_alone_are_compared() -> None:
    """Servers that differ in the transport alone are compared under the most clients, with sockets above, and have an
    answer."""
    _, part = PARTS[f"executors{SUFFIX}"]
    sweep = part.sweep(asked("executors", 2, 6))
    compared = [each.title for each in sweep.comparisons if each.kind != "growth"]
    on_both = [each for each in EXECUTORS if all(each not in load(of).REFUSED_EXECUTORS for of in ("sockets", "grpc"))]
    assert len(compared) == len(on_both)
    assert {
        "6 clients: sockets ÷ grpc executor=static-pool",
        "6 clients: sockets executor=thread-pool ÷ grpc",
        "6 clients: sockets executor=thread-per-task ÷ grpc executor=thread-per-task",
    } <= set(compared)
    means = {arm: 50.0 if arm.setting["transport"] == "sockets" else 100.0 for arm in sweep.arms}
    shown = content(part, Seen(judge(sweep, [block(sweep, means, each, 0.01) for each in range(1, 11)])))
    growth, sooner = shown.answers
    assert len(growth.deciding) == len(sweep.servers)
    assert len(sooner.deciding) == len(on_both)
    assert "With 6 clients: Sockets take 0.501 of the time of grpc executor=static-pool (0.499 to" in sooner.sentence
    assert not shown.sections


def from_hosts(name: str) -> Scale:
    """A scale with two numbers of clients on other hosts."""
    return replace(asked(name, 2, 4), hosts=True)


def test_a_load_from_other_hosts_goes_to_servers_that_listen_beyond_the_loopback() -> None:
    """Servers in other languages are left out by name, and slices become windows."""
    _, part = PARTS[f"languages{SUFFIX}"]
    sweep = part.sweep(from_hosts("languages"))
    assert (sweep.turns, sweep.rounds) == (FROM_HOSTS, ROUNDS_FROM_HOSTS)
    assert {arm.setting["language"] for arm in sweep.arms} == {"python"}
    named = unreachable(PARTS["languages"][1], from_hosts("languages"))
    assert named == ["grpc language=go", "grpc language=rust"]
    assert unreachable(PARTS["executors"][1], from_hosts("executors")) == []


def test_a_part_without_a_server_that_other_hosts_reach_is_refused() -> None:
    """The line names the part."""
    with pytest.raises(UsageError, match="--cluster: got 'with pools', allowed: a part with servers of ours"):
        PARTS[f"pools{SUFFIX}"][1].sweep(from_hosts("pools"))


def test_servers_that_take_turns_do_so_for_other_hosts() -> None:
    """A part with more servers than may be alive at once takes turns for other hosts, too."""
    turns = PARTS[f"pool_size{SUFFIX}"][1].sweep(from_hosts("pool_size")).turns
    assert turns == replace(FROM_HOSTS, in_turn=True)


def test_a_section_has_each_hosts_own_latency() -> None:
    """The section has each host's mean latency, weighted by requests, for each server and number of clients, and the
    time between the hosts' beginnings."""
    _, part = PARTS[f"socket_trade{SUFFIX}"]
    sweep = part.sweep(from_hosts("socket_trade"))
    blocks = [block(sweep, dict.fromkeys(sweep.arms, 100.0), each, 0.01) for each in range(1, 11)]
    shares = [
        Window(
            None,
            1,
            1,
            0,
            0,
            None,
            1,
            hosts=(HostSeen("a", 0.004, count, mean_us, 0.1), HostSeen("b", 0.001, 0, None, 0)),
        )
        for count, mean_us in ((100, 10.0), (300, 50.0))
    ]
    first = replace(blocks[0], arms=[replace(blocks[0].arms[0], windows=shares), *blocks[0].arms[1:]])
    first = replace(first, server_cores=(0,), load_cores=())
    page = content(part, Seen(judge(sweep, [first, *blocks[1:]])))
    (section,) = page.sections
    assert (
        "the hosts a, b. In a window each host began at most 4.0 ms after the first host (median: 2.5 ms)"
        in section.text
    )
    assert "| sockets mix=trade | 2 | 40.0 | – |" in section.text
    assert "| sockets | 2 | – | – |" in section.text
    assert all(BEYOND in answer.not_concluded for answer in page.answers)
    assert "drew cores (servers on core 0), requests" in report.markdown(page)
    here = content(part, Seen(judge(sweep, blocks)))
    assert here.answers
    assert not any(answer.not_concluded for answer in here.answers)


@pytest.mark.parametrize("hosts", [False, True])
def test_a_run_is_verified_by_its_design_with_hosts_or_without(hosts: bool, tmp_path: Path) -> None:
    """The designs that a folder may have include those of a load from other hosts."""
    sweep = PARTS[f"socket_trade{SUFFIX}"][1].sweep(replace(asked("socket_trade", 2, 4), hosts=hosts))
    assert sweep in [each.sweep for each in verify._designs(tmp_path, sweep)]


def test_a_run_whose_servers_no_host_reaches_is_verified_by_its_design(tmp_path: Path) -> None:
    """A part of peers and load programs alone has no design with a load from other hosts."""
    sweep = PARTS[f"pools{SUFFIX}"][1].sweep(asked("pools", 1, 2))
    assert sweep in [each.sweep for each in verify._designs(tmp_path, sweep)]


@pytest.mark.slow
@pytest.mark.parametrize("clients", [(1, 2, 4, 8), (8, 16), (12,)])
def test_a_run_by_other_clients_is_verified_by_its_design(clients: tuple[int, ...], tmp_path: Path) -> None:
    """The stock study always has arms of 5 and 10 clients. They are told from the numbers that the user gave."""
    sweep = PARTS["stock"][1].sweep(asked("stock", *clients))
    assert sweep in [each.sweep for each in verify._designs(tmp_path, sweep)]


def test_an_updater_stays_on_this_machine() -> None:
    """Hosts send no price updates, so a server with an updater is left out."""
    sweep = PARTS[f"updater{SUFFIX}"][1].sweep(from_hosts("updater"))
    assert not any(arm.setting["updater"] for arm in sweep.arms)


def test_a_part_without_any_server_here_is_refused() -> None:
    """All servers of the greeter are peers, which may not be built."""
    with pytest.raises(ValueError, match="greeter has no server here"):
        PARTS[f"greeter{SUFFIX}"][1].sweep(replace(from_hosts("greeter"), peers=frozenset()))
