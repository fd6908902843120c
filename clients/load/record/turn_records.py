"""Records of one client process over its turns: every request's moments, and processor clocks around each turn.

Raw, for whoever folds it: which requests counted follows from the turns' moments. Times are nanoseconds of the clock
that all processes share; a request's outcome is one byte (``records.py``).
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
    """Which loads share the connection: the line's number (``turn_lines.py``)."""
    sent_ns: Numbers
    done_ns: Numbers
    outcomes: npt.NDArray[np.uint8]
    begun: int
    """Number of requests begun, counted where they are sent and not where they are recorded."""


@dataclass(frozen=True, slots=True)
class TurnRecords:
    """Report of one client process after its turns."""

    client: int
    """Its number; the price updater's is the number of clients."""
    requests: tuple[Requests, ...]
    """Of each connection."""
    client_cpu_ns: Numbers
    """Processor time of this process in each turn; 0 where it had no part."""
    server_cpu_ns: Numbers
    """Processor time of the turn's server from the turn's begin to its end; 0 where it was not read."""
    wire_bytes: Numbers
    """Bytes that the loopback carried meanwhile, headers included; 0 where they were not read."""


def taken(line: int, records: Records) -> Requests:
    """Takes the records out, and empties them."""
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
