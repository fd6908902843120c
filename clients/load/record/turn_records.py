"""Records of one client process over its turns: every request's moments, and processor clocks around each turn.

The records are raw. The program that folds them finds the counted requests by the turns' moments. Times are nanoseconds
of the clock that all processes share; a request's outcome is one byte (``records.py``).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clients.load.record.records import Records

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one connection, in the order in which they ended."""

    line: int
    """Number of the connection's line, which is the loads that share the connection (``turn_lines.py``)."""
    sent_ns: Numbers
    done_ns: Numbers
    outcomes: npt.NDArray[np.uint8]
    begun: int
    """Number of requests begun, counted where a request is sent and not where its end is recorded."""


@dataclass(frozen=True, slots=True)
class TurnRecords:
    """Report of one client process after its turns."""

    client: int
    """Number of the client process. The price updater has the number of clients as its own number."""
    requests: tuple[Requests, ...]
    """Requests of each connection."""
    client_cpu_ns: Numbers
    """Processor time of this process in each turn; 0 for a turn in which this process did not send."""
    server_cpu_ns: Numbers
    """Processor time of the turn's server from the turn's begin to its end; 0 where the clock was not read."""
    wire_bytes: Numbers
    """Bytes that the loopback carried from the turn's begin to its end, headers included; 0 where the counter was not
    read."""


def taken(line: int, records: Records) -> Requests:
    """The requests of these records, which are then emptied."""
    requests = Requests(
        line,
        np.array(records.sent, dtype=np.int64),
        np.array(records.done, dtype=np.int64),
        np.array(records.outcomes, dtype=np.uint8),
        records.started,
    )
    records.clear()
    records.started = 0
    return requests
