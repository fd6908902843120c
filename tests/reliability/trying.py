"""Trial of several promises. Promises without timing run three at a time, each in a process; the others run one after
another."""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from enum import StrEnum, auto
from multiprocessing import get_context

from tests.reliability.promises import PROMISES
from tests.reliability.rows import Row

AT_ONCE = 3
"""Number of promises without timing that are tried at a time. With two, one of two cores would idle during waits for a
disk, a start or an end."""


class Length(StrEnum):
    """Duration of the tries."""

    SECONDS = auto()
    MINUTES = auto()
    OVERNIGHT = auto()


def tried(name: str, length: Length, seed: int) -> tuple[str, list[Row], float]:
    """Tries a promise. Gives its name, its rows, and the seconds. An error of a check becomes a row."""
    logging.basicConfig(level=logging.ERROR)  # else stores here warn of each database that a trial kills
    began_s = time.monotonic()
    rows: list[Row] = []
    promise, minutes = PROMISES[name], length is not Length.SECONDS
    longer = promise.overnight if length is Length.OVERNIGHT else None
    for check in (longer,) if longer else promise.checks:
        try:
            rows += check(minutes, seed)
        except Exception as error:  # whatever it is, the other promises are tried, and the command fails
            where = f"{check.__module__}: {type(error).__name__}: {error}"
            rows.append(Row(f"{name} is tried", "to the end", " ".join(where.split())[:300], passed=False))
    return name, rows, time.monotonic() - began_s


def every(names: Sequence[str], length: Length, seed: int) -> Iterator[tuple[str, list[Row], float]]:
    """Tries promises, and yields each with its rows. Promises that need no quiet machine come first, some at a time."""
    beside = [name for name in names if not PROMISES[name].timed]
    if beside:
        with ProcessPoolExecutor(AT_ONCE, get_context("spawn")) as processes:
            begun = [processes.submit(tried, name, length, seed) for name in beside]
            for done in as_completed(begun):
                yield done.result()
    for name in names:
        if PROMISES[name].timed:
            yield tried(name, length, seed)
