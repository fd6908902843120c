"""The trader's command line: its output, and its exit codes."""

import re
from collections.abc import Iterator
from contextlib import closing
from types import ModuleType

import pytest

from clients import connecting, price_updater, trader
from stock_service.rpc.errors import FAULTS, FaultCode, Overloaded
from stock_service.rpc.process.beginning import UNREAD_EXIT
from stock_service.rpc.process.command_line import USAGE_EXIT
from stock_service.rpc.transports.sockets import DEFAULT_PORT
from stock_service.trading.model import LookupReply, Status
from tests.unit.clients.fakes import FakeConnection, service

BAD_QUANTITY = "INVALID_QUANTITY (-2) GameStart; allowed: 1 to 2147483647 shares"
BAD_PRICE = "INVALID_PRICE (-2) GameStart; allowed: $0.00 to $92233720368547758.07"


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeConnection]:
    """The trader's connection, for any options."""
    with closing(FakeConnection(service())) as fake:
        monkeypatch.setattr(trader, "connect", lambda _: fake)
        yield fake


@pytest.mark.parametrize(
    ("arguments", "line", "code"),
    [
        ("lookup GameStart", "OK (1) GameStart $15.99 volume 0 sequence 0", 0),
        ("lookup Nope", "UNKNOWN_STOCK (-1) Nope", 1),
        ("trade GameStart 10 buy", "OK (1) GameStart volume 10 sequence 1", 0),
        ("trade GameStart 10 sell --request-id a", "OK (1) GameStart volume 10 sequence 1", 0),
        ("trade GameStart 1000001 buy", "SUSPENDED (0) GameStart volume 0", 1),
        ("trade GameStart -3 buy", BAD_QUANTITY, 1),
        ("trade GameStart 99999999999 buy", BAD_QUANTITY, 1),
        ("update GameStart 16.50", "OK (1) GameStart $16.50 sequence 1", 0),
        ("update GameStart 2.500", "OK (1) GameStart $2.50 sequence 1", 0),
        ("update GameStart $0", "OK (1) GameStart $0.00 sequence 1", 0),
        ("update GameStart -1", BAD_PRICE, 1),
        ("update GameStart nan", BAD_PRICE, 1),
        ("update GameStart -- -inf", BAD_PRICE, 1),
        ("--transport sockets lookup FishCo", "OK (1) FishCo $42.50 volume 0 sequence 0", 0),
    ],
)
@pytest.mark.usefixtures("connection")
def test_a_reply_is_one_line(arguments: str, line: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A line has the outcome, the assignment's code, and the values of the reply. The exit code is 0 for OK, and 1 for
    other outcomes."""
    assert trader.main(arguments.split()) == code
    assert capsys.readouterr().out == line + "\n"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("lookup", "NAME"),
        ("sell GameStart", "got 'sell', allowed: lookup, trade, update"),
        ("trade GameStart 1.5 buy", "QUANTITY: got '1.5', allowed: a whole number of at most 64 bits; the service"),
        ("trade GameStart 1.5 buy", "the service accepts only 1 to 2147483647 shares"),
        ("trade GameStart 1 hold", "buy|sell: got 'hold', allowed: buy, sell"),
        ("trade GameStart 1", "required: buy|sell"),
        ("update GameStart abc", "DOLLARS"),
        ("update GameStart 1e30", "DOLLARS"),
        ("update GameStart 1.234", "DOLLARS: got '1.234', allowed: dollars with at most two decimals"),
        ("update GameStart 0.005", "DOLLARS: got '0.005', allowed: dollars with at most two decimals"),
        ("lookup GameStart --transport pigeon", "--transport"),
        ("lookup GameStart --address localhost", "--address"),
        ("lookup GameStart --timeout-s 0", "--timeout-s"),
        ("--requests 0", "--requests"),
        ("lookup \udcff", "UTF-8"),
        ("updater --interval-s 0", "--interval-s"),
        ("updater --interval-s nan", "--interval-s"),
        ("updater --duration-s -1", "--duration-s"),
        ("updater --stocks", "--stocks"),
        ("updater --stocks a\nb", "--stocks"),
        ("updater --seed -1", "--seed"),
        ("updater lookup", "lookup"),
    ],
)
def test_bad_usage_is_one_line_that_names_it(arguments: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad usage is one line on standard error that names the bad input, with exit code 2. ``updater``: arguments of the
    price updater."""
    of_updater, words = arguments.startswith("updater "), arguments.removeprefix("updater ").split(" ")
    with pytest.raises(SystemExit) as ended:
        price_updater.main(words) if of_updater else trader.main(words)
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert option in said.err


def test_options_count_before_and_after_the_command() -> None:
    """Options count before and after the command. The command's defaults do not undo an option before it. The default
    address is this machine, with the default port of the transport's server."""
    options = trader._parser().parse_args(["--transport", "sockets"])
    assert connecting.server_address(options) == ("127.0.0.1", DEFAULT_PORT)
    for arguments in ("--address a:1 --timeout-s 2 lookup X", "lookup X --address a:1 --timeout-s 2"):
        options = trader._parser().parse_args(arguments.split())
        assert (options.address, options.timeout_s, options.transport) == (("a", 1), 2.0, "grpc")
    both = "--metadata a=1 lookup --metadata b=2 --metadata b=3 X"
    options = trader._parser().parse_args(both.split())
    assert connecting.credentials(options).metadata == (("a", "1"), ("b", "2"), ("b", "3"))


@pytest.mark.parametrize("code", FaultCode)
def test_a_fault_is_one_line_that_says_what_to_do(
    code: FaultCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault is one line on standard error with its name, its detail and advice, and exit code 3. The server's words
    and a given name are printed without control characters and marks of direction."""
    said = "what\nhappened\x1b]0;title\x07\x1b[2J\x9b1m\r\n\u202eno\u2028\u2029"

    def fails(_: int) -> None:
        raise FAULTS[code](said)

    monkeypatch.setattr(trader, "connect", lambda _: FakeConnection(service(), fails))
    assert trader.main(["lookup", "GameStart"]) == 3
    ended = capsys.readouterr()
    assert ended.out == ""
    assert ended.err.startswith(f"python -m clients.trader: {code.name}: what happened")
    assert ended.err.removesuffix("\n").isprintable()
    assert re.search(r"\\x1b\[2J\\x9b1m \\u202eno.*; \w", ended.err)
    assert trader.lookup_line(said, LookupReply(Status.UNKNOWN_STOCK))[1].isprintable()


def test_the_session_repeats_for_a_seed(connection: FakeConnection, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the same seed gives the same session of the asked length. Another seed gives another."""
    sent = []
    for seed in ("1", "1", "2"):
        connection.calls.clear()
        assert trader.main(["--seed", seed, "--requests", "20"]) == 0
        connection.closed = False
        sent.append([(path, payload) for path, payload, _ in connection.calls])
    assert len(capsys.readouterr().out.splitlines()) == 60
    assert sent[0] == sent[1] != sent[2]


def test_what_is_sent_again_is_counted_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``--retries`` standard error has the number of retries. Without it the first fault is the last."""
    stocks = service()

    def once(number: int) -> None:
        if number == 1:
            raise Overloaded("full")

    for options, code, said in (("", 3, "RESOURCE_EXHAUSTED"), ("--retries 2", 0, "retries of requests: 1")):
        connection = FakeConnection(stocks, once)
        monkeypatch.setattr(trader, "connect", lambda _, connection=connection: connection)
        assert trader.main([*options.split(), "lookup", "FishCo"]) == code
        assert said in capsys.readouterr().err


def test_a_session_trades_the_stocks_that_are_named(
    connection: FakeConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stock of the session that the server lacks is an outcome, with one line of advice on standard error."""
    assert trader.main(["--requests", "9", "--stocks", "FishCo", "BoarCo"]) == 0
    said = capsys.readouterr()
    assert {line.split()[2] for line in said.out.splitlines()} == {"FishCo", "BoarCo"}
    assert said.err == ""
    connection.closed = False
    assert trader.main(["--requests", "9", "--stocks", "Nope"]) == 1
    said = capsys.readouterr()
    assert said.out == "UNKNOWN_STOCK (-1) Nope\n" * 9
    assert said.err == (
        "python -m clients.trader: UNKNOWN_STOCK: the server does not have these stocks; give its own with --stocks\n"
    )


@pytest.mark.parametrize("program", [trader, price_updater])
def test_the_help_has_every_exit_code(program: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The help has every exit code of the program."""
    with pytest.raises(SystemExit):
        program.main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert program.EXITS.keys() == {0, program.OTHER_EXIT, USAGE_EXIT, connecting.FAULT_EXIT, UNREAD_EXIT}
    assert [code for code, meaning in program.EXITS.items() if f" {code}: {meaning}" not in said] == []
