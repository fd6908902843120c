"""``python -m experiments compare A B | recommend | run NAME | list | plot | report | index | verify | agree | …``."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

from experiments.measure.programs import ProgramRefused
from stock_service.rpc.errors import StockServiceError, Unavailable, UsageError
from stock_service.rpc.process.beginning import UNREAD_EXIT
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser, refuse

PROGRAM = "python -m experiments"

FAILED_EXIT = 1
"""A server or a client failed, or a check found a difference."""

INTERRUPTED_EXIT = 130
"""128 + SIGINT, as shells have it."""

EXITS = {
    0: "done, and all that was checked is as it should be",
    FAILED_EXIT: "a server, client or host failed; verify found a difference; a check of selfcheck did not pass",
    USAGE_EXIT: "bad usage, a server that takes none of its options, or a folder that cannot be read and written",
    4: "compare --fail-if: B is beyond the limit",
    5: "compare --fail-if: it is not known whether B is beyond the limit",
    INTERRUPTED_EXIT: "Ctrl-C, SIGTERM or SIGHUP",
    UNREAD_EXIT: "whoever read the output has gone",
}
"""Meaning of each exit code."""


def main(arguments: Sequence[str]) -> int:
    """Runs the command of the arguments. Gives the process's exit code."""
    try:
        options = parser(arguments[0] if arguments else None).parse_args(arguments)
        code: int = options.do(options)
        sys.stdout.flush()  # here, where it is known what to do if nobody reads
    except (UsageError, ProgramRefused) as error:
        refuse(PROGRAM, error)
    except StockServiceError as failed:
        print(f"{PROGRAM}: {failed}{_advice(failed)}", file=sys.stderr)
        return FAILED_EXIT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at exit
        return UNREAD_EXIT
    except OSError as error:
        refuse(PROGRAM, f"{error.filename}: {error.strerror}, allowed: a folder to read and write")
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    return code


def _advice(failed: Exception) -> str:
    """Advice where no server listens. Other failures have their own."""
    nobody = isinstance(failed, Unavailable) and "connection refused" in str(failed).lower()
    return "; start that server, or give the address of one that runs" if nobody else ""


def interrupt_on_signals() -> None:
    """Makes SIGTERM, and SIGHUP unless it is ignored (``nohup``), act like Ctrl-C: all started programs stop, and the
    process ends."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: another would cut short what stops the programs
    raise KeyboardInterrupt


COMMANDS = {
    "compare": ("experiments.compare.command", "Which of two servers answers sooner, and by how much."),
    "recommend": ("experiments.recommend.command", "How many workers a server should have, and of which kind."),
    "run": ("experiments.commands.run", "Measures a study, or a part of one; draws it and reports."),
    "record": ("experiments.commands.record", "Makes the recordings anew, or some of them, and writes the pages."),
    "list": ("experiments.commands.list_parts", "Prints what can be run."),
    "plot": ("experiments.commands.plot", "Draws the figures of a folder of results anew."),
    "report": ("experiments.commands.report", "Writes the report of a folder of results anew."),
    "index": ("experiments.commands.index", "One page of all studies: answers, claims, verdicts."),
    "pages": (
        "experiments.commands.pages",
        "Writes into pages and notebooks what the recordings give.",
    ),
    "verify": ("experiments.commands.verify", "Computes a recording anew, and names what differs."),
    "agree": ("experiments.commands.agree", "What whole runs from different hours say together."),
    "selfcheck": ("experiments.commands.selfcheck", "Checks the instrument against what is known beforehand."),
}
"""Every command: its module, which has ``add_options`` and ``run``, and its description. Only the module of the asked
command is loaded, since drawing and statistics take a second to load."""


def parser(asked: str | None) -> Parser:
    """The parser of all commands. Only the asked command has its options."""
    whole = Parser(PROGRAM, "Compares servers, runs the studies, and checks what was measured.", EXITS)
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
