"""Codec of the null server on the sockets protocol (``codec.NullAnswers``): the same reply to every request, with the
request's call number.

Left out: all checks of a client's bytes.
"""

from collections.abc import Callable

from stock_service.rpc.wire.framing import encode_reply


class SocketNull:
    """Implementation of ``codec.NullAnswers``. ``head`` and ``tail`` are the parts of the reply before and after the
    call number.
    """

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.hello = b""
        self._head = head
        self._tail = tail
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Takes received bytes, and returns a reply for each request that the bytes complete."""
        if self._rest:
            data = self._rest + data
        end = len(data)
        if end == int.from_bytes(data[:4], "big") + 4:  # nearly always: exactly one request
            self._rest = b""
            return self._head + data[4:8] + self._tail
        replies = []
        at = 0
        while end - at >= 4 and (after := at + 4 + int.from_bytes(data[at : at + 4], "big")) <= end:
            replies.append(self._head + data[at + 4 : at + 8] + self._tail)
            at = after
        self._rest = data[at:]
        return b"".join(replies)


def null_answers(reply: bytes) -> Callable[[], SocketNull]:
    """Returns a function that makes the null server's codecs: every request gets ``reply``."""
    frame = encode_reply(0, 0, reply)
    head, tail = frame[:4], frame[8:]
    return lambda: SocketNull(head, tail)
