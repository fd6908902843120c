"""Calls that a gRPC server has begun to receive, and those that it keeps open; no I/O. See ``grpc_session.py``.

Whoever uses these has the connection's lock.
"""

from collections import deque
from collections.abc import Iterator

from stock_service.rpc.call import ReplyMetadata
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire.grpc_heads import Head, Kind
from stock_service.rpc.wire.grpc_replies import PREFIX, window_bytes

PLAIN, GZIPPED, END, LATER, MORE = 0, 1, 2, 4, 8
"""What a request carries, as flags: its message is compressed; it is the end of a kept call, which has none; replies to
its call have gone before; it asks for the next reply to the last message."""

GrpcRequest = tuple[Head, int, bytes, int, dict[int, int], "Progress | None"]
"""Head, stream, message, flags as above, the open calls (a stream that is no key there has been given up), and how far
a kept call is. A plain tuple, because one is made for every request."""

WAITING_MAX = 64
"""Messages of one kept call that wait for another's answer, at most."""

GZIP_MOST = 1032
"""Bytes that one of gzip unfolds to, at most."""

Wrong = tuple[FaultCode, str]
"""What a call ends with whose messages are wrong."""


def unfolds_bytes(message: bytes) -> int:
    """Bytes that a message in gzip says, at its end, that it unfolds to (RFC 1952, ISIZE), as far as it can."""
    return min(int.from_bytes(message[-4:], "little"), GZIP_MOST * len(message))


class Progress:
    """How far the answer to a kept call is: whoever answers one of its messages has it to itself."""

    def __init__(self) -> None:
        self.began_ns = 0
        """When its first message was answered; 0: none was."""
        self.replies: Iterator[bytes] | None = None
        """Replies to the last message that have not been asked for; None: there are no more."""
        self.said: ReplyMetadata | None = None
        """What is said besides."""
        self.told: bytes | None = None
        """Of a watch: its last word."""


class IncomingCall:
    """A call of which not all has come, or that is kept."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.body = bytearray()
        """What has come of the next message."""
        self.content_bytes = 0
        """What has come in all."""
        self.credit = 0
        """What the client has added to the stream's window, less what was sent."""
        self.ended = False
        """Whether the client has ended it."""
        self.waiting: deque[tuple[bytes, int]] = deque()
        """Of a kept call: messages, and its end, with their flags."""
        self.waiting_bytes = 0
        """Bytes of these, with their prefixes: the client's window is that much narrower."""
        self.unfolds_bytes = 0
        """Of a kept call: what its messages that are compressed say that they unfold to, until whoever asks sets it
        back."""
        self.first = (b"", PLAIN)
        """Of a kept call: its first message, with its flags."""
        self.begun = False
        """Of a kept call: whether one of them was given to be answered."""
        self.busy = False
        """Of a kept call: whether that one's answer has not left yet."""
        self.progress = Progress() if head.kind else None
        """Of a kept call: how far its answer is."""

    def whole(self) -> bytes | None:
        """The message of a unary call; None: there is none, or half of one."""
        body = self.body
        if len(body) < PREFIX.size or len(body) < PREFIX.size + PREFIX.unpack_from(body)[1]:
            return None
        return bytes(memoryview(body)[PREFIX.size :])

    def add(self, piece: bytes, message_bytes_max: int) -> Wrong | None:
        """Takes more of its messages; says what is wrong with them."""
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
            if self.head.kind is Kind.REPLIES and (self.waiting or self.begun):
                return FaultCode.INTERNAL, "more than one message"
            if len(self.waiting) >= WAITING_MAX:
                return FaultCode.RESOURCE_EXHAUSTED, f"over {WAITING_MAX} messages of one call wait"
            message = bytes(body[PREFIX.size : stop])
            self.waiting.append((message, compressed))
            self.waiting_bytes += stop
            if compressed:
                self.unfolds_bytes += unfolds_bytes(message)
            if not (self.begun or self.first[0]):
                self.first = message, compressed
            del body[:stop]
        if self.waiting_bytes + len(body) > window_bytes(message_bytes_max):
            return FaultCode.RESOURCE_EXHAUSTED, "more of a call's messages than the window allows"
        return None

    def end_kept(self) -> bool:
        """The client has ended a kept call; whether it had sent what it must."""
        if self.body or (self.head.kind is not Kind.STREAMED and not (self.waiting or self.begun)):
            return False
        if self.head.kind is Kind.STREAMED:
            self.waiting.append((b"", END))
        return True
