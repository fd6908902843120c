"""Progress of a load run, on standard error: one rewritten line on a terminal, plain lines in a file or a pipe."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from clients.load.plan.load_plan import LoadPlan
from clients.load.run.fleet import Progress, Watch

PLAIN_EVERY_S = 10.0
"""Time between two plain lines of a phase (warm-up or window), in seconds."""


@contextmanager
def live(console: Console, plan: LoadPlan) -> Iterator[Watch]:
    """Context that yields a progress function for ``fleet.run``. On a terminal the line of progress disappears when the
    ``with`` block ends."""
    name = "1 client" if plan.clients == 1 else f"{plan.clients} clients"
    if plan.rate_hz is not None:
        name += f" at {plan.rate_hz:,.10g}/s"
    if not console.is_terminal:
        yield _plain(console, name)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[left]}"))
    with Bar(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task(name, total=plan.warm_up_s + plan.duration_s, left="")

        def redraw(progress: Progress) -> None:  # no thread redraws the bar: a thread would compete with the clients
            description = f"{name}, {progress.phase}"
            bar.update(task, completed=progress.elapsed_s, description=description, left=_left(progress), refresh=True)

        yield redraw


def _left(progress: Progress) -> str:
    return f"{progress.requests:,} requests, {progress.remaining_s:.0f} s left"


def _plain(console: Console, name: str) -> Watch:
    """Progress as plain lines: a line at the start of the warm-up, a line at the start of the window, and a line every
    ``PLAIN_EVERY_S``."""
    next_s = {"warm-up": 0.0, "measuring": 0.0}  # earliest moment of the next line in a phase

    def watch(progress: Progress) -> None:
        if progress.elapsed_s >= next_s.get(progress.phase, math.inf):
            next_s[progress.phase] = progress.elapsed_s + PLAIN_EVERY_S
            console.print(f"{name}: {progress.phase}, {_left(progress)}", markup=False, highlight=False)

    return watch
