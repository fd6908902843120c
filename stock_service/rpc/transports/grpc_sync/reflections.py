"""The threads of reflection's streams: a stream takes none of those that answer calls."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import grpc

from stock_service.rpc.errors import Fault
from stock_service.rpc.transports.grpc_sync.handlers import abort

STREAMS_MAX = 4
"""Reflection streams that may be open at a time. One is enough for a client, for some milliseconds."""

Handler = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]
"""Reflection as grpcio calls it."""


class Reflections(ThreadPoolExecutor):
    """Each stream has a thread for as long as its client keeps it open.

    ``STREAMS_MAX`` are open at most: the one that has been open longest is cancelled by the next, on a thread more.
    """

    def __init__(self) -> None:
        super().__init__(STREAMS_MAX + 1, thread_name_prefix="grpc-reflection")
        self._lock = threading.Lock()  # guards _open
        self._open: dict[grpc.ServicerContext, None] = {}  # the oldest first

    def own(self, answer: Callable[[bytes, grpc.ServicerContext], Iterator[bytes]]) -> Handler:
        """Reflection, which answers each question so, for grpcio to run on these threads."""

        def reflect(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            with self._lock:
                if len(self._open) >= STREAMS_MAX:
                    oldest = next(iter(self._open))
                    del self._open[oldest]
                    oldest.cancel()
                self._open[context] = None
            try:
                for each in requests:
                    yield from answer(each, context)
            except Fault as fault:
                abort(context, fault)
            finally:
                with self._lock:
                    self._open.pop(context, None)

        reflect.experimental_thread_pool = self  # type: ignore[attr-defined]  # where grpcio looks for it
        return reflect

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Takes a stream from grpcio, whose serving thread would not survive an error."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:  # the system has no thread to give; the stream waits for one of these
            without: Future[Any] = Future()
            without.set_exception(error)
            return without
