"""The load of both sides of a comparison: the protocols of load programs, and the servers' response times."""

import sys
from io import StringIO
from pathlib import Path

import pytest

from experiments.compare import load
from experiments.compare.load import check, mean_response_s, option
from experiments.compare.outcome import NOT_RECORDED
from experiments.compare.sweep import side
from experiments.design.factors import FACTORS, LOAD_PROGRAMS
from experiments.design.levels import Level
from experiments.judge import gates
from experiments.measure.bench import CATALOG, bench
from experiments.measure.load_programs import present
from stock_service.rpc.errors import Unavailable, UsageError


@pytest.mark.parametrize(
    ("sides", "levels", "said"),
    [
        ("sockets | grpc", {"client": "c"}, "--load: got 'c', allowed: lean, library, h2load, grpc-go for B"),
        ("sockets", {"client": "h2load"}, "--load: got 'h2load', allowed: lean, library, c for A"),
        ("sockets", {"client": "c", "clients": 2}, "--clients: got '2', allowed: 1 with --load c, and --conn"),
        ("grpc", {"client": "h2load", "rate_hz": 9.0}, "--rate-hz: got '9', allowed: none with --load h2load"),
        ("grpc", {"client": "h2load", "headers": "token"}, "--headers: got 'token', allowed: same with --load h2"),
        ("grpc", {"client": "h2load", "deadline_ms": 90.0}, "--deadline-ms: got '90', allowed: none with --load h2"),
        ("sockets", {"client": "c", "connection": "per-request"}, "--connection: got 'per-request'"),
        ("sockets", {"client": "c", "mix": "lookup,trade"}, "--mix: got 'lookup,trade', allowed: one"),
        ("sockets | grpc", {"mix": "echo"}, "--mix: got 'echo', allowed: lookup, trade, update with service=stock"),
        ("grpc service=echo", {}, "--mix: got 'lookup', allowed: echo with service=echo"),
        ("sockets | sockets clients=2", {}, "a load: got 'clients=1 for A, clients=2 for B'"),
    ],
)
def test_a_load_that_cannot_be_is_refused_by_name(sides: str, levels: dict[str, Level], said: str) -> None:
    """An impossible load is refused in one line with the given and the allowed values."""
    one, _, other = sides.partition(" | ")
    with pytest.raises(UsageError) as refused:
        check(side(one, "grpc", levels), side(other or one, "grpc", levels))
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("program", "transport"), [(program, spoken) for program, each in LOAD_PROGRAMS.items() for spoken in each]
)
def test_a_load_program_sends_one_request_on_many_connections(program: str, transport: str) -> None:
    """A load program sends one request on many connections, to any two servers that speak its transport."""
    service, mix = ("entity", "put") if program == "c-http" else ("stock", "trade")
    levels: dict[str, Level] = {"client": program, "connections": 64, "mix": mix, "service": service}
    check(side(transport, "grpc", levels), side("./server", transport, levels))


def test_grpc_go_has_headers_a_deadline_and_calls_at_once() -> None:
    """The client grpc-go takes headers, a deadline and concurrent calls at any level, the same on both sides."""
    levels: dict[str, Level] = {"client": "grpc-go", "headers": "traceparent", "in_flight": 16, "deadline_ms": 90.0}
    check(side("grpc", "grpc", levels), side("grpc_static", "grpc", levels))


def test_every_load_program_says_what_it_does_not_record() -> None:
    """Every load program names the values that it does not record, by existing gates. Its option is a factor of the
    load."""
    assert set(NOT_RECORDED) == set(LOAD_PROGRAMS)
    assert all(lacking.keys() <= gates.NAMES.keys() for lacking in NOT_RECORDED.values())
    assert (option("client"), option("rate_hz")) == ("--load", "--rate-hz")
    assert all(name in FACTORS["client"].kind.levels for name in LOAD_PROGRAMS)


def test_an_absent_load_program_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says how to get the program. Our own client needs no program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="absent: install nghttp2-client"), present(["h2load"], "--load"):
        pass
    with present(["lean"], "--load") as found:
        assert found == {}


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_servers_of_others_are_asked_beforehand() -> None:
    """The response time of a slowed server is measured, though its first call outlasts the first look. Our own servers
    are not asked."""
    command = f"{sys.executable} -m experiments.services serve stock --transport sockets --port 0 --io-ms 99"
    command += " --store memory"
    slow = side(command, "sockets", {"client": "lean"})
    on = bench(CATALOG)
    said = StringIO()
    assert 0.099 < mean_response_s([slow, side("sockets", "grpc", {})], on, said) < 1.0
    assert mean_response_s([side("sockets", "grpc", {})], on, said) == 0
    assert said.getvalue() == ""


@pytest.mark.slow
def test_a_server_that_knows_no_such_stock_is_told_of(tmp_path: Path) -> None:
    """The reply of a server without the stock is valid and fast, so that a line says what was compared."""
    (tmp_path / "other.toml").write_text('[[stocks]]\nname = "Other"\nprice = 1.00\nvolume_limit = 9\n')
    command = f"{sys.executable} -m stock_service.socket_server --port 0 --store memory"
    command += f" --catalog {tmp_path / 'other.toml'}"
    said = StringIO()
    assert mean_response_s([side(command, "sockets", {"client": "lean"})], bench(CATALOG), said) > 0
    assert f"{command} knows no such stock in 100 % of its replies." in said.getvalue()
    assert "--catalog" in said.getvalue()


@pytest.mark.slow
def test_a_server_that_answers_nothing_valid_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without a valid reply is named before the measurement."""
    monkeypatch.setattr(load, "LOOK_S_MAX", 1.0)
    command = f"{sys.executable} -m experiments.services serve echo --transport sockets --port 0"
    with pytest.raises(Unavailable, match=r"no valid reply within 1 s; errors: \d+ \w+"):
        mean_response_s([side(command, "sockets", {"client": "lean"})], bench(CATALOG), StringIO())
