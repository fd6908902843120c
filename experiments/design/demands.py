"""Service demands of one request on one worker: the mean time for which the request uses each resource, and the
variation of these times."""

import math
from dataclasses import astuple, dataclass, replace

from stock_service.rpc.errors import UsageError


@dataclass(frozen=True, slots=True)
class Demands:
    """Mean seconds for which one request uses each resource of a worker. Each demand is 0 or more.

    Raises UsageError for a demand that is negative or not finite, and for a request that uses no resource of a worker.
    """

    gil_s: float
    """Processor time with the GIL held, in the transport and in the service."""
    free_s: float
    """Processor time with the GIL released, such as for hashing, compressing, or the kernel's work in a call."""
    wait_s: float
    """Time for which the worker waits for a disk, a database or another server. The worker then uses no processor."""
    overhead_s: float
    """Time that the request spends outside the worker: in the client, on the wire, and for waking threads."""
    variation: float = 0.5
    """Coefficient of variation of the processor time: 0 for a constant time, 1 for an exponential distribution."""
    wait_variation: float = 0.0
    """Coefficient of variation of ``wait_s``."""

    def __post_init__(self) -> None:
        if not all(math.isfinite(each) and each >= 0 for each in astuple(self)):
            raise UsageError("demands", str(self), "each 0 s or more")
        if self.service_s == 0:
            raise UsageError("demands", str(self), "some time in the worker")

    @property
    def processor_s(self) -> float:
        """Processor time in the worker, with and without the GIL."""
        return self.gil_s + self.free_s

    @property
    def without_gil(self) -> "Demands":
        """Demands on an equally fast interpreter without a GIL: all processor time is in ``free_s``."""
        return replace(self, gil_s=0.0, free_s=self.processor_s)

    @property
    def service_s(self) -> float:
        """Service time: the time in a worker, without waiting for other requests."""
        return self.gil_s + self.free_s + self.wait_s

    @property
    def response_s(self) -> float:
        """Response time if a single client sends one request at a time, so that no request queues."""
        return self.service_s + self.overhead_s
