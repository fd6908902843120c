"""The program ``python -m experiments COMMAND``: its commands, its exit codes, and its answer to signals and errors."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

from experiments.commands import FAILED_EXIT, PROGRAM
from experiments.measure.programs import ProgramRefused
from stock_service.rpc.errors import StockServiceError, Unavailable, UsageError
from stock_service.rpc.process.beginning import UNREAD_EXIT
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser, refuse

INTERRUPTED_EXIT = 130
"""Exit code after Ctrl-C, SIGTERM or SIGHUP: 128 + SIGINT, as in shells."""

EXITS = {
    0: "done, and all that was checked is as it should be",
    FAILED_EXIT: "a server, client or host failed; verify found a difference; a check of selfcheck failed",
    USAGE_EXIT: "bad usage, a server that takes none of its options, or a folder that cannot be read and written",
    4: "compare --fail-if: B is beyond the limit",
    5: "compare --fail-if: it is not known whether B is beyond the limit",
    INTERRUPTED_EXIT: "Ctrl-C, SIGTERM or SIGHUP",
    UNREAD_EXIT: "the reader of the output has gone",
}
"""Meaning of each exit code."""


def main(arguments: Sequence[str]) -> int:
    """Runs the command that the arguments name, and blocks until the command ends. Returns the process's exit code."""
    try:
        options = parser(arguments[0] if arguments else None).parse_args(arguments)
        code: int = options.do(options)
        print(end="", flush=True)  # here, so that the handlers below see a lost reader or a full disk
    except (UsageError, ProgramRefused) as error:
        refuse(PROGRAM, error)
    except StockServiceError as failed:
        print(f"{PROGRAM}: {failed}{_advice(failed)}", file=sys.stderr)
        return FAILED_EXIT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at exit
        return UNREAD_EXIT
    except OSError as error:  # a failed write names no file, for example on a full disk
        where, why = error.filename or "a file", error.strerror or error
        refuse(PROGRAM, f"{where}: {why}, allowed: a folder to read and write")
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    return code


def _advice(failed: Exception) -> str:
    """Advice if a connection was refused: no server listens. Empty for other errors, whose texts have advice."""
    nobody = isinstance(failed, Unavailable) and "connection refused" in str(failed).lower()
    return "; start that server, or give the address of one that runs" if nobody else ""


def interrupt_on_signals() -> None:
    """Makes SIGTERM and SIGHUP act like Ctrl-C: all started programs stop, and the process ends. An ignored signal
    stays ignored, for example SIGHUP under ``nohup``.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal would interrupt the code that stops the programs
    raise KeyboardInterrupt


COMMANDS = {
    "compare": ("experiments.compare.command", "Compares two servers: which answers sooner, and by how much."),
    "recommend": ("experiments.recommend.command", "Recommends a number of workers for a server, and their kind."),
    "run": ("experiments.commands.run", "Measures a study or a part of a study, draws the figures, writes the report."),
    "record": ("experiments.commands.record", "Repeats the recordings, or some of them, and writes the pages."),
    "list": ("experiments.commands.list_parts", "Prints the studies and parts that can be run."),
    "plot": ("experiments.commands.plot", "Draws the figures of a folder of results again."),
    "report": ("experiments.commands.report", "Writes the report of a folder of results again."),
    "index": ("experiments.commands.index", "Writes one page of all studies: answers, claims, verdicts."),
    "pages": ("experiments.commands.pages", "Writes the numbers of the recordings into pages and notebooks."),
    "verify": ("experiments.commands.verify", "Recomputes a recording, and names each difference."),
    "agree": ("experiments.commands.agree", "Combines whole runs from different hours in one table."),
    "selfcheck": ("experiments.commands.selfcheck", "Checks the instrument against results that are known beforehand."),
}
"""Module and description of every command. The help shows the description. A module has ``add_options`` and ``run``.
Only the module of the given command is loaded, since loading the modules for drawing and statistics takes a second.
"""


def parser(asked: str | None) -> Parser:
    """The parser of all commands. Only the command ``asked`` gets its options, since only its module is loaded."""
    whole = Parser(PROGRAM, "Compares servers, runs the studies, and checks the measurements.", EXITS)
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(name, prog=f"{PROGRAM} {name}", help=text, description=text)
        if name == asked:
            known = import_module(module)
            known.add_options(command)
            command.set_defaults(do=known.run)
    return whole


if __name__ == "__main__":
    interrupt_on_signals()
    sys.exit(main(sys.argv[1:]))
