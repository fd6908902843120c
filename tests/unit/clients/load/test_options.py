"""The limits of the command line that makes a load plan."""

import argparse
import os
from pathlib import Path

import pytest

from clients.connecting import FAULT_EXIT
from clients.load import command, options
from clients.load.options import BROKEN_EXIT, ERROR_EXIT, INTERRUPTED_EXIT, REFUSED_EXIT
from clients.load.run.search import TRIALS_MAX
from stock_service.rpc.process.command_line import USAGE_EXIT
from stock_service.rpc.transports import TRANSPORTS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--clients 0", "--clients: got '0', allowed: a whole number from 1 to 512"),
        ("--mix sell", "--mix: got 'sell', allowed: each of lookup, trade, update"),
        ("--mix lookup=0", "--mix: got 'lookup=0'"),
        ("--mix lookup,lookup", "--mix: got 'lookup,lookup'"),
        ("--mix lookup=x", "--mix: got 'lookup=x'"),
        ("--cpus 4096", "--cpus: got '4096'"),
        ("--json /no/such/folder/file.json", "--json: got '/no/such/folder/file.json'"),
        ("--duration-s nan", "--duration-s: got 'nan'"),
        ("--warm-up-s -1", "--warm-up-s"),
        ("--timeout-s 100", "--timeout-s: got '100'"),
        ("--connections-per-client 4096 --clients 1 2", "--connections-per-client: got 4096"),
        ("--connection never", "--connection: got 'never', allowed: kept-alive, per-request"),
        ("--transport pigeon", f"--transport: got 'pigeon', allowed: {', '.join(sorted(TRANSPORTS))}"),
        ("--address localhost", "--address: got 'localhost'"),
        ("--quantity 0", "--quantity: got '0'"),
        ("--cluster 192.0.2.1", "--cluster: got '192.0.2.1'"),
        ("--cluster 192.0.2.1:1 --check", "--check: got 'with --cluster', allowed: without --cluster"),
        ("--cluster 192.0.2.1:1 --find-rate --p99-ms 5", "--find-rate: got 'with --cluster'"),
        ("--cluster 192.0.2.1:1 --cpus 0", "--cpus: got 'with --cluster'"),
        ("--cluster 192.0.2.1:1 --tls-ca ca.pem", "--tls-ca: got 'with --cluster'"),
        ("--cluster 192.0.2.1:1 --token-file token", "--token-file: got 'with --cluster'"),
        ("--check --rate-hz 10", "--check: got 'with --rate-hz', allowed: a closed loop"),
        ("--check --call a.B/C", "--check: got 'with --call', allowed: a closed loop"),
        ("--check --history h.json --clients 1 2", "--history: "),
        ("--metadata tenant", "--metadata: got 'tenant', allowed: KEY=VALUE"),
        ("--metadata x-Tenant=1", "--metadata: got 'x-Tenant=1', allowed: KEY=VALUE"),
        ("--metadata authorization=x", "--metadata: got 'authorization=x', allowed: KEY=VALUE"),
        ("--metadata key-bin=x", "--metadata: got 'key-bin=x'"),
        ("--metadata grpc-timeout=1S", "--metadata: got 'grpc-timeout=1S'"),
        ("--metadata keep-alive=5", "--metadata: got 'keep-alive=5'"),
        (f"--metadata k={'v' * 15_328}", "--metadata: got '15,361 bytes', allowed: up to 15,360 bytes in all"),
        ("--transport sockets --client lean --metadata k=1", "--metadata: got 'k=…', allowed: on gRPC and http1"),
        ("--transport sockets --client library --metadata k=1", "--metadata: got 'k=…', allowed: on gRPC and http1"),
        ("--seed 1.5", "--seed: got '1.5'"),
        ("--stocks a\tb", "--stocks"),
        ("--durations 5", "unrecognized arguments"),
        ("--client fastest", "--client: got 'fastest', allowed: lean, library"),
        ("--rate-hz 0", "--rate-hz: got '0', allowed: a number from 0.1 to 1e+06"),
        ("--arrivals bursts", "--arrivals: got 'bursts', allowed: constant, poisson"),
        ("--choice pareto", "--choice: got 'pareto', allowed: uniform, zipf"),
        ("--arrivals constant", "--arrivals: got 'constant', allowed: with --rate-hz R or --find-rate"),
        ("--zipf-s 2", "--zipf-s: got 2.0, allowed: with --choice zipf"),
        ("--zipf-s 0", "--zipf-s: got '0'"),
        ("--csv /no/such/folder/file.csv", "--csv: got '/no/such/folder/file.csv'"),
        ("--hlog /no/such/folder/file.hlog", "--hlog: got '/no/such/folder/file.hlog'"),
        ("--fail-if p99", "--fail-if: got 'p99', allowed: [REQUEST.]p50"),
        ("--fail-if update.p99>1ms --mix lookup,trade", "--fail-if: got 'update.p99>1ms', allowed: requests that"),
        ("--json x --csv y --hlog tests/../x", "--hlog: got 'tests/../x', allowed: a different file than --json"),
        ("--find-rate", "--find-rate: got 'no --p99-ms', allowed: with --p99-ms MS"),
        ("--find-rate --p99-ms 0", "--p99-ms: got '0'"),
        ("--find-rate --p99-ms 10 --rate-hz 5", "--find-rate: got '--rate-hz 5'"),
        ("--find-rate --p99-ms 10 --clients 1 2", "--find-rate: got 'several numbers of clients'"),
        ("--p99-ms 10", "--p99-ms: got 10.0, allowed: with --find-rate"),
        ("--find-rate --p99-ms 5 --duration-s 0.01 --fail-if p99.9>20ms", "--duration-s: got 0.01, allowed: 0.012 or"),
        ("--call Greeter", "--call: got 'Greeter', allowed: package.Service/Method"),
        ("--call a.B/C --mix lookup", "--mix: got 'lookup', allowed: without --call"),
        (
            "--call a.B/C --transport sockets",
            "--call: got 'a.B/C', allowed: with a transport that speaks gRPC, or --proto FILE",
        ),
        (
            "--call a.B/C --fail-if lookup.p99>1ms",
            "--fail-if: got 'lookup.p99>1ms', allowed: requests that are sent: C",
        ),
        ("--call a.B/C --proto no/such.proto", "--proto: got 'no/such.proto', allowed: a file that protoc compiles"),
        ("--data {}", "--data: got '{}', allowed: with --call package.Service/Method"),
        ("--proto x.proto", "--proto: got 'x.proto', allowed: with --call package.Service/Method"),
        ("--address a..b:5000", "--address: got 'a..b:5000', allowed: HOST:PORT"),
        ("--stocks", "--stocks: expected at least one argument"),
    ],
)
def test_bad_input_is_one_line_that_names_it(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad input is one line on standard error that names the input, with exit code 2, before any process starts."""
    with pytest.raises(SystemExit) as ended:
        command.main(arguments.split(" "))
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert said in printed.err


def test_a_mix_is_names_with_weights() -> None:
    """A weight left out is 1."""
    assert options.mix("lookup") == {"lookup": 1.0}
    assert options.mix("lookup=0.5,trade=1.5") == {"lookup": 0.5, "trade": 1.5}
    assert options.mix("update,trade=2") == {"update": 1.0, "trade": 2.0}


def test_the_options_make_the_plan() -> None:
    """The options and the defaults make the plan. The default is a closed loop of one lean client."""
    parser = options.parser(command.PROGRAM)
    plain = options.plan(parser.parse_args([]), 1)
    assert (plain.loop, plain.client, plain.choice, plain.connections) == ("closed", "lean", "uniform", 1)
    assert (plain.arrivals, plain.zipf_s) == ("poisson", 1.0)
    words = "--rate-hz 2500 --arrivals constant --client library --choice zipf --zipf-s 0.8 --seed 7 --timeout-s 2"
    full = options.plan(parser.parse_args(words.split()), 3)
    assert (full.loop, full.rate_hz, full.arrivals, full.client) == ("open", 2500.0, "constant", "library")
    assert (full.choice, full.zipf_s, full.seed, full.timeout_s, full.clients) == ("zipf", 0.8, 7, 2.0, 3)


@pytest.mark.parametrize("name", ["new", "there", "link", "dangling", "/dev/stdout", "/dev/null", "pipe"])
def test_a_file_that_can_be_written_is_taken(tmp_path: Path, name: str) -> None:
    """A file or a stream that can be written is accepted, existing or not, and through a link."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there").touch()
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert options.output_file(str(tmp_path / name)) == tmp_path / name


