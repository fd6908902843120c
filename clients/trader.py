"""A trader: a program that sends one request, or the requests of a small trading session. The trader is the smallest
program that shows the API.

    python -m clients.trader lookup GameStart
    python -m clients.trader trade GameStart 10 buy --request-id 7f3a
    python -m clients.trader update GameStart 16.50
    python -m clients.trader --seed 1 --requests 12 --stocks GameStart FishCo

The trader prints each reply on its own line. A line begins with the outcome and the outcome's code in the assignment.
The exit code is 0 if all outcomes were OK, 1 for another outcome, 2 for bad usage, and 3 for a fault. The trader writes
a fault to standard error in one line. Advice on stocks that the server lacks also goes to standard error. With
``--retries`` requests are sent again (``retrying.py``), and the trader prints the number of retries.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal, InvalidOperation

from clients.connecting import FAULT_EXIT, NO_STOCK, OTHER_EXIT, add_options, connect, exits, explained
from clients.price_updater import stock_name
from clients.retrying import RETRIES_MAX, RetryingExchange
from stock_service.rpc.errors import Fault, UsageError, printable
from stock_service.rpc.process.beginning import printing
from stock_service.rpc.process.command_line import Parser, integer, refuse
from stock_service.trading.catalog_file import DEFAULT_STOCKS, DEFAULT_VOLUME_LIMIT
from stock_service.trading.model import (
    INT64_MAX,
    QUANTITY_MAX,
    LookupReply,
    Side,
    Status,
    TradeReply,
    UpdateReply,
    cents,
    dollars,
)

PROGRAM = "python -m clients.trader"

Answer = tuple[Status, str]
"""Outcome of a request, and the line of output that shows the outcome."""

Request = Callable[[RetryingExchange], Answer]

EXITS = exits("every reply was OK", "no reply, or the server refused the call")

_SIDES = {"buy": Side.BUY, "sell": Side.SELL}

_QUANTITIES = f"1 to {QUANTITY_MAX} shares"
_PRICES = f"$0.00 to {dollars(INT64_MAX)}"
_LIMIT = f"A trade past the stock's limit is refused: SUSPENDED. The usual limit is {DEFAULT_VOLUME_LIMIT:,} shares."

_ALLOWED = {Status.INVALID_QUANTITY: _QUANTITIES, Status.INVALID_PRICE: _PRICES}
"""Text on the allowed values of a field, by the outcome with which the service refuses other values."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; gives its exit code."""
    options = _parser().parse_args(arguments)
    try:
        requests = list(_requests(options))
        return _send(requests, options)
    except UsageError as error:  # the transport's library is missing
        refuse(PROGRAM, error)
    except Fault as fault:
        print(f"{PROGRAM}: {explained(fault, options.transport)}", file=sys.stderr)
        return FAULT_EXIT


def _parser() -> Parser:
    parser = Parser(PROGRAM, "Sends one request. Without a command: a small trading session.", EXITS)
    add_options(parser)
    add = parser.add_argument
    help_text = "how often a request is sent again after a fault that may pass; a trade then has a request id"
    add("--retries", type=integer(0, RETRIES_MAX), default=0, help=help_text)
    add("--seed", type=integer(0, 2**63 - 1), default=0, help="chooses what the session trades")
    add("--requests", type=integer(1, 10_000), default=12, help="requests in the session")
    stocks = [stock.name for stock in DEFAULT_STOCKS]
    add("--stocks", nargs="+", type=stock_name, default=stocks, metavar="NAME", help="stocks that the session trades")
    commands = parser.add_subparsers(dest="command", parser_class=Parser, metavar="lookup|trade|update")

    def command(name: str, description: str) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, description=description, help=description)
        add_options(subparser, repeated=True)
        subparser.add_argument("name", type=_text, metavar="NAME", help="the stock")
        return subparser

    command("lookup", "Shows a stock's price and volume.")
    trade = command("trade", f"Buys or sells. {_LIMIT}")
    trade.add_argument("quantity", type=_quantity, metavar="QUANTITY", help=f"the service takes {_QUANTITIES}")
    trade.add_argument("side", choices=_SIDES, metavar="|".join(_SIDES), help="which way; both raise the volume")
    trade.add_argument("--request-id", type=_text, default="", help="makes the trade safe to send again")
    update = command("update", "Sets a stock's price.")
    update.add_argument(
        "price_cents", type=_price_cents, metavar="DOLLARS", help="the new price, with at most two decimals"
    )
    return parser


