"""Peers: the tools, builds and commands of servers and clients in other languages and of other projects.

A **peer** is a server of another language or project, often with a client of its own. The server keeps the process
contract of ``stock_service/rpc/process/serving.py``. The README of a language's folder describes the services, and what
the clients measure. ``make peers`` builds the peers that this machine can build, into one folder for each language
under ``BUILT``. A peer counts as built if the build was made from the present sources.

Peers in Python run from their sources:

- ``python-greeter`` is only a client, for our own gRPC servers.
- ``python-free-threaded`` is our own server on a free-threaded Python, if this machine has one
  (``python/free_threaded.py``).
- ``python-epoll`` serves our sockets protocol, and uses only the messages of our code (``python/epoll_server.py``).
- Each socket API in Python has a server and a client (``python/echo_server.py``, ``python/echo_client.py``).
- gRPC servers of other projects are packages, which ``make grpc-servers`` installs.

This module starts no peer, and imports only the project's errors, so that every module may import this module.
"""

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from stock_service.rpc.errors import StockServiceError

SOURCES = Path(__file__).resolve().parent
BUILT = SOURCES.parents[1] / ".tools" / "peers"

RELEASE, DEBUG, FREE_THREADED = "release", "debug", "free-threaded"
"""Builds of a peer. ``release``: compiled for speed. ``debug``: compiled for finding faults. ``free-threaded``: run on
a Python without a GIL."""

FROM_SOURCES = "from sources"
"""Build of a Python peer that runs from its sources, and has the same service, language and transport as our own
server. The factor ``build`` of a study has no level ``from sources``. So a study selects such a peer only by its
name."""

PYTHON_EPOLL = "python-epoll"
"""Name of the peer that serves our sockets protocol in one Python thread."""

SERVICER = "greeter-servicer"
"""Name of the greeter service whose generated servicer runs on our own server (``experiments/services/servicer.py``).
"""

STRANGERS = ("grpcio", "grpcio-aio", "pygrpc-native", "connectrpc-wsgi", "connectrpc-asgi", "grpclib")
"""Names of the greeter services on gRPC servers of other projects for Python
(``experiments/services/grpc_servers.py``).
"""

PLAIN_GRPCIO = (sys.executable, "-m", "experiments.peers.python.stock_server", "--port", "0")
"""Command that starts the stock service in the style of grpcio's examples, without our server's code."""

_PROBE_S = 30.0
"""Longest time, in seconds, that ``Need.is_met`` waits for the end of a tool's probe."""


class Absent(StockServiceError):
    """Error for a missing peer. The message states the reason and the way to get the peer, in one line."""


