"""``run --cluster``: options that do not go together, and the command that goes on."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from clients.load.hosts import cluster
from experiments.__main__ import parser
from experiments.commands import run
from experiments.studies import PARTS
from stock_service.rpc.errors import UsageError


@pytest.fixture(autouse=True)
def _two_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of two hosts, as far as it is asked for their names."""

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
        (HOSTS[:2], "--host: got 'nothing', allowed: an address beside --cluster"),
        (HOSTS[2:], "--cluster: got 'nothing', allowed: an address beside --host"),
        (
            (*HOSTS, "--clients", "1", "4"),
            "--clients: got 1, allowed: 2 or more: one for each host of the cluster (a, b)",
        ),
        (HOSTS, "--clients: got 1, allowed: 2 or more"),
    ],
)
def test_a_load_from_hosts_needs_both_addresses_and_a_client_for_each_host(words: Sequence[str], said: str) -> None:
    """The line says what to do."""
    with pytest.raises(UsageError) as refused:
        run.run(asked(*words))
    assert said in str(refused.value)


def test_a_part_is_measured_by_its_clients_and_what_hosts_cannot_reach_is_named() -> None:
    """A part is measured by its clients, with loads of its own or not. Servers that hosts cannot reach are named."""
    options = asked(*HOSTS, "--clients", "2", "4")
    options.seed = 7
    assert run.part_for("languages", options) == "languages_clients"
    assert run.part_for("executors", options) == "executors_clients"
    assert run.scale_of(*PARTS["languages_clients"], options).hosts
    assert [line.split(":")[1] for line in run._unreachable(options)] == [" grpc language=go", " grpc language=rust"]
    assert run._unreachable(asked()) == []
    again = run._again(options, Path("here"))
    assert "--clients 2 4 --cluster 192.0.2.1:8786 --host 192.0.2.9 --out here --resume" in again
