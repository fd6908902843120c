"""A new part is one file and one line: the recipes of CONTRIBUTING are pasted into a copy of the project and used.

The code of each recipe is taken unchanged from the document. The recipe's line is added to its table.
"""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.process import ROOT, run

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
    """A copy of the programs with one more executor, option, locking strategy, factor and study."""
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
    (design / "queue_limit.py").write_text(recipe("QUEUE_LIMIT"))
    factors = design / "factors.py"
    put(factors, "\n\nFACTORS: ", "\n\nfrom experiments.design.queue_limit import QUEUE_LIMIT  # noqa: E402\n")
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
    done = run("experiments", "run", "workers", "--profile", "smoke", "--out", "seen", project=project, wait_s=WAIT_S)
    assert done.code == 0, done.stderr
    assert "Do more workers answer a Lookup sooner?" in done.stdout
    assert (project / "seen" / "figures" / "question_1.svg").exists()
    assert "queue_limit" in (project / "seen" / "results.csv").read_text().splitlines()[0]
    assert "4 workers" in (project / "seen" / "report.md").read_text()
    said = run("experiments", "verify", "seen", project=project, wait_s=WAIT_S).stdout
    assert said == "seen: everything agrees with the blocks\n"


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
