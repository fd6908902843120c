"""Command lines: a fault is one line on standard error with the given and the allowed values, and exit code 2."""

import argparse
import sys
from collections.abc import Callable

import pytest

from stock_service.rpc.option_types import shown_address
from stock_service.rpc.process.command_line import Parser, address, integer, refuse, seconds


def parser() -> Parser:
    """A program with one option of each type."""
    made = Parser("prog", "What it does.")
    made.add_argument("--port", type=integer(0, 65535), default=1)
    made.add_argument("--grace-s", type=seconds(0, 60), default=5.0)
    made.add_argument("--address", type=address)
    made.add_argument("--locking", choices=["mutex", "snapshot"])
    made.add_argument("--study", choices=[*(f"study-{number}" for number in range(100)), "workers"])
    return made


def test_good_options_are_values() -> None:
    """Options are converted, and have their defaults."""
    options = parser().parse_args(["--port", "65535", "--grace-s", "0.5", "--address", "localhost:1"])
    assert (options.port, options.grace_s, options.address) == (65535, 0.5, ("localhost", 1))
    assert parser().parse_args([]).port == 1


def test_help_says_a_default_where_there_is_one() -> None:
    """An empty list, an empty text and None are none."""
    made = Parser("prog", "What it does.")
    for option, default in (("--a", 7), ("--b", []), ("--c", ""), ("--d", None)):
        made.add_argument(option, default=default, help="what")
    assert [line for line in made.format_help().splitlines() if "default" in line] == [
        "  --a A       what (default: 7)"
    ]


def test_a_missing_argument_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing argument is one line, also for an empty command line."""
    monkeypatch.setattr(sys, "argv", ["prog"])
    made = Parser("prog", "What it does.")
    made.add_argument("study")
    with pytest.raises(SystemExit):
        made.parse_args()
    assert capsys.readouterr().err.startswith("prog: the following arguments are required: study")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "65536"], ["--port", "'65536'", "0 to 65535"]),
        (["--port", "eighty"], ["--port", "'eighty'", "0 to 65535"]),
        (["--port", ""], ["--port", "''", "0 to 65535"]),
        (["--port", "8\n0"], ["--port", "'8\\n0'", "0 to 65535"]),
        (["--port"], ["--port"]),
        (["--grace-s", "nan"], ["--grace-s", "'nan'", "from 0 to 60"]),
        (["--grace-s", "-0.1"], ["--grace-s", "'-0.1'", "from 0 to 60"]),
        (["--locking", "none"], ["--locking", "got 'none', allowed: mutex, snapshot"]),
        (["--address", "localhost"], ["--address", "'localhost'", "HOST:PORT"]),
        (["--po", "1"], ["--po"]),
        (["extra"], ["extra"]),
        ([""], ["unrecognized arguments: an empty one (--help"]),  # such as an unset shell variable gives
        (["--prt", "7"], ["unrecognized arguments: --prt 7 (did you mean --port?)"]),
        (["--prt=1", "7"], ["unrecognized arguments: --prt=1 7 (did you mean --port?)"]),
        (["--read-s", "7"], ["prog: unrecognized arguments: --read-s 7 (--help lists"]),  # unlike --grace-s
        (
            ["--study", "none"],
            ["got 'none', allowed: study-0, study-1, ", ", study-20, … (--help lists the options)\n"],
        ),
        (["--study", "worker"], ["got 'worker' (did you mean workers?), allowed: study-0, "]),
    ],
)
def test_a_bad_option_is_one_line_and_exit_2(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The line begins with the program and names option, given and allowed; nothing is on standard output. Of many
    choices whole ones are named. A mistyped option or choice gets the most similar one as advice."""
    with pytest.raises(SystemExit) as left:
        parser().parse_args(arguments)
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("prog: ")
    assert err.count("\n") == 1
    assert [word for word in words if word not in err] == []


@pytest.mark.parametrize(
    "secret",
    [
        "password = S3CRET",
        "password =S3CRET",
        "PASSWORD = S3CRET",
        "host=h password= S3CRET",
        "password=my --S3CRET",
        "password=my --S3CRET=//a@b",
        "password = my  --S3CRET=1",
        "postgresql://a:my -S3CRET --S3CRET@h/b",
    ],
)
def test_no_word_of_a_password_is_shown(
    secret: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word of a DSN without quotes is shown, up to a known option. A mistyped option before the DSN is shown."""
    monkeypatch.setattr("sys.argv", ["prog", "--prt", "7", *secret.split(" "), "--port", "eighty"])
    for arguments, words in ((sys.argv[1:-2], "--prt 7 "), (sys.argv[1:], "--port: got 'eighty'")):
        with pytest.raises(SystemExit):
            parser().parse_args(arguments)
        error = capsys.readouterr().err
        assert words in error
        assert "S3CRET" not in error
    assert "……" not in error


def test_refuse_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    """``refuse`` ends the program for any fault of its usage."""
    with pytest.raises(SystemExit) as left:
        refuse("prog", ValueError("too much"))
    assert left.value.code == 2
    assert capsys.readouterr().err == "prog: too much (--help lists the options)\n"


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "host:", ":1", "host:0", "host:65536", "host:-1", "host:1.5", "host:१", "host:1 ", "host"),
        *("::1:80", "::1", "[::1]", "[::1]80", "[h]:80", "[]:80", "[[::1]]:80", "[::1:80", "[::1]:0"),
        *("a..b:5000", ".b:5000", "a" * 64 + ":5000", "a" * 64 + ".b:5000", "\udcff:5000"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """An address is a host and a port from 1 to 65535. An address of IPv6 is in brackets, which tell its last number
    from a port. A host with an empty or too long label, or that is not text, would raise no OSError at a socket."""
    with pytest.raises(argparse.ArgumentTypeError, match="HOST:PORT"):
        address(text)


@pytest.mark.parametrize(
    ("text", "given"), [("h:1", ("h", 1)), ("127.0.0.1:65535", ("127.0.0.1", 65535)), ("[::1]:80", ("::1", 80))]
)
def test_an_address_is_split_at_its_last_colon(text: str, given: tuple[str, int]) -> None:
    """An address is split at its last colon, so that a host in brackets may have colons."""
    assert address(text) == given
    assert shown_address(given) == text


@pytest.mark.parametrize(("parse", "ends"), [(integer(2, 4), ("2", "4")), (seconds(0.5, 1.5), ("0.5", "1.5"))])
def test_both_ends_of_a_range_are_allowed(parse: Callable[[str], float], ends: tuple[str, str]) -> None:
    """Both ends of a range are allowed."""
    assert [parse(end) for end in ends] == [float(end) for end in ends]
