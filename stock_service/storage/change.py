"""Data structures of a group commit: changes that wait for their commit, and the outcome of a group of changes.

Lookups that must ask a database wait in the same way as changes.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from stock_service.rpc.errors import Fault
from stock_service.rpc.waiting import in_one_go
from stock_service.trading.catalog import Step, Version
from stock_service.trading.once import Changed, Once, Remembered, key_of, record_of, reply_of

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Change:
    """One change that waits for its commit. ``changed`` or ``error`` is valid only after ``go_on`` was called."""

    name: str
    step: Step
    once: Once | None
    go_on: Callable[[], object]
    """Function that wakes the change's thread, or resumes a request that waits without a thread."""
    changed: Changed = field(init=False)
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class Reading:
    """One Lookup that waits for its answer. ``version`` or ``error`` is valid only after ``go_on`` was called."""

    name: str
    go_on: Callable[[], object]
    """Function that wakes the Lookup's thread, or resumes a request that waits without a thread."""
    version: Version | None = None
    error: Exception | None = None


class Outcome:
    """Outcome of a group of changes, computed before the group is written: new versions of stocks, new records of
    request ids, and the number of the group's last commit. Not thread-safe.
    """

    def __init__(self, standing: Mapping[str, Version], remembered: Remembered, sequence: int) -> None:
        """``standing`` has the current version of each stock that the group names. ``remembered`` has the records of
        the remembered request ids. ``sequence`` is the number of the last commit.
        """
        self._standing = standing
        self._remembered = remembered
        self.versions: dict[str, Version] = {}
        self.records: dict[str, bytes] = {}
        self.sequence = sequence

    def apply(self, change: Change) -> None:
        """Applies one change after all earlier changes of the group. Sets ``changed`` or ``error`` of the change."""
        once = change.once
        try:
            if once is not None:
                key = key_of(once)
                record = self.records.get(key) or self._remembered.get(key)
                if record is not None:
                    change.changed = reply_of(record, once)
                    return
            version = self.versions.get(change.name) or self._standing.get(change.name)
            before = None if version is None else version[0]
            stock, status = change.step(before)
            if stock is None or stock is before:
                change.changed = (status, 0 if before is None else before.volume, 0)
            else:
                self.sequence += 1
                self.versions[change.name] = (stock, self.sequence)
                change.changed = (status, stock.volume, self.sequence)
            if once is not None:
                self.records[key] = record_of(once, change.changed)
        except Exception as error:  # an error of the step, which ``Catalog.change`` raises again
            change.error = error


def let_go(group: Iterable[Change | Reading]) -> None:
    """Wakes the thread of each change or Lookup of a group, or resumes its request."""
    with in_one_go():
        for change in group:
            go_on = change.go_on
            del change.go_on  # breaks the reference cycle of a change and its Wait
            try:
                go_on()
            except Exception:  # an error of one request must not stop the other requests and the writing thread
                _log.exception("a request did not go on after its change was written")


def refuse(group: Iterable[Change | Reading], fault: Fault) -> None:
    """Sets the error of each change or Lookup to a copy of the fault. The caller must then call ``let_go``."""
    for change in group:
        change.error = again(fault)


def again(fault: Fault) -> Fault:
    """Copies a fault. Raising an exception changes its traceback, so each thread must raise its own object."""
    return type(fault)(fault.detail)
