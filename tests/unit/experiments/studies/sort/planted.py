"""Planted results for the study ``sort``: sweeps with known means, and rows of cold runs."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep
from experiments.judge.cold import ColdJudged
from experiments.judge.verdicts import Judgement
from experiments.kinds.cold import ColdCell, ColdRow
from experiments.show.content import Seen
from experiments.studies.sort import design
from experiments.studies.sort.design import CALLS
from experiments.studies.study import Scale
from tests.unit.experiments.studies.stock.judgements import judgement, planted

SCALE = Scale(rounds=4, looks=(10, 14), clients=(1,))

CONNECT_US: Mapping[str, float] = {"grpc": 2000.0, "net-rpc": 200.0}
FIRST_US: Mapping[str, float] = {"grpc": 1500.0, "net-rpc": 1000.0}
CALL_US: Mapping[str, float] = {"grpc": 60.0, "net-rpc": 30.0}
"""Times of a cold run: connecting, the first call, and each later call."""

Truth = Callable[[Setting], float]


def truth(setting: Setting) -> float:
    """Mean with gRPC twice as long as net/rpc, and 0.1 µs for each number of the array."""
    return CALL_US.get(setting.text("transport"), 100.0) + setting.whole("array_len") / 10


def judged(sweep: Sweep, of: Truth = truth, number: int = 10, errors: Sequence[Arm] = ()) -> Judgement:
    """This number of blocks of a sweep, judged. 100 requests of a block of these arms fail."""
    return judgement(sweep, number, planted({arm: of(arm.setting) for arm in sweep.arms}, errors=errors))


def cold_rows(number: int = 10, slower: Mapping[str, float] | None = None, slowing: float = 0.0) -> tuple[ColdRow, ...]:
    """This number of blocks of the 12 cells; ``slower`` is the factor of an algorithm's calls, ``slowing`` the share by
    which a call takes longer for every call of its run."""
    rng, found = random.Random(7), []
    for block, mechanism, algorithm, calls in product(
        range(1, number + 1), design.MECHANISMS, design.ALGORITHMS, CALLS
    ):
        noise = rng.gauss(1, 0.01) * (slower or {}).get(algorithm, 1.0)
        connect_us, first_us = noise * CONNECT_US[mechanism], noise * FIRST_US[mechanism]
        rest_us = noise * CALL_US[mechanism] * (1 + slowing * calls)
        all_us = first_us + rest_us * (calls - 1)
        cell = ColdCell(design.go(mechanism, algorithm), calls, design.RUNS[calls])
        means = all_us / calls, (all_us + connect_us) / calls
        found.append(ColdRow(block, cell, cell.runs, 0, connect_us, first_us, rest_us, *means))
    return tuple(found)


_shared = cache(judged)
"""Shared by the tests of planted runs beside the sweeps."""


def seen(of: Truth = truth, number: int = 10) -> Seen:
    """The main part, its cold runs, and the part on lengths beside it."""
    lengths = _shared(design.array_len(SCALE), of, number)
    return Seen(_shared(design.sort(SCALE), of, number), {"sort_array_len": lengths}, runs=(ColdJudged(cold_rows()),))
