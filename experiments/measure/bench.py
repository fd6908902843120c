"""The bench: the cores of servers and load, the command that starts an arm's server, and the credentials of clients.

An arm is a server under a load. A peer is a server of another language or project. With two or more cores, the servers
are pinned to one core and the load to another core. The sweep's seed selects these two cores. Without a seed, servers
get the first core, and the load the second core. With one core nothing is pinned, and the results say so. The factor
``service`` has three kinds of levels: the name of one of our services or of a peer; a user's command that prints
``ready HOST:PORT``; the address of a server that runs already.
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

from clients.load.plan.load_plan import CLIENT_KINDS, RequestType
from experiments.design.arms import ServerKey
from experiments.design.factors import APART, AUTO, FACTORS, MEMORY, OPEN, SQLITE, TLS
from experiments.design.levels import Level, shown
from experiments.measure.load_programs import LoadProgram
from experiments.peers import PEERS, PLAIN_GRPCIO, PYTHON, RELEASE, SERVICER, STRANGERS, Absent, peer_of
from experiments.peers import server_command as peer_command
from experiments.results.machine import cores
from experiments.services import NULL, OURS, PLAIN, SERVICES, STOCK
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import address
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials, read_token
from stock_service.rpc.transports import TRANSPORTS, Address
from stock_service.trading.catalog_file import load as load_catalog

CATALOG = Path(__file__).with_name("catalog.toml")
"""File of the default stocks. No run reaches the volume limits of these stocks."""

_ADDRESS = re.compile(r"\S+:\d+")


@dataclass(frozen=True, slots=True)
class Hosts:
    """Other hosts that send the load: workers of a Dask cluster."""

    scheduler: str
    """Address of the cluster's scheduler, HOST:PORT."""
    listen: str
    """Address of this machine at which the hosts can reach the servers. The servers listen at this address."""
    names: tuple[str, ...]
    """Names of the hosts. All of these hosts send in every window."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Conditions that all arms of a measurement share: catalog, cores, load programs, credentials, hosts."""

    catalog: Path
    """File of the stocks that servers have and clients request."""
    server_cores: tuple[int, ...] | None
    """Cores to which servers are pinned. None without pinning."""
    load_cores: tuple[int, ...] | None
    """Cores to which clients are pinned. None without pinning."""
    request_types: tuple[RequestType, ...] = ()
    """Request types of a user's own server. These types are added to the request types of our services."""
    load_programs: Mapping[str, LoadProgram] = field(default_factory=dict)
    """Load programs by name, without our own client."""
    credentials: ClientCredentials = NO_CREDENTIALS
    """Credentials that clients send to a user's own server."""
    hosts: Hosts | None = None
    """Hosts that send the load. None if this machine sends the load."""

    @property
    def stocks(self) -> tuple[str, ...]:
        """Names of the stocks that servers have and clients request."""
        return stocks_of(self.catalog)

    def placed(self, levels: Mapping[str, Level]) -> "Bench":
        """This bench if the placement is ``apart``. Otherwise a bench without pinning."""
        return self if levels["placement"] == APART else replace(self, server_cores=None, load_cores=None)


@cache
def stocks_of(catalog: Path) -> tuple[str, ...]:
    """Names of a catalog's stocks. Raises UsageError for a file that is not a catalog."""
    return tuple(stock.name for stock in load_catalog(catalog))


def bench(
    catalog: Path,
    request_types: tuple[RequestType, ...] = (),
    load_programs: Mapping[str, LoadProgram] = MappingProxyType({}),
    seed: int | None = None,
) -> Bench:
    """A bench on this machine. ``seed`` selects the core of the servers and the core of the load. Without a seed, these
    are the first core and the second core. On a machine with one core nothing is pinned."""
    own = cores()
    if seed is not None:
        own = tuple(random.Random(f"{seed}/cores").sample(own, len(own)))
    server_cores, load_cores = (own[:1], own[1:2]) if len(own) > 1 else (None, None)
    return Bench(catalog, server_cores, load_cores, request_types, load_programs)


def running_at(server: ServerKey) -> Address | None:
    """Address of a server that runs already: its ``service`` is HOST:PORT. None for a server that must be started.
    Raises UsageError for a wrong port."""
    served = str(dict(server[0])["service"])
    if not _ADDRESS.fullmatch(served):
        return None
    try:
        return address(served)
    except ArgumentTypeError as error:
        raise UsageError("a server", served, "HOST:PORT with a port from 0 to 65535") from error


