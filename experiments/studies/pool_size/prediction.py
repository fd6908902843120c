"""Demands of a request at any setting, from measurements of one worker, and the prediction from these demands.

The queueing model is ``recommend.model``. The setting gives workers, clients, cores, processes and rate. A server that
answers on an event loop has no pool: each request counts as one worker, and the server computes one request at a time.
Requests that wait on an event loop gather into waves. On a free-threaded Python nothing holds a GIL.

A prediction rests on arms of the setting's kind of server (``design.basis``; an arm is one server under one load). Each
arm has one process with one worker. One arm has one client. The busy arm has enough connections to keep the worker
busy. The waiting arm has one client, and its requests wait. These arms give

- The transport's own processor time for a request, from the busy arm. A worker that sleeps between requests takes more
  processor time. For a request that computes, the time is from the arm with one client, since in both cases one new
  request comes after each reply.
- The processor time that a wait costs, and the delay with which a wait ends. On an event loop many requests wait at
  once, so there the processor time of a wait is from a busy arm whose requests wait. An event loop's timer ends in
  time, but the loop wakes late. So on an event loop this delay is outside a worker.
- The rest of the response time of one client, which is outside the worker.
- The load's processor time, where the load runs on the server's cores.
- For durable trades: the time for which a trader waits for the disk, and the processor time of a commit. While a group
  of trades is committed, the next group gathers. So half of the trades under way share a commit, and each trade costs
  its part of the commit.

The setting states the time of the work itself. None of these measured arms has a prediction. The functions are pure.
"""

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from experiments.design.arms import Arm
from experiments.design.demands import Demands
from experiments.design.factors import FREE
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep
from experiments.judge import ratios
from experiments.judge.verdicts import Judgement
from experiments.kinds.prediction import Foretold
from experiments.peers import FREE_THREADED
from experiments.recommend.event_loop import event_loop_hz
from experiments.recommend.model import bounds, capacity_hz, predict
from experiments.recommend.tail import tail
from experiments.results.observed import ALL, Block
from experiments.studies.pool_size.design import busy, no_work, one, probes, work_of

LOOP_WORKERS = 256
"""Largest number of requests under way at once on an event loop, in the model of an open loop."""

QUANTILE = 0.99
"""Quantile of the response times that is predicted for an open loop."""


def of_demands(setting: Setting, demands: Demands, cores: int, load_s: float = 0.0) -> Foretold:
    """Prediction for a setting from the demands of a request, on a machine with ``cores`` cores. For an open loop the
    function computes for about half a second.

    ``load_s``: processor time of the load for a request, in seconds. Where server and load share the cores, this time
    reduces the server's part of the cores.
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


US = 1e-6
MS = 1e-3

OWN_VARIATION = 0.5
"""Coefficient of variation of the transport's own processor time. The work in a request does not vary."""


class Unmeasured(ValueError):
    """Raised where an arm of a prediction's basis has no value in any block."""


def foretell(judgement: Judgement, setting: Setting) -> Foretold:
    """Prediction for a setting, from the blocks of a sweep that has the arms of the setting's ``design.basis``. Raises
    Unmeasured where an arm of the basis has no value."""
    load_s = _seen(judgement, Arm(no_work(one(setting))), ratios.arm_load_us) * US
    return of_demands(setting, demands_of(judgement, setting), judgement.blocks[0].cores, load_s)


def demands_of(judgement: Judgement, setting: Setting) -> Demands:
    """Demands of a request at a setting, by the rules in the module's docstring. Raises ValueError where the sweep
    lacks an arm of the setting's ``design.basis``, and Unmeasured where such an arm has no value."""
    work, plain = work_of(setting), no_work(one(setting))
    alone, waiting, waiting_alike = Arm(plain), probes(plain)[0], probes(plain)[-1]
    busy_cpu_s = _cpu_s(judgement, busy(plain))
    waits, on_loop = work.io_ms > 0, setting["dispatch"] == "loop"
    wait_cpu_s = late_s = 0.0
    if waits:
        beside_s = busy_cpu_s if waiting_alike != waiting else _cpu_s(judgement, alone)
        wait_cpu_s = max(0.0, _cpu_s(judgement, waiting_alike) - beside_s)
        longer_s = _response_s(judgement, waiting) - _response_s(judgement, alone)
        late_s = max(0.0, longer_s - float(str(waiting.setting["io_ms"])) * MS - wait_cpu_s)
    asked_s = (work.cpu_ms + work.hash_ms) * MS
    plain_s = _cpu_s(judgement, alone) if asked_s else busy_cpu_s
    own_s = plain_s + wait_cpu_s
    commit_cpu_s = commit_wait_s = 0.0
    if work.durable:
        trade = Arm(one(setting))
        commit_cpu_s = max(0.0, _cpu_s(judgement, trade) - _cpu_s(judgement, alone))
        commit_wait_s = max(0.0, _response_s(judgement, trade) - _response_s(judgement, alone) - commit_cpu_s)
    together = min(setting.whole("workers"), setting.whole("clients") * setting.whole("connections"))
    return Demands(
        gil_s=own_s + work.cpu_ms * MS,
        free_s=work.hash_ms * MS + commit_cpu_s / max(1.0, together / 2),
        wait_s=work.io_ms * MS + commit_wait_s + (0.0 if on_loop else late_s),
        overhead_s=max(0.0, _response_s(judgement, alone) - plain_s) + (late_s if on_loop else 0.0),
        variation=OWN_VARIATION * own_s / (own_s + asked_s),
    )


def _cpu_s(judgement: Judgement, arm: Arm) -> float:
    """Median over blocks of the server's processor time for a request on an arm, in seconds."""
    return _seen(judgement, arm, ratios.arm_cpu_us) * US


def _response_s(judgement: Judgement, arm: Arm) -> float:
    return _seen(judgement, arm, lambda sweep, block, place: ratios.arm_mean_us(sweep, block, place, ALL)) * US


def _seen(judgement: Judgement, arm: Arm, of: Callable[[Sweep, Block, int], float | None]) -> float:
    """Median of an arm's quantity over the blocks. ``of``: function that gives the quantity in a block. Raises
    Unmeasured where no block has a value.
    """
    place = judgement.sweep.arms.index(arm)
    found = [each for block in judgement.blocks if (each := of(judgement.sweep, block, place)) is not None]
    if not found:
        raise Unmeasured(arm.name)
    return median(found)
