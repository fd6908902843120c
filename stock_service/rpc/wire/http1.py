"""HTTP/1.1 messages: bytes in, requests or responses out, no I/O. Source: RFC 9112.

| state of a decoder | bytes that the decoder reads | next |
|---|---|---|
| HEAD | a head with ``Content-Length``, or without any body | BODY |
| HEAD | a head with ``Transfer-Encoding: chunked`` | SIZE |
| BODY | the number of bytes that the head states | HEAD, and a message is complete |
| SIZE | the size of a chunk, not 0 | DATA |
| SIZE | the size 0 | TRAILER |
| DATA | the chunk, and CRLF | SIZE |
| TRAILER | a field | TRAILER |
| TRAILER | an empty line | HEAD, and a message is complete |

A proxy and this server must not read the same bytes as different messages (request smuggling). So the decoder refuses a
message with one of these faults: both a length and a transfer coding; two lengths, content types or hosts; no host in
HTTP/1.1; a folded field; a wrong character in a field's name; a bare CR or LF.

A decoder remembers accepted heads. A head with the same bytes as a remembered head is neither parsed nor checked again.
The key of a remembered head is its bytes, or a digest of its bytes if the head shows a token.

Left out: upgrades, codings other than ``chunked``, and bodies that end with the connection.
"""

import re
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.security import AUTHORIZATION, Shown, concealed, shown_in
from stock_service.rpc.wire.framing import FramingError

HEAD_BYTES_MAX = 8192
"""Limit of a head, and limit of a chunked message's trailers, in bytes."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Interim response to a client that sends ``Expect``, and sends the body only after this response."""

_HEADS_MAX = 1024
"""Largest number of heads that decoders remember together."""

_HEAD_BYTES_KEPT = 512
"""Size of the largest head that decoders remember, in bytes."""

_CHUNK_LINE_BYTES_MAX = 256
"""Limit of a chunk's first line, in bytes."""

_TIMEOUT_MS_MAX = 2**32 - 1

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_HOST = re.compile(rb"(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::[0-9]*)?", re.IGNORECASE | re.ASCII)
"""Value of the field ``Host``: a host, which may be empty, and optionally a port (RFC 9110, 7.2)."""

_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
_AUTHORIZATION = AUTHORIZATION.encode()

_ONCE = set(b"content-length content-type transfer-encoding host expect timeout-ms fault authorization".split())
"""Fields that a head may have only once."""


class HttpError(FramingError):
    """Error for bytes that are no message; no more bytes can be decoded. ``status`` is the HTTP status to send."""

    def __init__(self, status: int, detail: str, code: FaultCode = FaultCode.INVALID_ARGUMENT) -> None:
        super().__init__(detail)
        self.status, self.code = status, code


class RequestHead(NamedTuple):
    """Content of a request's head. ``length`` is the length of the body in bytes, or -1 for a chunked body. ``close``
    is True if the connection ends after this request. ``expects`` is True if the client waits for ``CONTINUE``.
    """

    length: int
    close: bool
    expects: bool
    verb: bytes
    path: bytes
    """Path without the query."""
    kind: bytes
    """Content type, in lower case and without its parameters."""
    timeout_ms: int
    """Time limit of the client, in milliseconds; 0 for a request without a time limit."""
    shown: Shown = None
    """Credential that the request shows."""


class ResponseHead(NamedTuple):
    """Content of a response's head. ``length`` is the length of the body in bytes, or -1 for a chunked body. ``close``
    is True if the connection ends after this response. ``expects`` is always False.
    """

    length: int
    close: bool
    expects: bool
    status: int
    fault: bytes
    """Value of the field ``Fault``: the name of the fault's code. Empty for a response without a fault."""


Head = TypeVar("Head", RequestHead, ResponseHead)

CheckSite = Callable[[bytes | None, bytes | None], None]
"""Function that checks the host and the field ``Origin`` of a head. An argument is None if the head does not have the
value. The function raises HttpError to refuse the head.
"""


