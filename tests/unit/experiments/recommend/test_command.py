"""The command ``recommend``: refusals, output and files, and a real server from its start command."""

import json
import socket
import sys
from pathlib import Path
from statistics import median

import pytest

from experiments.__main__ import main
from experiments.measure.programs import ProgramFailed
from experiments.recommend import asking, command, measured, started
from experiments.recommend.asking import Asked
from stock_service.rpc.process.command_line import Parser

pytestmark = pytest.mark.usefixtures("short_simulations")

DESCRIBED = ["recommend", "--service-ms", "4", "--io-share", "0.95", "--rate-hz", "300", "--target-p99-ms", "20"]


@pytest.mark.slow
def test_a_described_service_is_advised_in_words_numbers_and_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has the advice, then the pools. The JSON has the same sentences, and the figure is drawn."""
    files = ["--cores", "2", "--json", str(tmp_path / "a.json"), "--figure", str(tmp_path / "a.svg")]
    assert main([*DESCRIBED, *files]) == 0
    said = capsys.readouterr().out.splitlines()
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    workers = found["advice"]["chosen"]["workers"]
    assert said[0] == f"Advice: {workers} threads, in one process."
    assert said[: len(found["sentences"])] == found["sentences"]
    assert [line.split()[0] for line in said if line.endswith("advised")] == [str(workers)]
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.slow
def test_a_full_disk_loses_no_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """The advice is printed, though its file cannot be written."""
    with pytest.raises(SystemExit):
        main([*DESCRIBED, "--cores", "2", "--json", "/dev/full"])
    said = capsys.readouterr()
    assert said.out.startswith("Advice: ")
    assert "No space left on device" in said.err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--service-ms", "4", "--address", "127.0.0.1:1"],
        ["--service-ms", "4", "--io-share", "1.5"],
        ["--service-ms", "4", "--call", "a.B/C"],
        ["--address", "127.0.0.1:1", "--io-share", "0.5"],
        ["--address", "127.0.0.1:1", "--cores", "2"],
        ["--address", "127.0.0.1:1", "--data", "{}"],
        ["--address", "127.0.0.1:1", "--call", "a.B/C", "--transport", "sockets"],
        ["--service-ms", "4", "--tls-ca", "ca.pem"],
        ["--address", "127.0.0.1:1", "--tls-key", "key.pem"],
        ["--address", "192.0.2.1:1", "--token-file", "token"],
        ["--address", "127.0.0.1:1", "--tls-ca", "ca.pem", "--call", "a.B/C"],
        ["--address", "127.0.0.1:1", "--metadata", "a=b", "--transport", "sockets"],
        ["--start", "python server.py --port {port}"],
        ["--start", "no-such-program {workers} {port}"],
        ["--start", "'{workers}"],
        ["--service-ms", "4", "--figure", "a.pdf"],
        ["--service-ms", "4", "--json", "no/such/folder/a.json"],
        ["--service-ms", "4", "--target-p99-ms", "0"],
    ],
)
def test_bad_usage_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Bad usage is one line with the value and the allowed ones, and exit code 2, before a measurement."""
    with pytest.raises(SystemExit) as ended:
        main(["recommend", *words])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "allowed: " in said


def test_the_credentials_go_to_the_server(tmp_path: Path) -> None:
    """The certificates, the token and the metadata of the options are those of every load."""
    (tmp_path / "token").write_text("0123456789abcdef" * 4)
    parser = Parser("recommend", "")
    command.add_options(parser)
    shown = ["--tls-ca", "ca.pem", "--token-file", str(tmp_path / "token"), "--metadata", "a=b"]
    asked = command._asked(parser.parse_args(["--address", "127.0.0.1:1", *shown]), ("127.0.0.1", 1))
    sent = asked.plan(1, 0.1).credentials
    assert (sent.authority, sent.token, sent.metadata) == (Path("ca.pem"), "0123456789abcdef" * 4, (("a", "b"),))


