"""``--call``: the load client against a server outside this project."""

import json
from pathlib import Path

import pytest

from clients.load import command
from stock_service.rpc.transports import Address
from tests.covering import half
from tests.unit.clients.load.plan.greeter_server import greeter, write_protos
from tests.unit.clients.load.run.fleet_bench import serving

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warmed", "no_leaks")]

HELLO = ("--call", "tests.hello.Greeter/SayHello", "--data", '{"name": {"first": "Ada"}}')


def run(address: Address, *options: str) -> int:
    """A short run, without measuring the floor."""
    where = ["--address", f"{address[0]}:{address[1]}"]
    times = ["--warm-up-s", "0.05", "--duration-s", "0.3", "--no-floor"]
    return command.main([*where, *times, *options])


@pytest.mark.parametrize("client", ["lean", "library"])
def test_any_unary_method_is_measured_with_metadata(
    client: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any unary method is measured by either kind of client, under the method's name, with metadata in every call.
    Without the metadata the server refuses every call."""
    file, sent = tmp_path / "result.json", ("--metadata", "x-tenant=north shore", "--metadata", "x-trace.id=7=7")
    limit = ("--fail-if", "SayHello.p50>1s")
    with greeter(metadata=(("x-tenant", "north shore"), ("x-trace.id", "7=7"))) as address:
        assert run(address, *HELLO, "--client", client, *sent, *limit, "--json", str(file)) == 0
        assert "SayHello" in capsys.readouterr().out
        assert run(address, *HELLO, "--client", client, *sent[:2]) == 1
    (result,) = json.loads(file.read_text())["results"]
    assert result["plan"]["calls"] == {"SayHello": "/tests.hello.Greeter/SayHello"}
    assert result["plan"]["metadata"] == ["x-tenant=north shore", "x-trace.id=7=7"]
    assert result["requests"]["SayHello"]["outcomes"].keys() == {"OK"}
    assert result["errors"] == {}


@pytest.mark.parametrize(("client", "values"), half(("lean", "library"), ((15_327,), (1,) * 425)))
def test_as_much_metadata_as_may_be_sent_arrives(client: str, values: tuple[int, ...]) -> None:
    """The most metadata arrives, in one long value or in many keys, from either kind of client."""
    sent = [(f"{number}", "v" * size) for number, size in enumerate(values)]
    words = [word for key, value in sent for word in ("--metadata", f"{key}={value}")]
    with serving("grpc_static") as address:
        given = "--transport", "grpc_static", "--mix", "lookup", "--client", client
        assert run(address, *given, *words) == 0


def test_a_reply_that_does_not_decode_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reply that does not decode counts as ``invalid_reply``. The method comes from a .proto file."""
    with greeter(reflected=False, reply=b"\n\x05H") as address:
        assert run(address, *HELLO, "--proto", str(write_protos(tmp_path))) == 1
    assert "invalid_reply" in capsys.readouterr().out


def test_a_server_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """An absent server is exit code 3, and one line without advice about stock servers."""
    assert run(("127.0.0.1", 1), *HELLO) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "127.0.0.1:1" in said
    assert "stock" not in said
