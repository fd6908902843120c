"""The bench: commands of servers, credentials and load plans. Also blocks of a sweep on real servers."""

import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from clients.load.plan.workload import Workload
from clients.load.record.times import Times
from experiments.design.arms import Arm
from experiments.design.factors import FACTORS
from experiments.design.setting import read, setting
from experiments.design.slots import COUNTED_S_MAX
from experiments.design.sweep import Slices, Windows
from experiments.judge import gates
from experiments.measure.bench import CATALOG, bench, exits, server_command
from experiments.measure.load_programs import Ask, LoadProgram, Reading
from experiments.measure.runner import measure_block
from experiments.measure.slices import load_plan
from experiments.results import rows
from experiments.results.machine import cores
from experiments.results.observed import KEPT, SILENT
from experiments.v1.sort_pb2 import MergeSortRequest
from stock_service.rpc.errors import UsageError
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.trading.service import LOOKUP
from tests.unit.experiments.blocks import on_servers


def words(text: str) -> list[str]:
    """Words of the server's command after ``python -m``."""
    command = list(server_command(Arm(read(text)).server, CATALOG))
    assert command[:2] == [sys.executable, "-m"]
    return command[2:]


STOCKS = f"experiments.services serve stock --transport grpc --port 0 --cpus none --catalog {CATALOG} --store memory"
ECHO = "experiments.services serve echo --transport sockets --port 0 --cpus none"
SERVICER = "experiments.services.servicer --transport grpc_static --port 0 --cpus none --executor thread-pool"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("grpc", STOCKS),
        ("grpc clients=5 updater=yes", STOCKS),
        ("grpc workers=4 locking=per-stock", f"{STOCKS} --workers 4 --locking per-stock"),
        ("grpc placement=free", STOCKS),
        ("grpc placement=auto", STOCKS.replace("--cpus none", "--cpus auto")),
        ("sockets service=echo mix=echo", ECHO),
        ("sockets service=echo cpu_ms=12.5", f"{ECHO} --cpu-ms 12.5"),
        ("grpc service=plain-grpcio workers=5", "experiments.peers.python.stock_server --port 0 --workers 5"),
        ("grpc service=grpclib mix=say-hello", "experiments.services.grpc_servers grpclib"),
        ("grpc_static service=greeter-servicer executor=thread-pool", SERVICER),
        ("grpc service=null", "clients.load.run.null_server --transport grpc"),
    ],
)
def test_a_server_has_options_for_the_levels_off_their_defaults(text: str, command: str) -> None:
    """The command has options for the server's levels off their defaults, and no levels of the load. Another project's
    server has few options or none."""
    assert " ".join(words(text)) == command


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("sockets service=plain-grpcio", "plain-grpcio"),
        ("grpc service=plain-grpcio io_ms=1", "plain-grpcio"),
        ("grpc service=grpclib workers=4", "grpclib"),
        ("grpc_static service=grpclib", "grpclib"),
        ("net-rpc", "no peer in python serves stock on net-rpc; there are go-sort-net-rpc"),
        ("net-rpc language=go service=echo mix=echo", "no peer in go serves echo on net-rpc"),
    ],
)
def test_a_level_that_a_server_lacks_is_refused(text: str, refusal: str) -> None:
    """A level that the server does not support is refused with the server. A transport without a peer is refused with
    the names of all peers."""
    with pytest.raises(UsageError, match=refusal):
        words(text)


def test_a_server_of_ours_listens_where_it_is_told() -> None:
    """Our server listens at the given address without TLS, so that other hosts can reach the server."""
    command = server_command(Arm(read("sockets service=echo")).server, CATALOG, listen="192.0.2.9")
    assert " --transport sockets --host 192.0.2.9 --insecure --port 0" in " ".join(command)


