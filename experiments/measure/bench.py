"""The bench: which cores servers and load have, and how the server of an arm is started.

The servers have one core that this process may use, and the load another, where there are two; otherwise nothing is
pinned, and results say so. Which two is drawn by the sweep's seed; without one they are the first and the second. What
a server serves is one of our services by its name; or a command of somebody's, which prints ``ready HOST:PORT``; or the
address of a server that runs already.
"""

import atexit
import random
import re
import shlex
import shutil
import signal
import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from types import MappingProxyType

from clients.load.plan.load_plan import RequestType
from experiments.design.arms import ServerKey
from experiments.design.factors import APART, AUTO, FACTORS, MEMORY, SQLITE
from experiments.design.levels import Level, shown
from experiments.measure.access import server_options
from experiments.measure.load_programs import LoadProgram
from experiments.peers import PEERS, PLAIN_GRPCIO, PYTHON, RELEASE, SERVICER, STRANGERS, Absent, peer_of
from experiments.peers import server_command as peer_command
from experiments.results.machine import cores
from experiments.services import NULL, PLAIN, SERVICES, STOCK
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import address
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.transports import TRANSPORTS, Address
from stock_service.trading.catalog_file import load as load_catalog

CATALOG = Path(__file__).with_name("catalog.toml")
"""The default stocks, with limits that no run reaches."""

_NONE: Mapping[str, LoadProgram] = MappingProxyType({})

_ADDRESS = re.compile(r"\S+:\d+")


@dataclass(frozen=True, slots=True)
class Hosts:
    """Other hosts that send the load: the workers of a Dask cluster."""

    scheduler: str
    """Address of the cluster's scheduler, HOST:PORT."""
    listen: str
    """Address of this machine at which the hosts reach the servers."""
    names: tuple[str, ...]
    """Names of the hosts. The same hosts send in every window."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Bench on which blocks are measured: catalog, cores, load programs."""

    catalog: Path
    """The stocks that are served and asked for."""
    server_cores: tuple[int, ...] | None
    """None, as is ``load_cores``: not pinned."""
    load_cores: tuple[int, ...] | None
    request_types: tuple[RequestType, ...] = ()
    """Requests that a mix may name beside those of our services."""
    load_programs: Mapping[str, LoadProgram] = field(default_factory=dict)
    """Load programs that arms ask for, by name; none of them is our own client."""
    credentials: ClientCredentials = NO_CREDENTIALS
    """Credentials that clients trust and show on somebody's server that asks for them."""
    hosts: Hosts | None = None
    """None: the load is sent from this machine."""

    @property
    def stocks(self) -> tuple[str, ...]:
        """Names of the stocks."""
        return stocks_of(self.catalog)

    def placed(self, levels: Mapping[str, Level]) -> "Bench":
        """The bench for a server at these levels, and for its load."""
        return self if levels["placement"] == APART else replace(self, server_cores=None, load_cores=None)


@cache
def stocks_of(catalog: Path) -> tuple[str, ...]:
    """Names of a catalog's stocks. Raises UsageError."""
    return tuple(stock.name for stock in load_catalog(catalog))


def bench(
    catalog: Path,
    request_types: tuple[RequestType, ...] = (),
    load_programs: Mapping[str, LoadProgram] = _NONE,
    seed: int | None = None,
) -> Bench:
    """A bench on this machine, its cores drawn by the seed."""
    own = cores()
    if seed is not None:
        own = tuple(random.Random(f"{seed}/cores").sample(own, len(own)))
    server_cores, load_cores = (own[:1], own[1:2]) if len(own) > 1 else (None, None)
    return Bench(catalog, server_cores, load_cores, request_types, load_programs)


def running_at(server: ServerKey) -> Address | None:
    """Address of a server that runs already; None for one that is to be started. Raises UsageError."""
    served = str(dict(server[0])["service"])
    if not _ADDRESS.fullmatch(served):
        return None
    try:
        return address(served)
    except ArgumentTypeError as error:
        raise UsageError("a server", served, "HOST:PORT with a port from 0 to 65535") from error


