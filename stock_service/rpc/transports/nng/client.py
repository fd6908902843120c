"""The client of the NNG transport: a REQ, one blocking call at a time.

NNG would connect again and send a request a second time. That is switched off: a connection that is lost is closed, and
the next call makes a new one. NNG says that a connection is lost by a callback, and a moment after it has dropped it.
So a call that waits looks every ``LOOK_S``: for the reply, and before that for a connection that takes the request.
It waits for NNG's descriptor, since a receive that times out gives the request up. A late reply is dropped by NNG.
"""

import select
import time
from contextlib import suppress
from threading import Thread

import pynng

from stock_service.rpc.errors import DeadlineExceeded, Fault, InternalFault, Unavailable
from stock_service.rpc.messaging.calling import following, outcome, reply_frame, request_message
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.transports import Address

LOOK_S = 0.05
"""How soon a call learns that its connection is lost."""

_LOOK_MS = int(LOOK_S * 1000)

_NEVER_MS = 86_400_000
"""Until NNG would connect or send again: a day."""


class NngConnection:
    """See ``transports.Connection``. Made by ``connect``."""

    def __init__(self, address: Address) -> None:
        self._server = shown_address(address)
        self._req: pynng.Req0 | None = None
        self._lost: list[pynng.Pipe] = []  # appended to by a thread of NNG
        self._readable = select.poll()
        self._call = 0

    def open(self, timeout_s: float) -> None:
        """Connects. Raises Unavailable, DeadlineExceeded.

        NNG connects without a bound of its own. So a thread does it, and to close the socket ends that.
        """
        self.close()
        lost: list[pynng.Pipe] = []
        req = pynng.Req0(
            resend_time=_NEVER_MS, reconnect_time_min=_NEVER_MS, reconnect_time_max=_NEVER_MS, recv_max_size=0
        )
        req.add_post_pipe_remove_cb(lost.append)
        self._req, self._lost = req, lost
        failed: list[pynng.NNGException] = []
        dialing = Thread(target=_dial, args=(req, f"tcp://{self._server}", failed), name="nng-dial")
        dialing.start()
        dialing.join(timeout_s)
        if dialing.is_alive():
            self.close()
            dialing.join()
            raise DeadlineExceeded(f"no connection to {self._server} within {timeout_s:g} s")
        if failed:
            self.close()
            raise Unavailable(f"no connection to {self._server}: {failed[0]}") from failed[0]
        self._readable = select.poll()
        self._readable.register(req.recv_fd, select.POLLIN)

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        number = self._call = following(self._call)
        request = request_message(number, path, payload, timeout_s)
        deadline_s = time.monotonic() + timeout_s
        if self._lost:
            raise self._gone()
        if self._req is None:
            self.open(timeout_s)
        try:
            return self._exchange(request, number, deadline_s)
        except pynng.NNGException as error:
            self.close()
            raise Unavailable(f"connection to {self._server}: {error}") from error

    def close(self) -> None:
        if self._req is not None:
            self._req.close()
            self._req = None
        self._lost = []

    def _exchange(self, request: bytes, number: int, deadline_s: float) -> bytes:
        """Sends a request and waits for its reply. Raises pynng's errors."""
        req = self._req
        assert req is not None
        while True:
            req.send_timeout = max(1, _look_ms(deadline_s))
            try:
                req.send(request)
                break
            except pynng.Timeout as error:  # no connection took it, so that it may be sent once more
                self._look(deadline_s, error)
        while True:
            if self._readable.poll(_look_ms(deadline_s)):
                with suppress(pynng.TryAgain):  # it was the late reply to the call before, which NNG drops
                    message = req.recv(block=False)
                    break
            self._look(deadline_s)
        reply = reply_frame(message, self._server)
        if reply.call not in (number, 0):
            raise InternalFault(f"{self._server} replied to call {reply.call}, and not to {number}")
        return outcome(reply)

    def _look(self, deadline_s: float, error: Exception | None = None) -> None:
        """Raises Unavailable where the connection is lost, DeadlineExceeded where the time is over."""
        if self._lost:
            raise self._gone() from error
        if time.monotonic() >= deadline_s:
            raise DeadlineExceeded(f"no reply from {self._server} in time") from error

    def _gone(self) -> Fault:
        self.close()
        return Unavailable(f"connection to {self._server} lost: the server closed it")


def _look_ms(deadline_s: float) -> int:
    """How long to wait until the next look, in milliseconds."""
    return max(0, min(_LOOK_MS, round((deadline_s - time.monotonic()) * 1000)))


def _dial(req: pynng.Req0, url: str, failed: list[pynng.NNGException]) -> None:
    """Connects a socket, or says why it cannot."""
    try:
        req.dial(url, block=True)
    except pynng.NNGException as error:
        failed.append(error)


def connect(address: Address, timeout_s: float) -> NngConnection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most.

    Raises Unavailable, or DeadlineExceeded where nobody answers there.
    """
    connection = NngConnection(address)
    connection.open(timeout_s)
    return connection
