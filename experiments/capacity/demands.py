"""What one request needs of one worker, in seconds, and how much that varies."""

import math
from dataclasses import astuple, dataclass, replace

from stock_service.rpc.errors import UsageError


@dataclass(frozen=True, slots=True)
class Demands:
    """Mean seconds that one request takes of each resource. Each is 0 or more; ``lock_s`` is processor time too.

    Raises UsageError where they are not, or where a request needs nothing of a worker.
    """

    gil_s: float
    """Processor time that holds the GIL: the transport's own and the service's."""
    free_s: float
    """Processor time that releases the GIL: hashing, compressing, what the kernel does for a call of it."""
    wait_s: float
    """In the worker and off the processor: waiting for a disk, a database, another server."""
    overhead_s: float
    """The rest of the response time, outside the worker: the client, the wire, wake-ups."""
    lock_s: float = 0.0
    """The part of the processor time that is spent holding one lock that all requests share."""
    variation: float = 0.5
    """Of processor time, the standard deviation by the mean: 0 where it is always the same, 1 where exponential."""
    wait_variation: float = 0.0
    """The same of ``wait_s``."""

    def __post_init__(self) -> None:
        if not all(math.isfinite(each) and each >= 0 for each in astuple(self)):
            raise UsageError("demands", str(self), "each 0 s or more")
        if self.lock_s > self.processor_s:
            raise UsageError("lock_s", str(self.lock_s), f"at most all processor time, {self.processor_s}")
        if self.service_s == 0:
            raise UsageError("demands", str(self), "some time in the worker")

    @property
    def processor_s(self) -> float:
        """All processor time in the worker."""
        return self.gil_s + self.free_s

    @property
    def without_gil(self) -> "Demands":
        """The same of an interpreter without a GIL, as quick as this one: all of its computing needs is a core."""
        return replace(self, gil_s=0.0, free_s=self.processor_s)

    @property
    def service_s(self) -> float:
        """The time in a worker that nobody else disturbs."""
        return self.gil_s + self.free_s + self.wait_s

    @property
    def response_s(self) -> float:
        """The response time of one client alone."""
        return self.service_s + self.overhead_s
