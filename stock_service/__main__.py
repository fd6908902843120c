"""``python -m stock_service serve --transport NAME …`` serves on any transport; ``list`` prints what can be chosen.

``store`` looks after the file of a store.
"""

import sys

from stock_service.rpc.process.beginning import begin

if __name__ == "__main__":
    begin()  # before the other imports, which take long

from collections.abc import Mapping, Sequence

from stock_service import stock_server
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.process import serving
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.transports import TRANSPORTS
from stock_service.storage import command as store_command
from stock_service.trading.locking import LOCKINGS

PROGRAM = "python -m stock_service"

CHOICES: dict[str, Mapping[str, object]] = {
    "transport": TRANSPORTS,
    "executor": EXECUTORS,
    "store": stock_server.STORES,
    "locking": LOCKINGS,
}
"""What can be chosen by name, by the option that takes it."""


def main(arguments: Sequence[str]) -> None:
    """Serves, which does not return, lists, or looks after a store."""
    if arguments[:1] == ["store"]:
        sys.exit(store_command.main(f"{PROGRAM} store", arguments[1:]))
    description = "The stock service on any transport. serve --transport NAME --help has those of the transport too."
    parser = Parser(PROGRAM, description)
    commands = {
        "serve": "serve on a transport",
        "list": "list what can be chosen",
        "store": "look after a file of stocks",
    }
    help_text = ", ".join(f"{name}: {meaning}" for name, meaning in commands.items())
    parser.add_argument("command", choices=commands, metavar="|".join(commands), help=help_text)
    carried = f"what carries the requests, which serve needs: {', '.join(TRANSPORTS)}"
    parser.add_argument("--transport", choices=TRANSPORTS, metavar="NAME", help=carried)
    asked = [a for a in arguments if a in ("-h", "--help")]
    chosen, rest = parser.parse_known_args([a for a in arguments if a not in asked] or arguments)
    if chosen.command == "serve":
        if chosen.transport is None and not asked:
            parser.error(f"--transport: missing, allowed: {', '.join(TRANSPORTS)}")
        if chosen.transport is None:
            serving.add_server_options(parser, None)
            stock_server.add_stock_options(parser, None)
            parser.print_help()
            return
        rest += asked
        stock_server.main(f"{PROGRAM} serve --transport {chosen.transport}", chosen.transport, rest)
    parser.parse_args(arguments)
    for option, table in CHOICES.items():
        print(f"--{option:10} {' '.join(table)}")


if __name__ == "__main__":
    main(sys.argv[1:])