def test_every_server_has_a_store_of_its_own_where_the_setting_asks_for_one() -> None:
    """Every server with a store has a new file, in one folder inside the working folder."""
    stores = [Path(words("sockets store=sqlite")[-1].removeprefix("sqlite:")) for _ in range(2)]
    assert stores[0] != stores[1]
    assert stores[0].parent == stores[1].parent
    assert stores[0].parent.is_dir()
    assert stores[0].parent.resolve().parent == Path.cwd()


def test_who_asks_for_a_token_or_speaks_tls_is_loaded_by_clients_that_have_it() -> None:
    """Clients of a server with a token or TLS get new credentials. A user's own server has the given credentials. Load
    programs in C and peers are refused."""

    def asked(text: str, given: ClientCredentials = NO_CREDENTIALS) -> ClientCredentials:
        on = replace(bench(CATALOG), credentials=given)
        return load_plan(Arm(read(text)), ("127.0.0.1", 1), on, 7).credentials

    assert asked("sockets client=lean") == NO_CREDENTIALS
    tls, token = words("sockets access=tls")[-4:], words("sockets access=token")[-2:]
    assert (tls[0], tls[2], token[0]) == ("--tls-cert", "--tls-key", "--access")
    assert asked("sockets access=tls").authority == Path(tls[1]).with_name("ca.pem")
    assert sha256(asked("grpc access=token").token.encode()).hexdigest() in Path(token[1]).read_text()
    given = ClientCredentials(Path("their-ca.pem"))
    assert asked("grpc access=tls service=./theirs", given) == asked("grpc access=tls service=[::1]:5", given) == given
    assert asked("grpc service=./theirs", given) == NO_CREDENTIALS
    assert asked("grpc access=tls", given) == asked("grpc access=tls")
    for text in ("sockets access=tls client=c", "grpc access=tls service=./theirs", "grpc access=token language=go"):
        with pytest.raises(UsageError, match=r"access: got '\w+', allowed: open, but for our own servers"):
            asked(text)


@pytest.mark.parametrize(
    "text", ["grpc service=./theirs", "grpc", "grpc language=go", "grpc access=tls", "http1 access=token"]
)
def test_metadata_is_sent_to_every_server_alike(text: str) -> None:
    """Clients send metadata to every server. Else one side would have smaller requests, and seem faster."""
    given = ClientCredentials(authority=Path("their-ca.pem"), metadata=(("x-tenant", "1"),))
    on = replace(bench(CATALOG), credentials=given)
    assert load_plan(Arm(read(text)), ("127.0.0.1", 1), on, 7).credentials.metadata == given.metadata


@pytest.mark.slow
def test_connections_without_a_reply_are_counted_in_each_window() -> None:
    """If a connection keeps its thread, two of three connections starve on a pool of one. New connections do not."""
    base = "sockets workers=1 dispatch=connection io_ms=5 connections=3"
    arms = tuple(Arm(read(text)) for text in (base, f"{base} connection=per-request"))
    sweep = on_servers(Windows(0.05, 0.2), *arms)
    kept, anew = measure_block(sweep, 1, 1, bench(CATALOG)).arms
    assert [window.starved_clients for window in kept.windows] == [2]
    assert [window.starved_clients for window in anew.windows] == [0]
    assert kept.answered["all"].times.count


def test_a_peer_serves_the_stocks_of_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer of the stock service gets the file of the bench's stocks. Another peer gets no file."""
    monkeypatch.setattr("experiments.peers.is_built", lambda _: True)
    for text, stocks in (
        ("grpc language=go", ["--catalog", str(CATALOG)]),
        ("grpc language=go service=sort mix=merge", []),
    ):
        assert list(server_command(Arm(read(text)).server, CATALOG))[1:][-2 - len(stocks) :] == ["--port", "0", *stocks]


