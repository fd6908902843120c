"""A new transport is one file and one line. Every program then takes the transport, and says which functions the
transport lacks. The file is ``lines_transport.py``, in a copy of the project.
"""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.process import ROOT, WAIT_S, Ended, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the programs, with one more file and one more line."""
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


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    """The address of a server on the new transport. The server ends by the process contract."""
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
    assert "--backlog" in run(*serve, "lines", "--help", project=project).stdout
    refused = run(*serve, "lines", "--backlog", "0", project=project)
    assert (refused.code, "--backlog: got '0', allowed: a whole number from 1 to 1000" in refused.error) == (2, True)
    assert "--backlog" not in run(*serve, "sockets", "--help", project=project).stdout


def test_the_trader_takes_it(project: Path, address: str) -> None:
    """The trader sends a request over the new transport."""
    words = ("--transport", "lines", "--address", address, "lookup", "FishCo")
    asked = run("clients.trader", *words, project=project)
    assert (asked.code, asked.stdout[:14], asked.stderr) == (0, "OK (1) FishCo ", "")


def load(project: Path, address: str, *more: str) -> Ended:
    """A short load over the new transport."""
    short = ("--transport", "lines", "--address", address, "--warm-up-s", "0", "--duration-s", "0.2")
    return run("clients.load", *short, *more, project=project)


def test_its_own_client_sends_a_load(project: Path, address: str) -> None:
    """Its own client sends a load and gives a result, with a note that the transport has no floor."""
    done = load(project, address, "--client", "library", "--fail-if", "errors>0%")
    assert (done.code, "lookup" in done.stdout) == (0, True), done.stderr
    assert "the client's floor was not measured" in done.stderr


def test_what_needs_a_codec_is_refused_in_a_line(project: Path, address: str) -> None:
    """The transport has no codec: the lean client and the null server are refused, and nothing is sent."""
    done = load(project, address, "--client", "lean")
    said = "--client: got 'lean', allowed: library, since only its own library speaks lines of text"
    assert (done.code, done.stdout, done.error.partition(" (")[0]) == (2, "", f"python -m clients.load: {said}")
    null = run("clients.load.run.null_server", "--transport", "lines", project=project)
    said = "--transport: got 'lines', allowed: one that is spoken without a library"
    assert (null.code, said in null.error) == (2, True)