@pytest.mark.parametrize("name", ["folder", "no/file", "file/file", "astray", ""])
def test_what_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path, name: str) -> None:
    """A folder is refused, and so is a file in a folder that does not exist."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "astray").symlink_to("no/file")
    with pytest.raises(argparse.ArgumentTypeError, match="allowed: a file in a folder that can be written"):
        options.output_file(str(tmp_path / name))


@pytest.mark.parametrize(
    "words",
    [
        "--find-rate --p99-ms 5 --arrivals constant",
        "--rate-hz 5 --arrivals poisson",
        "--choice zipf --zipf-s 2",
        "--json /dev/null --csv /dev/null --mix lookup,trade --fail-if trade.p99>1s --fail-if errors>0",
    ],
)
def test_options_that_go_together_are_taken(words: str) -> None:
    """A search has arrivals too, without a rate. Two results may go to one stream, which is not replaced."""
    options.check(options.parser(command.PROGRAM).parse_args(words.split()))


def test_the_help_says_everything_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The help has every option with a description, in groups, and every exit code."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for group in ("the load:", "the requests:", "the measuring:", "the results:"):
        assert f"\n{group}\n" in text
    assert "(default: )" not in text
    assert "errors>0.1%'" in text
    said = " ".join(text.split())
    constants = (0, ERROR_EXIT, USAGE_EXIT, FAULT_EXIT, BROKEN_EXIT, REFUSED_EXIT, INTERRUPTED_EXIT)
    assert [code for code in constants if f" {code}: {options.EXITS[code]}" not in said] == []
    assert options.EXITS.keys() == set(constants)
    assert f"at most {TRIALS_MAX} trials" in said