def test_cores_are_drawn_by_the_seed() -> None:
    """The seed selects one core for servers and one for the load. Equal seeds select equal cores."""
    drawn = {seed: bench(CATALOG, seed=seed) for seed in range(20)}
    pairs = {(on.server_cores, on.load_cores) for on in drawn.values()}
    assert {on.server_cores for on in drawn.values()} == {on.load_cores for on in drawn.values()}
    assert len(pairs) == 1 if len(cores()) == 1 else len(pairs) > 1
    assert all(bench(CATALOG, seed=seed) == on for seed, on in drawn.items())


def test_every_level_of_the_load_is_a_field_of_the_plan() -> None:
    """Every factor of the load sets a field of the plan, with a few named exceptions."""
    arm = Arm(
        read(
            "grpc clients=3 connections=2 connection=per-request mix=lookup=1,trade=3 "
            "choice=zipf client=lean rate_hz=50 arrivals=constant deadline_ms=90"
        )
    )
    plan = load_plan(arm, ("127.0.0.1", 1), bench(CATALOG), 7)
    assert (plan.transport, plan.clients, plan.connections_per_client) == ("grpc", 3, 2)
    assert (plan.connection, plan.mix, plan.choice) == ("per-request", {"lookup": 1, "trade": 3}, "zipf")
    assert (plan.client, plan.rate_hz, plan.arrivals, plan.seed) == ("lean", 50, "constant", 7)
    assert plan.timeout_s == pytest.approx(0.09)
    silent = [name for name, factor in FACTORS.items() if factor.of == "load" and not factor.plan(arm.setting[name])]
    told = ["call_style", "headers", "in_flight"]  # to peers' clients and load programs
    assert sorted(silent) == sorted(["array_len", "size", "updater", *told])  # ``request_types``; a process of its own


