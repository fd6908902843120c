"""Promise: fuzzed. The frame decoder and every message get inputs from atheris, which prefers inputs that reach new
code. ``python -m tests.reliability.guided_fuzz frames|messages INPUTS SEED FOLDER`` is a process that fuzzes, from the
inputs in a folder. atheris is in the group ``fuzz``, which ``make check-reliability`` installs. Without atheris nothing
is tried, and a row says so.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.reliability.rows import Row, absent  # and nothing of the service: atheris sees what is imported after it

ROOT = Path(__file__).resolve().parents[2]

ATHERIS = "atheris"

INPUTS, SOME = 100_000, 2_000
"""Number of inputs of each kind."""

HANG_S = 10
"""Time from which an input counts as a hang."""

WAIT_S = 600.0

KINDS = ("frames", "messages")


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for seconds; with ``minutes`` for a minute or two. Every input is drawn, from the effects of earlier
    inputs."""
    if find_spec(ATHERIS) is None:
        how = "not tried: make check-reliability installs it, where the package index has it"
        return [Row(absent(ATHERIS), "every guided input", how, passed=False)]
    return [_row(kind, INPUTS if minutes else SOME, seed) for kind in KINDS]


def _row(kind: str, inputs: int, seed: int) -> Row:
    what, goal = f"guided inputs: {kind}", f"{INPUTS:,} inputs, no crash, no hang"
    with TemporaryDirectory() as folder:
        for number, data in enumerate(_examples(kind)):
            Path(folder, str(number)).write_bytes(data)
        command = [sys.executable, "-m", "tests.reliability.guided_fuzz", kind, str(inputs), str(seed), folder]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    ended = re.search(r"^Done (\d+) runs", done.stderr, re.MULTILINE)
    number = int(ended[1]) if ended else 0
    error = "" if ended else f", seed {seed}: {' '.join(done.stderr.split())[-200:]}"
    return Row(what, goal, f"{number:,}, exit code {done.returncode}{error}", number >= inputs and not done.returncode)


def _examples(kind: str) -> list[bytes]:
    """Requests as clients send them, for atheris to begin with."""
    from stock_service.rpc.wire.framing import encode_request
    from stock_service.trading.service import LOOKUP, TRADE, UPDATE
    from stock_service.v1 import stock_pb2

    trade = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY, request_id="a")
    sent = {
        LOOKUP: stock_pb2.LookupRequest(name="FishCo"),
        TRADE: trade,
        UPDATE: stock_pb2.UpdateRequest(name="FishCo", price_cents=1),
    }
    payloads = {path: message.SerializeToString() for path, message in sent.items()}
    if kind == "frames":
        return [encode_request(1, 0, path.encode(), payload) for path, payload in payloads.items()]
    return [bytes([number]) + payload for number in range(3) for payload in payloads.values()]


def _frames() -> Callable[[bytes], object]:
    from stock_service.rpc.wire.framing import FramingError, request_decoder

    def one(data: bytes) -> None:
        with suppress(FramingError):
            request_decoder().feed(data)

    return one


def _messages() -> Callable[[bytes], object]:
    from stock_service.rpc.errors import Fault
    from stock_service.trading.catalog import MemoryCatalog
    from stock_service.trading.exchange import Exchange
    from stock_service.trading.locking import Mutex
    from stock_service.trading.service import stock_service
    from tests.stores import STOCKS

    methods = stock_service(Exchange(MemoryCatalog(STOCKS, Mutex))).methods.values()
    answers = [method.answer() for method in methods]

    def one(data: bytes) -> None:
        with suppress(Fault):
            answers[data[0] % len(answers) if data else 0](data[1:])

    return one


def main(kind: str, inputs: str, seed: str, folder: str) -> None:
    """Fuzzes, and ends the process."""
    import atheris

    with atheris.instrument_imports(include=["stock_service"]):
        one = {"frames": _frames, "messages": _messages}[kind]()
    options = [f"-runs={inputs}", f"-seed={int(seed) % 2**32}", f"-timeout={HANG_S}", "-max_len=300"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", folder], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
