"""No code of ours uses a name of grpcio that begins with an underscore: each release may change what such a name means.

Found by syntax: an import of such a module or name, an attribute of what came from grpcio in the same file, the same by
``getattr`` and its like, a module's name in a string. An attribute of anything else is found where grpcio's own sources
have that name and the file, which imports grpcio, does not.

Not found: a name that is put together as the program runs; an attribute that only grpcio's compiled core has, of an
object that came by another file without an annotation; what knows grpcio's inside without a name, as the place of an
argument. Code that protoc made is left out: grpcio's own generator writes its check of the version.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
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

EVERYBODYS = {"_lock"}
"""Names of grpcio's that say nothing of whose they are."""

BY_NAME = {"getattr", "setattr", "hasattr", "delattr", "attrgetter", "methodcaller"}


def private(name: str) -> bool:
    """True if a name begins with one underscore, in any of its parts."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def own_names(tree: ast.AST) -> set[str]:
    """Private names that a file gives to what it makes itself."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Constant(value=str(name)) if name.isidentifier():
                found.add(name)  # a slot
    return {name for name in found if private(name)}


@cache
def names_of_grpcio() -> frozenset[str]:
    """The private names that grpcio's own sources give."""
    found = set[str]()
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        for path in Path(spec.origin).parent.rglob("*.py"):
            found |= own_names(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(found - EVERYBODYS)


class Origins:
    """Which expressions of a file are grpcio's, or came from it. A name means the same in all of the file."""

    def __init__(self, tree: ast.AST) -> None:
        self._known = set[str]()
        nodes = [*ast.walk(tree)]
        for node in nodes:
            if isinstance(node, ast.Import):
                self._known |= {
                    each.asname or each.name.partition(".")[0] for each in node.names if OF_GRPCIO.match(each.name)
                }
            elif isinstance(node, ast.ImportFrom) and OF_GRPCIO.match(node.module or ""):
                self._known |= {each.asname or each.name for each in node.names}
        self.any = bool(self._known)
        before = -1
        while before < len(self._known):
            before = len(self._known)
            self._known |= {ast.unparse(target) for node in nodes for target in self._given(node)}

    def has(self, node: ast.AST | None) -> bool:
        """True if an expression came from grpcio."""
        match node:
            case ast.Name() | ast.Attribute() if ast.unparse(node) in self._known:
                return True
            case (
                ast.Attribute(value=inner) | ast.Call(func=inner) | ast.Await(value=inner) | ast.Subscript(value=inner)
            ):
                return self.has(inner)
            case ast.BinOp(left=left, right=right):  # an annotation
                return self.has(left) or self.has(right)
            case ast.Constant(value=str(text)) if OF_GRPCIO.match(text):  # an annotation as well
                return True
        return False

    def _given(self, node: ast.AST) -> Iterator[ast.AST]:
        """The names that a statement makes known to be grpcio's."""
        match node:
            case ast.Assign(targets=targets, value=value) if self.has(value):
                yield from targets
            case ast.AnnAssign(target=target, annotation=kind, value=value) if self.has(kind) or self.has(value):
                yield target
            case ast.NamedExpr(target=target, value=value) if self.has(value):
                yield target
            case ast.withitem(context_expr=value, optional_vars=ast.AST() as target) if self.has(value):
                yield target
            case ast.For(target=target, iter=value) if self.has(value):
                yield target
            case ast.arg(arg=name, annotation=kind) if self.has(kind):
                yield ast.Name(name)


def used(text: str) -> Iterator[str]:
    """The private names of grpcio that a file uses."""
    tree = ast.parse(text)
    origins, own = Origins(tree), own_names(tree)
    heirs = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and any(map(origins.has, node.bases))]
    inherited = {id(node) for heir in heirs for node in ast.walk(heir)}
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if OF_GRPCIO.match(each.name) and private(each.name))
            case ast.ImportFrom(module=str(module), names=names) if OF_GRPCIO.match(module):
                yield from (f"{module}.{each.name}" for each in names if private(f"{module}.{each.name}"))
            case ast.Attribute(value=value, attr=name) if private(name):
                itself = isinstance(value, ast.Name) and value.id in ("self", "cls")
                guessed = origins.any and name in names_of_grpcio() - own and (not itself or id(node) in inherited)
                if origins.has(value) or guessed:
                    yield ast.unparse(node)
            case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=args) if function in BY_NAME:
                named = [each.value for each in args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
                known = origins.any and any(map(names_of_grpcio().__contains__, named))
                if any(map(private, named)) and (known or any(map(origins.has, args))):
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
