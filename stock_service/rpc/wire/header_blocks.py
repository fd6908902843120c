"""Header blocks (HPACK, RFC 7541): encoding, and decoding with a cache, so that a repeated field is decoded once.

An encoded block uses only the static table and literals without indexing. So the block has the same meaning on every
connection, and the caller may encode the block once.

``BlockReader`` cuts a received block into fields, and looks up the bytes of each field in the connection's known
fields. Only a new field is decoded. If all fields of a block are known, the reader remembers the whole block. If two
successive blocks begin with the same fields, the reader remembers these fields together, whatever their length.

A peer that has received SETTINGS_HEADER_TABLE_SIZE = 0 sends *plain* blocks. Plain blocks neither use nor change the
peer's dynamic table, so equal plain blocks always have the same meaning. A block that adds a field to a table of size 0
is also plain. Before this setting arrives, a peer may use a table of 4,096 bytes; the reader has a copy.

A field that shows a token, and a block with such a field, are remembered by a digest, so no token stays in memory. In
the copy of a peer's dynamic table only the meaning of such a field is stored.

HPACK's Huffman code is like DEFLATE's (RFC 1951), but its codes have other lengths. Usual text needs no code over 15
bits. So zlib decodes a long string, as a block of DEFLATE. A table decodes any other string, byte by byte.

Left out: a check that a peer, after its acknowledgement of our SETTINGS, begins the first block with the new table size
(RFC 9113, 4.3.1). A block that breaks this rule is decoded.
"""

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from hpack.hpack import encode_integer
from hpack.huffman_constants import REQUEST_CODES_LENGTH
from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE
from hpack.table import HeaderTable

from stock_service.rpc.security import AUTHORIZATION, concealed

KNOWN_MAX, KNOWN_BYTES_MAX = 16, 512
"""Limits of a connection's remembered blocks: number, and bytes of one block. A client repeats 2 or 3 blocks."""

FIELDS_BYTES_MAX, FIELD_BYTES_MAX = 4096, 2048
"""Limits of one connection's remembered fields: all fields together, and one field. The size of a field is its number
of received bytes plus its size by RFC 9113, 6.5.2. So the blocks and fields of a peer use at most 100 KiB of memory.
"""

TABLE_BYTES_MAX = 4096
"""Largest size of a peer's dynamic table, in bytes, before the peer has received our setting."""

_RESIZED_MAX = 2
"""Largest number of changes of the table's size in one block (RFC 7541, 4.2): first smaller, then larger."""

_UNFOLDED = 4
"""A list over its limit is decoded up to this multiple of the limit: a dynamic table may need the fields."""

_NEW_BYTES_MAX = 32_768
"""Largest number of bytes of one block's new fields, also while a list over its limit is decoded for the table."""

_INTEGER_BITS_MAX = 35
"""Largest number of bits of an integer after its prefix. No limit of this module needs more bits."""

_NAME_BYTES_MAX = 64
"""Length in bytes of the longest field name that the process remembers, for all connections."""

_INFLATED_MIN = 16
"""Shortest Huffman-coded string, in bytes, that zlib decodes faster than the table. zlib needs 1.2 µs to start."""

_CODE_BITS_MAX = 15
"""Length in bits of DEFLATE's longest code."""

_AUTHORIZATION = AUTHORIZATION.encode()
_STATIC = HeaderTable.STATIC_TABLE

Field = tuple[bytes, bytes]
"""Name and value of a header field."""

Part = TypeVar("Part")
Meaning = TypeVar("Meaning")

_Entry = tuple[int, bytes, Part]
"""A decoded field: its size by RFC 9113, 6.5.2, its name, and its meaning (the result of ``part``)."""

_Row = list[tuple["_Row", bytes]]
"""A state of the Huffman decoder: for each next byte of code, the next state and the decoded text."""

