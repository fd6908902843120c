"""Sources of an arm: the files of this project that the arm's server, client and peer run.

An arm's fingerprint joins the digests of its sources (``results/fingerprint.py``). A **row** of the table ``SOURCES``
has a pattern of files, and selects the arms that run these files. A file belongs to the first row whose pattern
matches. So a new file counts for the arms that run the other files of its folder. A change in one transport's files
changes no fingerprint of arms on other transports. The table ``VERSIONS`` names the programs of other projects. Code
that measures or judges is in no row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType

from clients.load.plan.load_plan import CLIENT_KINDS
from experiments.design.factors import GRPC_GO, SQLITE
from experiments.design.levels import Levels
from experiments.design.setting import Setting
from experiments.peers import PEER_CLIENT, PYTHON, SERVICER, STRANGERS
from experiments.services import NULL, OURS, PLAIN, STOCK
from stock_service.rpc.transports import TRANSPORTS

When = Callable[[Levels], bool]
"""Function of an arm's levels that returns True if the arm runs a row's files."""


@dataclass(frozen=True, slots=True)
class Source:
    """Row of the table ``SOURCES``: files that are digested together, and the arms that run these files."""

    files: str
    """Pattern of file paths, relative to the project's root. Braces contain alternatives, as in a shell."""
    when: When

    @property
    def place(self) -> str:
        """Name of the row in texts: the file, or the common folder of the files."""
        return "/".join(takewhile(lambda part: not set("*{") & set(part), self.files.split("/")))


def _at(**levels: object) -> When:
    """Selects the arms that have the given level of every named factor. If a tuple is given, an arm may have any level
    of the tuple."""
    wanted = {name: each if isinstance(each, tuple) else (each,) for name, each in levels.items()}
    return lambda arm: all(arm[name] in each for name, each in wanted.items())


def _runs(module: str) -> When:
    """Selects arms whose server's command runs this module."""
    return lambda arm: module in str(arm["service"])


def _our_server(arm: Levels) -> bool:
    served = arm["service"] in (*OURS, NULL, SERVICER)
    return arm["language"] == PYTHON and arm["transport"] in TRANSPORTS and served


def _our_client(arm: Levels) -> bool:
    return arm["client"] in CLIENT_KINDS


def _ours(arm: Levels) -> bool:
    return _our_server(arm) or _our_client(arm)


def _both(*all_of: When) -> When:
    return lambda arm: all(each(arm) for each in all_of)


def _or(*any_of: When) -> When:
    return lambda arm: any(each(arm) for each in any_of)


_GRPC = ("grpc", "grpc_static", "grpc_aio")
_GRPCIO = ("grpc", "grpc_aio")
_CORE = ("sockets", "http1", "grpc_static")
"""Transports of our own server (``stock_service/rpc/server_core``)."""

_STOCKS = _both(_our_server, _at(service=STOCK))
_PYTHON = "experiments.peers.python"
_GRPCIO_CLIENT = _at(transport=_GRPC, client="library")
_GREETER_PEER = _at(service="greeter", language=PYTHON, client=PEER_CLIENT)
_GREETERS = _at(service=(SERVICER, *STRANGERS))
_PLAIN_GRPCIO = _or(_at(service=PLAIN), _runs(f"{_PYTHON}.stock_server"))


def _on(*transports: str) -> When:
    return _both(_ours, _at(transport=transports))


def _run_by(executor: str) -> Source:
    """Row of the file that implements an executor."""
    file = f"stock_service/rpc/concurrency/{executor.replace('-', '_')}.py"
    return Source(file, _both(_our_server, _at(executor=executor)))


def _served(service: str, messages: str) -> tuple[Source, Source]:
    """Two rows for a study's own service: one for the file of the service, and one for the file of the service's
    messages."""
    server = Source(
        f"experiments/services/{service}.py", _both(_our_server, _at(service=(service, f"{service}-twice")))
    )
    return server, Source(messages, _both(_ours, _at(service=(service, f"{service}-twice"))))


def _peer(language: str, service: str, files: str) -> Source:
    return Source(f"experiments/peers/{language}/{files}", _at(language=language, service=service))