def test_array_length_and_size_are_of_the_payloads() -> None:
    """Payloads have arrays of the given length. A size is the size of the echo's message. Other request types refuse a
    size."""

    def payloads(text: str) -> list[bytes]:
        plan = load_plan(Arm(read(text)), ("127.0.0.1", 1), bench(CATALOG), 7)
        return [request.payload for request in Workload(plan).population]

    arrays = payloads("grpc service=sort mix=merge array_len=50")
    assert {len(MergeSortRequest.FromString(payload).values) for payload in arrays} == {50}
    assert set(map(len, payloads("sockets service=echo mix=echo size=10000"))) == {10_000}
    with pytest.raises(UsageError, match="size: got '10000', allowed: none with lookup"):
        payloads("sockets size=10000")


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.alone
def test_a_block_is_measured_on_real_servers() -> None:
    """On real servers every arm has kept slices and answered requests, and no gate but gate 3 refuses an arm."""
    loads = ("", "clients=2 updater=yes", "client=lean connections=3", "service=echo mix=echo")
    arms = [Arm(read(f"sockets {load}")) for load in loads]
    patient = Slices(lead_s=0.03, reserve_s=0.06)  # other programs may run beside this test
    sweep = on_servers(patient, *arms, rounds=4)
    told: list[float] = []
    block = measure_block(sweep, 1, 1, bench(CATALOG), told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert len(block.slices.arm) == 16
    assert len(block.rounds) == 4
    for place, arm in enumerate(arms):
        assert (place, KEPT) in zip(block.slices.arm, block.slices.fate, strict=True), arm.name
        assert block.arms[place].answered["all"].times.count > 10
        assert [refusal for refusal in gates.arm_refusals(sweep, block, arm) if refusal.gate != 3] == []
    assert block.arms[3].answered["echo"].outcomes
    stocks, _ = block.servers
    assert stocks is not None
    assert 0 < (stocks.kernel_share or 0) < 1
    assert len(list(rows.rows(sweep, block))) == 8


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_slices_are_as_long_as_servers_of_others_answer_slowly() -> None:
    """Calls that are longer than the whole warm-up make slices longer. Later arms are measured as usual."""
    server = f"{sys.executable} -m experiments.services serve echo --transport sockets --port 0 --io-ms 100"
    slow = setting(service=server, transport="sockets", client="lean", mix="echo")
    arms = (Arm(slow), Arm(slow, 1), Arm(read("sockets service=echo mix=echo client=lean")))
    sweep = on_servers(Slices(), *arms)
    columns = measure_block(sweep, 1, 1, bench(CATALOG)).slices
    lengths = dict(zip(columns.arm, columns.counted_ns, strict=True))
    assert lengths[0] == lengths[1] == COUNTED_S_MAX * 1e9
    assert lengths[2] < COUNTED_S_MAX * 1e9 / 2, "a call behind a slow call would have the longest slice"


@pytest.fixture
def nobody() -> Iterator[str]:
    """Levels of a server that runs already, and that no load program asks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"service=127.0.0.1:{listener.getsockname()[1]}"


def test_a_window_without_a_reply_is_lost_and_counted(nobody: str) -> None:
    """A window without a reply is silent. The block goes on, and has the errors."""
    nothing = LoadProgram(Path(), lambda *_: Reading(0, 0.0, 0.0, 0.0, errors=3, times=Times()))
    arm = Arm(read(f"sockets client=c {nobody}"))
    sweep = on_servers(Windows(0.05, 0.1), arm, rounds=2)
    block = measure_block(sweep, 1, 1, bench(CATALOG, load_programs={"c": nothing}))
    assert block.slices.fate == [SILENT, SILENT]
    assert block.arms[0].answered["all"].errors == {"failed": 6}
    assert [refusal.gate for refusal in gates.errors(sweep.limits, arm, block.arms[0])] == [4]
    assert block.slices.server_cpu_ns == block.slices.client_cpu_ns == [0, 0], "the program does not report these"


def test_a_load_program_sends_in_windows(nobody: str) -> None:
    """A load program gets the levels of its calls. The block has the values that the program reports, and the server's
    processor time."""
    asked: list[Ask] = []
    times = Times()
    times.record(np.array([1000, 2000]))

    def noted(_: Path, ask: Ask) -> Reading:
        asked.append(ask)
        return Reading(2, 9.0, 9.0, 9.0, 2, times, 0.5, 5, never_sent=3, late_us_p99=70.0)

    words = "grpc_static client=grpc-go connections=4 in_flight=16 headers=traceparent deadline_ms=90 rate_hz=80"
    sweep = on_servers(Windows(0.05, 0.1), Arm(read(f"{words} {nobody}")))
    block = measure_block(sweep, 1, 1, bench(CATALOG, load_programs={"grpc-go": LoadProgram(Path(), noted)}))
    (ask,) = asked
    assert (ask.connections, ask.in_flight, ask.headers, ask.path) == (4, 16, "traceparent", LOOKUP)
    assert (ask.deadline_s, ask.rate_hz, ask.arrivals) == (0.09, 80.0, "poisson")
    assert (ask.warm_up_s, ask.duration_s) == (0.05, 0.1)
    (window,) = block.arms[0].windows
    assert (window.rate_hz, window.answered_hz, window.never_sent, window.late_us_p99) == (80.0, 9.0, 3, 70.0)
    assert window.sent_hz == pytest.approx(4 / 0.1)
    assert block.arms[0].answered["all"].errors == {"failed": 2, "never_sent": 3}
    assert (block.slices.fate, block.slices.counts) == ([KEPT], {"lookup": [2], "all": [2]})
    assert (block.slices.requests, block.slices.client_cpu_ns, block.slices.wire_bytes) == ([5], [50_000_000], [0])
    assert block.slices.server_cpu_ns[0] > 0


def test_only_somebodys_command_may_be_ended_by_the_signal() -> None:
    """Our servers must exit with 0 after SIGTERM. A user's command may be ended by the signal."""
    assert exits(Arm(setting(service="python3 server.py", transport="grpc")).server) == (0, -signal.SIGTERM, 143)
    assert exits(Arm(read("grpc")).server) == exits(Arm(read("sockets service=echo")).server) == (0,)
