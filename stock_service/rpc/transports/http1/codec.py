"""Codecs of HTTP/1.1 for the lean client (``codec.Codec``) and for the null server (``codec.NullAnswers``). No I/O.

A connection has one call at a time: HTTP/1.1 answers in order, so a second response would wait for the first response.
After a client abandons a call, its connection cannot be used any more.

If a call names a method by the method's path, the message is in protobuf. If the call names a route such as ``PUT
/entities/5``, the message is in JSON.
"""

from stock_service.rpc.errors import InvalidRequest, Unavailable
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.security import Metadata
from stock_service.rpc.wire.codec import Prepared, Reply
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.http1 import HttpMessage, RequestHead, ResponseHead, request_decoder, response_decoder
from stock_service.rpc.wire.http1_status import JSON, PROTOBUF, encode_request, fault_of

REPLY_BYTES_MAX = 1 << 30
"""Limit of a reply's body, and of a request's body on the null server, in bytes. A server's ``--frame-bytes-max``
cannot be larger.
"""


class HttpCodec:
    """Implementation of ``codec.Codec`` for HTTP/1.1."""

    def __init__(self, address: tuple[str, int], token: str = "", metadata: Metadata = ()) -> None:
        self.hello = b""
        self.preceded = False
        shown = f"Authorization: Bearer {token}\r\n" if token else ""
        shown += "".join(f"{key}: {value}\r\n" for key, value in metadata)
        self._fields = f"Host: {shown_address(address)}\r\n{shown}".encode()
        self._call = 0
        self._open = 0  # number of the open call; 0 without an open call
        self._usable = True
        self._decoder = response_decoder(REPLY_BYTES_MAX)

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request; see ``codec.Codec``. ``path`` is the path of a method, or a route's ``VERB /path``."""
        verb, routed, target = path.rpartition(" ")
        if not path.isascii() or not path.isprintable() or verb.isalpha() != bool(routed):
            raise InvalidRequest(f"a method's name that is no path of HTTP: {path!r}")
        kind, timeout_ms = JSON if routed else PROTOBUF, max(1, round(timeout_s * 1000))
        fields = b"%sTimeout-Ms: %d\r\n" % (self._fields, timeout_ms)
        return (encode_request(verb.encode() or b"POST", target.encode(), kind, payload, fields),)

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call; returns the call's number and the bytes to send. See ``codec.Codec``."""
        self._call = self._open = self._call + 1
        return self._call, prepared[0]

    def feed(self, data: bytes) -> list[Reply]:
        """Takes received bytes, and returns the reply that the bytes complete; see ``codec.Codec``."""
        messages: list[HttpMessage[ResponseHead]] = []
        broken = ""
        try:
            messages = self._decoder.feed(data)
        except FramingError as error:
            messages, broken = list(error.frames), f"the server sent what is no response: {error}"
        if len(messages) != 1 or messages[0].head.status != 200:
            self.preceded = True
        done: list[Reply] = []
        for head, payload in messages:
            if head.status < 200:
                continue
            if not self._open:
                broken = broken or "the server sent a response to no request"
                break
            done.append((self._open, payload if head.status == 200 else fault_of(head.status, head.fault, payload)))
            self._open = 0
            self._usable = self._usable and not head.close
        if broken:  # ends the open call, and the use of the connection
            fault = Unavailable(broken)
            self._usable = False
            if self._open:
                done.append((self._open, fault))
                self._open = 0
            if not done:
                raise fault
        return done

    def take_outgoing(self) -> bytes:
        """Returns no bytes: the protocol has no bytes besides requests and responses."""
        return b""

    def room(self) -> bool:
        """Returns True if no call is open and the connection can be used."""
        return self._usable and not self._open

    def abandon(self, call: int) -> bytes:
        """Gives up a call; returns no bytes. The connection cannot be used any more."""
        if call == self._open:
            self._open = 0
            self._usable = False
        return b""


class HttpNull:
    """Implementation of ``codec.NullAnswers`` for HTTP/1.1. Every request gets ``response``."""

    def __init__(self, response: bytes) -> None:
        self.hello = b""
        self._response = response
        heads: dict[bytes, RequestHead] = {}
        self._decoder = request_decoder(heads, REPLY_BYTES_MAX)

    def feed(self, data: bytes) -> bytes | None:
        """Takes received bytes; returns a response for each request that the bytes complete. Returns None for wrong
        bytes.
        """
        try:
            return self._response * len(self._decoder.feed(data))
        except FramingError:
            return None
