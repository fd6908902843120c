"""Demands of a request at any setting, from the measurements of one client of one worker. Pure.

The arms of a model have one worker of one process each (``pool_one``). One has one client alone. One has connections
enough to keep the worker busy. One has one client alone of a worker that waits. They give

- The transport's own processor time, of the busy worker. One that sleeps between requests takes more for each. Where a
  request computes, it is that of one client. There each reply is followed by a single request, as with one client.
- What a wait costs of processor time, and how much later than asked it ends. An event loop waits for many at once, so
  there the former is of the busy loop too. Its timer ends in time, and the loop wakes late. That is outside a worker.
- The rest of the response time of one client. It is outside the worker.
- The load's processor time, where it runs on the server's cores.
- What one trader waits for the disk, and what a commit costs of processor time. Both are of durable trades. While one
  group is committed the next one gathers. So half of those under way share a commit, and each costs its part.

The work itself is known: what was asked for. That is the whole measurement: no arm of the study itself is in it.
"""

from collections.abc import Callable
from statistics import median

from experiments.design.arms import Arm
from experiments.design.demands import Demands
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep
from experiments.judge import ratios
from experiments.judge.verdicts import Judgement
from experiments.kinds.prediction import Foretold
from experiments.results.observed import ALL, Block
from experiments.studies.pool_size import foretold
from experiments.studies.pool_size.sweeps import busy, no_work, one, probes, work_of

US = 1e-6
MS = 1e-3

OWN_VARIATION = 0.5
"""Variation of the transport's own processor time; the work is the same in every request."""


def foretell(judgement: Judgement, setting: Setting) -> Foretold:
    """Prediction for a setting, from the blocks of ``pool_one``."""
    load_s = _seen(judgement, Arm(no_work(one(setting))), ratios.arm_load_us) * US
    return foretold.foretell(setting, demands_of(judgement, setting), judgement.blocks[0].cores, load_s)


def demands_of(judgement: Judgement, setting: Setting) -> Demands:
    """Demands of a request at a setting; see the module. ValueError where its model was not measured."""
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
    """The server's processor time for a request."""
    return _seen(judgement, arm, ratios.arm_cpu_us) * US


def _response_s(judgement: Judgement, arm: Arm) -> float:
    return _seen(judgement, arm, lambda sweep, block, place: ratios.arm_mean_us(sweep, block, place, ALL)) * US


def _seen(judgement: Judgement, arm: Arm, of: Callable[[Sweep, Block, int], float | None]) -> float:
    """A quantity of an arm: the median of its blocks."""
    place = judgement.sweep.arms.index(arm)
    found = [of(judgement.sweep, block, place) for block in judgement.blocks]
    return median(each for each in found if each is not None)