@dataclass(frozen=True, slots=True)
class Need:
    """Tool that builds a peer, or package that a peer needs."""

    what: str
    """Name of the tool or package, for printed texts."""
    probe: tuple[str, ...]
    """Command that tests for the tool or package, such as ``go version``. The exit code is 0 if the tool or package is
    installed.
    """
    how: str
    """Instruction for the user to get the tool or package, such as ``apt-get install gcc``."""

    def is_met(self) -> bool:
        """True if the tool is installed, and its probe ends in time. Blocks for the probe, which takes milliseconds."""
        try:
            done = subprocess.run(
                self.probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


@dataclass(frozen=True, slots=True)
class Peer:
    """A server of another language or project. ``start`` and ``client`` begin with the path of a program, which is
    absolute or relative to ``BUILT``."""

    language: str
    serves: str
    transport: str
    """Protocol of the peer's server. Two peers with an equal build differ in language, service or transport."""
    needs: tuple[Need, ...]
    build: tuple[str, ...]
    """Command that builds the peer. Empty for a peer that runs from its sources."""
    start: tuple[str, ...]
    """Command of the peer's server, without options. Empty for our own server on the Python that runs this program."""
    client: tuple[str, ...] = ()
    """Command of the client that measures the peer. ``client_command`` fills in ``{address}``, ``{calls}``,
    ``{seconds}`` and names of factors. Empty if another program measures the peer."""
    takes: Mapping[str, str] = field(default_factory=dict)
    """Options of the peer's server, by the name of a study's factor. Has only the factors that the server supports. In
    a measurement, the option gets the level of the factor.
    """
    report: str = ""
    """Option of the peer's server for the number of messages to time. The server prints the times at its end. Empty for
    a server without this option."""
    catalog: str = ""
    """Option of the peer's server for a file of stocks. Empty for a server without this option."""
    measured: tuple[str, ...] = ()
    """Options that the peer's server gets in every measurement, in addition to the options of the factors."""
    compiled: str = RELEASE
    """Build of the peer: ``RELEASE``, ``DEBUG``, ``FREE_THREADED`` or ``FROM_SOURCES``."""

    @property
    def folder(self) -> Path:
        """Folder of the peer's sources, in which ``build`` runs."""
        return SOURCES / self.language


def _header(file: str, package: str) -> Need:
    """Makes the ``Need`` of a C library. The probe runs the C preprocessor on the library's header ``file``."""
    return Need(file, ("cc", "-E", "-include", file, "-x", "c", "/dev/null"), f"apt-get install {package}")


_GO = Need("Go 1.25", ("go", "version"), "see https://go.dev/doc/install")
_GO_BUILD = ("go", "build", "-o", f"{BUILT / 'go'}/", "./...")

_CARGO = Need("Rust 1.71", ("cargo", "--version"), "apt-get install cargo, or see https://rustup.rs")
_CARGO_BUILD = ("cargo", "build", "--quiet", "--locked", "--target-dir", f"{BUILT / 'rust'}")


def _sort(mechanism: str, transport: str) -> Peer:
    """Makes the peer of the sort service in Go, over ``net/rpc`` or gRPC."""
    start = "go/sort_server", "--mechanism", mechanism
    client = "go/sort_client", "--mechanism", mechanism, "--address", "{address}", "--count", "{calls}"
    asked = "--algorithm", "{mix}", "--array-len", "{array_len}"
    return Peer("go", "sort", transport, (_GO,), _GO_BUILD, start, (*client, *asked))


_CC = Need("a C compiler", ("cc", "--version"), "apt-get install gcc")
_MAKE = Need("make", ("make", "--version"), "apt-get install make")

_GRPC_HOW = "apt-get install libgrpc++-dev protobuf-compiler-grpc g++ pkg-config"
_GRPC = (
    Need("a C++ compiler", ("c++", "--version"), _GRPC_HOW),
    Need("protoc", ("protoc", "--version"), _GRPC_HOW),
    Need("gRPC's plugin of protoc", ("sh", "-c", "command -v grpc_cpp_plugin"), _GRPC_HOW),
    Need("gRPC for C++", ("pkg-config", "--exists", "grpc++", "protobuf"), _GRPC_HOW),
)
_CPP_BUILD = ("make", "--silent", "--jobs=2", f"OUT={BUILT / 'cpp'}")


def _echo(api: str, *library: Need) -> Peer:
    """Makes the echo peer in C over a socket API. The server sends every message back."""
    build = ("make", "--silent", f"OUT={BUILT / 'c'}", api)
    load = "--rate", "{rate_hz}", "--count", "{calls}", "--seconds", "{seconds}"
    client = f"c/{api}_client", "--address", "{address}", *load, "--size", "{size}", "--pattern", "{pattern}"
    takes = {"pattern": "--pattern"}
    return Peer("c", "echo", api, (_CC, _MAKE, *library), build, (f"c/{api}_server",), client, takes, "--report")


def _python_echo(api: str) -> Peer:
    """Makes the echo peer in Python over a socket API. The dependency group ``bindings`` has the API's library."""
    program = "experiments.peers.python.echo_"
    start, client = ((sys.executable, "-m", f"{program}{side}", "--api", api) for side in ("server", "client"))
    asked = "--address", "{address}", "--count", "{calls}", "--size", "{size}"
    return Peer("python", "echo", api, (), (), start, (*client, *asked))


_RUST_188 = "cargo --version | awk '{ split($2, version, \".\"); exit version[1] == 1 && version[2] < 88 }'"
_TONIC = (
    _CARGO,
    Need("Rust 1.88, which tonic needs,", ("sh", "-c", _RUST_188), "see https://rustup.rs"),
    Need("protoc", ("protoc", "--version"), "apt-get install protobuf-compiler"),
)
_TONIC_BUILD = (*_CARGO_BUILD, "--release", "--manifest-path", "stock_server/Cargo.toml")

_WORKERS = MappingProxyType({"workers": "--workers"})

_GREETER_CLIENT: tuple[str, ...] = ("--address", "{address}", "--clients", "{clients}", "--count", "{calls}")
_GREETER_CLIENT += ("--mode", "{call_style}", "--in-flight", "{in_flight}")

_KNOWN = ("--entities", "1000")
"""Option for the number of entities at the server's start. The value is the number of ``KNOWN_IDS``
(``experiments/services/entity.py``).
"""


def _rust_entity(compiled: str) -> Peer:
    """Makes the peer of the entity service in Rust, in a release or a debug build."""
    build = (*_CARGO_BUILD, "--release") if compiled == RELEASE else _CARGO_BUILD
    start = (f"rust/{compiled}/entity_server",)
    return Peer("rust", "entity", "http1", (_CARGO,), build, start, takes=_WORKERS, measured=_KNOWN, compiled=compiled)


WITHOUT_GIL = "python-free-threaded"
"""Name of the peer that is our own stock service on a free-threaded Python."""


def _without_gil() -> Peer:
    """Makes the peer that is our own stock service without a GIL. This peer serves only on sockets, since grpcio has no
    build without a GIL.

    With the option ``-X gil=0`` no package can turn the GIL on.
    """
    script = (sys.executable, str(SOURCES / "python" / "free_threaded.py"))
    how = "put python3.14t or later on the PATH, or its path into STOCK_SERVICE_FREE_THREADED"
    need = Need("a free-threaded Python", (*script, "find"), how)
    serve = "-m", "experiments.services", "serve", "stock", "--transport", "sockets"
    start = f"{WITHOUT_GIL}/bin/python", "-X", "gil=0", *serve
    build = (*script, "build", str(BUILT / WITHOUT_GIL))
    return Peer("python", "stock", "sockets", (need,), build, start, compiled=FREE_THREADED)


def _stranger(name: str, module: str) -> Peer:
    """Makes the peer of the greeter on another project's server. The server is a package of the dependency group
    ``grpc-servers``.
    """
    need = Need(module, (sys.executable, "-c", f"import {module}"), "run make grpc-servers")
    return Peer("python", name, "grpc", (need,), (), ())


PEERS: Mapping[str, Peer] = MappingProxyType(
    {
        "go-sort-net-rpc": _sort("net-rpc", "net-rpc"),
        "go-sort-grpc": _sort("grpc", "grpc"),
        "go-entity": Peer(
            "go", "entity", "http1", (_GO,), _GO_BUILD, ("go/entity_server",), takes=_WORKERS, measured=_KNOWN
        ),
        "rust-entity": _rust_entity(RELEASE),
        "rust-entity-debug": _rust_entity(DEBUG),
        "cpp-greeter": Peer(
            "cpp",
            "greeter",
            "grpc",
            (*_GRPC, _MAKE),
            _CPP_BUILD,
            ("cpp/greeter_server",),
            ("cpp/greeter_client", *_GREETER_CLIENT),
        ),
        "python-greeter": Peer(
            "python",
            "greeter",
            "grpc",
            (),
            (),
            (),
            (sys.executable, "-m", "experiments.peers.python.greeter_client", *_GREETER_CLIENT),
        ),
        WITHOUT_GIL: _without_gil(),
        PYTHON_EPOLL: Peer(
            "python",
            "stock",
            "sockets",
            (),
            (),
            (sys.executable, "-m", "experiments.peers.python.epoll_server"),
            compiled=FROM_SOURCES,
        ),
        "c-berkeley": _echo("berkeley"),
        "c-zeromq": _echo("zeromq", _header("zmq.h", "libzmq3-dev")),
        "c-nanomsg": _echo("nanomsg", _header("nanomsg/nn.h", "libnanomsg-dev")),
        "c-nng": _echo("nng", _header("nng/nng.h", "libnng-dev")),
        "python-berkeley": _python_echo("berkeley"),
        "python-zeromq": _python_echo("zeromq"),
        "python-nng": _python_echo("nng"),
        "go-stock": Peer("go", "stock", "grpc", (_GO,), _GO_BUILD, ("go/stock_server",), catalog="--catalog"),
        "rust-stock": Peer(
            "rust", "stock", "grpc", _TONIC, _TONIC_BUILD, ("rust/release/stock_server",), catalog="--catalog"
        ),
        "c-stock": Peer(
            "c",
            "stock",
            "sockets",
            (_CC, _MAKE),
            ("make", "--silent", f"OUT={BUILT / 'c'}", "stock"),
            ("c/stock_server",),
            catalog="--catalog",
        ),
        "pygrpc-native": _stranger("pygrpc-native", "pygrpc_native"),
        "connectrpc-wsgi": _stranger("connectrpc-wsgi", "connectrpc, pyvoy"),
        "connectrpc-asgi": _stranger("connectrpc-asgi", "connectrpc, pyvoy"),
        "grpclib": _stranger("grpclib", "grpclib"),
    }
)
"""Every peer by its name."""

PYTHON = "python"
"""Level of the factor ``language`` for our own servers."""

PEER_CLIENT = "peer"
"""Level of the factor ``client`` for a peer's own client. In each window (the time in which one arm is measured), a new
process of this client makes a given number of calls, and ends.
"""

LANGUAGES = tuple(dict.fromkeys((PYTHON, *(each.language for each in PEERS.values()))))
TRANSPORTS = tuple(dict.fromkeys(each.transport for each in PEERS.values()))
"""Transports of the peers. Our servers have only some of these transports."""

LABELS: Mapping[str, str] = MappingProxyType(
    {"net-rpc": "net/rpc", "berkeley": "Berkeley sockets", "zeromq": "ZeroMQ", "nng": "NNG"}
)
"""Printed names of transports. Has only names that differ from the level of the factor ``transport``."""


def peer_of(service: str, language: str, transport: str, compiled: str = RELEASE) -> str:
    """Name of the peer with this service, language, transport and build. Raises Absent if no such peer exists."""
    for name, each in PEERS.items():
        made = each.serves, each.language, each.transport, each.compiled
        if made == (service, language, transport, compiled):
            return name
    build = "" if compiled == RELEASE else f", a {compiled} build,"
    raise Absent(f"no peer in {language}{build} serves {service} on {transport}; there are {', '.join(PEERS)}")


def client_takes(served: tuple[str, str, str], factor: str) -> bool:
    """True if the client of a peer has an option for the study's factor ``factor``. ``served`` is the service, the
    language and the transport of the peer."""
    own = (each for each in PEERS.values() if (each.serves, each.language, each.transport) == served)
    return any(f"{{{factor}}}" in word for each in own for word in each.client)


def is_built(name: str) -> bool:
    """True if the peer is built from the present sources. A peer without a build command counts as built if all its
    tools are installed.
    """
    if not PEERS[name].build:
        return not missing(name)
    return stamp(name).exists() and stamp(name).read_text() == digest(PEERS[name].folder)


def server_command(name: str) -> tuple[str, ...]:
    """Command that starts a peer's server, before its options. Raises Absent if the peer is not built from the present
    sources."""
    return _command(name, PEERS[name].start)


SENDS_S_MAX = 7200.0
"""Longest time in seconds for which a peer's client sends, if the caller gives no other time."""


def client_command(
    name: str, address: str, calls: int, levels: Mapping[str, object], sends_s: float = SENDS_S_MAX
) -> tuple[str, ...]:
    """Command of a peer's own client, which makes ``calls`` calls in at most ``sends_s`` seconds.

    ``levels`` maps each factor of the study to its level. The client gets 0 for the level None. The peer must have a
    client. Raises Absent for a peer that is not built.
    """
    values = {factor: 0 if level is None else level for factor, level in levels.items()}
    values |= {"address": address, "calls": calls, "seconds": sends_s}
    words = (each.format(**values) for each in PEERS[name].client)
    return _command(name, tuple(words))


def why_absent(name: str) -> str:
    """Reason why a peer is not built, and the way to get the peer, in one line. Blocks for the probes of the tools."""
    state = "built from these sources" if PEERS[name].build else "here"
    return f"the peer {name} is not {state}: {' '.join(missing(name)) or 'run make peers'}"


def _command(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """A peer's command with the full path of its program. Raises Absent for a peer that is not built."""
    if not is_built(name):
        raise Absent(why_absent(name))
    return (str(BUILT / words[0]), *words[1:])


def missing(name: str) -> list[str]:
    """Missing tools of a peer: one line for each tool, with the way to get the tool."""
    then = ", then run make peers" if PEERS[name].build else ""
    return [f"{need.what} is missing: {need.how}{then}" for need in PEERS[name].needs if not need.is_met()]


def stamp(name: str) -> Path:
    """File that marks a peer as built. The file has the digest of the sources from which the peer was built."""
    return BUILT / f"{name}.stamp"


def digest(folder: Path) -> str:
    """Digest of the source files in a folder. Files that a build makes, and Markdown pages, do not count."""
    made = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if {"build", "target", "__pycache__"} & set(file.relative_to(folder).parts) or file.suffix == ".md":
            continue
        content = file.read_bytes()
        made.update(f"{file.relative_to(folder)} {len(content)}\n".encode())
        made.update(content)
    return made.hexdigest()
