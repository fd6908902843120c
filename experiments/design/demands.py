"""Demands of one request on one worker, in seconds, and how much they vary."""

import math
from dataclasses import astuple, dataclass, replace

from stock_service.rpc.errors import UsageError


@dataclass(frozen=True, slots=True)
class Demands:
    """Mean seconds that one request takes of each resource. Each is 0 or more.

    Raises UsageError for a negative demand, or where a request needs no resource of a worker.
    """

    gil_s: float
    """Processor time that holds the GIL: of the transport and of the service."""
    free_s: float
    """Processor time that releases the GIL: hashing, compressing, the kernel's work for a call."""
    wait_s: float
    """Time in the worker without the processor: waiting for a disk, a database, another server."""
    overhead_s: float
    """The rest of the response time, outside the worker: the client, the wire, wake-ups."""
    variation: float = 0.5
    """Standard deviation of the processor time, divided by its mean: 0 where it is constant, 1 where it is
    exponential."""
    wait_variation: float = 0.0
    """The same ratio for ``wait_s``."""

    def __post_init__(self) -> None:
        if not all(math.isfinite(each) and each >= 0 for each in astuple(self)):
            raise UsageError("demands", str(self), "each 0 s or more")
        if self.service_s == 0:
            raise UsageError("demands", str(self), "some time in the worker")

    @property
    def processor_s(self) -> float:
        """All processor time in the worker."""
        return self.gil_s + self.free_s

    @property
    def without_gil(self) -> "Demands":
        """The same demands on an interpreter without a GIL, as quick as this one: all of its computing needs only a
        core."""
        return replace(self, gil_s=0.0, free_s=self.processor_s)

    @property
    def service_s(self) -> float:
        """Time in a worker that other requests do not lengthen."""
        return self.gil_s + self.free_s + self.wait_s

    @property
    def response_s(self) -> float:
        """Response time with one client alone."""
        return self.service_s + self.overhead_s
