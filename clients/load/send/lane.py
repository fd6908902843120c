"""Lane: a kept connection of the lean client, with several calls under way. A lane sends requests, receives replies,
and records the calls.

The code does as little as possible for each request. Requests are encoded before the run, except for the call number. A
reply's payload is looked up among the known valid payloads.

Each call that has begun leaves one record. The record tells how the call ended: by a reply, a fault, a timeout, or a
lost connection. Only a first call that is never answered leaves no record.

A connection's first call is marked in the records, even if the call fails. The reason: the time of this call includes
work that happens only once. A first call may wait for its reply until the run ends. A request of a schedule is never a
first call.

Left out: the choice of the moments of sending and connecting (see ``lanes.py``).
"""

import select
import socket
import ssl
from collections.abc import Callable, Iterator

from clients.load.plan.checked_workload import Asked
from clients.load.plan.outcomes import LATE, fault_outcome
from clients.load.record.records import Records
from stock_service.rpc.dialing import READ_BYTES, dial
from stock_service.rpc.errors import Fault, Unavailable
from stock_service.rpc.transports import Address
from stock_service.rpc.wire.codec import Codec, Prepared

Ready = tuple[Prepared, dict[bytes, int], Callable[[bytes], int], int]
"""A request that is ready to be sent. The first value is the encoded request. Then come the outcomes of known valid
replies by the reply's bytes, the check of unknown replies, and the offset of the request type's outcomes
(``plan/outcomes.py``).
"""

Waiting = tuple[int, int, dict[bytes, int], Callable[[bytes], int], int]
"""A call under way: due moment, moment of the send, and the last three values of ``Ready``."""

_NEXT, _NONE = -1, 0
"""Values of ``Lane.first_call`` while no first call is under way. With ``_NEXT``, the next call will be the first call
if this call is not part of a schedule. With ``_NONE``, no later call of the connection is a first call.
"""


