"""``python -m experiments.services serve NAME --transport T …`` serves a study's service; ``list`` prints them.

Keeps the process contract and takes the options of every server here but those that are about stocks.
"""

import sys
from collections.abc import Sequence

from experiments.services import SERVICES
from experiments.services.slowed import EXTRA_US_MAX, slowed
from stock_service.rpc.process import serving
from stock_service.rpc.process.command_line import Parser, number
from stock_service.rpc.transports import TRANSPORTS

PROGRAM = "python -m experiments.services"


def main(arguments: Sequence[str]) -> None:
    """Serves, which does not return, or lists."""
    if list(arguments) == ["list"]:
        print("\n".join(SERVICES))
        return
    description = "A study's service on any transport. Prints 'ready HOST:PORT' once it serves."
    parser = Parser(PROGRAM, description, serving.EXITS)
    parser.add_argument("command", choices=("serve", "list"), help="serve a service, or list them (and nothing else)")
    parser.add_argument("service", choices=SERVICES, help="which service")
    parser.add_argument("--transport", choices=TRANSPORTS, required=True, help="what carries the requests")
    if {"-h", "--help"} & set(arguments) and not any(word.startswith("--transport") for word in arguments):
        parser.parse_args(arguments)  # shows these alone: the others are the transport's
    chosen, _ = parser.parse_known_args([a for a in arguments if a not in ("-h", "--help")] or arguments)
    serving.add_server_options(parser, chosen.transport)
    extra = number(0, EXTRA_US_MAX)
    parser.add_argument("--extra-us", type=extra, default=0.0, help="computes so much longer over every request")
    options = parser.parse_args(arguments)
    serving.leave(
        serving.run(PROGRAM, options.transport, slowed(SERVICES[options.service](), options.extra_us), options)
    )


if __name__ == "__main__":
    main(sys.argv[1:])
