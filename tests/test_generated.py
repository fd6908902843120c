"""The code under ``v1`` and ``helloworld`` is what protoc makes of protos/, and protos/ is as buf wants it.

The code is made with `make generate`, so that there is one way to make it.
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:1")
"""Proxy settings that make every network request fail: no server listens at the address."""


def generated(folder: Path) -> set[str]:
    """The names of the generated files in a folder."""
    packages = [path.relative_to(ROOT / "protos").parent for path in (ROOT / "protos").rglob("*.proto")]
    paths = [path for package in packages for path in (folder / package).glob("*_pb2*.py*")]
    return {str(path.relative_to(folder)) for path in paths}


def generate(project: Path, out: Path) -> None:
    """Runs `make generate` of a project, with this interpreter's environment as it is."""
    make = ["make", "-s", "-o", f"{sys.prefix}/.synced", "generate", f"VENV={sys.prefix}", f"OUT={out}"]
    done = subprocess.run(make, cwd=project, capture_output=True, text=True, env=os.environ | NO_NETWORK, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def buf_lint(project: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """Runs buf on a project, with an empty cache and no network."""
    buf = [str(Path(sys.executable).with_name("buf")), "lint"]
    environment = os.environ | NO_NETWORK | {"BUF_CACHE_DIR": str(cache)}
    return subprocess.run(buf, cwd=project, capture_output=True, text=True, env=environment, check=False)


def differences(one: Path, other: Path) -> list[str]:
    """The generated files that are not in both folders, byte for byte."""
    names = sorted(generated(one) | generated(other))
    _, changed, missing = filecmp.cmpfiles(one, other, names, shallow=False)
    return sorted(changed + missing)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what generating and linting read."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "protos", folder / "protos")
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "buf.yaml", folder)
    return folder


@pytest.mark.slow
def test_the_generated_code_is_up_to_date(tmp_path: Path) -> None:
    """Generating the code again changes no file, and no file is left over."""
    generate(ROOT, tmp_path)
    assert len(generated(tmp_path)) == 4 * len(list((ROOT / "protos").rglob("*.proto")))
    assert differences(ROOT, tmp_path) == []


def test_the_code_runs_on_the_oldest_grpcio_that_is_allowed() -> None:
    """The oldest allowed grpcio's tools have made the code: generated code refuses an older version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = {name: version for name, _, version in (each.partition(">=") for each in project["dependencies"])}
    (made_with,) = re.findall(r"^GRPCIO_OLDEST := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {oldest[name] for name in ("grpcio", "grpcio-health-checking", "grpcio-reflection")} == {made_with}
    code = [(ROOT / name).read_text() for name in generated(ROOT)]
    grpcio = {found for text in code for found in re.findall(r"^GRPC_GENERATED_VERSION = '(.*)'$", text, re.MULTILINE)}
    protobuf = {
        found for text in code for found in re.findall(r"^# Protobuf Python Version: (.*)$", text, re.MULTILINE)
    }
    assert (grpcio, protobuf) == ({made_with}, {oldest["protobuf"]})


@pytest.mark.slow
def test_a_change_is_noticed(project: Path, tmp_path: Path) -> None:
    """A new message makes the code of its proto out of date. A renamed rpc makes the typed stubs out of date."""
    with (project / "protos" / "stock_service" / "v1" / "stock.proto").open("a") as proto:
        proto.write("\n// Planted.\nmessage Planted {}\n")
    echo = project / "protos" / "experiments" / "v1" / "echo.proto"
    assert "rpc Echo(" in echo.read_text()
    echo.write_text(echo.read_text().replace("rpc Echo(", "rpc Planted("))
    generate(project, tmp_path)
    changed = differences(ROOT, tmp_path)
    assert [name for name in changed if name.startswith("stock_service")] == [
        "stock_service/v1/stock_pb2.py",
        "stock_service/v1/stock_pb2.pyi",
    ]
    assert {"experiments/v1/echo_pb2_grpc.py", "experiments/v1/echo_pb2_grpc.pyi"} <= set(changed)
    assert {Path(name).name.partition("_")[0] for name in changed} == {"stock", "echo"}


@pytest.mark.slow
def test_buf_finds_nothing_and_asks_no_network(tmp_path: Path) -> None:
    """protos/ passes buf's STANDARD rules, with neither cache nor network."""
    done = buf_lint(ROOT, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_buf_finds_a_planted_fault(project: Path, tmp_path: Path) -> None:
    """buf reports a message without a comment."""
    with (project / "protos" / "stock_service" / "v1" / "stock.proto").open("a") as proto:
        proto.write("\nmessage Planted {}\n")
    done = buf_lint(project, tmp_path)
    assert done.returncode != 0
    assert "Planted" in done.stdout
