"""Peers as arms of a sweep: started by their language, loaded by their own client. ``make peers`` builds them."""

import pytest

from experiments.design.arms import Arm, Group
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep, Windows
from experiments.measure.bench import CATALOG, bench
from experiments.measure.runner import measure_block
from experiments.peers import is_built, peer_of, why_absent
from experiments.results.observed import ALL, KEPT
from tests.interop.conftest import leave_out

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ARMS = (
    setting(service="sort", language="go", transport="net-rpc", client="peer", mix="merge"),
    setting(service="sort", language="go", transport="grpc", client="peer", mix="quick"),
    setting(service="greeter", language="cpp", transport="grpc", client="peer", clients=2),
    setting(service="greeter", language="cpp", transport="grpc", client="peer", call_style="async", in_flight=3),
    setting(service="greeter", transport="grpc", client="peer", clients=2),
    setting(service="greeter", transport="grpc", client="peer", call_style="async", in_flight=3),
    setting(service="echo", language="c", transport="berkeley", client="peer"),
    setting(service="echo", language="c", transport="zeromq", client="peer"),
    setting(service="echo", transport="berkeley", client="peer"),
    setting(service="echo", transport="zeromq", client="peer"),
    setting(service="echo", transport="nng", client="peer"),
    setting(service="echo", language="c", transport="nanomsg", client="peer", pattern="pair", size=100_000),
)


@pytest.mark.parametrize("of", ARMS, ids=str)
def test_a_peer_is_an_arm(of: Setting) -> None:
    """Every call of its client is counted but each client's first, and the server's processor time is read."""
    name = peer_of(of.text("service"), of.text("language"), of.text("transport"))
    if not is_built(name):
        leave_out(why_absent(name))
    sweep = Sweep("study", "part", (Group((Arm(of),)),), (), 1, (1,), turns=Windows(calls=20))
    block = measure_block(sweep, 1, 1, bench(CATALOG))
    clients = of.whole("clients")
    assert block.slices.fate == [KEPT]
    assert block.slices.requests == [20 * clients]
    assert block.slices.counts[ALL] == [19 * clients]
    assert block.slices.server_cpu_ns[0] > 0
