"""How far a load run is, while it runs: a line that is rewritten on a terminal, a line for each phase anywhere else.

Goes to standard error, so that standard output holds the summaries alone. ``NO_COLOR`` is honoured (by rich).
"""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from clients.load.fleet import Progress


class View:
    """Shows the progress of one run after the other. One thread's; leaving ``with`` takes the line away."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None
        self._clients = 0
        self._phase = ""

    def begin(self, clients: int) -> None:
        """The next run has so many clients."""
        self._clients = clients
        self._phase = ""

    def show(self, progress: Progress) -> None:
        """Told by the fleet how far the run is."""
        rate = progress.requests / progress.elapsed_s if progress.elapsed_s else 0.0
        if self._live is not None:
            line = Text(f"{self._clients} clients · ").append(progress.phase, style="bold")
            line.append(f" · {progress.requests:,} requests · {rate:,.0f}/s · {progress.remaining_s:.1f} s left")
            self._live.update(line, refresh=True)
        elif progress.phase != self._phase:
            self._console.print(
                f"{self._clients} clients: {progress.phase}, {progress.remaining_s:.1f} s left", highlight=False
            )
        self._phase = progress.phase

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