def exits(server: ServerKey) -> tuple[int, ...]:
    """Exit codes with which a server may end after SIGTERM. Any other exit code is a failure of the server.

    Our servers, and peers in other languages, exit with 0. The signal itself may end all other servers, such as a
    user's command: grpcio's servers do not handle signals by default. After the signal, shells and the JVM exit with
    128 plus the signal's number.
    """
    levels = dict(server[0])
    ours = levels["language"] != PYTHON or levels["service"] in (NULL, STOCK, SERVICER, *SERVICES)
    return (0,) if ours else (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def server_command(
    server: ServerKey, catalog: Path, timeline: Path | None = None, listen: str | None = None
) -> Sequence[str]:
    """Command that starts the server of an arm.

    A command of our service has an option for each level that is not the default. A peer has its own command. A user's
    command is unchanged. ``listen`` is the address at which our service listens for load from other machines. With
    None, our service listens at the loopback address. Our service writes a timeline of its requests into the file
    ``timeline``; with None, it writes no timeline. Raises UsageError for a missing program, or for a level that the
    program does not support.
    """
    levels = dict(server[0])
    service = str(levels["service"])
    if levels["language"] != PYTHON:
        return _peer_command(service, levels, catalog)
    if levels["build"] != RELEASE:  # our server on another Python
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
            allowed = f"a transport ({', '.join(TRANSPORTS)}), HOST:PORT, or a command of an installed program"
            raise UsageError("a server", service, allowed)
        return [found, *rest]
    if levels["transport"] not in TRANSPORTS:
        return _peer_command(service, levels, catalog)
    serve = ["experiments.services.servicer"] if service == SERVICER else ["experiments.services", "serve", service]
    command = [sys.executable, "-m", *serve, "--transport", str(levels["transport"])]
    beyond = [] if listen is None else ["--host", listen, "--insecure"]
    return [*command, *beyond, *_options(service, levels, catalog, timeline)]


def _options(service: str, levels: Mapping[str, Level], catalog: Path, timeline: Path | None) -> Sequence[str]:
    """Options of our own server's command after its service and transport. These options give the port, the cores, the
    catalog, the access, and each level that is not the default."""
    command = ["--port", "0", "--cpus", "auto" if levels["placement"] == AUTO else "none"]
    if service == STOCK:
        store = MEMORY if levels["store"] == MEMORY else f"{SQLITE}:{_store_folder()}/{next(_stores)}"
        command += ["--catalog", str(catalog), "--store", store]
    command += _access_options(levels)
    for name, level in levels.items():
        if level != FACTORS[name].default_among(levels):
            command += FACTORS[name].options(level)
    if timeline is not None:
        command += ["--timeline", str(timeline)]
    return command


_stores = count()
"""Counter that numbers the SQLite stores. Each store has its number as file name: ``0``, ``1``, ``2`` ..."""


@cache
def _store_folder() -> Path:
    """Makes a folder for stores inside the working folder, since /tmp may be in memory. The folder is deleted at the
    end of this process."""
    folder = Path(tempfile.mkdtemp(prefix=".stores-", dir="."))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _peer_command(service: str, levels: Mapping[str, Level], catalog: Path) -> Sequence[str]:
    """Command that starts a peer's server, with an option for each factor that the peer supports."""
    name = _peer(service, levels)
    command = [*peer_command(name), "--port", "0", *PEERS[name].measured]
    command += [PEERS[name].catalog, str(catalog)] if PEERS[name].catalog else []
    return [*command, *_own_options(name, levels, PEERS[name].takes)]


def _own_options(name: str, levels: Mapping[str, Level], takes: Mapping[str, str]) -> Sequence[str]:
    """Options of the command of the peer ``name``. ``takes`` gives the option for each factor that the peer supports.
    Raises UsageError if another factor is not at its default."""
    options: list[str] = []
    for factor, level in levels.items():
        if factor in takes:
            options += [takes[factor], shown(level)]
        elif FACTORS[factor].options(level) and level != FACTORS[factor].default_among(levels):
            raise UsageError(factor, shown(level), f"the default, since the peer {name} has no such option")
    return options


def _peer(service: str, levels: Mapping[str, Level]) -> str:
    """Name of the peer that offers this service at these levels. Raises UsageError if no such peer is built."""
    try:
        name = peer_of(service, *(str(levels[each]) for each in ("language", "transport", "build")))
        peer_command(name)
    except Absent as absent:
        raise UsageError("a server", f"{service} in {levels['language']}", f"a built server ({absent})") from absent
    return name


def _access_options(levels: Mapping[str, Level]) -> Sequence[str]:
    """Options of our server for the factor ``access``. For a token or for TLS, new credentials are made. Raises
    UsageError if credentials cannot be made."""
    if levels["access"] == OPEN:
        return ()
    if levels["access"] == TLS:
        return (
            "--tls-cert",
            str(_credentials() / "server.pem"),
            "--tls-key",
            str(_credentials() / "server-key.pem"),
        )
    return "--access", str(_credentials() / "access.toml")


def is_somebodys(levels: Mapping[str, Level]) -> bool:
    """True for a user's own server, which is given by a command or an address."""
    return levels["language"] == PYTHON and levels["service"] not in (*OURS, NULL, PLAIN, SERVICER, *STRANGERS)


def client_credentials(levels: Mapping[str, Level], given: ClientCredentials = NO_CREDENTIALS) -> ClientCredentials:
    """Credentials of the clients of a server at these levels. ``given`` has the credentials for a user's own server.

    Clients send the metadata of ``given`` to every server, and so both servers of a comparison get equal requests.
    Raises UsageError if the server or the client does not support credentials.
    """
    is_given = given != NO_CREDENTIALS and is_somebodys(levels)
    if levels["access"] == OPEN:
        return ClientCredentials(metadata=given.metadata)
    is_ours = levels["service"] in OURS and levels["language"] == PYTHON
    if not (is_given or is_ours) or levels["client"] not in CLIENT_KINDS:
        allowed = f"{OPEN}, but for our own servers and client={'|'.join(CLIENT_KINDS)}"
        raise UsageError("access", shown(levels["access"]), allowed)
    if is_given:
        return given
    if levels["access"] == TLS:
        return ClientCredentials(authority=_credentials() / "ca.pem", metadata=given.metadata)
    return ClientCredentials(token=read_token(_credentials() / "trader.token"), metadata=given.metadata)


@cache
def _credentials() -> Path:
    """Makes a folder with new credentials, which is deleted at the end of this process. Raises UsageError if the
    package cryptography is not installed."""
    from stock_service.rpc.process.credentials import make  # needs cryptography

    folder = Path(tempfile.mkdtemp(prefix="credentials-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make(folder)
    return folder
