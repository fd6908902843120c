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
from experiments.studies.python_grpc_servers.sweep import PEERS, sweep
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
