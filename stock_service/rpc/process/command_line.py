"""Command lines: argparse with errors of one line, and with the option types of ``rpc/option_types.py``.

An error is one line on standard error: it names the option, the given value and the allowed values. The program exits
with 2. No error shows the password of a database.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from stock_service.rpc.errors import UsageError, short
from stock_service.rpc.option_types import address as address
from stock_service.rpc.option_types import integer as integer
from stock_service.rpc.option_types import meant
from stock_service.rpc.option_types import number as number
from stock_service.rpc.option_types import seconds as seconds

USAGE_EXIT = 2
"""The exit code for a bad option, argument or file."""

HELP_HINT = " (--help lists the options)"
"""End of a line that refuses something."""


_CHOICE = re.compile(r"invalid choice: (.*) \(choose from (.*)\)\Z", re.DOTALL)
"""Pattern of argparse's message for an unknown choice: the message can only be changed after argparse has made it."""

_UNKNOWN = "unrecognized arguments: "
"""argparse's words before arguments that no option takes."""

CONNECTS = re.compile(r"postgre\w*:\S|password\s*=|//\S*@", re.IGNORECASE)
"""Connection string of a database, which may have a password. Without quotes the string is several words, and the
password may be several, too."""

_CHOICES_MAX = 200
"""Largest number of characters for the choices in an error. A list of choices that is too long is cut after a whole
name.
"""


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line instead of a page; options cannot be abbreviated."""

    def __init__(self, prog: str, description: str, exits: Mapping[int, str] | None = None) -> None:
        """``exits`` is the meaning of each exit code, for the end of the help."""
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
            allowed = choice[2].replace("'", "")
            choices = allowed.split(", ")
            if len(allowed) > _CHOICES_MAX:
                allowed = f"{allowed[:_CHOICES_MAX].rpartition(', ')[0]}, …"  # the help has them all
            like = meant(choice[1].strip("'"), choices)
            message = f"{message[: choice.start()]}got {choice[1]}{like}, allowed: {allowed}"
        elif message.startswith(_UNKNOWN):
            words = message.removeprefix(_UNKNOWN).split()
            message += meant(words[0].partition("=")[0], self._option_string_actions) if words else "an empty one"
        refuse(self.prog, short(self._without_passwords(message.removeprefix("argument "), sys.argv[1:])))

    def _without_passwords(self, message: str, words: Sequence[str]) -> str:
        """A message without the words of a connection string. The connection string reaches from its first word to the
        next known option.
        """
        is_secret, shown = False, message
        for word, following in zip(words, [*words, ""][1:], strict=True):
            name, _, value = word.partition("=")
            goes_on = is_secret and name not in self._option_string_actions
            is_secret = goes_on or bool(CONNECTS.search(f"{word}=" if following.startswith("=") else word))
            if is_secret and word:
                secret = value if value and word.startswith("--") and not goes_on else word
                quoted = "|".join(re.escape(each) for each in {secret, repr(secret)[1:-1]})
                shown = re.sub(rf"(?<![^\s'\"=])(?:{quoted})(?![^\s'\"])", "…", shown)
        return shown if shown == message else f"{shown} (a DSN with blanks stands in quotes)"


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Adds an option's default, if there is one, to the option's help. Keeps the lines of a text, and leaves indented
    lines as written.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n".join(line if line[:1] in ("", " ") else fill(line, width, indent) for line in text.splitlines())

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is False or action.default in ("", []):
            return action.help
        if isinstance(action.default, list):
            return f"{action.help} (default: {' '.join(map(str, action.default))})"
        return super()._get_help_string(action)


def refuse(program: str, message: object) -> NoReturn:
    """Ends the program over bad usage: one line on standard error, exit code 2."""
    print(f"{program}: {message}{HELP_HINT}", file=sys.stderr)
    raise SystemExit(USAGE_EXIT)


def check_writable(option: str, file: Path | None) -> None:
    """Refuses a file that cannot be written, before the program does its work. Raises UsageError."""
    if file is None:
        return
    try:
        with file.open("a"):
            pass
    except OSError as error:
        raise UsageError(option, str(file), f"a file that can be written ({error.strerror})") from error
