"""An honest client of a transport: an open loop of Lookups on one connection, by the lean client's codec.

The time of a call counts from when it was due, for any outcome of the calls before it.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Address
from stock_service.trading.service import LOOKUP
from tests.conformance.running import WAIT_S
from tests.end_to_end.process import LOOKUP_ONE
from tests.reliability.open_loop import codec_of

RATE_HZ = 200.0
SUCCESS, P99_S = 0.999, 0.02


@dataclass(slots=True)
class Served:
    """The outcomes of an honest client's calls."""

    took_s: list[float] = field(default_factory=list)
    failed: int = 0

    @property
    def success(self) -> float:
        """Share of the calls that were answered."""
        return len(self.took_s) / max(1, len(self.took_s) + self.failed)

    @property
    def p99_s(self) -> float:
        """99th percentile of the answered calls; infinite without any."""
        return sorted(self.took_s)[int(0.99 * len(self.took_s))] if self.took_s else float("inf")

    @property
    def well(self) -> bool:
        """True if these outcomes keep the promise."""
        return self.success >= SUCCESS and self.p99_s <= P99_S

    def __str__(self) -> str:
        longest_s = max(self.took_s, default=float("inf"))
        total = len(self.took_s) + self.failed
        return f"{self.success:.2%} of {total:,}, p99 {self.p99_s * 1000:.1f} ms, longest {longest_s * 1000:.0f} ms"


def honest(
    transport: str, address: Address, duration_s: float, connected: Callable[[], object] = lambda: None
) -> Served:
    """Calls for this time, after calling ``connected``. Blocks. A lost connection is a failure, and the client
    reconnects."""
    served, number = Served(), 0
    with closing(CodecConnection(address, partial(codec_of, transport, address)).open(WAIT_S)) as client:
        connected()
        began_s = time.monotonic()
        while (due_s := began_s + number / RATE_HZ) < began_s + duration_s:
            threading.Event().wait(max(0.0, due_s - time.monotonic()))
            number += 1
            try:
                client.call(LOOKUP, LOOKUP_ONE, WAIT_S)
                served.took_s.append(time.monotonic() - due_s)
            except Fault:
                served.failed += 1
    return served
