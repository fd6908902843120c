"""An arm's fingerprint changes with the sources that the arm runs, and with nothing else."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.design.setting import read
from experiments.design.sources import counted
from experiments.results.fingerprint import ABSENT, ROOT, UNREAD, differing, files_of, lasting, taken
from stock_service.rpc.transports import TRANSPORTS

SOCKETS = "stock_service/rpc/transports/sockets"

NO_ARMS = (
    "clients/load/history/",  # whether a run was linearizable: no arm asks
    "clients/load/[a-z_]+.py",  # the command
    "clients/load/hosts/",  # load from many hosts: no arm has one
    "clients/[a-z_]+.py",  # people's programs
    "stock_service/(__main__|grpc_server|socket_server|__init__).py",  # arms are started by experiments/services
    "stock_service/storage/(command|postgres|postgres_session).py",  # no arm has a store in a database
    "stock_service/balancers/",  # configurations of other programs: no arm stands behind a balancer
    "stock_service/v1/(__init__|stock_pb2_grpc).py",
    "experiments/services/grpc_aio_pattern.py",  # grpcio's own pattern, which ``compare`` starts by its command
    "experiments/peers/(__main__|__init__).py",  # they build and start peers
    "experiments/peers/go/socketload/",  # clients that ``selfcheck`` has beside ours
    "experiments/peers/python/(__init__|shapes_server).py",
    "experiments/peers/rust/rustfmt.toml",
)
"""Files, as patterns, that no arm's server, client or peer runs."""

LOADED_ONLY = (
    "stock_service/(stock_server|storage/.*|trading/.*|v1/.*|__init__).py",
    "stock_service/rpc/concurrency/.*",
    "stock_service/rpc/server_core/.*",
    "clients/.*",
    "experiments/(__init__|services/.*|v1/.*|helloworld/.*).py",
)
"""Files that a process loads and its arm does not run, by patterns: other executors and services, a server's half."""

CALL = """
import sys
from stock_service.rpc.transports import load
from stock_service.v1 import stock_pb2
transport, port = sys.argv[1:]
connection = load(transport).connect(("127.0.0.1", int(port)), 5.0)
asked = stock_pb2.LookupRequest(name="GameStart").SerializeToString()
connection.call("/stock_service.v1.StockService/Lookup", asked, 5.0)
connection.close()
print(*sys.modules, sep="\\n")
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, which tests may change."""
    root = tmp_path_factory.mktemp("copy")
    for files in files_of().values():
        for name in files:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    return root


def changed(root: Path, name: str, before: str, after: str) -> dict[str, str]:
    """Fingerprint with a change in one file. The change is undone afterwards."""
    file = root / name
    kept = file.read_text(encoding="utf-8")
    assert before in kept
    try:
        file.write_text(kept.replace(before, after, 1), encoding="utf-8")
        return taken(root)
    finally:
        file.write_text(kept, encoding="utf-8")


