"""Command lines: argparse with errors of one line, and the option types that every program here shares.

An error names the option, what was given and what is allowed, on standard error, and the program exits with 2.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

from stock_service.rpc.errors import UsageError, short

T = TypeVar("T")

USAGE_EXIT = 2
"""The exit code for a bad option, argument or file."""


_CHOICE = re.compile(r"invalid choice: (.*) \(choose from (.*)\)\Z", re.DOTALL)
"""argparse's words for a choice that there is none of, which it has no other place to change."""


class Parser(argparse.ArgumentParser):
    """argparse, saying what is wrong in one line instead of a page; options cannot be abbreviated."""

    def __init__(self, prog: str, description: str, exits: Mapping[int, str] | None = None) -> None:
        """``exits``: what each exit code is for, said at the end of the help."""
        codes = "; ".join(f"{code}: {meaning}" for code, meaning in (exits or {}).items())
        super().__init__(
            prog=prog,
            description=description,
            epilog=f"Exit codes: {codes}." if codes else None,
            allow_abbrev=False,
            formatter_class=_HelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        choice = _CHOICE.search(message)
        if choice:
            message = f"{message[: choice.start()]}got {choice[1]}, allowed: {choice[2].replace(chr(39), '')}"
        refuse(self.prog, short(message.removeprefix("argument ")))


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Says an option's default where it has one to say."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is False or action.default == "":
            return action.help
        if isinstance(action.default, list):
            return f"{action.help} (default: {' '.join(map(str, action.default))})"
        return super()._get_help_string(action)


def refuse(program: str, message: object) -> NoReturn:
    """Ends the program over bad usage: one line on standard error, exit code 2."""
    print(f"{program}: {message} (--help lists the options)", file=sys.stderr)
    raise SystemExit(USAGE_EXIT)


def check_writable(option: str, file: Path | None) -> None:
    """Refuses a file that cannot be written before the program does its work, not after. Raises UsageError."""
    if file is None:
        return
    try:
        with file.open("a"):
            pass
    except OSError as error:
        raise UsageError(option, str(file), f"a file that can be written ({error.strerror})") from error


def integer(low: int, high: int) -> Callable[[str], int]:
    """An option type: a whole number from ``low`` to ``high``."""
    return _number(int, low, high, f"a whole number from {low} to {high}")


def number(low: float, high: float) -> Callable[[str], float]:
    """An option type: a number from ``low`` to ``high``."""
    return _number(float, low, high, f"a number from {low:g} to {high:g}")


def seconds(low: float, high: float) -> Callable[[str], float]:
    """An option type: a number of seconds from ``low`` to ``high``."""
    return _number(float, low, high, f"seconds, from {low:g} to {high:g}")


def _number(kind: Callable[[str], T], low: T, high: T, allowed: str) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            value = kind(text)
            if low <= value <= high:  # type: ignore[operator]  # int or float; NaN is in no range
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}")

    return parse


def address(text: str) -> tuple[str, int]:
    """An option type: ``HOST:PORT``."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: HOST:PORT, such as 127.0.0.1:50051")
    try:
        host.encode("idna")  # as a socket will, where it would be no OSError
    except UnicodeError as error:
        allowed = "HOST:PORT, with a host of labels of 1 to 63 characters"
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}") from error
    return host, int(port)
