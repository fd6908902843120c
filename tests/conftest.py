"""Fixtures, marks and options of every test here, and the lines that pytest prints beside the results.

- ``no_leaks``: fails the test if threads or file descriptors are left after it, or the process has other cores. All
  tests of ``conformance`` and ``end_to_end`` have it without asking.
- ``rng``: a ``random.Random`` of the run's seed and the test's name. The seed is in pytest's header. ``--seed`` of a
  later run repeats it, for hypothesis too.
- ``postgres``: a running PostgreSQL, shared by all tests of a process. Without PostgreSQL's programs the test is
  skipped.
- ``alone``: a mark. During such a test no other test of the run is under way, in any process of xdist (``turns.py``).
- At the end it lists the tests that should be marked ``slow``. It fails the run where a server left a store in the
  project's folder, since a test started it without ``--store memory``.
"""

import gc
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.leaks import footprint, start_what_stays
from tests.turns import Turns

if TYPE_CHECKING:
    from tests.postgres import Postgres

ROOT = Path(__file__).resolve().parent.parent
SLOW_S = 0.25
"""A test that takes longer should be marked ``slow``."""

_turns = Turns()

LEAK_CHECKED = {"conformance", "end_to_end"}
"""The folders whose every test starts servers or clients."""

_OF_EXTRAS = {"psycopg": "**/test_postgres*.py", "distributed": "**/test_cluster*.py"}
collect_ignore_glob = [files for library, files in _OF_EXTRAS.items() if not find_spec(library)]
"""Files to leave out where the extra ``postgres`` or ``cluster`` is not installed."""

# Deadlines are off: on a busy machine any example may take long, and no test here asserts a speed.
hypothesis.settings.register_profile("stock_service", deadline=None)
hypothesis.settings.load_profile("stock_service")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--seed``, to repeat a run."""
    parser.addoption("--seed", type=int, default=None, help="the seed of a run to repeat; a new one unless told")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Chooses the seed, also hypothesis's. Lets notebooks' kernels import the project, and tests send signals."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:  # as in the background of a shell, and under nohup
            signal.signal(number, handler)
    if config.option.seed is None:
        config.option.seed = random.SystemRandom().randrange(2**32)
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = config.option.seed
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the notebooks ``slow``, since each starts a kernel, and orders the files.

    Files with tests that are ``alone`` come first, with these tests first, so that they do not hold up long tests. Then
    come the files with the most slow tests, so that no process begins with such a file when the others have no work
    left.
    """
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("slow")
    slow = Counter(item.path for item in items if "slow" in item.keywords)
    alone = {item.path for item in items if "alone" in item.keywords}
    items.sort(key=lambda item: (item.path not in alone, -slow[item.path], item.path, "alone" not in item.keywords))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Waits until a test may begin (see ``alone``), outside the test's timeout."""
    _turns.take("alone" in item.keywords)
    try:
        return (yield)
    finally:
        stays = "alone" in item.keywords and nextitem is not None and "alone" in nextitem.keywords
        if not stays:
            _turns.end()


def pytest_collection() -> None:
    """Stops the garbage collector while tests are collected, since all objects stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Freezes all objects before the first test, so that no garbage collection looks at them: each look would take 0.1
    s."""
    gc.enable()
    gc.collect()
    gc.freeze()


def _stores() -> set[tuple[Path, int]]:
    """The files of stores in the project's folder, and when each was last written."""
    return {(path, path.stat().st_mtime_ns) for path in ROOT.glob("*.sqlite3*")}


_stores_before = _stores()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a run that left a store behind."""
    if _stores() - _stores_before:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_report_header(config: pytest.Config) -> str:
    """The seed, at the top of the run."""
    return f"random seed: {config.option.seed} (--seed {config.option.seed} repeats it)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the tests to mark ``slow``. No failure: on a busy machine a quick test may take long."""
    unmarked = [
        report
        for report in terminalreporter.stats.get("passed", [])
        if report.when == "call" and report.duration > SLOW_S and "slow" not in report.keywords
    ]
    if unmarked:
        terminalreporter.section(f"over {SLOW_S} s: mark slow, if it is so on a quiet machine")
        for report in sorted(unmarked, key=lambda report: -report.duration):
            terminalreporter.line(f"{report.duration:6.2f}s {report.nodeid}")
    for path, _ in _stores() - _stores_before:
        terminalreporter.section("a test started a server without --store memory", red=True)
        terminalreporter.line(f"it left {path}")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that ``--seed`` repeats, independent of other tests."""
    return random.Random(f"{request.config.option.seed} {request.node.nodeid}")


@pytest.fixture(scope="session")
def _postgres() -> Iterator["Postgres"]:
    """The one PostgreSQL of this process."""
    pytest.importorskip("psycopg", reason="no psycopg here: uv sync --extra postgres")
    from tests.postgres import Postgres

    with Postgres() as postgres:
        yield postgres


@pytest.fixture
def postgres(_postgres: "Postgres") -> "Postgres":
    """A PostgreSQL that runs."""
    if not _postgres.runs:  # a test that stopped it has failed
        _postgres.start()
    return _postgres


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Fails the test that leaves a thread running or a descriptor open; waits up to 5 s for both to go."""
    start_what_stays()
    before = footprint()
    yield
    left = before.leaks()
    assert not left, f"left behind: {', '.join(left)}"


@pytest.fixture(autouse=True)
def _no_leaks_where_servers_run(request: pytest.FixtureRequest) -> None:
    """Gives ``no_leaks`` to every test of the folders in ``LEAK_CHECKED``."""
    if LEAK_CHECKED & set(request.path.parts):
        request.getfixturevalue("no_leaks")
