"""The timeline: the times, in nanoseconds, at which each request reached each stage in a running server.

Times of a request, in their order:

- accepted   the server has read the request (sockets), or grpcio has given the call to the executor (gRPC)
- dequeued   a thread begins with the request
- asked      the thread asks for the catalog's lock
- acquired   the thread has the lock; ``asked`` and ``acquired`` are 0 for a request without a lock
- handled    the bytes of the reply are ready
- replied    the system call that sent the reply, or the handler that gave it to grpcio, has returned

The timeline also records the request's wait for locks, its method, and the thread that answered the request. For a
request that takes several locks, ``asked`` is the time of the first lock, and ``acquired`` the time of the last lock.
``waited`` is the sum of the waits. The time between two locks belongs to no stage, so the sum of the stages is smaller
than the request's total time.

``handled`` is the latest of these times that is certainly earlier than the reply's arrival at the client. ``replied``
may be later than this arrival: the client reads on another core while the server's thread returns from the system call.

The clock is ``time.perf_counter_ns``. On Linux this clock is CLOCK_MONOTONIC, like the clock of ``time.monotonic_ns``.
All processes share this clock, so a client's times can be compared with the server's times.

Each thread has a ``Stamper``, which holds the times of one request; ``begin`` clears the times of the previous request.
An ended request is one row of 72 bytes: two million requests need 137 MiB. The process reserves the memory at the
start, and gets each page of memory at the first write to the page. So no memory is moved or enlarged while requests
wait. On the sockets transport, a timeline adds some processor time to a request: 1.4 µs without contention, and 2 to 3
µs on two busy cores.

The file (``write``) is a ZIP archive that ``numpy.load`` opens:

- ``stamps.npy``  an array of int64: a row for each request, in the order of their ends, with the columns
  ``COLUMNS``. A row of zeros is a request that was ending when the file was written.
- ``about.json``  ``format``, ``columns``, ``methods`` (by the number in the column ``method``; -1 is a method that the
  service does not have) and ``left_out``.

Left out: requests that the server refused, requests that the client gave up before a thread took them, and requests to
grpcio's health and reflection services. Requests after the first ``requests_max`` are only counted, as ``left_out``.
"""

import json
import mmap
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from struct import Struct
from zipfile import ZIP_DEFLATED, ZipFile

REQUESTS_MAX = 2_000_000
"""Largest number of recorded requests: enough for 20 s at 100,000 requests a second. No server of this project is so
fast.
"""

COLUMNS = ("accepted", "dequeued", "asked", "acquired", "waited", "handled", "replied", "method", "thread")
"""Columns of a row: times in nanoseconds, then the numbers of the method and the thread."""

FORMAT = 1
"""Version of the file's format."""

STAMPS = "stamps.npy"
ABOUT = "about.json"

NO_METHOD = -1
"""Method number of a request whose method the service does not have."""

_ROW = Struct(f"<{len(COLUMNS)}q")
_ROW_BYTES = _ROW.size
_pack_into = _ROW.pack_into

_CHUNK_BYTES = 1 << 20
"""Number of bytes that ``write`` compresses at a time."""

_COMPRESSION = 1
"""Level of compression: the fastest level, since a stopping server writes the file, and should end soon."""