class HttpMessage(NamedTuple, Generic[Head]):
    """A received request or response, with its whole body."""

    head: Head
    payload: bytes


class _State(Enum):
    HEAD = auto()
    BODY = auto()
    SIZE = auto()
    DATA = auto()
    TRAILER = auto()


class HttpDecoder(Generic[Head]):
    """Divides a stream into messages. The stream may arrive in pieces of any size. Holds one message and one piece at
    most. Not thread-safe.
    """

    def __init__(self, parse: Callable[[bytes], Head], heads: dict[bytes, Head], bytes_max: int) -> None:
        self._parse: Callable[[bytes], Head] = parse
        self._heads: dict[bytes, Head] = heads
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self._body = bytearray()  # a whole body, or the whole chunks of a body so far
        self._state = _State.HEAD
        self._head: Head | None = None
        self._need = 0  # length of the body or chunk that the decoder waits for; in TRAILER, bytes still allowed
        self._interim = b""
        self.ended = False
        """True if a message was marked as the connection's last. The decoder reads no bytes after this message."""

    @property
    def pending_bytes(self) -> int:
        """Number of bytes that the decoder holds of an unfinished message, plus 1 if the message's head is whole."""
        return len(self._buffer) + len(self._body) + (self._head is not None)

    def take_interim(self) -> bytes:
        """Returns ``CONTINUE`` if the client waits for this response, once for each message. Else returns no bytes."""
        interim, self._interim = self._interim, b""
        return interim

    def retire(self) -> bool:
        """Marks the message whose head comes next as the connection's last. Returns True. May be called again."""
        parse = self._parse
        self._heads, self._parse = {}, lambda raw: parse(raw)._replace(close=True)
        return True

    def feed(self, data: bytes) -> list[HttpMessage[Head]]:
        """Returns the messages that ``data`` completes, in order. After an HttpError no more bytes can be decoded."""
        if self.ended:
            return []
        if self._state is _State.HEAD and not self._buffer:  # nearly always one whole message with a remembered head
            raw, end, body = data.partition(b"\r\n\r\n")
            head = self._heads.get(raw) or self._heads.get(concealed(raw))
            if end and head is not None and len(body) == head.length:
                self.ended = head.close
                return [HttpMessage(head, body)]
        self._buffer += data
        messages: list[HttpMessage[Head]] = []
        try:
            while not self.ended and self._step(messages):
                pass
        except HttpError as error:
            error.frames = messages
            raise
        if self.ended:
            self._buffer.clear()
        return messages

    def _step(self, messages: list[HttpMessage[Head]]) -> bool:
        """Takes the next head, body or chunk of a message from the buffer. Returns False if this part is not whole."""
        match self._state:
            case _State.HEAD:
                return self._take_head()
            case _State.BODY | _State.DATA:
                return self._take_body(messages)
            case _State.SIZE:
                return self._take_size()
            case _State.TRAILER:
                line = self._until(b"\r\n", HEAD_BYTES_MAX, 431, "trailers")
                if line:
                    self._need -= len(line)
                    if self._need < 0:
                        raise HttpError(431, f"trailers over {HEAD_BYTES_MAX} bytes")
                    _field(line)
                elif line is not None:
                    self._finish(messages)
                return line is not None

    def _take_head(self) -> bool:
        buffer = self._buffer
        while buffer.startswith(b"\r\n"):  # some clients send an additional CRLF after a body
            del buffer[:2]
        if buffer and buffer != b"\r" and not 0x21 <= buffer[0] <= 0x7E:
            raise HttpError(400, "the first byte is none of HTTP")
        raw = self._until(b"\r\n\r\n", HEAD_BYTES_MAX, 431, "a head")
        if raw is None:
            return False
        head = self._heads.get(raw) or self._heads.get(concealed(raw))
        if head is None:
            head = self._parse(raw)
            if head.length > self._bytes_max:
                raise self._too_long(head.length)
            if len(raw) <= _HEAD_BYTES_KEPT:
                if len(self._heads) >= _HEADS_MAX:
                    self._heads.clear()
                shows = isinstance(head, RequestHead) and head.shown is not None
                self._heads[concealed(raw) if shows else raw] = head
        self._head, self._need = head, max(head.length, 0)
        self._state = _State.BODY if head.length >= 0 else _State.SIZE
        if head.expects and not buffer:
            self._interim = CONTINUE
        return True

    def _take_body(self, messages: list[HttpMessage[Head]]) -> bool:
        """Takes a body of a known length, or one chunk and the CRLF after it."""
        need, end = self._need, b"\r\n" if self._state is _State.DATA else b""
        if len(self._buffer) < need + len(end):
            return False
        if not self._buffer.startswith(end, need):
            raise HttpError(400, "a chunk that is longer than its size")
        self._body += self._buffer[:need]
        del self._buffer[: need + len(end)]
        if end:
            self._state = _State.SIZE
        else:
            self._finish(messages)
        return True

    def _take_size(self) -> bool:
        """Takes the first line of a chunk, which states the chunk's size."""
        line = self._until(b"\r\n", _CHUNK_LINE_BYTES_MAX, 400, "a chunk's size")
        if line is None:
            return False
        found = _CHUNK_LINE.fullmatch(line)
        if found is None:
            raise HttpError(400, f"{line!r} is no chunk's size")
        self._need = int(found[1], 16)
        if len(self._body) + self._need > self._bytes_max:
            raise self._too_long(len(self._body) + self._need)
        self._state = _State.DATA if self._need else _State.TRAILER
        self._need = self._need or HEAD_BYTES_MAX
        return True

    def _until(self, end: bytes, bytes_max: int, status: int, what: str) -> bytes | None:
        """Takes the bytes up to and including the mark ``end`` from the buffer. Returns the bytes before the mark; None
        if the mark has not come. Raises HttpError with ``status`` if more than ``bytes_max`` bytes come before the
        mark. In the error's text, ``what`` names these bytes.
        """
        limit = bytes_max + len(end)
        found = self._buffer.find(end, 0, limit)
        if found < 0:
            if len(self._buffer) >= limit:
                raise HttpError(status, f"{what} over {bytes_max} bytes")
            return None
        taken = bytes(self._buffer[:found])
        del self._buffer[: found + len(end)]
        return taken

    def _finish(self, messages: list[HttpMessage[Head]]) -> None:
        """Appends the whole message to ``messages``, and prepares for the next head."""
        head = self._head
        assert head is not None
        messages.append(HttpMessage(head, bytes(self._body)))
        self._head, self._body, self._state, self._interim = None, bytearray(), _State.HEAD, b""
        self.ended = head.close

    def _too_long(self, length: int) -> HttpError:
        return HttpError(413, f"a body of {length} bytes, allowed: {self._bytes_max}")


