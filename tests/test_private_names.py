"""No code of ours uses a name of grpcio that begins with an underscore: each release may change what such a name means.

Found by syntax: an import of such a module or name, and a module's name in a string. In a file that imports grpcio,
also a private attribute of any object, and by ``getattr`` and its like. The attribute counts if grpcio's own sources
make it and the file does not, or if no file of ours makes it.

Not found: a name that is put together as the program runs; an attribute that only grpcio's compiled core has, if some
file of ours makes an attribute of the same name; what knows grpcio's inside without a name, as the place of an
argument. Code that protoc made is left out: grpcio's own generator writes its check of the version.
"""

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("stock_service", "clients", "experiments", "tests")
PACKAGES = ("grpc", "grpc_health", "grpc_reflection")
GENERATED = re.compile(r"_pb2(_grpc)?\.py$")

OF_GRPCIO = re.compile(r"grpc(_[a-z]+)?(\.|$)")
"""A module's name."""

IN_A_STRING = re.compile(r"\bgrpc(_[a-z]+)?(\.\w+)*\._[a-z]")

GIVEN = re.compile(r"(?:^ *|\bdef |\bclass |\b(?:self|cls)\.(?=[^=\n(]* = ))(_[a-z]\w*)", re.MULTILINE)
"""A private name where a file makes it: a variable, a function, a class, or an attribute."""

EVERYBODYS = {"_lock"}
"""Names of grpcio's that say nothing of whose they are."""

BY_NAME = {"getattr", "setattr", "hasattr", "delattr", "attrgetter", "methodcaller"}


def private(name: str) -> bool:
    """True if a name begins with one underscore, in any of its parts."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def names_given(paths: Iterable[Path]) -> frozenset[str]:
    """The private names that these files make."""
    return frozenset(name for path in paths for name in GIVEN.findall(path.read_text(encoding="utf-8")))


@cache
def names_of_grpcio() -> frozenset[str]:
    """The private names that grpcio's own sources make."""
    folders = [Path(spec.origin).parent for spec in map(find_spec, PACKAGES) if spec is not None and spec.origin]
    return names_given(path for folder in folders for path in folder.rglob("*.py")) - EVERYBODYS


@cache
def names_of_ours() -> frozenset[str]:
    """The private names that the project's files make."""
    return names_given(files())


def imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a statement imports from grpcio: in this file, and in full."""
    match node:
        case ast.Import(names=names):
            yield from ((each.asname or each.name, each.name) for each in names if OF_GRPCIO.match(each.name))
        case ast.ImportFrom(module=str(module), names=names) if OF_GRPCIO.match(module):
            yield from ((each.asname or each.name, f"{module}.{each.name}") for each in names)


def used(text: str) -> Iterator[str]:
    """The private names of grpcio that a file uses."""
    nodes, own = [*ast.walk(ast.parse(text))], set(GIVEN.findall(text))
    imports = dict(each for node in nodes for each in imported(node))
    yield from filter(private, imports.values())
    bases = {id(inner): node.bases for node in nodes if isinstance(node, ast.ClassDef) for inner in ast.walk(node)}
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}

    def foreign(name: str) -> bool:
        return name in names_of_grpcio() - own or name not in names_of_ours() | own

    def inherits(node: ast.AST) -> bool:
        return any(ast.unparse(base).partition(".")[0] in imports for base in bases.get(id(node), ()))

    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) if not inherits(node):
                continue
            case ast.Attribute(attr=name) if imports and private(name) and foreign(name):
                yield ast.unparse(node)
            case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=args) if function in BY_NAME:
                named = [each.value for each in args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
                if imports and any(private(name) and foreign(name) for name in named):
                    yield ast.unparse(node)
            case ast.Constant(value=str(words)) if id(node) not in docstrings and IN_A_STRING.search(words):
                yield words


def files() -> list[Path]:
    """The project's files in Python that people write."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *FOLDERS]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    paths = (ROOT / name for name in sorted(set(names)) if name.endswith(".py") and not GENERATED.search(name))
    return [path for path in paths if path != Path(__file__).resolve() and path.is_file()]


@pytest.mark.slow
def test_no_private_name_of_grpcio_is_used() -> None:
    """No file of the service, the clients, the experiments and the tests uses a private name of grpcio."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files()}
    found = {name: [*used(text)] for name, text in texts.items() if "grpc" in text}  # else there is none of its names
    assert "stock_service/rpc/transports/grpc_sync/server.py" in found
    assert {name: names for name, names in found.items() if names} == {}


PLANTED = {
    "a private module": "import grpc._server",
    "a private module by another name": "import grpc._channel as channel",
    "a private name of the package": "from grpc import _server as grpcio",
    "a name of a private module": "from grpc._cython import cygrpc",
    "a private module of health": "from grpc_health.v1 import _async as aio",
    "an attribute of the package": "import grpc\ngrpc._server._abort",
    "an attribute of what was imported": "from grpc import aio\naio._server.Server",
    "an attribute of what a function gave": "import grpc\ngrpc.server(None)._state",
    "an attribute of a variable": "import grpc\nchannel = grpc.insecure_channel('')\nchannel._channel",
    "an attribute of an attribute": "import grpc\nself._server = grpc.server(None)\nself._server._anything",
    "an attribute of an attribute by a variable": "import grpc\nself.a = grpc.server(None)\nb = self.a\nb._anything",
    "of what a with statement opened": "import grpc\nwith grpc.insecure_channel('') as channel:\n    channel._close()",
    "of an argument": "import grpc\ndef answer(context: grpc.ServicerContext):\n    context._rpc_event",
    "of an argument whose type is in quotes": "import grpc\ndef f(call: 'grpc.Call | None'):\n    call._anything",
    "of what is awaited": "import grpc\nasync def f(s: grpc.aio.Server):\n    (await s.stop(1))._anything",
    "of anything, by grpcio's own name": "import grpc\ndef answer(request, context):\n    context._state.client",
    "of a class that inherits": "from grpc_health.v1 import health\nclass H(health.HealthServicer):\n"
    "    def end(self):\n        self._send_response_callbacks",
    "by getattr": "import grpc\ngetattr(grpc.server(None), '_cy_server')",
    "by getattr, of anything": "import grpc\ngetattr(server, '_cy_server')",
    "by setattr": "import grpc\nsetattr(grpc, '_server', None)",
    "by attrgetter": "import grpc\nfrom operator import attrgetter\nattrgetter('_rpc_event')",
    "a module's name in a string": "import_module('grpc._server')",
    "a patched name": "monkeypatch.setattr('grpc._server._abort', None)",
    "a logger's name": "logging.getLogger('grpc._cython.cygrpc')",
}


@pytest.mark.parametrize("text", PLANTED.values(), ids=PLANTED)
def test_a_planted_use_is_found(text: str) -> None:
    """Each way to use a private name of grpcio is found."""
    assert len([*used(text)]) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "import grpc\nclass Server:\n    def __init__(self):\n        self._state = grpc.server(None)",
        "import grpc\nself._channel.close()\nself._own",
        "from stock_service.rpc import _private\n_private._state",
        '"""As grpc._server has it."""',
        "import grpc\ngrpc.__version__",
    ],
)
def test_what_is_our_own_is_left_alone(text: str) -> None:
    """Own attributes with grpcio's values, private names of others, and a docstring's words are not reported."""
    assert [*used(text)] == []
