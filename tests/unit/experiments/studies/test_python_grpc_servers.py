"""The study of gRPC servers for Python: ratios to grpcio, processor time, tables, and absent servers."""

import re
from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.judge.verdicts import judge
from experiments.results.observed import Window
from experiments.show.content import Seen
from experiments.show.tables import NO_BOUND
from experiments.studies.python_grpc_servers import PYTHON_GRPC_SERVERS
from experiments.studies.python_grpc_servers.sweep import CONNECTIONS, PEERS, SERVERS, loads, sweep
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, blocks

PART = PYTHON_GRPC_SERVERS.parts["python_grpc_servers"]

SMALL = Scale(rounds=1, looks=(10, 14), clients=(1,))

TIMES = {"grpcio": 400.0, "grpc_static": 50.0, "pygrpc-native": 100.0}
"""Mean time of a call by server, in µs; 800 for others."""


def mean_us(arm: Arm, _: str) -> float:
    """Mean by the server, for any load."""
    return TIMES.get(arm.setting.text("service"), TIMES.get(arm.setting.text("transport"), 800.0))


def answered(arm: Arm) -> tuple[Window, ...]:
    """A window with as many calls a second as ten connections."""
    return (Window(None, 0.0, 10 * arm.connections, 0, 0, None),)


@pytest.mark.slow
def test_planted_ratios_are_told_drawn_and_tabled() -> None:
    """Answers, tables and figure have the planted ratios at every load, with "at least" where the client was at its
    limit."""
    limited = World(
        mean_us, windows=answered, client_share=lambda arm: 0.9 if arm.setting["transport"] == "grpc_static" else 0.4
    )
    design = sweep(SMALL)
    seen = Seen(judge(design, blocks(design, 10, limited)))
    (times, cost), sections, (picture,) = PART.answers(seen), PART.sections(seen), PART.pictures(seen)
    assert times.sentence.startswith(
        "The load: 16 connections, a deadline and a new traceparent in each call. Each number is a "
    )
    assert re.search(r"calls of grpcio on threads\. .*pygrpc-native on threads: (3\.9|4\.0)\d \(", times.sentence)
    assert re.search(r"grpc_static on threads: at least (7\.9|8\.0)\d? \(", times.sentence)
    assert re.search(r"grpclib: 0\.(49|50)", times.sentence)
    assert (len(times.deciding), len(times.details)) == (len(SERVERS) - 1, len(list(loads())) - 1)
    assert re.search(r"a call on grpc_static takes 0\.(49|50)\d* of the processor time of one on pygrpc", cost.sentence)
    assert (len(cost.deciding), len(cost.further)) == (1, len(list(loads())) - 1)
    under_h2load, _, memory = sections
    assert under_h2load.text.count("\n| ") == 1 + len(SERVERS) * len(CONNECTIONS["h2load"])
    assert re.search(r"\| grpcio, threads \| 64 \| 640 .*\| 1[12]\d \(.*\| 0\.\d+ \| ", under_h2load.text)
    assert "| grpc_static, threads | 16 | 160 (160 to 160) † |" in under_h2load.text
    assert "| grpclib | 40.0 (40.0 to 40.0) |" in memory.text
    assert re.search(r"connectrpc, WSGI 2[34]\d", picture.alternative)
    assert "16 connections" in picture.title
    of_h2load, of_grpc_go = picture.draw().axes
    assert "h2load: the same" in of_h2load.get_title(loc="left")
    assert "grpc-go: a deadline" in of_grpc_go.get_title(loc="left")
    assert of_h2load.get_xlim() == of_grpc_go.get_xlim()
    assert PART.answers(Seen(judge(design, [])))[0].sentence == "Not measured."


@pytest.mark.parametrize(
    ("limited", "said"),
    [
        ((), r"on threads: [78]\.\d+ \([^)]*\)\."),
        (("grpcio",), r"on threads: at most [78]\.\d+ \([^)]*\)\."),
        (("grpcio", "greeter-servicer"), r"on threads: [78]\.\d+ \([^)]*\) †\."),
    ],
)
def test_the_limit_of_the_client_on_grpcio_makes_an_upper_bound(limited: tuple[str, ...], said: str) -> None:
    """With the client at its limit on grpcio alone, a ratio is "at most". With the limit on both it has a mark."""
    busy = World(mean_us, windows=answered, client_share=lambda arm: 0.9 if arm.setting["service"] in limited else 0.4)
    design = sweep(replace(SMALL, peers=frozenset()))
    answer = PART.answers(Seen(judge(design, blocks(design, 10, busy))))[0]
    assert re.search(f"grpc_static {said}", answer.sentence)
    assert (NO_BOUND in answer.details) == ("†" in said)


def test_a_server_whose_package_is_not_here_is_left_out() -> None:
    """Without packages grpcio and our own server stay, and nothing is said of pygrpc-native's processor time."""
    alone = sweep(replace(SMALL, peers=frozenset()))
    assert {arm.setting.text("service") for arm in alone.arms} == {"grpcio", "grpcio-aio", "greeter-servicer"}
    assert PART.answers(Seen(judge(alone, [])))[1].sentence == "Not measured."
    some = sweep(replace(SMALL, peers=frozenset(PEERS) - {"grpclib"}))
    assert {arm.setting.text("service") for arm in sweep(SMALL).arms if arm not in some.arms} == {"grpclib"}


def test_every_server_stands_under_every_load() -> None:
    """Every server has every load, with the levels of the load's client. A server is one process for all loads."""
    arms = [arm for arm in sweep(SMALL).arms if not arm.copy]
    assert len(arms) == len(SERVERS) * len(list(loads()))
    assert {(arm.setting["client"], arm.connections) for arm in arms} == {
        (client, number) for number, client in loads()
    }
    assert {(arm.setting["client"], arm.setting["headers"]) for arm in arms} == {
        ("h2load", "same"),
        ("grpc-go", "traceparent"),
    }
    assert len({arm.server for arm in arms}) == len(SERVERS)
