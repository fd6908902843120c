"""Programs of ``compose.yaml``, started without containers: each command of the file, with other addresses."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from clients.retrying import RetryingExchange
from stock_service.trading.service import LOOKUP
from tests.conformance.running import until
from tests.end_to_end.process import WAIT_S, Server, metrics_pages, run
from tests.name_server import NameServer
from tests.postgres import Postgres
from tests.reliability.balancers import CONFIGURED, HOSTS, NAME, REPLICAS, free_port, lacking, started_envoy

pytestmark = pytest.mark.slow

COMPOSE = (CONFIGURED / "compose.yaml").read_text()

ALL, STORE = "0.0.0.0", "host=postgres user=postgres"
"""Words of the file: any address of a container, and the store."""


def command(service: str) -> list[str]:
    """The command of a service."""
    part = re.search(rf"^  {service}:.*?^    command: (\[.*?\])$", COMPOSE, re.DOTALL | re.MULTILINE)
    assert part is not None, service
    words: list[str] = json.loads(part[1])
    return words


def python(service: str, replaced: dict[str, str]) -> list[str]:
    """Words after ``python -m`` in a service's command, with replaced addresses."""
    words = command(service)
    assert words[:2] == ["python", "-m"]
    line = "\0".join(words[2:])
    for word, own in replaced.items():
        assert word in line, word
        line = line.replace(word, own)
    return line.split("\0")


@pytest.fixture(scope="module")
def replicas(_postgres: Postgres) -> Iterator[list[Server]]:
    """As many replicas as the file has, on one store and one port, each at a different address."""
    dsn = _postgres.database()
    made = run(*python("store", {STORE: dsn}))
    assert made.code == 0, made
    port = str(free_port(HOSTS))
    assert f"deploy: {{ replicas: {REPLICAS} }}" in COMPOSE
    with ExitStack() as running:
        started = []
        for host in HOSTS[:REPLICAS]:
            start = python("replica", {STORE: dsn, f"{ALL}:9100": f"{ALL}:0", ALL: host})
            started.append(running.enter_context(Server(start, "--port", port)))
        yield started


def answers(server: Server) -> bool:
    """True if a replica has answered a Lookup."""
    return f'stock_service_requests_total{{method="{LOOKUP}"' in metrics_pages(server)[0]


def test_each_replica_serves_and_shows_its_metrics(replicas: list[Server]) -> None:
    """Each replica serves and shows its metrics. Prometheus has the metrics' port, and the name of all replicas."""
    assert all("stock_service_serving 1" in metrics_pages(server)[0] for server in replicas)
    assert f'names: ["{NAME}"], type: A, port: 9100' in COMPOSE
    assert f'aliases: ["{NAME}"]' in COMPOSE
    assert f"{ALL}:9100" in command("replica")


def test_envoy_deals_out_to_all_replicas(replicas: list[Server]) -> None:
    """Envoy sends to all replicas with ``envoy.yaml``, after the file's command has changed two addresses."""
    if lacking("Envoy"):
        pytest.skip(lacking("Envoy"))
    words = [word for each in command("envoy") for word in ("-e", each)]
    changed = ["sed", *words, str(CONFIGURED / "envoy.yaml")]
    written = subprocess.run(changed, check=True, capture_output=True, text=True).stdout
    with NameServer(NAME, HOSTS[:REPLICAS]) as names:
        addresses = {
            f"{ALL}, port_value: 50060": "127.0.0.1, port_value: LISTEN",
            "127.0.0.11, port_value: 53 ": f"127.0.0.1, port_value: {names.port} ",
            "port_value: 50056": f"port_value: {replicas[0].address[1]}",
        }
        with started_envoy(written, addresses) as connect:
            with closing(RetryingExchange(connect, WAIT_S, 100)) as exchange:
                until(lambda: exchange.lookup("FishCo") and all(map(answers, replicas)), "each has answered")
