"""Main program ``python -m stock_service``: ``serve --transport NAME …`` serves the stock service on any transport.

``list`` prints the choices of transports, executors, stores and locking strategies. ``store`` checks, copies or shows
the file of a store, or makes a store in a PostgreSQL database. ``credentials FOLDER`` makes the files to try a server
with TLS and access control.
"""

import shlex
import sys
from pathlib import Path

from stock_service.rpc.process.beginning import begin

if __name__ == "__main__":
    begin()  # before the other imports, which take long

from collections.abc import Mapping, Sequence

from stock_service import stock_server
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process import serving
from stock_service.rpc.process.command_line import Parser, integer, refuse
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
"""Choices that ``list`` prints, by the name of an option. The keys of each table are the allowed values of the option.
"""


def main(arguments: Sequence[str]) -> None:
    """Runs a command: ``serve``, ``list``, ``credentials`` or ``store``. ``serve`` does not return."""
    if arguments[:1] == ["store"]:
        sys.exit(store_command.main(f"{PROGRAM} store", arguments[1:]))
    if arguments[:1] == ["credentials"]:
        make_credentials(arguments[1:])
        return
    description = "The stock service on any transport. serve --transport NAME --help lists every option of that server."
    parser = Parser(PROGRAM, description)
    commands = {
        "serve": "serve on a transport",
        "list": "list what can be chosen",
        "store": "look after a file of stocks, or make a store in a PostgreSQL",
        "credentials": "make credentials for trying a closed server",
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


def make_credentials(arguments: Sequence[str]) -> None:
    """Runs ``credentials FOLDER``: writes certificates, keys, tokens and an access list into the folder. Then prints
    two commands that use these files: one command starts a server, the other calls this server. Ends the program after
    bad usage.
    """
    program = f"{PROGRAM} credentials"
    description = "Makes an authority, a server's certificate, and an admin's and a trader's certificate and token."
    parser = Parser(program, description)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where to write them; new or empty")
    help_text = "names and addresses that the server has besides localhost, 127.0.0.1 and ::1"
    parser.add_argument("--hosts", nargs="+", default=[], metavar="HOST", help=help_text)
    parser.add_argument(
        "--days", type=integer(1, 3650), default=30, metavar="N", help="days for which the certificates are good"
    )
    options = parser.parse_args(arguments)
    folder = shlex.quote(str(options.folder))
    try:
        from stock_service.rpc.process.credentials import make  # needs cryptography

        make(options.folder, options.hosts, options.days)
    except UsageError as error:
        refuse(program, error)
    print(
        f"{PROGRAM} serve --transport sockets --tls-cert {folder}/server.pem --tls-key {folder}/server-key.pem "
        f"--access {folder}/access.toml"
    )
    print(
        f"python -m clients.trader --transport sockets --tls-ca {folder}/ca.pem --token-file {folder}/trader.token "
        "lookup GameStart"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
