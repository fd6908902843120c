"""A change that waits until it is written."""

from collections.abc import Callable

from stock_service.trading.catalog import Step
from stock_service.trading.once import Changed, Once


class Change:
    """What became of it may be read once it goes on."""

    __slots__ = ("changed", "error", "go_on", "has_thread", "name", "once", "step", "writes")

    def __init__(
        self, name: str, step: Step, once: Once | None, go_on: Callable[[], object], has_thread: bool = True
    ) -> None:
        """``go_on`` lets go on who waits for it, which is a thread or, without one, a request."""
        self.name = name
        self.step = step
        self.once = once
        self.go_on = go_on
        self.has_thread = has_thread
        self.writes = False  # whether its thread is to write
        self.changed: Changed
        self.error: Exception | None = None
