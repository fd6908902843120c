"""The server of the NNG transport: one thread receives, each request is a task of the executor.

NNG gives every request a context, by which its reply goes back, from any thread. The receiving thread takes a context
that is free, waits in it for a request, and leaves both to the executor. Contexts are made as they are needed.
"""

import logging
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Condition, Thread

import pynng

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.messaging.answering import Answering, Arrived, answering, refusal, stamped
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, ServeOptions

_log = logging.getLogger(__name__)

DROPPED_TIMES = 4
"""Times ``frame_bytes_max``: NNG drops who sends more. It must be over 1, or a client is never told why."""

DELIVERED_S = 0.05
"""After the last reply: NNG sends what it was given on threads of its own, and drops what is left when it closes."""


class NngServer:
    """A server that is listening; see the module, and ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        self._executor = executor
        self._answer: Answering = answering(service, options.frame_bytes_max)
        self._timeline = options.timeline
        if options.timeline is not None:
            self._answer = stamped(self._answer, service, options.timeline)
        with socket.create_server((options.host, options.port)) as probe:  # which says what is wrong with an address
            self.address: Address = probe.getsockname()[:2]
        self._rep = pynng.Rep0(recv_max_size=DROPPED_TIMES * options.frame_bytes_max)
        try:
            self._rep.listen("tcp://{}:{}".format(*self.address))
        except pynng.NNGException as error:
            self._rep.close()
            raise OSError(str(error)) from error
        self._free: deque[pynng.Context] = deque()  # of any thread
        self._receiving = self._rep.new_context()
        self._quiet = Condition()  # guards all below, and which context receives
        self._under_way = 0
        self._stopping = self._closed = False
        self._thread = Thread(target=self._run, name="nng-receiver")
        self._thread.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``."""
        deadline_s = time.monotonic() + grace_s
        with self._quiet:
            self._stopping = True
            in_time = self._quiet.wait_for(lambda: not self._under_way, grace_s) or self._closed
        if not self._closed:
            time.sleep(max(0.0, min(DELIVERED_S, deadline_s - time.monotonic())))
            self._close()
        return in_time

    def _close(self) -> None:
        """Closes contexts before their socket, as pynng wants it; those under way are closed by who answers."""
        with self._quiet:
            self._closed = True
            receiving = self._receiving
        receiving.close()
        self._thread.join()
        while self._free:
            self._free.pop().close()
        self._rep.close()

    # ---- any thread

    def _serve(self, context: pynng.Context, arrived: Arrived) -> None:
        """One task: answers a request and sends the reply."""
        self._reply(context, self._answer(arrived))
        if self._timeline is not None:
            self._timeline.local.stamper.end()

    def _reply(self, context: pynng.Context, reply: bytes) -> None:
        try:
            context.send(reply)
        except pynng.NNGException:
            pass  # the client has gone, or the server has given the request up
        with self._quiet:
            self._under_way -= 1
            if not self._under_way:
                self._quiet.notify_all()
            if not self._closed:
                self._free.append(context)
                return
        with suppress(pynng.Closed):  # with its socket, which is why it has to be closed here
            context.close()

    # ---- the receiving thread

    def _run(self) -> None:
        try:
            while True:
                context = self._receiving
                message = context.recv_msg()
                with self._quiet:
                    if self._closed:
                        return
                    self._receiving = self._free.pop() if self._free else self._rep.new_context()
                self._take(context, Arrived(message.bytes, time.monotonic_ns(), partial(_peer, message)))
        except pynng.Closed:
            pass  # the server has stopped
        except pynng.NNGException:
            _log.exception("nothing is received any more")

    def _take(self, context: pynng.Context, arrived: Arrived) -> None:
        """Has the executor answer a request, or refuses it."""
        with self._quiet:
            self._under_way += 1
            stopping = self._stopping
        code, detail = FaultCode.UNAVAILABLE, "the server is stopping"
        if not stopping:
            task: Callable[[], None] = partial(self._serve, context, arrived)
            try:
                self._executor.execute(task)
                return
            except Fault as fault:
                code, detail = fault.code, fault.detail
        self._reply(context, refusal(arrived.message, code, detail))


def _peer(message: pynng.Message) -> str:
    """Who sent a message, ``HOST:PORT``; empty where the client has gone."""
    pipe = message.pipe
    return str(pipe.remote_address) if pipe is not None else ""
