"""``run --cluster``: options that do not go together, and the command that goes on."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clients.load.hosts import cluster
from experiments.__main__ import parser
from experiments.commands import run
from experiments.design.arms import Arm, Group
from experiments.design.setting import setting
from experiments.design.sweep import Sweep
from experiments.peers import is_built
from experiments.results import files
from experiments.results.observed import HostSeen, Window
from experiments.studies import PARTS
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import block


@pytest.fixture(autouse=True)
def _two_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of two hosts, of which only the names are asked."""

    def names(scheduler: str) -> Sequence[str]:
        assert scheduler == "192.0.2.1:8786"
        return ["a", "b"]

    monkeypatch.setattr(cluster, "names", names)


def asked(*words: str) -> Namespace:
    return parser("run").parse_args(["run", "languages", *words])


HOSTS = ("--cluster", "192.0.2.1:8786", "--host", "192.0.2.9")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (HOSTS[:2], "--host: got 'nothing', allowed: an address, together with --cluster"),
        (HOSTS[2:], "--cluster: got 'nothing', allowed: an address, together with --host"),
        (
            (*HOSTS, "--clients", "1", "4"),
            "--clients: got 1, allowed: 2 or more: one for each host of the cluster (a, b)",
        ),
        (HOSTS, "--clients: got 'nothing, which means 1', allowed: 2 or more"),
        ((*HOSTS[:3], "0.0.0.0"), "--host: got '0.0.0.0', allowed: the one address of this machine"),
        ((*HOSTS[:3], "::"), "--host: got '::', allowed: the one address of this machine"),
    ],
)
def test_a_load_from_hosts_needs_both_addresses_and_a_client_for_each_host(words: Sequence[str], said: str) -> None:
    """Options that do not go together are refused in a line with the remedy."""
    with pytest.raises(UsageError) as refused:
        run.run(asked(*words))
    assert said in str(refused.value)


def test_a_run_goes_on_with_the_same_hosts_alone(tmp_path: Path) -> None:
    """A run is not resumed with other hosts, since the delays of other machines differ."""
    sweep = Sweep("try", "try", (Group((Arm(setting(clients=2)),)),), (), 2, (1,))
    made = block(sweep, dict.fromkeys(sweep.arms, 100.0), 1, 0.01)
    shares = tuple(HostSeen(name, 0.001, 10, 5.0, 0.1) for name in ("a", "c"))
    window = Window(None, 1, 1, 0, 0, None, 1, hosts=shares)
    files.write_plan(tmp_path, files.SWEPT, sweep)
    run._check_hosts(tmp_path, ("a", "b"))
    files.append_block(tmp_path, replace(made, arms=[replace(made.arms[0], windows=[window])]))
    run._check_hosts(tmp_path, ("a", "c"))
    with pytest.raises(UsageError, match="got 'blocks of the hosts a, c, and these are a, b'"):
        run._check_hosts(tmp_path, ("a", "b"))


def test_a_part_is_measured_by_its_clients_and_what_hosts_cannot_reach_is_named() -> None:
    """A part is measured by its clients, with loads of its own or not. Servers that hosts cannot reach are named."""
    options = asked(*HOSTS, "--clients", "2", "4")
    options.seed = 7
    assert run.part_for("languages", options) == "languages_clients"
    assert run.part_for("executors", options) == "executors_clients"
    assert run.scale_of(*PARTS["languages_clients"], options).hosts
    left_out = run._unreachable(["languages", "updater"], options)
    named = [line.split(":")[1] for line in left_out]
    for peer, name in (("go-stock", " grpc language=go"), ("rust-stock", " grpc language=rust")):
        assert (name in named) is is_built(peer)
    assert all("updater=yes" in line for line in left_out[2:])
    assert len(left_out) > 2
    assert run._unreachable(["languages"], asked()) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "is_built", lambda _name: False)
        assert run._unreachable(["sockets"], options) == [], "measuring says that no server is built"
    again = run._again(options, Path("here"))
    assert "--clients 2 4 --cluster 192.0.2.1:8786 --host 192.0.2.9 --out here --resume" in again
