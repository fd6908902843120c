"""The server of the ZeroMQ transport: one thread owns the ROUTER, each request is a task of the executor.

A ZeroMQ socket is one thread's. So the I/O thread reads every request that is there, gives them to the executor as one
batch, and sends the replies that workers have put into a queue. While it sleeps a worker wakes it by an eventfd; while
it is at work it looks into the queue by itself, which costs no system call.

libzmq's descriptor tells of changes, not of what is there (zmq_getsockopt, ZMQ_FD). So the thread sleeps only right
after a read that found nothing, with nothing sent in between.
"""

import os
import select
import socket
import time
from collections import deque
from functools import partial
from threading import Lock, Thread

import zmq

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.messaging.answering import DROPPED_TIMES, Messages, check_kept
from stock_service.rpc.option_types import family_of
from stock_service.rpc.server_core.options import NOBODY
from stock_service.rpc.server_core.protocol import Answering, methods_of, stamping
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, ServeOptions

BACKLOG = 1024
"""Connections that the kernel completes and holds until they are accepted."""

BATCH_MAX = 256
"""Requests read at a time: bounds how long a reply waits to be sent. Of each client so many may wait to be read."""

Envelope = list[bytes]
"""What stands before a request's message, and has to stand before its reply's: whom it is from."""


class ZeroServer:
    """A server that is listening; see the module, and ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        check_kept(options, ("connections_max", "pipeline_max"), "ZeroMQ")
        self._executor = executor
        methods = methods_of(service.with_health())
        self._messages = Messages(methods, options.frame_bytes_max)
        self._answer: Answering[bytes] = self._messages.answer
        self._timeline = options.timeline
        if options.timeline is not None:
            self._answer = stamping(options.timeline, methods, self._messages)
        self._replies: deque[tuple[Envelope, bytes]] = deque()  # appended to by any thread
        self._under_way = 0  # requests that the executor has, or whose replies are not sent
        self._asleep = False
        self._stopping = self._draining = self._abandon = False
        self._deadline_s = 0.0
        self._wake_lock = Lock()  # guards _wake_fd
        with socket.create_server(
            (options.host, options.port), family=family_of(options.host)
        ) as probe:  # which says what is wrong with an address
            host = probe.getsockname()[0]
        self._context = zmq.Context()
        try:
            self._router = _router(self._context, host, options)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise OSError(error.errno, error.strerror) from error
        endpoint = self._router.getsockopt_string(zmq.LAST_ENDPOINT)
        self.address: Address = (host, int(endpoint.rpartition(":")[2]))
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = Thread(target=self._run, name="zeromq-io")
        self._thread.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``. A reply that its client does not take is waited for within the grace, too."""
        self._deadline_s = time.monotonic() + grace_s
        self._stopping = True
        self._wake()
        self._thread.join(grace_s)
        in_time = not self._thread.is_alive()
        if not in_time:
            self._abandon = True
            self._wake()
            self._thread.join()
        with self._wake_lock:
            if self._wake_fd >= 0:
                os.close(self._wake_fd)
                self._wake_fd = -1
        return in_time

    # ---- any thread

    def _serve(self, envelope: Envelope, message: bytes, arrived_ns: int) -> None:
        """One task: answers a request and leaves the reply to the I/O thread."""
        self._replies.append((envelope, self._answer(message, arrived_ns, NOBODY)))
        if self._asleep:
            self._wake()
        if self._timeline is not None:
            self._timeline.local.stamper.end()

    def _wake(self) -> None:
        with self._wake_lock:
            if self._wake_fd >= 0:  # a task that was given up may end after the server has
                os.eventfd_write(self._wake_fd, 1)

    # ---- the I/O thread

    def _run(self) -> None:
        try:
            with select.epoll() as epoll:
                epoll.register(self._router.FD, select.EPOLLIN)
                epoll.register(self._wake_fd, select.EPOLLIN)
                while not self._abandon:
                    self._send_replies()
                    if self._receive():
                        continue
                    if self._stopping and not self._draining:
                        self._drain()
                    elif self._draining and not self._under_way:
                        break
                    else:
                        self._sleep(epoll)
        finally:
            left_ms = 0 if self._abandon else max(0, int((self._deadline_s - time.monotonic()) * 1000))
            self._router.close(linger=left_ms)
            self._context.term()

    def _send_replies(self) -> None:
        """Sends what workers have answered. What a client that has gone, or takes nothing, was to get is dropped."""
        replies, send = self._replies, self._router.send_multipart
        while replies:
            envelope, reply = replies.popleft()
            envelope.append(reply)
            self._under_way -= 1
            try:
                send(envelope, zmq.NOBLOCK)
            except zmq.Again:
                pass  # the client has not taken ``requests_max`` replies before this one

    def _receive(self) -> bool:
        """Has the executor answer what has arrived; whether anything has."""
        batch: list[partial[None]] = []
        receive, now_ns = self._router.recv_multipart, time.monotonic_ns
        try:
            while len(batch) < BATCH_MAX:
                envelope = receive(zmq.NOBLOCK)
                message = envelope.pop()
                batch.append(partial(self._serve, envelope, message, now_ns()))
        except zmq.Again:
            if not batch:
                return False
        self._execute(batch)
        return True

    def _execute(self, batch: list[partial[None]]) -> None:
        """Gives a batch to the executor, and refuses what it has no room for, or what comes after a stop."""
        self._under_way += len(batch)
        accepted, code, detail = 0, FaultCode.UNAVAILABLE, "the server is stopping"
        if not self._draining:
            try:
                accepted = self._executor.execute_all(batch)
                code, detail = FaultCode.RESOURCE_EXHAUSTED, "too many requests are waiting"
            except Fault as fault:
                code, detail = fault.code, fault.detail
        for task in batch[accepted:]:
            envelope, message, _ = task.args
            self._replies.append((envelope, self._messages.refusal(message, code, detail)))

    def _sleep(self, epoll: select.epoll) -> None:
        """Until a request may have come, or a worker has answered one."""
        self._asleep = True
        if not self._replies and not self._abandon:
            for fd, _ in epoll.poll():
                if fd == self._wake_fd:
                    os.eventfd_read(fd)
        self._asleep = False

    def _drain(self) -> None:
        """What had come before is answered, and what comes from now on is refused. Ends at the deadline at the latest:
        a client that never pauses would prolong it for ever.
        """
        while self._receive() and time.monotonic() < self._deadline_s:
            pass
        self._draining = True


def _router(context: "zmq.Context[zmq.Socket[bytes]]", host: str, options: ServeOptions) -> "zmq.Socket[bytes]":
    """A bound ROUTER with our limits in libzmq's terms. Raises ZMQError."""
    router = context.socket(zmq.ROUTER)
    half_idle_ms = max(1, int(options.idle_s * 500))  # a ping after one half, its answer within the other
    for option, value in (
        (zmq.BACKLOG, BACKLOG),
        (zmq.MAXMSGSIZE, DROPPED_TIMES * options.frame_bytes_max),
        (zmq.RCVHWM, BATCH_MAX),
        (zmq.SNDHWM, options.requests_max),
        (zmq.HEARTBEAT_IVL, half_idle_ms),
        (zmq.HEARTBEAT_TIMEOUT, half_idle_ms),
    ):
        router.setsockopt(option, value)
    router.setsockopt(zmq.IPV6, 1)
    router.bind(f"tcp://[{host}]:{options.port or '*'}" if ":" in host else f"tcp://{host}:{options.port or '*'}")
    return router
