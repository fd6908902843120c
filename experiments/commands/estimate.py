"""Estimate of how long measuring takes, before it begins: from the numbers of slices, windows and starts. Pure."""

from collections.abc import Mapping
from itertools import repeat

from experiments.design.alone import Alone
from experiments.design.arms import Arm
from experiments.design.cells import Cells
from experiments.design.cold import Cold, ColdCell
from experiments.design.received import Received
from experiments.design.slots import order
from experiments.design.stress import Stress
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.peers import PEER_CLIENT

REPORT_S = 8.0
"""Seconds for drawing and reporting."""

START_S, SLICE_S, WINDOW_S = 3.0, 0.035, 0.1
"""Seconds for the start of a block's processes, for a slice, and for a window beside its own time."""

CALL_S = 1e-4
"""Seconds for a call in a closed loop of a client that a process was started for."""

GROUP_START_S, SERVER_START_S = 0.2, 0.15
"""Seconds for the start of a group's servers where they are started for its turn: in all, and for each."""

LONE_S, COLD_S, PEER_COLD_S, RECEIVED_S = 0.8, 0.4, 0.04, 0.5
"""Seconds for a server alone, a cold run of our client, one of a peer's, and a receiver's run. Each is added to the
time for which it is watched, or to that of its calls."""

CELL_START_S, CELL_S, ANSWERED_HZ, READ_HZ = 0.25, 0.1, 8000.0, 5000.0
"""Seconds for the start of a cell's server and for a cell beside its requests; then requests a second, and reads of
keys a second."""


def block_s(sweep: Sweep) -> float:
    """Seconds for a block."""
    turns = [sweep.arms[arm] for _, _, arm in order(sweep, "")]
    if isinstance(sweep.turns, Slices):
        return START_S + min(SLICE_S * len(turns), sweep.turns.block_s)
    windows_s = sum(WINDOW_S + _window_s(arm, sweep.turns) for arm in turns)
    return windows_s + (_starts_s(sweep) if sweep.turns.in_turn else START_S)


def _starts_s(sweep: Sweep) -> float:
    """Seconds for the starts of groups' servers, each for its turn."""
    total_s = 0.0
    for group in sweep.groups:
        turns = group.times * -(-sweep.rounds // group.every)
        total_s += turns * (GROUP_START_S + SERVER_START_S * len({arm.server for arm in group.arms}))
    return total_s


def _window_s(arm: Arm, of: Windows) -> float:
    if arm.setting["client"] != PEER_CLIENT:
        return of.warm_up_s + of.duration_s
    return of.duration_s if arm.setting["rate_hz"] else of.calls * arm.setting.whole("clients") * CALL_S


def after_s(
    after: Mapping[str, Sweep], alone: Alone | None, cold: Cold | None, received: Received | None = None
) -> float:
    """Seconds for all that follows a part's own sweep, the report included."""
    swept = sum(each.looks[-1] * block_s(each) for each in after.values())
    watched = alone.repetitions * sum(_lone_s(len(each.connections), alone) for each in alone.servers) if alone else 0.0
    runs = cold.blocks * (START_S + sum(map(_cold_s, cold.cells))) if cold else 0.0
    told = sum(map(_received_s, range(1, received.blocks + 1), repeat(received))) if received else 0.0
    return REPORT_S + swept + watched + runs + told


def _cold_s(cell: ColdCell) -> float:
    start_s = PEER_COLD_S if cell.setting["client"] == PEER_CLIENT else COLD_S
    return cell.runs * (start_s + cell.calls * CALL_S)


def _received_s(number: int, received: Received) -> float:
    return sum(received.cells[place].seconds + RECEIVED_S for place in received.order(number))


def cells_s(cells: Cells | None) -> float:
    """Seconds for cells, a server at a time."""
    if cells is None:
        return 0.0
    starts = len({each.start for each in cells.cells})
    requests = sum(each.warm_up + each.requests for each in cells.cells)
    return cells.blocks * (CELL_START_S * starts + CELL_S * len(cells.cells) + requests / ANSWERED_HZ)


def stress_s(stress: Stress | None) -> float:
    """Seconds for servers under stress, with each key read at the end."""
    if stress is None:
        return 0.0
    requests = sum(each.requests for each in (*stress.before, *stress.kinds))
    each_s = 1.0 + requests / ANSWERED_HZ + sum(each.keys for each in stress.final) / READ_HZ
    return stress.repetitions * len(stress.servers) * each_s


def _lone_s(watches: int, alone: Alone) -> float:
    return LONE_S + watches * alone.idle_s