@pytest.mark.slow
def test_an_address_where_nobody_listens_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """An address without a server is one line, with exit code 1."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        assert main(["recommend", "--address", f"127.0.0.1:{held.getsockname()[1]}", "--transport", "sockets"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert "UNAVAILABLE" in said
    assert said.endswith("; start that server, or give the address of one that runs")


@pytest.mark.slow
def test_a_server_of_another_protocol_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A server of another protocol is one line, with the spoken protocol and the options that choose it."""
    command = f"{sys.executable} -m stock_service.socket_server --port {{port}} --store memory"
    with started.serving(command, (8,), 1, lambda at: Asked("sockets", at, None, ())) as servers:
        host, port = servers[8].asked.address
        assert main(["recommend", "--address", f"{host}:{port}"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("; does it speak grpc without TLS (--transport, --tls-ca), and know this call (--call)?")


def test_the_help_has_units_examples_and_exit_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The help has three examples, every exit code on a line of its own, and braces for the reader."""
    monkeypatch.setenv("COLUMNS", "100")
    parser = Parser("recommend", "Advises.")
    command.add_options(parser)
    lines = parser.format_help().splitlines()
    examples = lines.index("Examples:")
    assert [line.split()[0] for line in lines[examples + 1 : examples + 4]] == ["recommend"] * 3
    assert [int(line.split()[0]) for line in lines[lines.index("Exit codes:") + 1 :]] == list(command.EXITS)
    assert not [line for line in lines if "{{" in line]


def test_a_slow_server_is_measured_under_fewer_connections() -> None:
    """A slow server has fewer connections, so that the requests that queue for one worker take half a second, and at
    least two for each worker."""
    assert [started.connections(1, response_s) for response_s in (0.001, 0.01, 0.1, 1)] == [128, 50, 5, 2]
    assert [started.connections(64, response_s) for response_s in (0.001, 1)] == [128, 128]


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_server_is_started_measured_checked_and_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A start command of our server that computes for a millisecond gives an advice with a measured rate. Afterwards
    the servers are gone."""
    for name, short in (("WINDOW_S", 0.2), ("ROUNDS", 2), ("TRIES", 1), ("RESPONSES", 10)):
        monkeypatch.setattr(asking, name, short)
    for name, small in (("POOLS", (1, 64)), ("TAIL_S", 0.5), ("TAIL_CONNECTIONS", 16)):
        monkeypatch.setattr(measured, name, small)
    monkeypatch.setattr(started, "CONNECTIONS", 16)
    serve = f"{sys.executable} -m experiments.services serve greeter --transport grpc --cpu-ms 1"
    start = [f"{serve} --workers {{workers}} --port {{port}}", "--call", "helloworld.Greeter/SayHello"]
    assert main(["recommend", "--start", *start, "--json", str(tmp_path / "a.json")]) == 0
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    levels = found["advice"]["levels"]
    rates_hz = {each["at_once"]: median(load["throughput_hz"] for load in each["rounds"]) for each in levels}
    assert found["advice"]["highest_hz"] == rates_hz[found["advice"]["workers"]]
    assert 0.001 < found["advice"]["processor_s"] < 0.01
    assert list(rates_hz) == [1, 64]
    said = capsys.readouterr().out.splitlines()
    assert any(each.startswith("Highest measured rates in one process, by workers: ") for each in said[:3])
    assert said[: len(found["sentences"])] == found["sentences"]


def test_a_command_that_ends_is_named_as_it_was_given() -> None:
    """A command that ends is named as it was given, without the shell before it."""
    with (
        pytest.raises(ProgramFailed, match=r"^python\S* -c pass 2 \d+: ended before it listened, with exit code 0"),
        started.serving(
            f"{sys.executable} -c pass {{workers}} {{port}}", (2,), 1, lambda at: Asked("grpc", at, None, ())
        ),
    ):
        pytest.fail("nothing listens")
