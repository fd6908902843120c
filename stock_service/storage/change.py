"""Changes that wait until they are written, and what becomes of them then."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stock_service.rpc.errors import Fault
from stock_service.rpc.waiting import in_one_go
from stock_service.trading.catalog import Step
from stock_service.trading.once import Changed, Once

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Change:
    """One change that waits for its commit. ``changed`` or ``error`` may be read once ``go_on`` was called."""

    name: str
    step: Step
    once: Once | None
    go_on: Callable[[], object]
    """Lets go on who waits for the change, which is a thread or, without one, a request."""
    changed: Changed = field(init=False)
    error: Exception | None = None


def let_go(group: Iterable[Change]) -> None:
    """Lets those go on who wait."""
    with in_one_go():
        for change in group:
            go_on = change.go_on
            del change.go_on  # a change and its Wait have each other: such a circle only a collection would end
            try:
                go_on()
            except Exception:  # of that request: the others go on, and so does the thread that writes
                _log.exception("a request did not go on after its change was written")


def refuse(group: Iterable[Change], fault: Fault) -> None:
    """Gives each change the fault."""
    for change in group:
        change.error = again(fault)


def again(fault: Fault) -> Fault:
    """The same fault as an object of its own: each thread that raises one writes its traceback into it."""
    return type(fault)(fault.detail)