def request_decoder(
    heads: dict[bytes, RequestHead], bytes_max: int, check_site: CheckSite | None = None
) -> HttpDecoder[RequestHead]:
    """Makes the decoder of a server, which remembers heads in ``heads``. Decoders may share ``heads`` if one thread
    uses all these decoders, and all have the same ``check_site``. ``bytes_max`` limits a body.
    """
    return HttpDecoder(partial(_request_head, check_site), heads, bytes_max)


def response_decoder(bytes_max: int) -> HttpDecoder[ResponseHead]:
    """Makes the decoder of a client, whose ``feed`` also returns interim responses. ``bytes_max`` limits a body."""
    return HttpDecoder(_response_head, {}, bytes_max)


def _request_head(check_site: CheckSite | None, head: bytes) -> RequestHead:
    """Parses a request's head, without the empty line after it."""
    line, _, rest = head.partition(b"\r\n")
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise HttpError(400, "the first line is no request's")
    verb, target, major, minor = found.groups()
    if major != b"1":
        raise HttpError(505, f"HTTP/{major.decode()}.{minor.decode()}, allowed: HTTP/1.1")
    fields = _fields(rest)
    old = minor == b"0"
    host = fields.get(b"host")
    if host is None and not old:
        raise HttpError(400, "no host is named")
    if target.startswith(b"http://"):
        host, _, path = target[7:].partition(b"/")
        target = b"/" + path
    if host is not None and not _HOST.fullmatch(host):
        raise HttpError(400, f"Host: got {shown(host)}, allowed: HOST or HOST:PORT")
    if check_site is not None:
        check_site(host, fields.get(b"origin"))
    if fields.get(b"expect", b"100-continue").lower() != b"100-continue":
        raise HttpError(417, "an expectation that is not 100-continue")
    timeout = fields.get(b"timeout-ms", b"0")
    if not re.fullmatch(rb"[0-9]{1,10}", timeout) or int(timeout) > _TIMEOUT_MS_MAX:
        raise HttpError(400, f"timeout-ms: got {timeout!r}, allowed: 0 to {_TIMEOUT_MS_MAX}")
    kind = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
    expects = b"expect" in fields and not old
    length = _length(fields, old, 0)
    path = target.partition(b"?")[0]
    token = shown_in([fields[_AUTHORIZATION].decode("latin-1")]) if _AUTHORIZATION in fields else None
    return RequestHead(length, _closes(fields, old), expects, verb, path, kind, int(timeout), token)


