"""``python -m experiments.services serve NAME --transport T …`` serves a service for the experiments; ``list`` prints
the services.

The command keeps the process contract (``stock_service/rpc/process/serving.py``) and has the options of every server of
this project. With ``stock`` the command serves the stock service, and also has the options for stocks. So this command
can start the servers of all arms of an experiment. An arm is a server under a load. Three options add work to each
request.
"""

import sys

from stock_service.rpc.process.beginning import begin

if __name__ == "__main__":
    begin()  # before the other imports, which take long

from collections.abc import Sequence

from experiments.services import SERVICES, STATEFUL, STOCK, made
from experiments.services.work import WORK_MS_MAX, Work, working
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process import family, serving
from stock_service.rpc.process.command_line import Parser, number, refuse
from stock_service.rpc.transports import TRANSPORTS
from stock_service.stock_server import add_stock_options, serve_stocks

PROGRAM = "python -m experiments.services"


def main(arguments: Sequence[str]) -> None:
    """Runs the command ``serve`` or ``list``. ``serve`` serves until a signal comes, and then exits the process."""
    if list(arguments) == ["list"]:
        print("\n".join((STOCK, *SERVICES)))
        return
    description = "A service that is measured, on any transport. Prints 'ready HOST:PORT' once it serves."
    parser = Parser(PROGRAM, description, serving.EXITS)
    parser.add_argument("command", choices=("serve", "list"), help="serve a service, or list them (and nothing else)")
    parser.add_argument("service", choices=(STOCK, *SERVICES), help="which service")
    carried = f"what carries the requests: {', '.join(TRANSPORTS)}"
    parser.add_argument("--transport", choices=TRANSPORTS, metavar="NAME", required=True, help=carried)
    if {"-h", "--help"} & set(arguments) and not any(word.startswith("--transport") for word in arguments):
        serving.add_server_options(parser, None)
        _add_work(parser)
        add_stock_options(parser, None)
        parser.parse_args(arguments)  # shows the help, without the transport's options
    chosen, _ = parser.parse_known_args([a for a in arguments if a not in ("-h", "--help")] or arguments)
    serving.add_server_options(parser, chosen.transport)
    _add_work(parser)
    if chosen.service == STOCK:
        add_stock_options(parser, chosen.transport)
    options, others = parser.parse_known_args(arguments)
    if others:
        refuse(PROGRAM, UsageError("options", " ".join(others), f"those of {options.service} on {options.transport}"))
    work = Work(options.io_ms, options.cpu_ms, options.hash_ms)
    if options.service == STOCK:
        serve_stocks(PROGRAM, options.transport, options, lambda service: working(service, work))
    if options.service in STATEFUL and options.processes > 1:
        refuse(PROGRAM, UsageError("--processes", options.processes, f"1 of {options.service}, whose state is its own"))
    if family.begins(options):
        serving.leave(family.run(PROGRAM, options))
    service = working(made(options.service), work)
    serving.leave(serving.run(PROGRAM, options.transport, service, options))


def _add_work(parser: Parser) -> None:
    """Adds the options ``--io-ms``, ``--cpu-ms`` and ``--hash-ms``: additional work in every request."""
    for name, text in (
        ("--io-ms", "waits so many milliseconds in every request, off the processor"),
        ("--cpu-ms", "computes so many milliseconds in every request, holding the interpreter (GIL)"),
        ("--hash-ms", "computes so many milliseconds in every request, letting the interpreter go"),
    ):
        text = f"{text} (0 to {WORK_MS_MAX:g})"
        parser.add_argument(name, type=number(0, WORK_MS_MAX), default=0.0, metavar="MS", help=text)


if __name__ == "__main__":
    main(sys.argv[1:])
