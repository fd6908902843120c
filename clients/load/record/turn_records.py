"""Records of one client process over all turns: the moments of every request, and processor times of each turn.

The records are raw. The program that reads the records finds the counted requests by the moments of the turns. Times
are nanoseconds of the clock that all processes share; a request's outcome is one byte (``records.py``).
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
    """Number of the line to which the connection belongs. A line is the group of loads that share connections
    (``turn_lines.py``)."""
    sent_ns: Numbers
    done_ns: Numbers
    outcomes: npt.NDArray[np.uint8]
    begun: int
    """Number of requests begun, counted at the send and not at the end of a request."""


@dataclass(frozen=True, slots=True)
class TurnRecords:
    """Report of one client process after the turns."""

    client: int
    """Number of the client process. The price updater has the next number after the last client."""
    requests: tuple[Requests, ...]
    """Requests of each connection."""
    client_cpu_ns: Numbers
    """Processor time of this process in each turn; 0 for a turn in which this process did not send."""
    server_cpu_ns: Numbers
    """Processor time of the server during each turn, in nanoseconds. Client process 0 reads the server's processor
    clock at a turn's begin and before its end. The value is 0 in other processes. The value is also 0 for a turn that
    had ended before the second reading.
    """
    wire_bytes: Numbers
    """Bytes that the loopback carried during each turn, headers included. The value is 0 in the same cases as in
    ``server_cpu_ns``."""


def taken(line: int, records: Records) -> Requests:
    """Returns the recorded requests, and empties ``records``. ``line`` is the number of the connection's line."""
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
