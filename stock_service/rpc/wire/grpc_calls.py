"""Calls that a gRPC server has begun to receive, or keeps open; no I/O. See ``grpc_session.py``. A caller of any method
must hold the connection's lock.
"""

from collections import deque
from collections.abc import Iterator

from stock_service.rpc.call import ReplyMetadata
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire.grpc_heads import Head, Kind
from stock_service.rpc.wire.grpc_replies import PREFIX, window_bytes

PLAIN, GZIPPED, END, LATER, MORE = 0, 1, 2, 4, 8
"""Flags of a request, which are added. PLAIN: no flag. GZIPPED: the message is compressed. END: the kept call ends, and
there is no message. LATER: replies to this call were sent before. MORE: asks for the next reply to the last message."""

GrpcRequest = tuple[Head, int, bytes, int, dict[int, int], "Progress | None"]
"""Head, stream, message, flags as above, the open calls by stream, and the progress of a kept call. A call whose stream
is not among the open calls is abandoned. A plain tuple, because one is made for every request.
"""

WAITING_MAX = 64
"""Largest number of messages of one kept call that wait for the answer to an earlier message."""

GZIP_MOST = 1032
"""Largest ratio of the decompressed size to the compressed size, in gzip."""

Wrong = tuple[FaultCode, str]
"""Code and text of the fault of a call whose messages are wrong."""


def unfolds_bytes(message: bytes) -> int:
    """Decompressed size of a gzip message, as its last four bytes state it (RFC 1952, ISIZE).

    The result is at most ``GZIP_MOST`` times the length of the message.
    """
    return min(int.from_bytes(message[-4:], "little"), GZIP_MOST * len(message))


class Progress:
    """Progress of the answer to a kept call, for the thread that answers one of its messages."""

    def __init__(self) -> None:
        self.began_ns = 0
        """Time when the call's first message was answered; 0 before the first answer."""
        self.replies: Iterator[bytes] | None = None
        """Iterator of the remaining replies to the last message; None after the last reply."""
        self.said: ReplyMetadata | None = None
        """Metadata of the replies."""
        self.told: bytes | None = None
        """The last status of a watch."""


class IncomingCall:
    """A call that has not come whole, or a kept call."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.body = bytearray()
        """Bytes of the next message so far."""
        self.content_bytes = 0
        """Number of bytes that have come in all."""
        self.credit = 0
        """Number of bytes that the client has added to the stream's window, less the bytes sent."""
        self.ended = False
        """True if the client has ended the call."""
        self.waiting: deque[tuple[bytes, int]] = deque()
        """Waiting messages of a kept call, and the call's end, with their flags."""
        self.waiting_bytes = 0
        """Number of bytes of the waiting messages, with their prefixes. The client's window is reduced by this
        number.
        """
        self.unfolds_bytes = 0
        """Stated decompressed size of a kept call's new compressed messages. The reader of this field sets it back to
        0.
        """
        self.latest = (b"", PLAIN)
        """Latest whole message of a kept call, with the message's flags."""
        self.begun = False
        """True if a message of the kept call has been handed out for an answer."""
        self.busy = False
        """True while the answer to the last message handed out has not been sent."""
        self.progress = Progress() if head.kind else None
        """Progress of a kept call's answer; None for another call."""

    def whole(self) -> bytes | None:
        """The message of a unary call; None if the message is missing or not whole."""
        body = self.body
        if len(body) < PREFIX.size or len(body) < PREFIX.size + PREFIX.unpack_from(body)[1]:
            return None
        return bytes(memoryview(body)[PREFIX.size :])

    def add(self, piece: bytes, message_bytes_max: int) -> Wrong | None:
        """Takes more bytes of the call's messages; returns the fault of wrong bytes."""
        body = self.body
        body += piece
        while len(body) >= PREFIX.size:
            compressed, size = PREFIX.unpack_from(body)
            stop = PREFIX.size + size
            if size > message_bytes_max:
                detail = f"a message of {size} bytes, allowed: {message_bytes_max}"
                return FaultCode.RESOURCE_EXHAUSTED, detail
            if compressed > 1 or (compressed and not self.head.gzipped):
                return FaultCode.INTERNAL, "a message that is compressed, and no grpc-encoding that says how"
            if self.head.kind is Kind.UNARY:
                return (FaultCode.INTERNAL, "more than one message") if len(body) > stop else None
            if len(body) < stop:
                break
            if self.head.kind is not Kind.STREAMED and (self.waiting or self.begun):
                return FaultCode.INTERNAL, "more than one message"
            if len(self.waiting) >= WAITING_MAX:
                return FaultCode.RESOURCE_EXHAUSTED, f"over {WAITING_MAX} messages of one call wait"
            message = bytes(body[PREFIX.size : stop])
            self.waiting.append((message, compressed))
            self.waiting_bytes += stop
            if compressed:
                self.unfolds_bytes += unfolds_bytes(message)
            self.latest = message, compressed
            del body[:stop]
        if self.waiting_bytes + len(body) > window_bytes(message_bytes_max):
            return FaultCode.RESOURCE_EXHAUSTED, "more of a call's messages than the window allows"
        return None

    def end_kept(self) -> bool:
        """Notes that the client has ended a kept call; returns False if a message is missing, or not whole."""
        if self.body or (self.head.kind is not Kind.STREAMED and not (self.waiting or self.begun)):
            return False
        if self.head.kind is Kind.STREAMED:
            self.waiting.append((b"", END))
        return True
