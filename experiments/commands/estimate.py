"""About how long measuring takes, before it is known: so many slices, windows, starts. Pure."""

from collections.abc import Mapping
from itertools import repeat

from experiments.design.alone import Alone
from experiments.design.cold import Cold
from experiments.design.received import Received
from experiments.design.slots import order
from experiments.design.sweep import Slices, Sweep

REPORT_S = 8.0
"""What drawing and reporting take."""

START_S, SLICE_S, WINDOW_S = 3.0, 0.035, 0.1
"""What the start of a block's processes takes, a slice, and what a window takes beside its own time."""

LONE_S, COLD_S, RECEIVED_S = 0.8, 0.4, 0.5
"""What a server alone takes beside the time for which it is watched; a cold run; what a receiver tells of, likewise."""


def block_s(sweep: Sweep) -> float:
    """A block."""
    turns = sum(1 for _ in order(sweep, ""))
    if isinstance(sweep.turns, Slices):
        return START_S + min(SLICE_S * turns, sweep.turns.block_s)
    return START_S + turns * (WINDOW_S + sweep.turns.warm_up_s + sweep.turns.duration_s)


def after_s(
    after: Mapping[str, Sweep], alone: Alone | None, cold: Cold | None, received: Received | None = None
) -> float:
    """What comes after a part's own sweep, the report included."""
    swept = sum(each.looks[-1] * block_s(each) for each in after.values())
    watched = alone.repetitions * sum(_lone_s(len(each.connections), alone) for each in alone.servers) if alone else 0.0
    runs = cold.blocks * (START_S + COLD_S * sum(each.runs for each in cold.cells)) if cold else 0.0
    told = sum(map(_received_s, range(1, received.blocks + 1), repeat(received))) if received else 0.0
    return REPORT_S + swept + watched + runs + told


def _received_s(number: int, received: Received) -> float:
    return sum(received.cells[place].seconds + RECEIVED_S for place in received.order(number))


def _lone_s(watches: int, alone: Alone) -> float:
    return LONE_S + watches * alone.idle_s
