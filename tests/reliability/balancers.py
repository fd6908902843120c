"""Promise: replicas behind a balancer are restarted one after another, and no client sees a failure.

Behind a balancer means grpcio's round_robin, HAProxy and Envoy, with the configurations of ``stock_service/balancers``.
Clients have the retry policy of ``clients/retrying.py``. Replicas share a PostgreSQL. A name server gives the address
of each replica. Then a new replica is added: each balancer must give the new replica its share, when the earlier
connections are too old.
"""

import json
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import grpc

from clients.retrying import RetryingExchange
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.process.lifeline import tied
from stock_service.rpc.transports import Address, Connection, load
from stock_service.rpc.wire.grpc_status import status_fault
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from tests.conformance.running import until
from tests.end_to_end.process import ROOT, WAIT_S, Running, Server, metrics_pages
from tests.name_server import NameServer
from tests.reliability.replicas import POSTGRES, lacking_postgres
from tests.reliability.restarts import RETRIES, Told, reading, summed, trading, until_over
from tests.reliability.rows import Row, absent

CONFIGURED = ROOT / "stock_service" / "balancers"

NAME = "replicas.example"
"""The name of all replicas, as the configurations have it."""

REPLICAS = 3
HOSTS = [f"127.0.77.{number}" for number in range(1, REPLICAS + 2)]
"""Addresses of the replicas, all on one port. The last address is that of the added replica."""

DRAIN_S, GRACE_S, AGE_S = 0.8, 0.5, 0.5
"""Options of each replica. A drain is longer than a balancer's time to notice: 0.6 s at most."""

NOTICED_S = 0.7
"""Time in which the balancers notice a ready replica."""

CALLS, SOME, FEW = 100_000, 4_000, 200
"""Calls behind each balancer: overnight, in minutes, and in seconds."""

SHARED = 400
"""Number of calls over which the shares of the replicas are judged."""

FAIR = 0.1
"""Largest difference of a replica's share from the fair share, as a part of the fair share."""


def free_port(hosts: Sequence[str] = ("127.0.0.1",)) -> int:
    """A port that is free on all of these hosts."""
    from socket import create_server

    with ExitStack() as bound:
        port: int = bound.enter_context(create_server((hosts[0], 0))).getsockname()[1]
        for host in hosts[1:]:
            bound.enter_context(create_server((host, port)))
    return port


class Replicas:
    """Replicas on one store. The maker of this object stops the replicas."""

    def __init__(self, dsn: str) -> None:
        self._start = ("stock_service", "serve", "--transport", "grpc_static", "--store", f"postgres:{dsn}")
        self.port = free_port(HOSTS)
        self._servers: dict[str, Server] = {}

    def start(self, host: str) -> None:
        """Starts a replica at this address. Blocks until it serves."""
        options = {"--host": host, "--port": self.port, "--drain-s": DRAIN_S, "--grace-s": GRACE_S}
        options |= {"--connection-age-s": AGE_S, "--metrics": f"{host}:0"}
        self._servers[host] = Server(self._start, *(str(word) for option in options.items() for word in option))

    def stop(self, host: str) -> None:
        """Stops the replica at this address, after a drain. Blocks."""
        with self._servers.pop(host) as server:
            ended = server.stopped()
            assert (ended.code, ended.stdout) == (0, ""), ended

    def answered(self) -> list[float]:
        """Number of requests that each replica has answered, by its metrics, in the order of ``HOSTS``."""
        return [sum(answered_by(self._servers[host])) for host in HOSTS if host in self._servers]

    def kill(self) -> None:
        """Kills the replicas that still run."""
        for server in self._servers.values():
            server.__exit__(None, None, None)


def answered_by(server: Server) -> Iterator[float]:
    """Numbers of requests that a replica has answered, by its metrics."""
    (page,) = metrics_pages(server)
    lines = (line for line in page.splitlines() if line.startswith("stock_service_requests_total{"))
    return (float(line.split()[-1]) for line in lines)


