"""The command ``compare``: its help, its hints and refusals, and whole comparisons."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.commands import run
from experiments.compare import sweep
from experiments.compare.command import (
    BEGINS,
    EXITS,
    ON_DISK,
    ONE_AT_A_TIME,
    RUNNING,
    UNEQUAL,
    UNREAD,
    add_options,
    hints,
)
from experiments.compare.sweep import side
from experiments.design.factors import FACTORS
from experiments.design.levels import Level
from experiments.measure.programs import Program
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser
from tests.tls import credentials


@pytest.fixture
def help_lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines of ``--help`` in a terminal of usual width."""
    monkeypatch.setenv("COLUMNS", "80")
    parser = Parser("compare", "Compares.")
    add_options(parser)
    return parser.format_help().splitlines()


def test_the_help_names_every_level_of_every_factor(help_lines: list[str]) -> None:
    """Each factor of a server has a line, which may break after a level. Each factor of the load is an option."""
    whole = "\n".join(help_lines).replace("|\n    ", "|").splitlines()
    told = " ".join(" ".join(help_lines).split()).replace("- ", "-")
    for name, factor in FACTORS.items():
        if factor.of == "server":
            assert sum(line.startswith(f"  {name}={factor.kind.levels}") for line in whole) == 1, name
        else:
            assert factor.kind.levels in told, name
    assert "  workers=1..1024 (default: 8)" in help_lines


def test_the_help_has_words_examples_and_exit_codes(help_lines: list[str]) -> None:
    """Each word is explained in a line, as in the help of ``run``. Three examples follow, and a line for each code."""
    start = help_lines.index("Words:") + 1
    assert [line.split()[0] for line in help_lines[start : start + 4]] == ["factor", "level", "arm", "block"]
    parser = Parser("run", "Measures.")
    run.add_options(parser)
    assert set(help_lines[start : start + 4]) <= set(parser.format_help().splitlines())
    examples = help_lines.index("Examples:")
    assert [line.split()[0] for line in help_lines[examples + 1 : examples + 4]] == ["compare"] * 3
    codes = help_lines[help_lines.index("Exit codes:") + 1 :]
    assert [int(line.split()[0]) for line in codes] == list(EXITS)
    assert not [line for line in help_lines if len(line) > 100]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler as cc")
def test_a_load_program_drives_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A load program drives both sides. The files name the load, and the values that it does not record."""
    monkeypatch.setattr(sweep, "WINDOW_ROUNDS", 1)
    monkeypatch.setattr(sweep, "WINDOW_S_MAX", 0.3)
    command = ["compare", "sockets", "sockets workers=1", "--load", "c", "--connections", "4", "--blocks", "1"]
    files = ["--out", str(tmp_path / "seen"), "--json", str(tmp_path / "o.json")]
    assert main([*command, *files, "--fail-if", "slower>5%"]) == 5, "one block decides nothing"
    found = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))
    assert found["load"] == "c connections=4"
    assert all(found["b"][name] > 0 for name in ("mean_us", "p50_us", "server_cpu_us"))
    arms = json.loads((tmp_path / "seen" / "sweep.json").read_text())["arms"]
    assert {arm["levels"]["client"] for arm in arms} == {"c"}
    said = capsys.readouterr().out
    assert "Load: c connections=4." in said
    assert re.search(r"Verdict: none; brackets are the \d[\d.]* % interval", said)
    assert "Not checked, since c does not record these values:" in said


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_called_method_is_named_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A called method has its full name in the output and in the arms, so that it is not a request type of ours."""
    monkeypatch.setattr(sweep, "ROUNDS", 4)
    method = "stock_service.v1.StockService/Lookup"
    command = ["compare", "grpc", "grpc workers=1", "--blocks", "1", "--out", str(tmp_path / "seen")]
    assert main([*command, "--call", method, "--data", '{"name": "GameStart"}']) == 0
    assert f"Load: lean call={method}." in capsys.readouterr().out
    arms = json.loads((tmp_path / "seen" / "sweep.json").read_text())["arms"]
    assert {arm["levels"]["mix"] for arm in arms} == {method}


def test_what_only_a_server_refuses_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """A server that refuses its options leads to exit code 2, with the server's own line. A line before the start says
    what begins."""
    refusal = "shop: --depth: got 0, allowed: 1 or more (--help lists the options)"
    server = f"sh -c 'echo a warning >&2; echo \"{refusal}\" >&2; exit 2'"
    with pytest.raises(SystemExit) as ended:
        main(["compare", server, "sockets", "--transport", "sockets", "--seed", "1"])
    assert ended.value.code == USAGE_EXIT
    begun, said = capsys.readouterr().err.splitlines()
    assert begun == BEGINS.format(started="both servers")
    assert said == f"python -m experiments: a server refused to start: {refusal}"


WHY = "no process on this machine listens on 127.0.0.1:1; it may run in a container"
"""Reason why a server that is not there cannot be read."""

