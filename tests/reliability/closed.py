"""Promise: closed to strangers. Every credential is tried on every method, transport and mode of TLS.

The table of outcomes, and the code that tries a cell, come from ``tests/conformance/test_access.py``. Tokens and a key
are searched for in logs, replies, metrics, a timeline, the store's files and the process's visible state.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from stock_service.rpc.transports import TRANSPORTS
from tests.conformance.test_access import KINDS, MODES, REQUESTS, TABLE, made, test_the_table
from tests.end_to_end.process import run, serve
from tests.end_to_end.test_secured import test_no_secret_is_said
from tests.reliability.rows import Row

EVERYWHERE = "0.0.0.0"


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for half a minute."""
    kinds = [(kind, mode) for kind in KINDS for mode in MODES if mode == "plain" or kind.dispatch != "connection"]
    transports = list(TRANSPORTS) if minutes else list(TRANSPORTS)[:1]
    cells, wrong, leaks = 0, [], []
    with TemporaryDirectory() as name:
        folder = made(Path(name) / "made")
        for kind, mode in kinds if minutes else kinds[:3]:
            cells += len(TABLE[mode]) * len(REQUESTS)
            try:
                test_the_table(kind, mode, folder)
            except AssertionError as error:
                wrong.append(f"{kind} {mode}: {error}"[:80])
        for transport in transports:
            try:
                test_no_secret_is_said(transport, _fresh(Path(name) / transport))
            except AssertionError:
                leaks.append(transport)
    open_ones = [name for name in transports if _starts_beyond_loopback(name)]
    figure = f"{len(wrong)} tables wrong, of {cells:,} cells {'; '.join(wrong[:2])}".rstrip()
    return [
        Row("credential × method × transport × TLS", "every cell as its table says", figure, not wrong),
        Row("planted secrets", "0 leaks", f"{len(leaks)} of {len(transports)} transports {' '.join(leaks)}", not leaks),
        Row("beyond loopback without TLS and a token", "no transport starts", str(len(open_ones)), not open_ones),
    ]


def _fresh(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _starts_beyond_loopback(transport: str) -> bool:
    return run(*serve(transport), "--port", "0", "--host", EVERYWHERE).code != 2