class Lane:
    """A kept connection of the lean client. After a loss, ``connect`` gives the lane a new connection. Not thread-safe.
    The caller must disconnect the lane.
    """

    __slots__ = (
        "_clock_ns",
        "_epoll",
        "_open_loop",
        "_socket",
        "_unsent",
        "_watched",
        "codec",
        "first_call",
        "records",
        "requests",
        "resting",
        "waiting",
    )

    def __init__(
        self,
        requests: Iterator[Ready],
        clock_ns: Callable[[], int],
        epoll: select.epoll,
        watched: dict[int, "Lane"],
        open_loop: bool,
    ) -> None:
        """``watched`` maps the descriptor of each connected lane to the lane. While the lane is connected, the lane is
        in ``watched``, and its socket is in ``epoll``. The caller polls ``epoll``."""
        self.requests = requests
        self.records = Records()
        self.codec: Codec
        self.waiting: dict[int, Waiting] = {}  # by call number, oldest first
        self.first_call = _NEXT  # number of the first call under way, or _NEXT, or _NONE
        self.resting = False  # in a closed loop: True while the lane sends nothing, until Lanes._wake
        self._clock_ns = clock_ns
        self._epoll = epoll
        self._watched = watched
        self._open_loop = open_loop
        self._socket: socket.socket | None = None
        self._unsent = b""  # bytes that the kernel did not take yet

    @property
    def connected(self) -> bool:
        """True while the lane has a connection. Without a connection no call is under way."""
        return self._socket is not None

    @property
    def room(self) -> bool:
        """True if a call can begin now."""
        return self._socket is not None and not self._unsent and self.codec.room()

    @property
    def used_up(self) -> bool:
        """True if the connection can carry no further call, so that the lane must reconnect."""
        return self._socket is not None and not self.waiting and not self.codec.room()

    @property
    def settled(self) -> bool:
        """True if no call is under way. A first call that is under way does not count."""
        return not self.waiting or (len(self.waiting) == 1 and self.first_call in self.waiting)

    def connect(self, address: Address, codec: Codec, timeout_s: float, context: ssl.SSLContext | None = None) -> None:
        """Makes the connection, over TLS if ``context`` is given.

        Blocks for ``timeout_s`` at most; raises Unavailable, DeadlineExceeded.
        """
        began_ns = self._clock_ns()
        connected = dial(address, timeout_s, context)
        self._socket, self.codec, self._unsent = connected, codec, b""
        self.first_call, self.resting = _NEXT, False
        self.records.note_connect(began_ns, self._clock_ns())
        connected.setblocking(False)
        self._watched[connected.fileno()] = self
        self._epoll.register(connected.fileno(), select.EPOLLIN)
        if codec.hello:
            self.write(codec.hello)

    def disconnect(self) -> None:
        """Closes the connection. May be called repeatedly. Does not record the calls under way."""
        if self._socket is not None:
            self._watched.pop(self._socket.fileno(), None)
            self._socket.close()  # the close also removes the socket from the epoll set
            self._socket = None

    def send(self, due_ns: int | None = None) -> None:
        """Sends the next request of ``requests``. Without ``due_ns``, the request is due now. Call only if ``room`` is
        true. Part of the hot loop."""
        prepared, known, check, first = next(self.requests)
        call, data = self.codec.start(prepared)
        if self.first_call == _NEXT:  # a request of the schedule is never a first call, even if answered first
            self.first_call = call if due_ns is None else _NONE
        self.records.started += 1
        sent_ns = self._clock_ns()
        self.waiting[call] = (sent_ns if due_ns is None else due_ns, sent_ns, known, check, first)
        self.write(data)

    def receive(self, done_ns: int) -> bool:
        """Reads the bytes that have come, and records the calls that ended. In a closed loop, a reply gets the time
        ``done_ns`` (see ``lanes.py``). Returns True if a call ended. Part of the hot loop.
        """
        if self._socket is None:  # the flush for the same event has lost the connection
            return False
        codec, waiting, records = self.codec, self.waiting, self.records
        try:
            data = self._socket.recv(READ_BYTES)
            if not data:
                raise Unavailable("the server closed the connection")
            if self._open_loop:  # bytes may have arrived since epoll returned: read the clock again
                done_ns = self._clock_ns()
            completed = codec.feed(data)
        except BlockingIOError:
            return False
        except (Fault, OSError) as error:
            if isinstance(error, Fault):
                self.write(codec.take_outgoing())  # bytes that tell the server the reason
            self._lose(error, done_ns)
            return True
        if codec.preceded and completed and not self._open_loop:  # epoll may have woken for bytes before the reply
            codec.preceded, done_ns = False, self._clock_ns()
        for call, reply in completed:
            under_way = waiting.pop(call, None)
            if under_way is None:  # the late reply to a call that was given up
                continue
            due_ns, sent_ns, known, check, first = under_way
            if self._open_loop:
                records.due.append(due_ns)
            records.sent.append(sent_ns)
            records.done.append(done_ns)
            if isinstance(reply, bytes):
                records.outcomes.append(known.get(reply) or check(reply))
                if call == self.first_call:
                    self.first_call = _NONE
                    records.note_first()
            else:
                records.outcomes.append(first + fault_outcome(reply))
                if isinstance(check, Asked):
                    check.failed(reply)
                self.resting = True
                if call == self.first_call:
                    self.first_call = _NEXT
                    records.note_first()
        outgoing = codec.take_outgoing()
        if outgoing:
            self.write(outgoing)
        return bool(completed)

    def write(self, data: bytes) -> None:
        """Gives bytes to the kernel. Bytes that the kernel does not take are kept for ``flush``."""
        if self._unsent:
            self._unsent += data
            return
        connected = self._socket
        if connected is None:  # lost meanwhile: the calls are recorded already
            return
        try:
            sent = connected.send(data)
        except BlockingIOError:
            sent = 0
        except (BrokenPipeError, ConnectionResetError):
            return  # the server's last bytes, and the end of the stream, can still be read
        except OSError as error:
            self._lose(error, self._clock_ns())
            return
        if sent < len(data):
            self._unsent = data[sent:]
            self._epoll.modify(connected.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def flush(self) -> None:
        """Gives the kernel the bytes that ``write`` kept. Called when epoll reports the socket as writable."""
        if self._socket is not None:
            data, self._unsent = self._unsent, b""
            self._epoll.modify(self._socket.fileno(), select.EPOLLIN)
            self.write(data)

    def give_up(self, sent_before_ns: int, now_ns: int) -> None:
        """Ends the calls that were sent at ``sent_before_ns`` or earlier, and records these calls as timed out. Does
        not end a first call.
        """
        late = []
        for call, (_, sent_ns, *_) in self.waiting.items():
            if sent_ns > sent_before_ns:
                break  # all further calls were sent later
            if call != self.first_call:
                late.append(call)
        if not late:
            return
        cancels = []
        for call in late:
            self._note(self.waiting.pop(call), now_ns, LATE)
            cancels.append(self.codec.abandon(call))
        self.resting = True
        if cancel := b"".join(cancels):
            self.write(cancel)

    def _lose(self, error: Fault | OSError, now_ns: int) -> None:
        """Closes a connection that has failed, and records every call under way with the outcome of ``error``."""
        fault = error if isinstance(error, Fault) else Unavailable(error.strerror or str(error))
        outcome = fault_outcome(fault)
        for call in list(self.waiting):
            self._note(self.waiting.pop(call), now_ns, outcome)
            if call == self.first_call:
                self.records.note_first()
        self.disconnect()

    def _note(self, ended: Waiting, now_ns: int, outcome: int) -> None:
        """Records a call that ended in a fault. ``outcome`` is the fault's outcome without the request type's
        offset."""
        due_ns, sent_ns, _, _, first = ended
        self.records.note(sent_ns, now_ns, first + outcome, due_ns if self._open_loop else None)