def _response_head(head: bytes) -> ResponseHead:
    """Parses a response's head, without the empty line after it."""
    line, _, rest = head.partition(b"\r\n")
    found = _STATUS_LINE.fullmatch(line)
    if found is None:
        raise HttpError(400, "the first line is no response's")
    fields, status, old = _fields(rest), int(found[2]), found[1] == b"0"
    bodiless = status < 200 or status in (204, 304)
    length = 0 if bodiless else _length(fields, old, None)
    return ResponseHead(length, _closes(fields, old), False, status, fields.get(b"fault", b""))


def _fields(head: bytes) -> dict[bytes, bytes]:
    """Parses the fields of a head. Returns each field's value, by the field's name in lower case. The values of a
    repeated field become one value, with commas.

    Raises HttpError for a line that is no field, and if a name in ``_ONCE`` comes twice.
    """
    fields: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n") if head else ():
        name, value = _field(line)
        if name not in fields:
            fields[name] = value
        elif name in _ONCE:
            raise HttpError(400, f"{name.decode()} comes twice")
        else:
            fields[name] += b", " + value
    return fields


def shown(value: bytes) -> str:
    """Quotes the first 80 bytes of a field's value, for an error text."""
    return repr(value[:80].decode("latin-1"))


def _field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD.fullmatch(line)
    if found is None:
        raise HttpError(400, "a line of the head that is no field")
    return found[1].lower(), found[2].rstrip(b" \t")


def _length(fields: dict[bytes, bytes], old: bool, without: int | None) -> int:
    """Returns the length of a body in bytes, or -1 for a chunked body. ``old`` is True for HTTP/1.0. ``without`` is the
    result for a head that states no length; if ``without`` is None, such a head is refused.
    """
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if coding is not None:
        if length is not None or old:
            raise HttpError(400, "a transfer-encoding beside a content-length, or in HTTP/1.0")
        if coding.lower() != b"chunked":
            raise HttpError(501, "a transfer-encoding that is not chunked")
        return -1
    if length is None:
        if without is None:
            raise HttpError(400, "a body without a length")
        return without
    if not re.fullmatch(rb"[0-9]{1,18}", length):
        raise HttpError(400, f"content-length: got {length[:40]!r}, allowed: a number")
    return int(length)


def _closes(fields: dict[bytes, bytes], old: bool) -> bool:
    """Returns True if the connection ends after this message. ``old`` is True for HTTP/1.0."""
    words = {word.strip() for word in fields.get(b"connection", b"").lower().split(b",")}
    return b"close" in words or (old and b"keep-alive" not in words)
