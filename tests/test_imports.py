"""Imports go one way: the contracts of pyproject.toml hold, and each of them catches an import planted against it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GRPC = "stock_service/rpc/transports/grpc_sync"

PACKAGES = ("stock_service", "clients", "experiments")

PLANTED = [
    ("programs", "stock_service/rpc/process/serving.py", "import clients"),
    ("programs", "clients/__init__.py", "from experiments import results"),
    ("service", "stock_service/trading/service.py", "from stock_service import stock_server"),
    ("service", "stock_service/rpc/wire/framing.py", "from stock_service.trading import rules"),
    (
        "service",
        "stock_service/rpc/transports/grpc_sync/server.py",
        "from stock_service.trading.catalog import MemoryCatalog",
    ),
    ("service", "stock_service/rpc/concurrency/static_pool.py", "from stock_service.trading.model import Stock"),
    ("service", "stock_service/rpc/service.py", "from stock_service.v1 import stock_pb2"),
    ("service", "stock_service/storage/sqlite.py", "from stock_service import stock_server"),
    ("service", "stock_service/trading/exchange.py", "from stock_service.storage import sqlite"),
    ("storage", "stock_service/storage/sqlite_file.py", "from stock_service.storage import sqlite"),
    ("storage", "stock_service/storage/somewhere.py", "import os"),
    ("service", "stock_service/somewhere.py", "import os"),
    ("trading", "stock_service/trading/catalog.py", "from stock_service.trading import exchange"),
    ("trading", "stock_service/trading/rules.py", "from stock_service.trading import locking"),
    ("trading", "stock_service/trading/somewhere.py", "import os"),
    ("rpc", "stock_service/rpc/service.py", "from stock_service.rpc import transports"),
    ("rpc", "stock_service/rpc/transports/__init__.py", "from stock_service.rpc.process import command_line"),
    ("rpc", "stock_service/rpc/server_core/options.py", "from stock_service.rpc import transports"),
    ("rpc", "stock_service/rpc/concurrency/executor.py", "from stock_service.rpc.wire import framing"),
    ("rpc", "stock_service/rpc/errors.py", "from stock_service.rpc import timeline"),
    ("rpc", "stock_service/rpc/somewhere.py", "import os"),
    ("core", "stock_service/trading/rules.py", "import grpc"),
    ("core", "stock_service/trading/catalog.py", "from sqlite3 import connect"),
    ("core", "stock_service/trading/model.py", "from stock_service.v1 import stock_pb2"),
    ("wire", "stock_service/rpc/wire/framing.py", "import socket"),
    (
        "transport",
        "stock_service/rpc/transports/grpc_sync/server.py",
        "from stock_service.rpc.transports import sockets",
    ),
    ("concurrency", "stock_service/rpc/concurrency/static_pool.py", "import grpc"),
    ("load", "clients/load/plan/workload.py", "from clients.load.record import records"),
    ("load", "clients/load/record/result.py", "from clients.load.send import driver"),
    ("load", "clients/load/send/lanes.py", "from clients.load.run import client_process"),
    ("load", "clients/load/run/floor.py", "from clients.load import summary"),
    ("load", "clients/load/somewhere.py", "import os"),
    ("experiments", "experiments/judge/stats.py", "from experiments.show import tables"),
    ("experiments", "experiments/show/tables.py", "from experiments import studies"),
    ("experiments", "experiments/measure/slices.py", "from experiments.judge import verdicts"),
    ("experiments", "experiments/design/arms.py", "from experiments.results import observed"),
    ("experiments", "experiments/somewhere.py", "import os"),
    ("prediction", "experiments/recommend/model.py", "import time"),
    ("measuring", "experiments/show/tables.py", "from experiments.measure import slices"),
    ("measuring", "experiments/judge/stats.py", "import subprocess"),
    ("studies", "experiments/studies/stock/answers.py", "from experiments.studies import server_cost"),
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on the project in a folder."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    environment = os.environ | {"COLUMNS": "400"}  # no line is broken
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_imports_go_one_way() -> None:
    """No contract is broken."""
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def contracts() -> dict[str, str]:
    """The contracts' names by their ids."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {contract["id"]: contract["name"] for contract in table}


@dataclass(frozen=True, slots=True)
class Broken:
    """The report of import-linter with everything of ``PLANTED`` planted at once."""

    said: dict[str, str]
    """Broken imports of each contract, by its id."""
    at: dict[tuple[str, str], int]
    """The number of each plant's line, by its file and itself."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Broken:
    """The project in a folder, linted once with every plant: a graph of all imports takes a second or two."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "recorded"))
    at = {}
    for _, file, line in PLANTED:
        with (folder / file).open("a") as text:
            text.write(f"{line}\n")
        at[file, line] = len((folder / file).read_text().splitlines())
    done = lint_imports(folder)
    assert done.returncode == 1, done.stdout + done.stderr
    ids = {name: contract for contract, name in contracts().items()}
    heading = rf"^({'|'.join(map(re.escape, ids))})\n-+\n"
    _, *parts = re.split(heading, done.stdout.partition("Broken contracts")[2], flags=re.MULTILINE)
    return Broken({ids[name]: said for name, said in zip(parts[::2], parts[1::2], strict=True)}, at)


@pytest.mark.slow
@pytest.mark.parametrize(("contract", "file", "line"), PLANTED)
def test_a_planted_import_is_found(broken: Broken, contract: str, file: str, line: str) -> None:
    """The contract that an import breaks names its line, or the module that was given no place."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    new = rf"- {module}$"
    imported = rf"^[-& ]*{module} (-> \S+ )?\((l\.\d+, )*l\.{broken.at[file, line]}\b"
    assert re.search(new if line == "import os" else imported, broken.said[contract], re.MULTILINE)


def test_every_contract_has_a_plant() -> None:
    """Every contract has a planted import that breaks it."""
    assert contracts().keys() == {contract for contract, _, _ in PLANTED}


def printed(program: str) -> list[str]:
    """The words that a program in Python prints."""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "library"),
    [
        ("experiments.__main__", "scipy"),
        ("experiments.__main__", "matplotlib"),
        ("stock_service.stock_server", "asyncio"),
    ],
)
def test_a_library_is_loaded_by_its_users_alone(module: str, library: str) -> None:
    """A command that judges nothing loads neither scipy nor matplotlib, which takes a second or two. A server loads
    asyncio only with ``--metrics``, which takes a tenth of the server's start."""
    assert printed(f"import sys, {module}; print({library!r} in sys.modules)") == ["False"]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["grpc", "grpc_static", "grpc_aio"])
def test_grpcio_is_loaded_by_its_own_client_alone_and_before_it_connects(transport: str) -> None:
    """The lean client does not load grpcio. The library client loads grpcio before it connects, so that no connection's
    time includes some 50 ms of loading."""
    program = f"""
import sys
from clients.load.run import client_process
from clients.load.plan.load_plan import LoadPlan
print("grpc" in sys.modules)
for kind in ("lean", "library"):
    client_process.connecting(LoadPlan({transport!r}, ("a", 1), 1, {{"lookup": 1.0}}, ("A",), 0, 1, client=kind))
    print("grpc" in sys.modules)
"""
    assert printed(program) == ["False", "False", "True"]