UNREAD_A, UNREAD_B = (UNREAD.format(side=side, why=WHY) for side in "AB")


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("sockets", "grpc", [BEGINS.format(started="both servers")]),
        ("127.0.0.1:1", "127.0.0.1:1", [RUNNING, UNREAD_A, UNREAD_B]),
        ("127.0.0.1:1", "grpc", [BEGINS.format(started="B"), UNEQUAL.format(running="A", started="B"), UNREAD_A]),
    ],
)
def test_it_says_what_each_block_starts(a: str, b: str, said: list[str]) -> None:
    """The first lines name the servers that are started, and the running servers whose processor time cannot be
    read."""
    assert list(hints([side(each, "grpc", {"connections": 2}) for each in (a, b)])) == said


@pytest.mark.parametrize(
    ("a", "b", "load", "said"),
    [
        ("127.0.0.1:1", "grpc", {"mix": "trade", "connections": 2}, ON_DISK),
        ("127.0.0.1:1", "grpc", {"mix": "lookup", "connections": 2}, ""),
        ("grpc", "grpc", {"mix": "trade"}, ""),
        ("sockets workers=1", "sockets workers=16", {}, ONE_AT_A_TIME.format(what="workers")),
        ("sockets workers=1", "sockets workers=16", {"connections": 8}, ""),
        ("sockets workers=1", "grpc workers=16", {}, ""),
        ("./server 1", "./server 16", {}, ONE_AT_A_TIME.format(what="two pools")),
        ("./server 1", "./server 16", {"connections": 8}, ""),
    ],
)
def test_a_load_that_may_hide_a_difference_has_a_hint(a: str, b: str, load: dict[str, Level], said: str) -> None:
    """Trades may be on a disk, on a server that was started by hand. One connection cannot tell two pools apart, unless
    more than the pool differs."""
    found = list(hints([side(each, "grpc", load) for each in (a, b)]))
    hidden = [line for line in found if line == ON_DISK or line.startswith("One connection")]
    assert hidden == ([said] if said else [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('"python \'shop.py" sockets', "service: got "),
        ("'python shop.py \\' sockets", "service: got "),
        ("sockets grpc --data {}", "--data: got '{}', allowed: with --call"),
        ("grpc sockets --tls-ca ca.pem", "--tls-ca: got 'ca.pem', allowed: a command or an address; our own servers"),
        ("grpc sockets --metadata a=b", "--metadata: got 'a=…', allowed: on gRPC and http1"),
        ("sockets [::1]:1 --metadata a=b", "--metadata: got 'a=…', allowed: on gRPC and http1"),
        ("[::1]:1 [::1]:2 --metadata a=b --load h2load", "--metadata: got 'a=b', allowed: --load lean or library"),
        ("[::1]:1 [::1]:2 --tls-ca ca.pem --load h2load", "--tls-ca: got 'ca.pem', allowed: --load lean or library"),
        ("[::1]:1 [::1]:2 --tls-cert c.pem", "--tls-cert: got 'c.pem', allowed: with --tls-ca FILE and --tls-key"),
        ("[::1]:1 192.0.2.1:2 --token-file token", "--token-file: got 'token', allowed: with --tls-ca FILE, or to a"),
        ("[::1]:1 [::1]:2 --tls-ca ca.pem --call a.B/C", "--call: got 'a.B/C', allowed: with --proto FILE"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command whose quotation has no end, an option that would act nowhere, and credentials that no side is shown are
    refused, before anything starts."""
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("0123456789abcdef")
    with pytest.raises(SystemExit) as ended:
        main(["compare", *shlex.split(words)])
    assert ended.value.code == USAGE_EXIT
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"python -m experiments: {said}")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_closed_servers_are_compared_by_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two closed servers are compared by address with every client's options. The processor time is that of their
    processes."""
    monkeypatch.setattr(sweep, "ROUNDS", 12)  # on a busy machine few slices are kept
    folder = credentials()
    serve = [sys.executable, "-m", "stock_service", "serve", "--port", "0", "--store", "memory"]
    serve += ["--tls-cert", f"{folder}/server.pem", "--tls-key", f"{folder}/server-key.pem"]
    serve += ["--access", f"{folder}/access.toml", "--transport", "grpc_static"]
    with Program(serve) as one, Program([*serve, "--workers", "1"]) as other:
        at = [shown_address(each.ready()) for each in (one, other)]
        shown = ["--tls-ca", f"{folder}/ca.pem", "--token-file", f"{folder}/trader.token"]
        assert main(["compare", *at, *shown, "--blocks", "1", "--json", str(tmp_path / "o.json")]) == 0
    found = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))
    assert all(found[each]["server_cpu_us"] > 0 and not found[each]["errors"] for each in "ab")
    assert capsys.readouterr().err.splitlines()[:2] == [RUNNING, ONE_AT_A_TIME.format(what="two pools")]
