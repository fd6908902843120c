"""The client of the ZeroMQ transport: a DEALER, one blocking call at a time.

libzmq would connect again behind our back, and send what is queued to whoever is there then. That is switched off: a
connection that is lost is closed, and the next call makes a new one. Whether it is lost is what the socket's monitor
says, which a waiting call looks at every ``LOOK_S``.

All connections of a process share one context, whose thread libzmq keeps for the life of the process.
"""

import time

import zmq
from zmq.utils.monitor import recv_monitor_message

from stock_service.rpc.errors import DeadlineExceeded, Fault, Unavailable
from stock_service.rpc.messaging.calling import following, outcome, reply_frame, request_message
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.transports import Address

LOOK_S = 0.05
"""How soon a call learns that its connection is lost. Looking takes some microseconds."""

_LOOK_MS = int(LOOK_S * 1000)

_NEVER_MS = 86_400_000
"""Until libzmq would connect again: a day, which no lost connection stays open. With -1 for never, libzmq 4.3.5 does
not free a socket that is closed with a request that was not sent."""

_LOST = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


SOCKETS_MAX = 65_536
"""Sockets of a process, at most; a connection has three."""


def shared_context() -> "zmq.Context[zmq.Socket[bytes]]":
    """The process's context, of all connections."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    context.set(zmq.MAX_SOCKETS, SOCKETS_MAX)  # which counts until the first socket is made
    return context


class ZeroConnection:
    """See ``transports.Connection``. Made by ``connect``."""

    def __init__(self, address: Address) -> None:
        self._server = shown_address(address)
        self._socket: zmq.Socket[bytes] | None = None
        self._monitor: zmq.Socket[bytes] | None = None
        self._wait_ms = _LOOK_MS
        self._call = 0

    def open(self, timeout_s: float) -> None:
        """Connects. Raises Unavailable, DeadlineExceeded."""
        self.close()
        dealer = shared_context().socket(zmq.DEALER)
        self._socket = dealer
        dealer.setsockopt(zmq.RECONNECT_IVL, _NEVER_MS)
        dealer.setsockopt(zmq.RCVTIMEO, _LOOK_MS)
        self._wait_ms = _LOOK_MS
        self._monitor = dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | _LOST)
        deadline_s = time.monotonic() + timeout_s
        try:
            dealer.setsockopt(zmq.IPV6, 1)
            dealer.connect(f"tcp://{self._server}")
        except zmq.ZMQError as error:
            self.close()
            raise Unavailable(f"no connection to {self._server}: {error.strerror}") from error
        match self._event(max(0, round((deadline_s - time.monotonic()) * 1000))):
            case zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return
            case 0:
                self.close()
                raise DeadlineExceeded(f"no connection to {self._server} within {timeout_s:g} s")
            case _:
                self.close()
                raise Unavailable(f"no connection to {self._server}: it cannot be reached, or speaks no ZeroMQ")

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        number = self._call = following(self._call)
        request = request_message(number, path, payload, timeout_s)
        deadline_s = time.monotonic() + timeout_s
        if self._socket is None:
            self.open(timeout_s)
        dealer = self._socket
        assert dealer is not None
        try:
            dealer.send(request, zmq.NOBLOCK)
        except zmq.Again as error:  # there is nobody to send to
            raise self._lost() from error
        while True:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise DeadlineExceeded(f"no reply from {self._server} within {timeout_s:g} s")
            self._wait(min(_LOOK_MS, max(1, round(left_s * 1000))))
            try:
                reply = reply_frame(dealer.recv(), self._server)
            except zmq.Again as error:
                self._look(error)
            else:
                if reply.call == number or reply.call == 0:  # any other is the late one to a call that was given up
                    return outcome(reply)

    def close(self) -> None:
        if self._socket is not None and self._monitor is not None:
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
            self._socket.close(linger=0)
            self._socket = self._monitor = None

    def _look(self, error: zmq.Again) -> None:
        """Raises Unavailable where the connection is lost."""
        if self._event(0):
            raise self._lost() from error

    def _lost(self) -> Fault:
        self.close()
        return Unavailable(f"connection to {self._server} lost: the server closed it")

    def _event(self, timeout_ms: int) -> int:
        """What the monitor says next; 0 where it says nothing in time."""
        assert self._monitor is not None
        if not self._monitor.poll(timeout_ms):
            return 0
        return int(recv_monitor_message(self._monitor)["event"])

    def _wait(self, wait_ms: int) -> None:
        """Bounds every receiving from now on."""
        if wait_ms != self._wait_ms:
            assert self._socket is not None
            self._socket.setsockopt(zmq.RCVTIMEO, wait_ms)
            self._wait_ms = wait_ms


def connect(address: Address, timeout_s: float) -> ZeroConnection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most.

    Raises Unavailable, or DeadlineExceeded where nobody answers there.
    """
    connection = ZeroConnection(address)
    connection.open(timeout_s)
    return connection
