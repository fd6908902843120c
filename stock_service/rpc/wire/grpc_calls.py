"""Received bytes and state of one gRPC call on a server. The server needs the state of a unary call until the message
is whole, and the state of a kept call until the call ends. No I/O. ``grpc_session.py`` explains the states. A caller of
any method must hold the connection's lock.
"""

from collections import deque
from collections.abc import Iterator

from stock_service.rpc.call import ReplyMetadata
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire.grpc_heads import Head, Kind
from stock_service.rpc.wire.grpc_replies import PREFIX, window_bytes

PLAIN, GZIPPED, END, LATER, MORE = 0, 1, 2, 4, 8
"""Flags of a request, as bits. PLAIN: no flag. GZIPPED: the message is compressed. END: the kept call ends; there is no
new message. LATER: an earlier message of this call was answered. MORE: asks for the next reply to the last message.
"""

GrpcRequest = tuple[Head, int, bytes, int, dict[int, int], "Progress | None"]
"""A request, as a tuple: head, stream, message, flags, the connection's open calls by stream, and the progress of a
kept call (None for a unary call). A request whose stream is not among the open calls was cancelled. The server makes
one such tuple for every request: no object is made faster than a plain tuple.
"""

WAITING_MAX = 64
"""Largest number of messages of one kept call that may wait for the answer to an earlier message."""

GZIP_MOST = 1032
"""Largest possible ratio of the decompressed size to the compressed size in gzip."""

Wrong = tuple[FaultCode, str]
"""Code and text of the fault for a call with wrong messages."""


def unfolds_bytes(message: bytes) -> int:
    """Returns the decompressed size that a gzip message states in its last four bytes (RFC 1952, ISIZE).

    The result is at most ``GZIP_MOST`` times the length of the message.
    """
    return min(int.from_bytes(message[-4:], "little"), GZIP_MOST * len(message))


class Progress:
    """State of a kept call (whose method streams) that lasts from one answer to the next. Only the thread that answers
    a message of the call uses this state.
    """

    def __init__(self) -> None:
        self.began_ns = 0
        """Time when the call's first message arrived; 0 until the server begins to answer this message."""
        self.replies: Iterator[bytes] | None = None
        """Iterator of the remaining replies to the last message; None after the last reply."""
        self.said: ReplyMetadata | None = None
        """Metadata of the call's replies."""
        self.told: bytes | None = None
        """Last reply that a health watch has sent; None before the first reply."""


class IncomingCall:
    """A unary call whose message is not whole yet, or a kept call (a call whose method streams)."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.body = bytearray()
        """Received bytes of the unfinished message."""
        self.content_bytes = 0
        """Total number of bytes that the client has sent in DATA frames of the call."""
        self.credit = 0
        """Number of bytes that the client has added to the stream's flow-control window, less the number of bytes that
        the server has sent.
        """
        self.ended = False
        """True if the client has ended the call."""
        self.waiting: deque[tuple[bytes, int]] = deque()
        """Messages of a kept call, with their flags. A message waits here until the message before it is answered. The
        last entry may be the end of the call: no new message, with the flag ``END``.
        """
        self.waiting_bytes = 0
        """Number of bytes of the waiting messages, with their prefixes. The stream's flow-control window for the client
        is smaller by this number.
        """
        self.unfolds_bytes = 0
        """Sum of the decompressed sizes, in bytes, that new compressed messages of a kept call state. The code that
        reads this field sets the field back to 0.
        """
        self.latest = (b"", PLAIN)
        """Latest whole message of a kept call, with the message's flags."""
        self.begun = False
        """True if a message of the kept call was given to a worker for an answer."""
        self.busy = False
        """True while a worker answers a message of the kept call, and until the answer is sent."""
        self.progress = Progress() if head.kind else None
        """State of a kept call's answers; None for a unary call."""

    def whole(self) -> bytes | None:
        """Returns the message of a unary call; None if the message is missing or not whole."""
        body = self.body
        if len(body) < PREFIX.size or len(body) < PREFIX.size + PREFIX.unpack_from(body)[1]:
            return None
        return bytes(memoryview(body)[PREFIX.size :])

    def add(self, piece: bytes, message_bytes_max: int) -> Wrong | None:
        """Adds received bytes to the call's messages. Returns a fault for wrong bytes, and None for valid bytes."""
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
        """Notes that the client has ended a kept call. Returns False if a required message is missing or not whole."""
        if self.body or (self.head.kind is not Kind.STREAMED and not (self.waiting or self.begun)):
            return False
        if self.head.kind is Kind.STREAMED:
            self.waiting.append((b"", END))
        return True
