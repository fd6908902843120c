"""Imports go one way: the contracts of pyproject.toml hold, and each of them catches an import planted against it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = ("stock_service", "clients", "experiments")

PLANTED = [
    ("programs", "stock_service/serving.py", "import clients"),
    ("programs", "clients/__init__.py", "from experiments import results"),
    ("service", "stock_service/catalog.py", "from stock_service import exchange"),
    ("service", "stock_service/service.py", "from stock_service import transports"),
    ("service", "stock_service/storage.py", "from stock_service import stock_server"),
    ("service", "stock_service/somewhere.py", "import os"),
    ("core", "stock_service/rules.py", "import grpc"),
    ("core", "stock_service/catalog.py", "from sqlite3 import connect"),
    ("core", "stock_service/model.py", "from stock_service.v1 import stock_pb2"),
    ("wire", "stock_service/wire/framing.py", "import socket"),
    ("transports", "stock_service/transports/grpc_sync.py", "from stock_service.catalog import MemoryCatalog"),
    ("transports", "stock_service/wire/framing.py", "from stock_service import rules"),
    ("transport", "stock_service/transports/grpc_sync.py", "from stock_service.transports import sockets"),
    ("concurrency", "stock_service/concurrency/static_pool.py", "from stock_service.model import Stock"),
    ("figures", "experiments/figures/style.py", "from experiments import server_process"),
    ("figures", "experiments/stats.py", "import subprocess"),
]


def lint_imports(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on the project in a folder."""
    program = str(Path(sys.executable).with_name("lint-imports"))
    command = [program, "--no-logo", "--no-cache", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_imports_go_one_way() -> None:
    """No contract is broken."""
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("contract", "file", "line"), PLANTED)
def test_a_planted_import_is_found(tmp_path: Path, contract: str, file: str, line: str) -> None:
    """The contract that an import breaks says so."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / file).open("a") as text:
        text.write(f"\n{line}\n")
    done = lint_imports(tmp_path, "--contract", contract)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout


def test_every_contract_has_a_plant() -> None:
    """No contract is taken on trust."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert {contract["id"] for contract in contracts} == {contract for contract, _, _ in PLANTED}


@pytest.mark.slow
def test_a_command_that_judges_nothing_loads_no_statistics() -> None:
    """scipy's take a second or two to load, which every ``--help`` would wait for."""
    program = "import sys, experiments.__main__; print('scipy.stats' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