class Timeline:
    """Recorder of one server's requests. ``local.stamper`` is the calling thread's own stamper.

    The timeline records ``requests_max`` requests, and only counts further requests.
    """

    def __init__(self, requests_max: int = REQUESTS_MAX, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self.now_ns = clock_ns
        self._requests_max = requests_max
        self._rows = mmap.mmap(-1, max(1, requests_max) * _ROW_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):  # otherwise a request may wait until the kernel has cleared 2 MiB
            self._rows.madvise(mmap.MADV_NOHUGEPAGE)
        self._places = count()  # next(_places) is atomic in CPython
        self._methods: list[str] = []
        threads, rows, places = count(), self._rows, self._places
        self.local = _Local(lambda: Stamper(next(threads), rows, places, requests_max, clock_ns))

    def method_number(self, path: str) -> int:
        """Gives a method a new number, for the column ``method``. Call ``method_number`` before the server serves."""
        self._methods.append(path)
        return len(self._methods) - 1

    def end(self) -> None:
        """Records the request that the calling thread has answered. Call ``end`` after the reply was sent. Does nothing
        for a request that the timeline leaves out.
        """
        stamper = self.local.stamper
        if stamper.handled_ns:
            stamper.end()

    def write(self, path: Path) -> int:
        """Writes the recorded requests to a file. Call ``write`` once, after the server has stopped. Blocks for about 1
        s for a million requests. Returns the number of requests after the first ``requests_max``. Raises OSError.
        """
        ended = next(self._places)
        kept = min(ended, self._requests_max)
        about = {"format": FORMAT, "columns": COLUMNS, "methods": self._methods, "left_out": ended - kept}
        with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=_COMPRESSION) as archive:
            archive.writestr(ABOUT, json.dumps(about, indent=2) + "\n")
            with archive.open(STAMPS, "w", force_zip64=True) as member:
                member.write(_npy_header(kept))
                for start in range(0, kept * _ROW_BYTES, _CHUNK_BYTES):
                    member.write(self._rows[start : min(start + _CHUNK_BYTES, kept * _ROW_BYTES)])
        return ended - kept


class Stamper:
    """Times of the request that one thread answers. Only this thread uses the object."""

    def __init__(
        self, thread: int, rows: mmap.mmap, places: Iterator[int], requests_max: int, clock_ns: Callable[[], int]
    ) -> None:
        self.thread = thread
        self._rows = rows
        self._places = places
        self._requests_max = requests_max
        self._clock_ns = clock_ns
        self.accepted_ns = self.dequeued_ns = self.asked_ns = self.acquired_ns = self.waited_ns = self.handled_ns = 0
        self.method = NO_METHOD

    def begin(self, accepted_ns: int) -> None:
        """Begins a request, and clears the times of the previous request."""
        self.dequeued_ns = self._clock_ns()
        self.accepted_ns = accepted_ns
        self.asked_ns = self.acquired_ns = self.waited_ns = self.handled_ns = 0

    def acquired(self, asked_ns: int, acquired_ns: int) -> None:
        """Notes that the request has acquired a lock. Call ``acquired`` for each of the request's locks."""
        if not self.asked_ns:
            self.asked_ns = asked_ns
        self.waited_ns += acquired_ns - asked_ns
        self.acquired_ns = acquired_ns

    def handled(self, method: int) -> None:
        """Notes that the bytes of the reply are ready. ``method`` is the method's number."""
        self.handled_ns = self._clock_ns()
        self.method = method

    def end(self) -> None:
        """Notes that the reply was sent, and records the request, if the timeline has room."""
        replied_ns = self._clock_ns()
        place = next(self._places)
        if place < self._requests_max:
            _pack_into(
                self._rows,
                place * _ROW_BYTES,
                self.accepted_ns,
                self.dequeued_ns,
                self.asked_ns,
                self.acquired_ns,
                self.waited_ns,
                self.handled_ns,
                replied_ns,
                self.method,
                self.thread,
            )


class _Local(threading.local):
    """The current thread's stamper, made when the thread first uses it. Threads are numbered in the order of these
    first uses. The thread that makes the timeline has number 0.
    """

    def __init__(self, make: Callable[[], Stamper]) -> None:
        self.stamper = make()


def _npy_header(rows: int) -> bytes:
    """Makes the header of a file in NumPy's format 1.0 (numpy.lib.format), padded to a multiple of 64 bytes."""
    about = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows}, {len(COLUMNS)}), }}".encode()
    prefix = b"\x93NUMPY\x01\x00"
    padding = -(len(prefix) + 2 + len(about) + 1) % 64
    text = about + b" " * padding + b"\n"
    return prefix + len(text).to_bytes(2, "little") + text
