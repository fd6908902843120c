"""Prediction of a setting from the demands of a request, by the model of ``recommend``.

The model knows workers, clients, cores, processes and a rate; a setting says which. A server that answers on an event
loop has no pool: each of its requests has a worker, and it computes one at a time. Where they wait, they gather into
waves. On a free-threaded Python nothing holds a GIL. Pure.
"""

from dataclasses import replace

from experiments.design.demands import Demands
from experiments.design.factors import FREE
from experiments.design.setting import Setting
from experiments.kinds.prediction import Foretold
from experiments.peers import FREE_THREADED
from experiments.recommend.event_loop import event_loop_hz
from experiments.recommend.model import bounds, capacity_hz, predict
from experiments.recommend.tail import tail

LOOP_WORKERS = 256
"""Most requests that are under way at once on an event loop in an open loop, as far as the model goes."""

QUANTILE = 0.99


def foretell(setting: Setting, demands: Demands, cores: int, load_s: float = 0.0) -> Foretold:
    """Predicts a setting on a machine with this number of cores. An open loop takes about half a second.

    ``load_s`` is the processor time that the load takes for a request. Where server and load share the cores, that much
    of them is not the server's.
    """
    clients = setting.whole("clients") * setting.whole("connections")
    rate_hz = setting["rate_hz"]
    demands = demands.without_gil if setting["build"] == FREE_THREADED else demands
    processor_s = demands.processor_s
    own = max(1.0, cores * processor_s / (processor_s + load_s)) if setting["placement"] == FREE else 1.0
    processes, workers = setting.whole("processes"), setting.whole("workers")
    if setting["dispatch"] == "loop":
        demands = replace(demands, gil_s=demands.gil_s + demands.free_s, free_s=0.0)
        workers = clients if rate_hz is None else LOOP_WORKERS
    most_hz = capacity_hz(demands, workers, own, processes)
    predicted = predict(demands, workers, clients, own, processes)
    throughput_hz, response_s = predicted.throughput_hz, predicted.response_s
    if setting["dispatch"] == "loop" and demands.wait_s:
        throughput_hz = event_loop_hz(demands, clients)
        response_s = clients / throughput_hz
    if isinstance(rate_hz, float):
        throughput_hz = min(rate_hz, most_hz)
        response_s = tail(demands, workers, rate_hz, QUANTILE, cores=own, processes=processes)
    return Foretold(
        setting=setting,
        demands=demands,
        workers=workers,
        cores=own,
        processes=processes,
        capacity_hz=most_hz,
        limit=bounds(demands, workers, own, processes).limit,
        throughput_hz=throughput_hz,
        response_s=response_s,
        useful_workers=predicted.useful_workers,
        knee_clients=predicted.knee_clients,
    )
