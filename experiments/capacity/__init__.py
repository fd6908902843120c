"""Prediction of a server's throughput and response time from the resources that one request needs.

``demands`` says what a request needs. ``model`` predicts throughput and response time of a closed loop, and the useful
pool. ``event_loop`` predicts the throughput on asyncio, where requests wait. ``tail`` predicts a percentile of an open
loop. Pure: nothing is started, read or written.
"""

from experiments.capacity.demands import Demands
from experiments.capacity.event_loop import event_loop_hz
from experiments.capacity.model import Bounds, Prediction, bounds, capacity_hz, predict
from experiments.capacity.tail import tail

__all__ = ["Bounds", "Demands", "Prediction", "bounds", "capacity_hz", "event_loop_hz", "predict", "tail"]
