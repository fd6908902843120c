"""Floods of a hostile client: each costs a server more than its sender, unless the server counts."""

from collections.abc import Callable

from stock_service.rpc.wire import http2
from stock_service.rpc.wire.header_blocks import encode_block
from stock_service.rpc.wire.http2 import ErrorCode
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import PATH, call, data, fields, head, message


def field(number: int) -> bytes:
    """A field that a block did not have before."""
    return b"\x00\x01a\x05%05d" % number


LONG = message(bytes(100_000))[:5]
GET = encode_block({**dict(fields()), b":method": b"GET"}.items())
HUFFMAN = b"\x00\x01b\xff\xd9\x35" + b"\x1f" * 7000
"""A field with 7,000 bytes of Huffman's code, for 11,000 characters; a new field before it has it decoded."""


def floods(path: bytes = PATH) -> dict[str, Callable[[int], bytes]]:
    """Floods by their names: the bytes of the first time, the second, and so on; ``path`` is a method of one
    message."""

    def _head(stream: int, ends: bool = False) -> bytes:
        return head(stream, path, ends)

    def _long(stream: int) -> bytes:
        code = b"\x00\x01b\xff\xe1\x5c" + b"\x1f" * 12_000  # in Huffman's code
        return http2.headers(stream, encode_block(fields(path)) + field(stream) + code, False)

    def _call(stream: int, its_path: bytes = path) -> bytes:
        return call(stream, b"", its_path)

    return {
        "ping": lambda _: http2.frame(http2.PING, 0, 0, bytes(8)),
        "settings": lambda _: http2.settings(),
        "priority": lambda _: http2.frame(http2.PRIORITY, 0, 1, bytes(5)),
        "window updates": lambda _: http2.window_update(0, 1),
        "rapid reset": lambda number: _call(2 * number + 1) + http2.rst_stream(2 * number + 1, ErrorCode.CANCEL),
        "reset of headers": lambda number: _head(2 * number + 1) + http2.rst_stream(2 * number + 1, ErrorCode.CANCEL),
        "reset of long headers": lambda number: (
            _long(2 * number + 1) + http2.rst_stream(2 * number + 1, ErrorCode.CANCEL)
        ),
        "refused calls": lambda number: _head(2 * number + 1),
        "empty DATA": lambda number: (_head(1) if number == 0 else b"") + data(1, b"", ends=False),
        "unknown frames": lambda _: http2.frame(77, 0, 0, b""),
        "malformed calls": lambda number: http2.headers(2 * number + 1, b"\x82", True),
        "unknown methods": lambda number: _call(2 * number + 1, b"/a.Service/%d" % number),
        "no calls": lambda number: http2.headers(2 * number + 1, GET, True),
        "calls without a message": lambda number: _head(2 * number + 1, ends=True),
        "two HEADERS": lambda number: 2 * _head(2 * number + 1),
        "380 fields": lambda number: http2.headers(2 * number + 1, b"\x82" * 380 + field(number), True),
        "Huffman's code": lambda number: http2.headers(2 * number + 1, field(number) + HUFFMAN, True),
        "2,730 settings": lambda _: http2.settings(*[(99, 1)] * 2730),
        "DATA, a byte each": lambda number: (
            (_head(1) + data(1, LONG, ends=False)) * (not number) + data(1, b"x", ends=False)
        ),
        "the same of a refused call": lambda number: (
            (_head(1) + data(1, b"\0\xff\xff\xff\xff", ends=False)) * (not number) + data(1, b"x", ends=False)
        ),
    }