def modules(printed: str) -> set[str]:
    """Files of this project's modules that are named at the ends of lines."""
    names = re.findall(r"((?:stock_service|clients|experiments)(?:\.\w+)*)$", printed, re.MULTILINE)
    paths = {name.replace(".", "/") for name in names}
    found = (f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py" for path in paths)
    return {name for name in found if (ROOT / name).exists()}


def unlisted(loaded: set[str], arm: str) -> list[str]:
    """Loaded files that neither count for the arm nor are in ``LOADED_ONLY``."""
    rows = files_of()
    own = {name for row in counted(read(arm)) for name in rows.get(row, ())}
    return sorted(name for name in loaded - own if not re.fullmatch("|".join(LOADED_ONLY), name))


def test_every_file_has_its_row_or_a_reason() -> None:
    """Every file of the service, the load client and the peers has a row, or is in ``NO_ARMS``."""
    tracked = subprocess.run(
        ["git", "ls-files", "stock_service", "clients", "experiments/services", "experiments/peers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    known = {name for files in files_of().values() for name in files}
    code = [name for name in tracked if not re.search(r"\.(md|pyi|typed)$|/testdata/|_test\.go$|/test\.sh$", name)]
    assert [name for name in code if name not in known and not re.match("|".join(NO_ARMS), name)] == []
    assert [row for row, files in files_of().items() if not files] == []


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_a_server_and_a_client_load_counts(transport: str, tmp_path: Path) -> None:
    """Every file that a server or a client loads counts for its arm, or is in ``LOADED_ONLY``."""
    serve = ["-m", "experiments.services", "serve", "stock", "--transport", transport, "--port", "0"]
    serve += ["--store", f"sqlite:{tmp_path / 'store'}"]
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", *serve],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip().rpartition(":")[2]
            client = subprocess.run(
                [sys.executable, "-c", CALL, transport, port], capture_output=True, text=True, timeout=30, check=True
            )
        finally:
            server.send_signal(signal.SIGTERM)
            _, told = server.communicate(timeout=30)
    assert unlisted(modules(told), transport) == []
    assert unlisted(modules(client.stdout), transport) == []


@pytest.mark.slow
def test_a_change_touches_the_arms_that_run_it(copy: Path) -> None:
    """A change of a transport affects the arms on this transport. A change of an executor or of the store affects the
    arms with this part."""
    now = taken(copy)
    rows = {
        "stock_service/rpc/transports/http1/requests.py": ("http1",),
        f"{SOCKETS}/frames.py": ("sockets", "sockets executor=thread-pool", "sockets store=sqlite"),
        "stock_service/rpc/concurrency/thread_pool.py": ("sockets executor=thread-pool", "grpc"),
        "stock_service/storage/sqlite_log.py": ("sockets store=sqlite",),
        "stock_service/trading/rules.py": (
            "http1",
            "sockets",
            "sockets executor=thread-pool",
            "sockets store=sqlite",
            "grpc",
        ),
        "clients/load/send/lean.py": (),
    }
    arms = list(dict.fromkeys(arm for touched in rows.values() for arm in touched))
    for name, touched in rows.items():
        other = changed(copy, name, "import", "import os\nimport") if name else now
        assert {arm for arm in arms if differing(other, now, [read(arm)])} == set(touched), name


def test_a_docstring_a_comment_and_the_layout_do_not_count(copy: Path) -> None:
    """A change of a docstring, a comment or the layout does not count. A change of a number counts."""
    name = f"{SOCKETS}/__init__.py"
    now = taken(copy)
    assert changed(copy, name, "The sockets transport", "Another text") == now
    assert changed(copy, name, "DEFAULT_PORT = 50052", "DEFAULT_PORT  =  50052  # a comment\n") == now
    assert changed(copy, name, "50052", "50053") != now


@pytest.mark.parametrize(
    ("program", "arms", "others"),
    [
        ("msgspec", ("http1", "http1 client=lean"), ("sockets", "grpc_static")),
        (
            "hpack",
            ("grpc_static", "grpc_static client=lean", "grpc client=lean", "grpc language=go client=lean"),
            ("sockets", "http1", "grpc", "grpc language=go"),
        ),
    ],
)
def test_a_program_of_others_counts_for_the_arms_that_run_on_it(
    program: str, arms: tuple[str, ...], others: tuple[str, ...]
) -> None:
    """Another project's program counts only for the arms that run on this program."""
    assert taken()[program] != ABSENT
    assert {arm for arm in (*arms, *others) if program in counted(read(arm))} == set(arms)


def test_a_change_during_a_run_is_of_no_version(copy: Path) -> None:
    """A row that changed during a run matches no version, and another row matches both. A second call changes
    nothing."""
    began = taken(copy)
    name, arm = f"{SOCKETS}/frames.py", [read("sockets")]
    assert lasting(began, copy) == began
    (copy / name).write_text("import os\n" + (ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    try:
        kept, now = lasting(began, copy), taken(copy)
        assert lasting(kept, copy) == kept
        (copy / name).write_text("def (", encoding="utf-8")
        unread = lasting(began, copy)
    finally:
        shutil.copy(ROOT / name, copy / name)
    assert differing(kept, began, arm) == differing(kept, now, arm) == (SOCKETS,)
    assert differing(kept, began, [read("http1")]) == ()
    assert all(digest.endswith(UNREAD) for digest in unread.values())


def test_what_differs_is_named(copy: Path) -> None:
    """Differences are named by the folder, or by the program with both versions, if they count for the arm."""
    now = taken(copy)
    other = changed(copy, f"{SOCKETS}/frames.py", "import", "import os\nimport") | {"grpcio": "0.1"}
    assert differing(now, other, [read("sockets")]) == (SOCKETS,)
    assert differing(now, other, [read("grpc")]) == (f"grpcio ({now['grpcio']}, then 0.1)",)
    assert differing(now | {"grpcio": ABSENT}, now, [read("grpc")]) == (f"grpcio (absent, then {now['grpcio']})",)
    assert differing(now, other, [read("http1 client=lean")]) == ()
    assert differing({}, now, [read("sockets language=c client=c")]) != ()
    assert ABSENT not in now.values()
