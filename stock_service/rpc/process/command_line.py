"""Command lines: argparse with errors of one line, and with the option types of ``rpc/option_types.py``.

An error is one line on standard error, with the option, the given value and the allowed values. Then the program exits
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
"""Exit code for a bad option, argument or file."""

HELP_HINT = " (--help lists the options)"
"""Advice at the end of every error line that ``refuse`` prints."""


_CHOICE = re.compile(r"invalid choice: (.*) \(choose from (.*)\)\Z", re.DOTALL)
"""Pattern of argparse's message for an unknown choice. The method ``error`` gets only this finished message, and must
find the choices in it.
"""

_UNKNOWN = "unrecognized arguments: "
"""Beginning of argparse's message for arguments that no option takes."""

CONNECTS = re.compile(r"postgre\w*:\S|password\s*=|//\S*@", re.IGNORECASE)
"""Pattern of the beginning of a database's connection string, which may contain a password. If the user omits quotes,
the connection string may be several words on the command line. Even its password may be several words.
"""

_CHOICES_MAX = 200
"""Largest number of characters for the list of choices in an error. A longer list ends after the last name that fits.
"""


class Parser(argparse.ArgumentParser):
    """argparse's parser with two changes: an error has one line and not a page, and options cannot be abbreviated."""

    def __init__(self, prog: str, description: str, exits: Mapping[int, str] | None = None) -> None:
        """``exits`` has the meaning of each exit code of the program. The help text ends with these meanings."""
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
                allowed = f"{allowed[:_CHOICES_MAX].rpartition(', ')[0]}, …"  # the help has all choices
            like = meant(choice[1].strip("'"), choices)
            message = f"{message[: choice.start()]}got {choice[1]}{like}, allowed: {allowed}"
        elif message.startswith(_UNKNOWN):
            words = message.removeprefix(_UNKNOWN).split()
            message += meant(words[0].partition("=")[0], self._option_string_actions) if words else "an empty one"
        refuse(self.prog, short(self._without_passwords(message.removeprefix("argument "), sys.argv[1:])))

    def _without_passwords(self, message: str, words: Sequence[str]) -> str:
        """Returns a message in which the words of a connection string are replaced by ``…``. ``words`` is the command
        line. A connection string ends before the next known option in ``words``.
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
    """argparse's help, with the default of each option that has a default. Keeps the line breaks of a text, and leaves
    indented lines unchanged.
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
    """Ends the program because of bad usage: prints one line on standard error, and exits with 2."""
    print(f"{program}: {message}{HELP_HINT}", file=sys.stderr)
    raise SystemExit(USAGE_EXIT)


def check_writable(option: str, file: Path | None) -> None:
    """Raises UsageError if the file of an option cannot be written. Call this before the program does its work."""
    if file is None:
        return
    try:
        with file.open("a"):
            pass
    except OSError as error:
        raise UsageError(option, str(file), f"a file that can be written ({error.strerror})") from error
