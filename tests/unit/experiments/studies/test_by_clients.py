"""Numbers of clients for parts whose loads are their own."""

from dataclasses import replace

import pytest

from experiments.judge.verdicts import judge
from experiments.peers import PEER_CLIENT
from experiments.show.content import Seen, content
from experiments.studies import PARTS
from experiments.studies.by_clients import SUFFIX, is_fixed
from experiments.studies.study import Scale
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import block

FIXED = [name for name, (study, part) in PARTS.items() if is_fixed(part, study.scales["quick"])]

LONELY = {"sockets", "socket_patterns", "socket_bindings"}
"""Parts whose servers none but their peers' programs speak to, which make one client each."""


def asked(name: str, *clients: int) -> Scale:
    """A study's usual scale, with these numbers."""
    return replace(PARTS[name][0].scales["quick"], clients=clients)


def test_the_parts_of_stock_take_numbers_of_clients_by_themselves() -> None:
    """The others have loads of their own."""
    assert "server_cost" in FIXED
    assert not {"stock", "pool_fills", "executors"} & set(FIXED)


@pytest.mark.parametrize("name", [name for name in FIXED if name not in LONELY])
def test_each_server_of_a_part_gets_every_number_of_clients(name: str) -> None:
    """In a closed loop, and compared: the most with the fewest."""
    scale = asked(name, 1, 2, 4)
    sweep, own = PARTS[f"{name}{SUFFIX}"][1].sweep(scale), PARTS[name][1].sweep(scale)
    assert {arm.connections for arm in sweep.arms} == {1, 2, 4}
    assert all(arm.setting["rate_hz"] is None for arm in sweep.arms)
    assert len(sweep.comparisons) == len(sweep.arms) / 3
    assert {each.clients_ratio for each in sweep.comparisons} == {4}
    kept = {arm.server for arm in own.arms if not arm.copy and arm.setting["transport"] != "net-rpc"}
    assert set(sweep.servers) == kept


@pytest.mark.parametrize("name", sorted(LONELY))
def test_a_program_that_makes_one_client_is_told_of(name: str) -> None:
    """The line names the part."""
    with pytest.raises(UsageError, match=f"--clients: got '1 2', allowed: none with {name}: the programs of its"):
        PARTS[f"{name}{SUFFIX}"][1].sweep(asked(name, 1, 2))


def test_a_client_is_a_process_or_a_connection() -> None:
    """A connection of a load program, which is one process; the lean client stands in for a program of one client."""

    def clients(name: str) -> set[tuple[object, object, object]]:
        arms = PARTS[f"{name}{SUFFIX}"][1].sweep(asked(name, 3)).arms
        return {tuple(arm.setting[each] for each in ("client", "clients", "connections")) for arm in arms}  # type: ignore[misc]

    assert clients("server_cost") == {("lean", 3, 1)}
    assert clients("pools") == {("c-http", 1, 3)}
    assert clients("greeter") == {(PEER_CLIENT, 3, 1), ("lean", 3, 1)}
    assert clients("sort") == {("lean", 3, 1)}


def test_other_names_are_no_parts() -> None:
    """Nor are they listed."""
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
    """Its growth; with one number of clients its latency."""
    _, part = PARTS[f"server_cost{SUFFIX}"]
    sweep = part.sweep(asked("server_cost", *clients))
    means = {arm: 50.0 + 50 * arm.connections + 50 * (arm.connections > 3) for arm in sweep.arms}
    shown = content(part, Seen(judge(sweep, [block(sweep, means, each, 0.01) for each in range(1, 11)])))
    (answer,) = shown.answers
    assert said in answer.sentence
    assert answer.sentence.count("On ") == 5
    assert shown.picture("clients").alternative.count("sockets") == 2
