"""A new transport is one file and one line. Every program then takes it, and says which functions it lacks.

The file is ``lines_transport.py``. It is put into a copy of the project, so that no table here is changed.
"""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 30.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, with one file and one line more."""
    folder = tmp_path_factory.mktemp("project")
    for package in ("stock_service", "clients"):
        shutil.copytree(ROOT / package, folder / package)
    transports = folder / "stock_service" / "rpc" / "transports"
    shutil.copy(Path(__file__).with_name("lines_transport.py"), transports / "lines.py")
    table = transports / "__init__.py"
    first, line = "TRANSPORTS: dict[str, str] = {\n", '    "lines": "stock_service.rpc.transports.lines",\n'
    assert first in table.read_text()
    table.write_text(table.read_text().replace(first, first + line))
    return folder


def ran(project: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of the copy, when it has ended."""
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=WAIT_S, check=False)


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    """The address of a server on the new transport; it ends as the process contract says."""
    command = [sys.executable, "-m", "stock_service", "serve", "--transport", "lines", "--port", "0", "--backlog", "7"]
    command += ["--store", "memory"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        word, _, where = server.stdout.readline().strip().partition(" ")
        assert word == "ready"
        yield where
        server.send_signal(signal.SIGTERM)
        assert server.wait(WAIT_S) == 0


def test_its_own_options_are_its_servers(project: Path) -> None:
    """The transport's own options are in its server's help and are checked. No other transport has them."""
    serve = ("stock_service", "serve", "--transport")
    assert "--backlog" in ran(project, *serve, "lines", "--help").stdout
    refused = ran(project, *serve, "lines", "--backlog", "0")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "--backlog: got '0', allowed: a whole number from 1 to 1000" in refused.stderr
    assert "--backlog" not in ran(project, *serve, "sockets", "--help").stdout


def test_every_client_takes_it(project: Path, address: str) -> None:
    """The trader asks over it."""
    asked = ran(project, "clients.trader", "--transport", "lines", "--address", address, "lookup", "FishCo")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.startswith("OK (1) FishCo ")


def load(project: Path, address: str, *more: str) -> subprocess.CompletedProcess[str]:
    """A short load over it."""
    short = ("--transport", "lines", "--address", address, "--warm-up-s", "0", "--duration-s", "0.2")
    return ran(project, "clients.load", *short, *more)


def test_its_own_client_sends_a_load(project: Path, address: str) -> None:
    """Its own client sends a load and gives a result, with a note that the transport has no floor."""
    done = load(project, address, "--client", "library", "--fail-if", "errors>0%")
    assert done.returncode == 0, done.stderr
    assert "lookup" in done.stdout
    assert "no floor of the client measured" in done.stderr


def test_the_lean_client_is_refused_in_a_line(project: Path, address: str) -> None:
    """The transport has no codec; nothing is sent that no server would understand."""
    done = load(project, address, "--client", "lean")
    assert done.returncode == 2
    assert done.stderr == (
        "python -m clients.load: --client: got 'lean', allowed: library, since only its own library speaks lines of "
        "text (--help lists the options)\n"
    )
    assert done.stdout == ""


def test_there_is_no_null_server_for_it(project: Path) -> None:
    """Which it says in a line."""
    done = ran(project, "clients.load.run.null_server", "--transport", "lines")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--transport: got 'lines', allowed: one that is spoken without a library" in done.stderr