def _requests(options: argparse.Namespace) -> Iterator[Request]:
    """Requests of the command line: one request, or the requests of a session."""
    match options.command:
        case "lookup":
            yield _lookup(options.name)
        case "trade":
            yield _trade(options.name, options.quantity, _SIDES[options.side], options.request_id)
        case "update" if options.price_cents is None:  # NaN or infinity, which no message can carry
            yield lambda _: update_line(options.name, 0, UpdateReply(Status.INVALID_PRICE))
        case "update":
            yield lambda exchange: update_line(
                options.name, options.price_cents, exchange.update(options.name, options.price_cents)
            )
        case _:
            yield from session(random.Random(options.seed), options.requests, options.stocks)


def session(rng: random.Random, count: int, stocks: Sequence[str]) -> Iterator[Request]:
    """A trading session: Lookups of these stocks, and trades of a few shares."""
    for _ in range(count):
        name = rng.choice(stocks)
        yield _lookup(name) if rng.random() < 0.5 else _trade(name, rng.randint(1, 10), rng.choice(list(Side)))


def _lookup(name: str) -> Request:
    return lambda exchange: lookup_line(name, exchange.lookup(name))


def _trade(name: str, quantity: int, side: Side, request_id: str = "") -> Request:
    return lambda exchange: trade_line(name, exchange.trade(name, quantity, side, request_id))


def _send(requests: Sequence[Request], options: argparse.Namespace) -> int:
    """Sends the requests one after another, and prints each reply at once. Returns the exit code."""
    code, lacking = 0, False
    with closing(RetryingExchange(lambda: connect(options), options.timeout_s, options.retries)) as exchange:
        try:
            for request in requests:
                status, line = request(exchange)
                print(line, flush=True)
                code = code if status is Status.OK else OTHER_EXIT
                lacking = lacking or (status is Status.UNKNOWN_STOCK and options.command is None)
        finally:
            if exchange.retried:
                print(f"{PROGRAM}: retries of requests: {exchange.retried}", file=sys.stderr)
    if lacking:
        print(f"{PROGRAM}: UNKNOWN_STOCK: {NO_STOCK}", file=sys.stderr)
    return code


def lookup_line(name: str, reply: LookupReply) -> Answer:
    """Line on a Lookup: ``OK (1) GameStart $15.99 volume 12 sequence 7``."""
    if reply.status is Status.UNKNOWN_STOCK:
        return _answer(reply.status, name)
    price = dollars(reply.price_cents)
    return _answer(reply.status, name, price, f"volume {reply.volume} sequence {reply.sequence}")


def trade_line(name: str, reply: TradeReply) -> Answer:
    """Line on a trade: ``OK (1) GameStart volume 22 sequence 8``. A refused trade has no sequence."""
    match reply.status:
        case Status.OK:
            return _answer(reply.status, name, f"volume {reply.volume} sequence {reply.sequence}")
        case Status.SUSPENDED:
            return _answer(reply.status, name, f"volume {reply.volume}")
        case _:
            return _answer(reply.status, name)


def update_line(name: str, price_cents: int, reply: UpdateReply) -> Answer:
    """Line on an Update: ``OK (1) GameStart $16.50 sequence 9``. A refused Update has neither price nor sequence."""
    if reply.status is not Status.OK:
        return _answer(reply.status, name)
    return _answer(reply.status, name, dollars(price_cents), f"sequence {reply.sequence}")


def _answer(status: Status, *words: str) -> Answer:
    allowed = f"; allowed: {_ALLOWED[status]}" if status in _ALLOWED else ""
    return status, printable(" ".join((f"{status.name} ({status.assignment_code})", *words)) + allowed)


def _text(text: str) -> str:
    """Parses an argument of text. Raises ArgumentTypeError for text that a message cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: text in UTF-8") from None
    return text


def _quantity(text: str) -> int:
    """Parses a number of shares. Raises ArgumentTypeError for a number that a message cannot hold. The service checks
    if the number is a valid quantity."""
    try:
        return integer(-INT64_MAX, INT64_MAX)(text)
    except argparse.ArgumentTypeError as error:
        allowed = f"a whole number of at most 64 bits; the service accepts only {_QUANTITIES}"
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}") from error


def _price_cents(text: str) -> int | None:
    """Parses a price in dollars, and gives the price in cents. None for NaN and infinity, which are no prices."""
    try:
        exact = Decimal(text.strip().removeprefix("$"))
        if not exact.is_finite():
            return None
        price_cents = cents(text)
        if exact == Decimal(price_cents).scaleb(-2):
            return price_cents
    except (InvalidOperation, ValueError):
        pass  # refused below
    allowed = f"dollars with at most two decimals, such as 15.99, up to {dollars(INT64_MAX)}"
    raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}")


if __name__ == "__main__":
    sys.exit(printing(main))