SOURCES: Sequence[Source] = (
    # the stock service
    Source("stock_service/trading/shared/*.py", _both(_STOCKS, lambda arm: arm["processes"] != 1)),
    Source("stock_service/trading/*.py", _STOCKS),
    Source("stock_service/storage/{__init__,change,sqlite*}.py", _both(_STOCKS, _at(store=SQLITE))),
    Source("stock_service/stock_server.py", _STOCKS),
    Source("stock_service/v1/*_pb2.py", _or(_both(_ours, _at(service=STOCK)), _PLAIN_GRPCIO)),
    Source("experiments/measure/catalog.toml", _at(service=STOCK)),
    # transports
    Source("stock_service/rpc/transports/sockets/*.py", _on("sockets")),
    Source("stock_service/rpc/transports/http1/*.py", _on("http1")),
    Source("stock_service/rpc/transports/grpc_static/*.py", _on("grpc_static")),
    Source("stock_service/rpc/transports/grpc_sync/*.py", _on("grpc")),
    Source("stock_service/rpc/transports/grpc_aio/*.py", _on("grpc_aio")),
    Source("stock_service/rpc/grpcio/*.py", _on(*_GRPC)),
    Source("stock_service/rpc/wire/{http1,http1_status}.py", _on("http1")),
    Source(
        "stock_service/rpc/wire/{grpc_call_table,grpc_calls,grpc_heads,grpc_replies,grpc_session,patience}.py",
        _on("grpc_static"),
    ),
    Source("stock_service/rpc/wire/{grpc_*,header_blocks,http2*}.py", _on(*_GRPC)),
    Source("stock_service/rpc/wire/served_stream.py", _on(*_CORE)),
    Source("stock_service/rpc/wire/*.py", _ours),
    Source("stock_service/rpc/server_core/{__init__,admission,listening,options}.py", _our_server),
    Source(
        "stock_service/rpc/server_core/{guarding,tls}.py", _both(_our_server, _at(transport=("http1", "grpc_static")))
    ),
    Source("stock_service/rpc/server_core/*.py", _both(_our_server, _at(transport=_CORE))),
    _run_by("static-pool"),
    _run_by("leader-followers"),
    _run_by("thread-pool"),
    _run_by("thread-per-task"),
    Source("stock_service/rpc/concurrency/*.py", _our_server),
    Source("stock_service/rpc/process/*.py", _our_server),
    Source("stock_service/rpc/transports/__init__.py", _ours),
    Source("stock_service/rpc/message_json.py", _on("http1")),
    Source("stock_service/rpc/reflection.py", _on(*_GRPC)),
    Source("stock_service/rpc/*.py", _ours),
    # the studies' services
    *_served("echo", "experiments/v1/echo_pb2.py"),
    *_served("entity", "experiments/v1/entity_pb2.py"),
    *_served("sort", "experiments/v1/sort_pb2.py"),
    Source("experiments/services/greeter.py", _both(_our_server, _at(service="greeter"))),
    Source("experiments/helloworld/greeter_pb2*.py", _or(_both(_ours, _at(service="greeter")), _GREETERS)),
    Source("experiments/services/servicer.py", _at(service=SERVICER)),
    Source("experiments/services/grpc_servers.py", _GREETERS),
    Source("experiments/services/connect_apps.py", _at(service=("connectrpc-wsgi", "connectrpc-asgi"))),
    Source("experiments/services/{__init__,__main__,work}.py", _our_server),
    # the load
    Source("experiments/services/workloads.py", _our_client),
    Source("clients/load/run/null_server.py", _at(service=NULL)),
    Source("clients/load/send/{lane,lanes,lean}.py", _at(client="lean")),
    Source("clients/load/{plan,record,run,send}/*.py", _our_client),
    Source("experiments/peers/c/load.c", _at(client="c")),
    Source("experiments/peers/c/http_load.c", _at(client="c-http")),
    Source("experiments/peers/go/grpc_load/*.go", _at(client=GRPC_GO)),
    # the peers
    Source("experiments/peers/c/{patterns,sockets}/*.[ch]", _at(language="c", service="echo")),
    Source("experiments/peers/c/stock*.[ch]", _at(language="c", service=STOCK)),
    Source("experiments/peers/c/Makefile", _at(language="c")),
    Source("experiments/peers/cpp/{Makefile,*.cpp,*.h}", _at(language="cpp")),
    _peer("go", "sort", "{sort_client,sort_server,sorting,sortpb}/*.go"),
    _peer("go", "entity", "entity_server/*.go"),
    _peer("go", STOCK, "{stock_server,stockpb}/*.go"),
    Source("experiments/peers/go/process/*.go", _at(language="go")),
    Source("experiments/peers/go/{go.mod,go.sum}", _or(_at(language="go"), _at(client=GRPC_GO))),
    _peer("rust", STOCK, "stock_server/{Cargo.lock,Cargo.toml,build.rs}"),
    _peer("rust", STOCK, "stock_server/src/*.rs"),
    _peer("rust", "entity", "Cargo.{lock,toml}"),
    _peer("rust", "entity", "src/*.rs"),
    Source("experiments/peers/python/greeter_client.py", _GREETER_PEER),
    Source("experiments/peers/python/echo_*.py", _at(language=PYTHON, transport=("berkeley", "zeromq", "nng"))),
    Source("experiments/peers/python/epoll_server.py", _runs(f"{_PYTHON}.epoll_server")),
    Source("experiments/peers/python/stock_server.py", _PLAIN_GRPCIO),
    Source("experiments/peers/python/free_threaded.py", _at(language=PYTHON, build="free-threaded")),
)
"""All rows. If the patterns of two rows match the same file, the first of these rows has the file. So the row with the
more special pattern stands first."""

NO_SOURCES = ("_test.go",)
"""Endings of the names of files that no arm runs, although a row's pattern matches the files."""

VERSIONS: Mapping[str, When] = MappingProxyType(
    {
        "grpcio": _or(
            _both(_our_server, _at(transport=_GRPCIO)),
            _GRPCIO_CLIENT,
            _GREETER_PEER,
            _PLAIN_GRPCIO,
            _at(service=("grpcio", "grpcio-aio", "pygrpc-native")),
        ),
        "hpack": _or(
            _both(_our_server, _at(transport="grpc_static")),
            _at(transport=_GRPC, service=NULL),
            _at(transport=_GRPC, client="lean"),
        ),
        "msgspec": _on("http1"),
        "protobuf": _or(_ours, _GREETER_PEER, _PLAIN_GRPCIO, _GREETERS),
        "python": _or(_ours, _at(language=PYTHON)),
    }
)
"""Names of other projects' programs. Each name has a function that selects the arms that use the program."""


def counted(setting: Setting) -> Iterator[str]:
    """Parts of an arm's fingerprint: the patterns of the arm's rows, then the names of other projects' programs."""
    levels = dict(setting.levels)
    yield from (each.files for each in SOURCES if each.when(levels))
    yield from (name for name, when in VERSIONS.items() if when(levels))


PLACES: Mapping[str, str] = MappingProxyType({each.files: each.place for each in SOURCES})
"""Name of each row for readers, such as ``stock_service/trading``, by the row's pattern of files."""
