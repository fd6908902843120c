"""Prediction of a server under a load, before it is measured, and the values that it was made from. Pure."""

from dataclasses import dataclass

from experiments.design.demands import Demands
from experiments.design.setting import Setting


@dataclass(frozen=True, slots=True)
class Foretold:
    """A prediction, and the values that it was made from."""

    setting: Setting
    demands: Demands
    workers: int
    """Workers of each process in the model."""
    cores: float
    """Cores that the server may use; fewer than the machine has where the load runs on them too."""
    processes: int
    capacity_hz: float
    """Throughput that no load can go beyond."""
    limit: str
    """Resource that is busy then: ``gil``, ``cores``, ``lock`` or ``workers``."""
    throughput_hz: float
    """Replies a second: of the closed loop, or of the open loop's rate as far as the capacity allows it."""
    response_s: float
    """Mean of a closed loop; 99th percentile of an open loop, inf where the queue grows without end."""
    useful_workers: int
    """The smallest pool that gets 95 % of the throughput of any pool, with these clients."""
    knee_clients: float
    """Number of clients from which on requests queue."""