class RoundRobin:
    """grpcio's own balancing: a channel to all addresses from a name server. See ``transports.Connection``."""

    def __init__(self, names: NameServer, port: int) -> None:
        options = [
            ("grpc.service_config", json.dumps(json.loads((CONFIGURED / "round_robin.json").read_text()))),
            ("grpc.dns_min_time_between_resolutions_ms", 200),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self._target = f"dns://127.0.0.1:{names.port}/{NAME}:{port}"
        self._channel = grpc.insecure_channel(self._target, options)

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """See ``transports.Connection``."""
        called: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        try:
            return called(payload, timeout_s)
        except grpc.RpcError as error:
            call = cast(grpc.Call, error)
            raise status_fault(call.code().value[0], call.details() or "", self._target) from error

    def close(self) -> None:
        """Does nothing: all clients share one channel, and the channel finds other replicas."""

    def end(self) -> None:
        """Closes the channel."""
        self._channel.close()


Connect = Callable[[], Connection]
"""Function that gives a client a connection to a balancer."""


@contextmanager
def round_robin(names: NameServer, port: int) -> Iterator[Connect]:
    """grpcio's own round_robin, over DNS."""
    channel = RoundRobin(names, port)
    try:
        yield lambda: channel
    finally:
        channel.end()


@contextmanager
def haproxy(names: NameServer, port: int) -> Iterator[Connect]:
    """HAProxy, with its configuration as it is."""
    address = ("127.0.0.1", free_port())
    set_to = {"LISTEN": shown_address(address), "REPLICAS": f"{NAME}:{port}", "NAMESERVER": f"127.0.0.1:{names.port}"}
    command = (found("env"), *(f"{name}={value}" for name, value in set_to.items()), found("haproxy"))
    with Running("-db", "-f", str(CONFIGURED / "haproxy.cfg"), program=tied(command)) as running:
        yield to(address, running)


@contextmanager
def envoy(names: NameServer, port: int) -> Iterator[Connect]:
    """Envoy, with its configuration except for three addresses."""
    written = (CONFIGURED / "envoy.yaml").read_text()
    ports = {50060: "LISTEN", 53: names.port, 50056: port}
    replaced = {f"port_value: {old} }}": f"port_value: {own} }}" for old, own in ports.items()}
    with started_envoy(written, replaced) as connect:
        yield connect


@contextmanager
def started_envoy(written: str, addresses: dict[str, str]) -> Iterator[Connect]:
    """Envoy with a configuration in which these addresses are replaced. Each is there once. ``LISTEN`` stands for a
    free port of the loopback address."""
    address = ("127.0.0.1", free_port())
    for word, own in addresses.items():
        assert written.count(word) == 1, word
        written = written.replace(word, own.replace("LISTEN", str(address[1])))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "envoy.yaml"
        path.write_text(written)
        options = ("-c", str(path), "--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
        with Running(*options, program=tied((str(envoy_program()),))) as running:
            yield to(address, running)


def found(program: str) -> str:
    """The path of a program that must be installed."""
    path = shutil.which(program)
    assert path is not None, program
    return path


def to(address: Address, running: Running) -> Connect:
    """A function that connects to a balancer, which must run."""

    def connect() -> Connection:
        assert running.runs(), running.said()
        return load("grpc").connect(address, WAIT_S)

    return connect


def envoy_program() -> Path | None:
    """The path of Envoy; None: nowhere."""
    package, found = find_spec("envoy"), shutil.which("envoy")
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "_bin" / "envoy"
    return None if found is None else Path(found)


BALANCERS = {"round_robin": round_robin, "HAProxy": haproxy, "Envoy": envoy}

LACKING: dict[str, tuple[Callable[[], object], str]] = {
    "HAProxy": (lambda: shutil.which("haproxy"), "no HAProxy here: apt-get install haproxy"),
    "Envoy": (envoy_program, "no Envoy here: uv sync --inexact --group balancers"),
}
"""Balancers that may be absent: for each, a function that finds the program, and advice."""


def lacking(name: str) -> str:
    """Advice how to get an absent balancer; empty for a balancer that is installed."""
    found, how = LACKING.get(name, (lambda: True, ""))
    return "" if found() else how


class Tried:
    """Replicas behind balancers, while they serve."""

    def __init__(self, replicas: Replicas, names: NameServer, connects: dict[str, Connect], rng: random.Random) -> None:
        self._replicas, self._names, self._connects, self._rng = replicas, names, connects, rng
        self.told: dict[str, list[Told]] = {name: [] for name in connects}
        """The replies to the clients of each balancer."""
        self.restarts = 0
        self.shares: dict[str, float] = {}
        """Shares of the last replica in the calls behind each balancer."""

    def roll(self, calls: int, restarts: int) -> None:
        """Restarts one replica after another: at least this number of restarts, and until this number of calls were
        made behind each balancer."""
        pause = threading.Event()
        with self._loaded(*self._connects) as answered:
            left = dict.fromkeys(self._connects, calls)
            goes_on = True
            while goes_on:
                host = HOSTS[self.restarts % REPLICAS]
                self._replicas.stop(host)
                self._replicas.start(host)
                self.restarts += 1
                for name, each in answered.items():
                    while each.acquire(blocking=False):
                        left[name] -= 1
                goes_on = self.restarts < restarts or any(count > 0 for count in left.values())
                if goes_on:
                    pause.wait(NOTICED_S)

    def add(self) -> None:
        """Adds a replica, and finds its share behind each balancer when all connections are new."""
        for name in self._connects:
            before = self._replicas.answered()
            with self._loaded(name):  # so that it has found the one that was restarted last
                until(lambda: all(self._gained(before)[:REPLICAS]), "each replica is asked")  # noqa: B023  # at once
        self._replicas.start(HOSTS[-1])
        self._names.addresses = HOSTS
        with self._loaded(*self._connects):
            threading.Event().wait(1.1 * AGE_S + GRACE_S)
        for name in self._connects:
            before = self._replicas.answered()
            with self._loaded(name) as answered:
                assert all(answered[name].acquire(timeout=WAIT_S) for _ in range(SHARED))
            gained = self._gained(before)
            self.shares[name] = gained[-1] / sum(gained)

    def _gained(self, before: list[float]) -> list[float]:
        """Number of requests that each replica has answered since ``before``."""
        return [now - then for now, then in zip(self._replicas.answered(), before, strict=True)]

    @contextmanager
    def _loaded(self, *names: str) -> Iterator[dict[str, threading.Semaphore]]:
        """Two clients of each of these balancers, until the block ends. They release a semaphore for each answered
        call."""
        over, answered = threading.Event(), {name: threading.Semaphore(0) for name in names}
        works = [(name, work) for name in names for work in (trading, reading)]
        with ThreadPoolExecutor(len(works)) as threads:
            clients: list[tuple[str, Future[Told]]] = []
            try:
                for name, work in works:
                    rng = random.Random(self._rng.random())
                    exchange = RetryingExchange(self._connects[name], WAIT_S, RETRIES, rng=rng)
                    clients.append((name, threads.submit(until_over, work(exchange), exchange, answered[name], over)))
                yield answered
            finally:
                over.set()
            for name, client in clients:
                self.told[name].append(client.result(WAIT_S))

    def rows(self, calls: int) -> list[Row]:
        """The rows of the table."""
        rows = [self._restarted(name, calls) for name in self._connects]
        rows += [self._shared(name) for name in self.shares]
        sequences = sorted(each for told in self.told.values() for client in told for each in client.sequences)
        wrong = len(set(sequences) ^ set(range(1, len(sequences) + 1)))
        return [
            *rows,
            Row("trades done twice, or that no reply tells of", "0", f"{wrong} of {len(sequences):,}", not wrong),
        ]

    def _restarted(self, name: str, calls: int) -> Row:
        requests, failures, rest = summed(self.told[name])
        figure = f"{failures} of {requests:,} in {self.restarts} restarts; {rest}"
        goal = f"0 failures that a client sees in {CALLS:,}"
        return Row(f"{name}: rolling restarts of {REPLICAS} replicas", goal, figure, not failures and requests >= calls)

    def _shared(self, name: str) -> Row:
        fair = 1 / len(HOSTS)
        share = self.shares[name]
        goal = f"{fair:.0%} of the calls, give or take {FAIR * fair:.1%}"
        kept = abs(share - fair) <= FAIR * fair
        return Row(f"{name}: a replica more, after {1.1 * AGE_S + GRACE_S:.1f} s", goal, f"{share:.1%}", kept)


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for a quarter of a minute. Drawn: the clients' waits before they try again."""
    return tried(SOME if minutes else FEW, seed)


def check_overnight(_: bool, seed: int) -> list[Row]:
    """Blocks for five minutes."""
    return tried(CALLS, seed)


def tried(calls: int, seed: int) -> list[Row]:
    """The rows of each installed balancer, and a row for each absent balancer."""
    if advice := lacking_postgres():
        return [Row(absent(POSTGRES), "every row", f"not tried: {advice}", passed=False)]
    from tests.postgres import Postgres

    rows = [Row(absent(name), "every row", f"not tried: {lacking(name)}", False) for name in BALANCERS if lacking(name)]
    with Postgres() as postgres, begun(postgres.store(DEFAULT_STOCKS), seed) as trying:
        trying.roll(calls, REPLICAS)
        trying.add()
        return rows + trying.rows(calls)


@contextmanager
def begun(dsn: str, seed: int) -> Iterator[Tried]:
    """Running replicas behind each installed balancer. The end of the block ends them."""
    with ExitStack() as running:
        replicas = Replicas(dsn)
        running.callback(replicas.kill)
        with ThreadPoolExecutor(REPLICAS) as threads:
            list(threads.map(replicas.start, HOSTS[:REPLICAS]))
        names = running.enter_context(NameServer(NAME, HOSTS[:REPLICAS]))
        connects = {
            name: running.enter_context(balancer(names, replicas.port))
            for name, balancer in BALANCERS.items()
            if not lacking(name)
        }
        for connect in connects.values():
            with closing(RetryingExchange(connect, WAIT_S, 100)) as exchange:
                exchange.lookup("FishCo")  # once it is answered, the balancer has begun
        yield Tried(replicas, names, connects, random.Random(seed))
