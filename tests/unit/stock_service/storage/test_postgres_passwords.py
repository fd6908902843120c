"""The password of a DSN: no message of the program has it."""

from collections.abc import Callable

import pytest

from stock_service.__main__ import main

SECRET = "open-sesame"

SERVE = ("serve", "--transport", "sockets")


@pytest.fixture
def refused(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Gives all output of the program before it ends for bad usage."""

    def run(*command: str) -> str:
        monkeypatch.setattr("sys.argv", ["stock_service", *command])
        with pytest.raises(SystemExit, match=r"^2$"):
            main([*command])
        printed = capfd.readouterr()
        return printed.out + printed.err

    return run


@pytest.mark.parametrize(
    "dsn",
    [
        f"host=127.0.0.1 port=1 password={SECRET}",
        f"user=a password={SECRET} port='",
        SECRET,
        f"postgresql://a:{SECRET}@127.0.0.1:1/b",
        f"//a:{SECRET}@127.0.0.1:1/b",
        f"postgresql://a:{SECRET}@{SECRET}@127.0.0.1/b",
        f"postgresql://a:b/{SECRET}@127.0.0.1/b",
        f"postgresql://a:b:{SECRET}@127.0.0.1/b",
        f"postgresql://a:{SECRET}/b",
        f"host=127.0.0.1,password={SECRET} port=1",
        f"host=127.0.0.1 port=1 dbname='password={SECRET}'",
        f"host=a:{SECRET}@127.0.0.1 port=1",
    ],
)
def test_a_password_is_never_shown(dsn: str, refused: Callable[..., str]) -> None:
    """A password is not shown for a server that is not reached, and not for a DSN that cannot be read."""
    for command in ((*SERVE, "--store", f"postgres:{dsn}"), ("store", "init", dsn), (*SERVE, "--store", dsn)):
        assert SECRET not in refused(*command)


@pytest.mark.parametrize(
    "unquoted",
    [
        f"host=127.0.0.1 port=1 password={SECRET}",
        f"password={SECRET} host=127.0.0.1 port=1",
        f"password=my {SECRET} host=127.0.0.1",
        f"password=my --{SECRET}",
        f"host=127.0.0.1 user=a password = {SECRET}",
        f"host=127.0.0.1 user=a password ={SECRET}",
        f"postgresql://a:my {SECRET}@127.0.0.1:1/b",
    ],
)
def test_a_password_of_a_dsn_without_quotes_is_never_shown(unquoted: str, refused: Callable[..., str]) -> None:
    """The shell makes several arguments of a DSN without quotes. Its password is not shown, and a mistyped option
    before it is named."""
    first, *others = unquoted.split()
    words = ("--store", f"postgres:{first}", *others)
    assert "--prot 0" in refused(*SERVE, "--prot", "0", *words)
    for command in (
        (*SERVE, *words),
        (*SERVE, f"--stor=postgres:{first}", *others),
        ("store", "init", first, *others),
        ("store", "show", first, *others),
        ("store", first, *others, "init"),
        ("store", "backup", unquoted, f"{unquoted}/no"),
    ):
        assert SECRET not in refused(*command)
