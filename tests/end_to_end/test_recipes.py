"""A new part is one file and one line: the recipes of CONTRIBUTING are pasted into a copy of the project and used.

The code of each recipe is taken unchanged from the document. The recipe's line is added to its table. A new transport
is the file ``lines_transport.py``. Every program then takes the transport, and says which functions it lacks.
"""

import ast
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.process import ROOT, Ended, run

WAIT_S = 90.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def recipe(name: str) -> str:
    """The Python example of CONTRIBUTING that defines this name."""
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    codes = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (found,) = [code for code in codes if re.search(rf"^(def|class) {name}\b|^{name} =", code, re.MULTILINE)]
    return str(found)


def option_lines() -> list[tuple[str, str, str]]:
    """The lines of the recipe of an option: for each line, the file, the next line, and the line itself."""
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:rpc|tests)/[^`]+)`[^|]*\| `([^`]+)` \| `([^`]+)` \|$", text, re.MULTILINE)
    return [
        (file if file.startswith("tests") else f"stock_service/{file}", before, line) for file, before, line in rows
    ]


def put(file: Path, before: str, line: str) -> None:
    """Adds a line before the line with this beginning, which must be there once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    file.write_text(text.replace(before, line + before), encoding="utf-8")


def table(file: Path, opening: str, line: str) -> None:
    """Adds a line to a table, behind its opening."""
    text = file.read_text(encoding="utf-8")
    assert text.count(opening) == 1, opening
    file.write_text(text.replace(opening, opening + line), encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the programs with one more transport, executor, option, locking strategy, factor and study."""
    folder = tmp_path_factory.mktemp("project")
    for package in ("stock_service", "clients", "experiments"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("recorded"))
    rpc, trading = folder / "stock_service" / "rpc", folder / "stock_service" / "trading"
    (rpc / "concurrency" / "small_stacks.py").write_text(recipe("small_stacks"))
    executors = rpc / "concurrency" / "__init__.py"
    put(executors, "\n__all__", "from stock_service.rpc.concurrency.small_stacks import small_stacks\n")
    table(
        executors, "EXECUTORS: dict[str, Callable[[int, int], Executor]] = {\n", '    "small-stacks": small_stacks,\n'
    )
    shutil.copy(Path(__file__).with_name("lines_transport.py"), rpc / "transports" / "lines.py")
    transports = rpc / "transports" / "__init__.py"
    table(transports, "TRANSPORTS: dict[str, str] = {\n", '    "lines": "stock_service.rpc.transports.lines",\n')
    for name, before, line in option_lines():
        if not name.startswith("tests"):
            put(folder / name, before, f"{line}\n")
    listening = rpc / "server_core" / "listening.py"
    listening.write_text(listening.read_text().replace("backlog=BACKLOG", "backlog=backlog"))
    body = recipe("Striped")
    locking = trading / "locking.py"
    put(locking, "LOCKINGS", f"{body}\n\n")
    table(locking, re.findall(r"^LOCKINGS.*\{\n", locking.read_text(), re.MULTILINE)[0], '    "striped": Striped,\n')
    design = folder / "experiments" / "design"
    factors, body = design / "factors.py", recipe("QUEUE_LIMIT")
    put(factors, "FACTORS: ", body[body.index("QUEUE_LIMIT = ") :] + "\n\n")  # the file has the imports already
    table(factors, "    for each in (\n", "        QUEUE_LIMIT,\n")
    studies = folder / "experiments" / "studies"
    (studies / "workers").mkdir()
    (studies / "workers" / "__init__.py").write_text(recipe("WORKERS"))
    table(studies / "__init__.py", "= _Studies(\n", '    "workers",\n')
    put(folder / "experiments" / "compare" / "sweep.py", "LOOKS = ", "ROUNDS = 12  # in place of what takes long\n")
    limits = design / "limits.py"  # other tests take the cores and the loopback: no block is left out or run again
    table(limits, "    wire_share: float = ", "1")
    table(limits, "    steal_share: float = ", "1")
    return folder


def test_every_program_takes_the_executor_and_the_locking(project: Path) -> None:
    """Every program's help has the executor and the locking among the choices."""
    listed = run("stock_service", "list", project=project).stdout
    assert "small-stacks" in listed
    assert "striped" in listed


def test_every_server_takes_the_option(project: Path) -> None:
    """Help names the option, the option acts, and a bad value is refused in the words of the recipe's test."""
    lines = option_lines()
    assert len(lines) == 5
    for module in ("stock_service.socket_server", "stock_service.grpc_server"):
        assert "--backlog" in run(module, "--help", project=project).stdout
    (words, *said) = ast.literal_eval(lines[-1][2].strip().rstrip(","))
    refused = run("stock_service.socket_server", *words, project=project)
    assert refused.code == 2
    assert all(each in refused.stderr for each in said)
    listen = """
import socket
from stock_service.rpc.server_core.listening import ServeOptions, listen
listener = listen(ServeOptions(backlog=7))
print(int.from_bytes(listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)[28:], "little"))
"""  # tcpi_sacked, which is the backlog of a socket that listens (tcp_diag in Linux)
    done = subprocess.run([sys.executable, "-c", listen], cwd=project, capture_output=True, text=True, check=False)
    assert done.stdout == "7\n", done.stderr
    assert lines[-1][1] in (ROOT / lines[-1][0]).read_text(encoding="utf-8")


def test_a_comparison_takes_all_of_them(project: Path) -> None:
    """``compare`` takes the executor, the locking and the new factor as words of a setting. Both servers start and
    answer."""
    one, other = "sockets executor=small-stacks locking=striped", "sockets queue_limit=8"
    done = run("experiments", "compare", one, other, "--blocks", "1", project=project, wait_s=WAIT_S)
    assert done.code == 0, done.stderr
    assert re.search(r"^block 1 done · .* \d\.\d+$", done.stderr, re.MULTILINE), f"no ratio: {done.stderr}{done.stdout}"
    assert "sockets queue_limit=8" in done.stdout


def test_the_study_is_run_judged_drawn_and_reported(project: Path) -> None:
    """The new study runs by its name, from the first block to the page, and its recording verifies."""
    refused = run("experiments", "run", "workers", "--profile", "paper", project=project)
    assert "--profile: got 'paper', allowed: smoke or quick for the study workers" in refused.stderr
    done = run("experiments", "run", "workers", "--profile", "smoke", "--out", "seen", project=project, wait_s=WAIT_S)
    assert done.code == 0, done.stderr
    assert "Do more workers answer a Lookup sooner?" in done.stdout
    assert (project / "seen" / "figures" / "question_1.svg").exists()
    assert "queue_limit" in (project / "seen" / "results.csv").read_text().splitlines()[0]
    assert "4 workers" in (project / "seen" / "report.md").read_text()
    said = run("experiments", "verify", "seen", project=project, wait_s=WAIT_S).stdout
    assert said == "seen: everything agrees with the blocks\n"


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    """The address of a server on the new transport. The server ends by the process contract."""
    command = [sys.executable, "-m", "stock_service", "serve", "--transport", "lines", "--port", "0", "--waiting", "7"]
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
    assert "--waiting" in run(*serve, "lines", "--help", project=project).stdout
    refused = run(*serve, "lines", "--waiting", "0", project=project)
    assert (refused.code, "--waiting: got '0', allowed: a whole number from 1 to 1000" in refused.error) == (2, True)
    assert "--waiting" not in run(*serve, "sockets", "--help", project=project).stdout


def test_the_trader_takes_it(project: Path, address: str) -> None:
    """The trader sends a request over the new transport."""
    words = ("--transport", "lines", "--address", address, "lookup", "FishCo")
    asked = run("clients.trader", *words, project=project)
    assert (asked.code, asked.stdout[:14], asked.stderr) == (0, "OK (1) FishCo ", "")


def loaded(project: Path, address: str, *more: str) -> Ended:
    """A short load over the new transport."""
    short = ("--transport", "lines", "--address", address, "--warm-up-s", "0", "--duration-s", "0.2")
    return run("clients.load", *short, *more, project=project)


def test_its_own_client_sends_a_load(project: Path, address: str) -> None:
    """Its own client sends a load and gives a result, with a note that the transport has no floor."""
    done = loaded(project, address, "--client", "library", "--fail-if", "errors>0%")
    assert (done.code, "lookup" in done.stdout) == (0, True), done.stderr
    assert "the client's floor was not measured" in done.stderr


def test_what_needs_a_codec_is_refused_in_a_line(project: Path, address: str) -> None:
    """The transport has no codec: the lean client and the null server are refused, and nothing is sent."""
    done = loaded(project, address, "--client", "lean")
    said = "--client: got 'lean', allowed: library, since only its own library speaks lines of text"
    assert (done.code, done.stdout, done.error.partition(" (")[0]) == (2, "", f"python -m clients.load: {said}")
    null = run("clients.load.run.null_server", "--transport", "lines", project=project)
    said = "--transport: got 'lines', allowed: one that is spoken without a library"
    assert (null.code, said in null.error) == (2, True)


@pytest.mark.parametrize("name", ["small_stacks", "Striped", "QUEUE_LIMIT", "WORKERS"])
def test_a_recipe_keeps_the_rules_of_style(name: str, tmp_path: Path) -> None:
    """A pasted recipe keeps the rules of style. A new file begins with a docstring."""
    code = recipe(name)
    assert name in {"Striped", "QUEUE_LIMIT"} or ast.get_docstring(ast.parse(code))
    file = tmp_path / "pasted.py"
    file.write_text(code)
    rules = ["--config", str(ROOT / "pyproject.toml"), "--ignore", "INP001"]
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *rules, file], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