def exits(server: ServerKey) -> tuple[int, ...]:
    """Exit codes which show that the server stopped correctly on SIGTERM.

    Our servers exit with 0. Somebody's command may also end by the signal: grpcio's servers handle no signals unless
    told to. Shells and the JVM then say 128 and the signal's number.
    """
    levels = dict(server[0])
    ours = levels["language"] != PYTHON or levels["service"] in (NULL, STOCK, SERVICER, *SERVICES)
    return (0,) if ours else (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def server_command(
    server: ServerKey, catalog: Path, timeline: Path | None = None, listen: str | None = None
) -> Sequence[str]:
    """Command that starts the server of an arm: somebody's command as it is; or one of our services on its transport,
    with each other factor that is not at its default; or a peer in another language. Raises UsageError for a program
    that is not there, or a level that it does not have. ``listen``: the address at which a service of ours listens,
    also where other machines reach it; None: the loopback's."""
    levels = dict(server[0])
    service = str(levels["service"])
    if levels["language"] != PYTHON:
        return _peer_command(service, levels, catalog)
    if levels["build"] != RELEASE:  # ours, but on another Python than this one
        return [*peer_command(_peer(service, levels)), *_options(service, levels, catalog, timeline)]
    if service == NULL:
        return [sys.executable, "-m", "clients.load.run.null_server", "--transport", str(levels["transport"])]
    if service in (PLAIN, *STRANGERS):
        if levels["transport"] != "grpc":
            raise UsageError("transport", str(levels["transport"]), f"grpc with {service}")
        if service == PLAIN:
            return [*PLAIN_GRPCIO, *_own_options(PLAIN, levels, {"workers": "--workers"})]
        return [sys.executable, "-m", "experiments.services.grpc_servers", service, *_own_options(service, levels, {})]
    if service not in SERVICES and service not in (STOCK, SERVICER):
        program, *rest = shlex.split(service)
        found = shutil.which(program)
        if found is None:
            allowed = f"a transport ({', '.join(TRANSPORTS)}), HOST:PORT, or a command whose program is there"
            raise UsageError("a server", service, allowed)
        return [found, *rest]
    if levels["transport"] not in TRANSPORTS:
        return _peer_command(service, levels, catalog)
    serve = ["experiments.services.servicer"] if service == SERVICER else ["experiments.services", "serve", service]
    command = [sys.executable, "-m", *serve, "--transport", str(levels["transport"])]
    beyond = [] if listen is None else ["--host", listen, "--insecure"]
    return [*command, *beyond, *_options(service, levels, catalog, timeline)]


def _options(service: str, levels: Mapping[str, Level], catalog: Path, timeline: Path | None) -> Sequence[str]:
    """Options of a server of ours beside its service and transport: each factor that is not at its default."""
    command = ["--port", "0", "--cpus", "auto" if levels["placement"] == AUTO else "none"]
    if service == STOCK:
        store = MEMORY if levels["store"] == MEMORY else f"{SQLITE}:{_store_folder()}/{next(_stores)}"
        command += ["--catalog", str(catalog), "--store", store]
    command += server_options(levels)
    for name, level in levels.items():
        if level != FACTORS[name].default_among(levels):
            command += FACTORS[name].options(level)
    if timeline is not None:
        command += ["--timeline", str(timeline)]
    return command


_stores = count()
"""Numbers the stores of this process's servers."""


@cache
def _store_folder() -> Path:
    """Folder of stores, until this process ends: on the working folder's disk, since /tmp may be in memory."""
    folder = Path(tempfile.mkdtemp(prefix=".stores-", dir="."))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _peer_command(service: str, levels: Mapping[str, Level], catalog: Path) -> Sequence[str]:
    """Command that starts a peer's server: with each factor that it takes, also where it is at our default."""
    name = _peer(service, levels)
    command = [*peer_command(name), "--port", "0", *PEERS[name].measured]
    command += [PEERS[name].catalog, str(catalog)] if PEERS[name].catalog else []
    return [*command, *_own_options(name, levels, PEERS[name].takes)]


def _own_options(name: str, levels: Mapping[str, Level], takes: Mapping[str, str]) -> Sequence[str]:
    """Options of a peer's server for the factors that it takes. Raises UsageError for any other off its default."""
    options: list[str] = []
    for factor, level in levels.items():
        if factor in takes:
            options += [takes[factor], shown(level)]
        elif FACTORS[factor].options(level) and level != FACTORS[factor].default_among(levels):
            raise UsageError(factor, shown(level), f"its default with the peer {name}, which has no such option")
    return options


def _peer(service: str, levels: Mapping[str, Level]) -> str:
    """The name of the peer that serves this, which is built. Raises UsageError."""
    try:
        name = peer_of(service, *(str(levels[each]) for each in ("language", "transport", "build")))
        peer_command(name)
    except Absent as absent:
        raise UsageError("a server", f"{service} in {levels['language']}", f"one that is here ({absent})") from absent
    return name
