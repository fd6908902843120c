"""Estimated duration of a measurement, computed from the numbers of slices, windows and server starts. The functions
are pure.
"""

from collections.abc import Mapping, Sequence

from experiments.design.arms import Arm
from experiments.design.slots import order
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.kinds import Plan
from experiments.peers import PEER_CLIENT

REPORT_S = 8.0
"""Estimated seconds for drawing the figures and writing the report."""

START_S, SLICE_S, WINDOW_S = 3.0, 0.035, 0.1
"""Estimated seconds. ``START_S``: for starting the processes of a block. ``SLICE_S``: for a slice. ``WINDOW_S``: for a
window, without its warm-up and the duration that the sweep declares.
"""

CALL_S = 1e-4
"""Estimated seconds for one call of a peer's client (a program in another language) in a closed loop."""

GROUP_START_S, SERVER_START_S = 0.2, 0.15
"""Estimated seconds for starting the servers of a group just before the group's turn: ``GROUP_START_S`` once for the
group, and ``SERVER_START_S`` for each server.
"""


def block_s(sweep: Sweep) -> float:
    """Estimated seconds for a block of a sweep."""
    turns = [sweep.arms[arm] for _, _, arm in order(sweep, "")]
    if isinstance(sweep.turns, Slices):
        return START_S + min(SLICE_S * len(turns), sweep.turns.block_s)
    windows_s = sum(WINDOW_S + _window_s(arm, sweep.turns) for arm in turns)
    return windows_s + (_starts_s(sweep) if sweep.turns.in_turn else START_S)


def _starts_s(sweep: Sweep) -> float:
    """Estimated seconds for all starts of servers in a block. Used only for a sweep that starts the servers of a group
    just before each turn of the group.
    """
    total_s = 0.0
    for group in sweep.groups:
        turns = group.times * -(-sweep.rounds // group.every)
        total_s += turns * (GROUP_START_S + SERVER_START_S * len({arm.server for arm in group.arms}))
    return total_s


def _window_s(arm: Arm, of: Windows) -> float:
    if arm.setting["client"] != PEER_CLIENT:
        return of.warm_up_s + of.duration_s
    return of.duration_s if arm.setting["rate_hz"] else of.calls * arm.setting.whole("clients") * CALL_S


def after_s(after: Mapping[str, Sweep], runs: Sequence[Plan] = ()) -> float:
    """Estimated seconds for the steps that follow a part's own sweep: the sweeps ``after``, the further ``runs``, and
    the report.
    """
    swept = sum(each.looks[-1] * block_s(each) for each in after.values())
    return REPORT_S + swept + sum(each.lasts_s for each in runs)