_ROWS: list[_Row] = [[] for _ in range(len(HUFFMAN_TABLE) // 16)]
"""States of the Huffman decoder. A state is filled at its first use: all filled states would take 10 MB."""

_STATES = {id(row): state for state, row in enumerate(_ROWS)}
_MAY_END = {id(_ROWS[state]) for state, flags, _ in HUFFMAN_TABLE if flags & HUFFMAN_COMPLETE}
_FAILED: _Row = []
_FAILED += [(_FAILED, b"")] * 256


class BlockError(ValueError):
    """Error for bytes that are no header block. No later block of the connection can be decoded."""


class ListTooLong(BlockError):
    """Error for a header list over the limit. Later blocks can still be decoded."""


class BlockReader(Generic[Part, Meaning]):
    """Decoder of one connection's header blocks, with a cache. Not thread-safe.

    ``part`` makes the meaning of one field, from its name and value. ``mean`` makes the meaning of a block, from the
    results of ``part``. The reader remembers these meanings, so nobody may change them. ``list_bytes_max`` limits the
    size of a header list by RFC 9113, 6.5.2.
    """

    def __init__(
        self, part: Callable[[bytes, bytes], Part], mean: Callable[[Sequence[Part]], Meaning], list_bytes_max: int
    ) -> None:
        self._part, self._mean, self._list_bytes_max = part, mean, list_bytes_max
        self._fields: dict[bytes, _Entry[Part]] = {}
        self._fields_bytes = 0
        self._begun: tuple[bytes, list[Part], int] = b"", [], 0  # common beginning of blocks: bytes, parts, list size
        self._before = b""  # bytes of the last block, up to its token
        self._table = deque[_Entry[Part]]()
        self._table_bytes, self._table_bytes_max = 0, TABLE_BYTES_MAX
        self._peeks = False  # True: ``peek`` is running, which reads plain blocks only
        self._plain = self._shows = False  # properties of the last block: it was plain; it showed a token
        self._tokens = False  # True: a known block shows a token
        self.known: dict[bytes, Meaning] = {}
        """Meanings of plain blocks. The key is the block or, with a token, its digest (``concealed``). Read-only."""
        self.changes = 0
        """Number of changes of the table's size. Each change makes the reader forget all known blocks."""
        self.count, self.new_bytes = 0, 0
        """Number of fields of the last block, and number of bytes of its new fields; both 0 for a known block."""

    def read(self, block: bytes) -> Meaning:
        """Returns the meaning of a block. Call ``read`` for every block, in the order of arrival. Raises BlockError."""
        self._peeks = False
        return self._read(block)

    def peek(self, block: bytes) -> Meaning | None:
        """Returns a plain block's meaning, as ``read`` does; None for any other block, and for wrong bytes."""
        self._peeks = True
        try:
            return self._read(block)
        except BlockError:
            return None

    def _read(self, block: bytes) -> Meaning:
        self.count = self.new_bytes = 0
        meaning = self.known.get(block)
        if meaning is None and self._tokens:
            meaning = self.known.get(concealed(block))
        if meaning is None:
            meaning = self._mean(self._cut(block))
            if self._plain and not self.new_bytes and len(block) <= KNOWN_BYTES_MAX:
                if len(self.known) >= KNOWN_MAX:
                    self.known.clear()
                self.known[concealed(block) if self._shows else block] = meaning
                self._tokens = self._tokens or self._shows
        return meaning

    def _cut(self, block: bytes) -> list[Part]:
        """Cuts a block into fields. Returns the results of ``part`` for the fields. Raises BlockError."""
        known, list_bytes_max, at, end = self._fields, self._list_bytes_max, 0, len(block)
        unfolded_max = _UNFOLDED * list_bytes_max
        begun, parts, list_bytes = self._begun
        self._plain, self._shows = True, False
        if end > list_bytes_max:  # a block is never longer than its list, so the list is too long
            parts, list_bytes = [], list_bytes_max + 1
        elif block.startswith(begun):
            at, parts = len(begun), [*parts]
        else:
            parts, list_bytes = [], 0
        begins, repeats, shown = at, True, end
        try:
            if not at and block and block[0] & 0xE0 == 0x20:
                at = self._resized(block)
            while at < end:
                if list_bytes > list_bytes_max and (not self._table_bytes_max or list_bytes > unfolded_max):
                    break
                start, first = at, block[at]
                value, index = start, first & 0x7F
                at += 1
                if first < 0x80:
                    most = 0x3F if first & 0x40 else 0x0F
                    index = first & most
                    if index == most:
                        index, at = _integer(block, start, most)
                    if not index:
                        size = block[at] & 0x7F
                        at = at + 1 + size if size < 0x7F else _past(block, at)
                    value = at
                    size = block[at] & 0x7F
                    at = at + 1 + size if size < 0x7F else _past(block, at)
                elif index == 0x7F:
                    index, at = _integer(block, start, 0x7F)
                field = block[start:at]
                entry = known.get(field)
                if entry is None:
                    if at > end or self.new_bytes > _NEW_BYTES_MAX:
                        raise IndexError(at)
                    if list_bytes > list_bytes_max and not 0x40 <= first < 0x80:
                        list_bytes += 32  # a field after the limit, which the table does not need, is not decoded
                        continue
                    if repeats and self._plain and not self._before.startswith(field, start):
                        repeats = False
                        if start != begins and list_bytes <= list_bytes_max:
                            self._begun = block[:start], [*parts], list_bytes
                    entry = self._new(field, value - start, index)
                    if self._shows:
                        shown = min(shown, start)
                if 0x40 <= first < 0x80 and self._table_bytes_max:
                    self._keep(entry)
                list_bytes += entry[0]
                if list_bytes <= list_bytes_max:
                    parts.append(entry[2])
        except IndexError as error:
            raise BlockError("a header block that is cut short, or too long") from error
        self.count = len(parts)
        if list_bytes > list_bytes_max:
            whole = at >= end or not self._table_bytes_max
            raise (ListTooLong if whole else BlockError)(f"a header list over {list_bytes_max} bytes, the most allowed")
        if repeats and self.new_bytes and self._plain:
            self._begun = block, [*parts], list_bytes
        self._before = block[:shown]
        return parts

    def _new(self, field: bytes, value: int, index: int) -> _Entry[Part]:
        """Decodes a new field. ``value`` is the offset of the field's value. Raises BlockError, IndexError."""
        if field[0] & 0xE0 == 0x20:
            raise BlockError("a table's size behind a field")
        if index:
            if index > len(_STATIC):
                kept = self._kept(index)
                if not value:
                    return kept
                name = kept[1]
            else:
                name, text = _STATIC[index - 1]
        elif value:
            name = (_name if value <= _NAME_BYTES_MAX else _text)(field[1:value])
        else:
            raise BlockError("a table index of 0")
        key = field
        if name == _AUTHORIZATION:
            key, self._shows = concealed(field), True
            found = self._fields.get(key)
            if found is not None:
                return found
        if value:
            text = _text(field[value:])
        entry = (32 + len(name) + len(text), name, self._part(name, text))
        self.new_bytes += len(field)
        size = len(field) + entry[0]
        if size <= FIELD_BYTES_MAX and index <= len(_STATIC):  # a larger index is in the dynamic table, and may change
            self._fields_bytes += size
            if self._fields_bytes > FIELDS_BYTES_MAX:
                self._fields.clear()
                self._fields_bytes = size
            self._fields[key] = entry
        return entry

    # ---- the peer's dynamic table

    def _kept(self, index: int) -> _Entry[Part]:
        """Returns the field at an HPACK index of the table. Raises BlockError."""
        self._not_plain()
        index -= len(_STATIC) + 1
        if index >= len(self._table):
            raise BlockError("a table index that no field has")
        return self._table[index]

    def _keep(self, entry: _Entry[Part]) -> None:
        """Adds a field to the table. A field larger than the table empties the table. Raises BlockError in ``peek``."""
        self._not_plain()
        self._table.appendleft(entry)
        self._table_bytes += entry[0]
        self._shrink()

    def _resized(self, block: bytes) -> int:
        """Applies the table sizes that begin a block. Returns the offset of the first field. Raises BlockError."""
        self._not_plain()
        at = count = 0
        while at < len(block) and block[at] & 0xE0 == 0x20:
            size, at = _integer(block, at, 0x1F)
            count += 1
            if count > _RESIZED_MAX or size > TABLE_BYTES_MAX:
                raise BlockError(f"a table of {size} bytes, allowed: {_RESIZED_MAX} sizes up to {TABLE_BYTES_MAX}")
            if size != self._table_bytes_max:
                self._table_bytes_max = size
                self.changes += 1
                self.known.clear()
                self._begun = b"", [], 0
                self._shrink()
        return at

    def _shrink(self) -> None:
        while self._table_bytes > self._table_bytes_max:
            self._table_bytes -= self._table.pop()[0]

    def _not_plain(self) -> None:
        """Notes that the block is not plain: the block uses or changes the table. Raises BlockError in ``peek``."""
        self._plain = False
        if self._peeks:
            raise BlockError("a block that is not plain")


def _integer(block: bytes, at: int, most: int) -> tuple[int, int]:
    """Returns an integer with the prefix mask ``most``, and the offset after it. Raises BlockError, IndexError."""
    number = block[at] & most
    if number < most:
        return number, at + 1
    for shift in range(0, _INTEGER_BITS_MAX, 7):
        at += 1
        number += (block[at] & 0x7F) << shift
        if block[at] < 0x80:
            return number, at + 1
    raise BlockError("a number that is too long")


def _past(block: bytes, at: int) -> int:
    """Returns the offset after the string that begins at an offset. Raises BlockError, IndexError."""
    size, start = _integer(block, at, 0x7F)
    return start + size


def _text(string: bytes) -> bytes:
    """Decodes a string literal, which begins with its length. Raises BlockError."""
    text = string[1:] if string[0] & 0x7F < 0x7F else string[_integer(string, 0, 0x7F)[1] :]
    return _decoded(text) if string[0] & 0x80 else text


_name = lru_cache(256)(_text)


def _block_begin() -> bytes:
    """Makes empty DEFLATE blocks, as padding, and then the header of a block whose literals have HPACK's codes.

    Each HPACK code over 15 bits begins with 15 ones. In this block 15 ones are the code for the block's end.
    """
    lengths = [length if length <= _CODE_BITS_MAX else 0 for length in REQUEST_CODES_LENGTH[:-1]]
    lengths += [_CODE_BITS_MAX, 0]  # code lengths: 15 for the block's end, and 0 for the only distance: no code
    empty = "0100000000"  # an empty block with fixed codes; three of these blocks fill the last byte
    counts = "10100000000001111"  # the last block, with dynamic codes: 257 + 1 code lengths, written by 19 code lengths
    lengths_of_lengths = "000" * 3 + "001" * 16  # no code for a repetition, and a 4-bit code for each length 0 to 15
    bits = 3 * empty + counts + lengths_of_lengths + "".join(f"{length:04b}" for length in lengths)
    return int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")


_INFLATER = zlib.decompressobj(-9)  # raw DEFLATE with the smallest window, since the block has no repetitions
_INFLATER.decompress(_block_begin())
_REVERSED = bytes([int(f"{byte:08b}"[::-1], 2) for byte in range(256)])


def _inflated(code: bytes) -> bytes | None:
    """Decodes a Huffman-coded string with zlib. Returns None if the string is faulty, or has a code over 15 bits."""
    inflater, bits = _INFLATER.copy(), code.translate(_REVERSED)
    text, last = inflater.decompress(bits[:-1]), inflater.decompress(bits[-1:])
    # less than a byte of padding remains; after a padding of 1 bits, further 1 bits decode to no symbol
    return text + last if last and not inflater.decompress(b"\xff\xff") else None


def _decoded(code: bytes) -> bytes:
    """Decodes a Huffman-coded string. Raises BlockError."""
    if len(code) >= _INFLATED_MIN and (text := _inflated(code)) is not None:
        return text
    row, pieces = _ROWS[0], []
    for byte in code:
        try:
            row, piece = row[byte]
        except IndexError:
            row, piece = _filled(row)[byte]
        pieces.append(piece)
    if id(row) not in _MAY_END:
        raise BlockError("no Huffman's code")
    return b"".join(pieces)


def _filled(row: _Row) -> _Row:
    """Computes the 256 entries of a decoder state that is used for the first time. Returns the state."""
    state, steps = _STATES[id(row)] * 16, []
    for middle, flags, symbol in HUFFMAN_TABLE[state : state + 16]:
        begun = bytes((symbol,)) if flags & HUFFMAN_EMIT_SYMBOL else b""
        for last, its_flags, its_symbol in HUFFMAN_TABLE[middle * 16 : middle * 16 + 16]:
            fails = (flags | its_flags) & HUFFMAN_FAIL
            text = begun + bytes((its_symbol,)) if its_flags & HUFFMAN_EMIT_SYMBOL else begun
            steps.append((_FAILED, b"") if fails else (_ROWS[last], text))
    row[:] = steps
    return row


def encode_block(fields: Iterable[Field]) -> bytes:
    """Encodes a header block, without the dynamic table. Names must be in lower case."""
    block = bytearray()
    for name, value in fields:
        index, values = HeaderTable.STATIC_TABLE_MAPPING.get(name, (0, {}))
        if value in values:
            whole = encode_integer(values[value], 7)
            whole[0] |= 0x80
            block += whole
            continue
        block += encode_integer(index, 4)  # the first four bits are 0: a literal without indexing
        if not index:
            block += encode_integer(len(name), 7) + name
        block += encode_integer(len(value), 7) + value
    return bytes(block)
