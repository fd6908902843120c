"""Promise: fuzzed. Mutated requests to the frame decoder and the service's messages, in process; and live sessions.

An input is a session of some requests with bytes changed, left out or put in, fed in two pieces. A live one is sent to
a server on a connection of its own. A frame that is whole is answered or refused by name, and anything else ends its
connection and no other.
"""

import random
from contextlib import suppress

from stock_service.rpc.errors import Fault
from stock_service.rpc.wire.framing import FramingError, RequestFrame, request_decoder
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.service import LOOKUP, TRADE, UPDATE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.raw_socket import RawSocket, frame
from tests.reliability.rows import Row
from tests.reliability.serving import threads_and_descriptors, usual_server, within
from tests.stores import STOCKS

INPUTS, SOME = 1_000_000, 2_000
SESSIONS, FEW = 20_000, 50


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for seconds; with ``minutes`` for one or two. Drawn: every input. Raises what an input did to us."""
    return [_inputs(INPUTS if minutes else SOME, seed), _sessions(SESSIONS if minutes else FEW, seed)]


def _inputs(count: int, seed: int) -> Row:
    """Decoded and answered in this process."""
    service = stock_service(Exchange(MemoryCatalog(STOCKS, Mutex)))
    methods = {path.encode(): method.answer() for path, method in service.methods.items()}
    answered = refused = broken = 0
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        data, decoder = _mutated(rng), request_decoder()
        cut = rng.randrange(len(data) + 1)
        frames: list[RequestFrame] = []
        try:
            for piece in (data[:cut], data[cut:]):
                frames += decoder.feed(piece)
        except FramingError:
            broken += 1
        except Exception as error:
            error.add_note(f"seed {seed}, input {number}")
            raise
        for request in frames:
            try:
                answered += request.method in methods and bool(methods[request.method](request.payload))
            except Fault:
                refused += 1
            except Exception as error:
                error.add_note(f"seed {seed}, input {number}")
                raise
    figure = f"{count:,} inputs: {answered:,} requests answered, {refused:,} refused, {broken:,} sessions ended"
    return Row("mutated requests, in process", f"{INPUTS:,} inputs, no crash, no hang", figure, passed=True)


def _sessions(count: int, seed: int) -> Row:
    """Sent to a server."""
    with usual_server("sockets") as server, RawSocket(server.address) as other:
        other.send(frame(1, LOOKUP))
        assert other.reply()
        before = threads_and_descriptors(server.pid)
        for number in range(count):
            with RawSocket(server.address) as client, suppress(ConnectionError):
                client.send(_mutated(random.Random(f"{seed} live {number}")))
                client.half_close()
                client.rest()
        other.send(frame(2, LOOKUP))
        alive = other.reply() is not None
        settled = within(2.0, lambda: threads_and_descriptors(server.pid) == before)
        ended = server.stopped()
    sound = alive and settled and not ended.code and "Traceback" not in ended.stderr
    figure = f"{count:,} sessions, exit code {ended.code}, {'no' if settled else 'a'} thread or descriptor left"
    return Row("mutated live sessions", f"{SESSIONS:,} sessions, no crash, no hang", figure, sound)


def _mutated(rng: random.Random) -> bytes:
    """Some requests, with up to four mutations."""
    data = bytearray(b"".join(_request(rng) for _ in range(rng.randrange(1, 4))))
    for _ in range(rng.randrange(5)):
        place = rng.randrange(len(data)) if data else 0
        match rng.randrange(4):
            case 0 if data:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + rng.randrange(1, 8)]
            case 2:
                data[place:place] = rng.randbytes(rng.randrange(1, 8))
            case _:
                data[place:place] = data[: rng.randrange(1, 40)]
    return bytes(data)


def _request(rng: random.Random) -> bytes:
    name, number = rng.choice(("FishCo", "GameStart", "", "x" * 65)), rng.choice((0, 1, -1, 2**31, 2**63 - 1))
    side = rng.choice((stock_pb2.SIDE_BUY, stock_pb2.SIDE_SELL, stock_pb2.SIDE_UNSPECIFIED))
    request_id = rng.choice(("", "a", "b" * 65))
    path, message = rng.choice(
        (
            (LOOKUP, stock_pb2.LookupRequest(name=name)),
            (TRADE, stock_pb2.TradeRequest(name=name, quantity=number, side=side, request_id=request_id)),
            (UPDATE, stock_pb2.UpdateRequest(name=name, price_cents=number)),
        )
    )
    return frame(rng.randrange(1, 2**32), path, message.SerializeToString())
