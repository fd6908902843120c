"""Thread pool for the streams of server reflection. So a stream does not occupy a thread that answers calls."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import grpc

from stock_service.rpc.errors import Fault
from stock_service.rpc.transports.grpc_sync.handlers import abort

STREAMS_MAX = 4
"""Largest number of open reflection streams. A client needs one stream, which it ends after some milliseconds."""

Handler = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]
"""Function that grpcio calls for a reflection stream, with the encoded questions. Returns the encoded answers."""


class Reflections(ThreadPoolExecutor):
    """Thread pool of the reflection streams. A stream occupies a thread until its client ends the stream.

    At most ``STREAMS_MAX`` streams are open. When a further stream comes, the server cancels the oldest stream. Until
    the oldest stream has ended, an additional thread serves the further stream.
    """

    def __init__(self) -> None:
        super().__init__(STREAMS_MAX + 1, thread_name_prefix="grpc-reflection")
        self._lock = threading.Lock()  # guards _open
        self._open: dict[grpc.ServicerContext, None] = {}  # open streams, the oldest first

    def own(self, answer: Callable[[bytes, grpc.ServicerContext], Iterator[bytes]]) -> Handler:
        """Makes reflection's handler, which grpcio runs on this pool. ``answer`` returns one question's answers."""

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

        reflect.experimental_thread_pool = self  # type: ignore[attr-defined]  # the attribute that grpcio reads
        return reflect

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Accepts the function ``fn``, which serves a stream, from grpcio. Never raises, since an exception would end
        grpcio's serving thread.
        """
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:  # the system allows no further thread; the stream waits for an existing thread
            without: Future[Any] = Future()
            without.set_exception(error)
            return without
