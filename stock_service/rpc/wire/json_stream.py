"""A stream of JSON objects, one after the other: bytes in, the text of each object out, no I/O.

Objects are told apart by their brackets, outside of strings; white space between them is skipped. Whether a text is
JSON is for its reader to say: one that is not, and whose brackets pair, comes out like any other.
"""

import re
from collections.abc import Sequence

from stock_service.rpc.wire.framing import FramingError

DEPTH_MAX = 64
"""Brackets within brackets, at most."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_PLAIN = rb'[^{}\[\]"]++|' + _STRING


def _inside(depth: int) -> bytes:
    """What stands between two brackets, with so many levels of brackets in it."""
    nested = rb"|[{\[]" + _inside(depth - 1) + rb"[}\]]" if depth else b""
    return rb"(?:" + _PLAIN + nested + rb")*+"


_OBJECT = re.compile(rb"\{" + _inside(4) + rb"\}[ \t\r\n]*+", re.DOTALL)
"""An object that is no deeper than requests are, whole: it needs no scanning."""

_SPACE = re.compile(rb"[ \t\r\n]*")
_BRACKET_OR_QUOTE = re.compile(rb'[{}\[\]"]')
_QUOTE_OR_ESCAPE = re.compile(rb'["\\]')


class JsonDecoder:
    """Cuts a stream into objects, however it was chunked. Holds one object and one chunk at most. One thread's."""

    __slots__ = ("_at", "_buffer", "_bytes_max", "_depth", "_in_string")

    ended = False
    """No object says that it is the last one."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._buffer = bytearray()  # begins with an object, or is empty
        self._at = 0  # how far it has been scanned
        self._depth = 0
        self._in_string = False

    @property
    def pending_bytes(self) -> int:
        """Bytes held of an object that is not whole yet."""
        return len(self._buffer)

    def take_interim(self) -> bytes:
        """Nor asks for a word before it is whole."""
        return b""

    def feed(self, data: bytes) -> Sequence[bytes]:
        """The objects that ``data`` completes, in order. Raises FramingError, after which the stream is lost."""
        if not self._buffer:
            whole = _OBJECT.fullmatch(data)
            if whole is not None and len(text := data.rstrip()) <= self._bytes_max:
                return (text,)
        self._buffer += data
        objects: list[bytes] = []
        try:
            while (found := self._next()) is not None:
                objects.append(found)
        except FramingError as error:
            error.frames = objects
            raise
        return objects

    def _next(self) -> bytes | None:
        """The next whole object, taken from the buffer."""
        buffer = self._buffer
        if not self._depth:
            space = _SPACE.match(buffer)
            assert space is not None
            del buffer[: space.end()]
            if not buffer:
                return None
            if buffer[0] != ord("{"):
                raise FramingError(f"{bytes(buffer[:1])!r} where an object begins")
        whole = self._scan(min(len(buffer), self._bytes_max + 1))
        if self._at > self._bytes_max:
            raise FramingError(f"an object over {self._bytes_max} bytes")
        if not whole:
            return None
        text = bytes(buffer[: self._at])
        del buffer[: self._at]
        self._at = 0
        return text

    def _scan(self, end: int) -> bool:
        """Goes on up to ``end``, or behind the object's last bracket; says whether that was met."""
        buffer = self._buffer
        while self._at < end:
            pattern = _QUOTE_OR_ESCAPE if self._in_string else _BRACKET_OR_QUOTE
            found = pattern.search(buffer, self._at, end)
            if found is None:
                self._at = end
                return False
            match found[0]:
                case b'"':
                    self._in_string = not self._in_string
                case b"\\":
                    if found.end() == end:  # what it escapes is still to come, unless the object is too long already
                        self._at = found.start() if end <= self._bytes_max else end
                        return False
                    self._at = found.end() + 1
                    continue
                case b"{" | b"[":
                    self._depth += 1
                    if self._depth > DEPTH_MAX:
                        raise FramingError(f"brackets over {DEPTH_MAX} deep")
                case _:
                    self._depth -= 1
            self._at = found.end()
            if not self._depth:
                return True
        return False
