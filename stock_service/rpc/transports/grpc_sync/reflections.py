"""The threads of reflection's streams: a stream takes none of those that answer calls."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

STREAMS_MAX = 4
"""Reflection streams that may be open at a time. One is enough for a client, for some milliseconds."""

P = ParamSpec("P")
T = TypeVar("T")


class Reflections(ThreadPoolExecutor):
    """Each stream has a thread for as long as its client keeps it open.

    ``STREAMS_MAX`` are open at most: the one that has been open longest is cancelled for the next. grpcio's serving
    thread submits, and needs a ``submit`` that never raises: that would kill it, and every later call would hang.
    """

    def __init__(self) -> None:
        super().__init__(STREAMS_MAX, thread_name_prefix="grpc-reflection")
        self.open: dict[Any, Any] = {}
        """The streams: grpcio's state and its event of each, the oldest first."""

    def own(self, behaviour: Callable[P, T]) -> Callable[P, T]:
        """The same method, for grpcio to run on these threads."""
        on_these = partial(behaviour)
        on_these.experimental_thread_pool = self  # type: ignore[attr-defined]  # where grpcio looks for it
        return on_these

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Takes a stream from grpcio. Never raises."""
        _, event, state, *_ = cast(tuple[Any, ...], args)
        if len(self.open) >= STREAMS_MAX:
            self.open.pop(next(iter(self.open))).call.cancel()
        self.open[state] = event
        ended = super().submit(fn, *args, **kwargs)
        ended.add_done_callback(lambda _: self.open.pop(state, None))
        return ended
