"""Header blocks (HPACK, RFC 7541): cut into fields, each of which is decoded once, however often it comes.

A block that is sent uses only the static table and literals without indexing. So it means the same on every connection,
and is encoded once.

A block that comes is cut into its fields. A field's bytes are looked up in what is known of the connection's fields.
So only a field that is new is decoded. A block whose fields all came before is remembered as a whole. Fields with which
two blocks begin, one after the other, are remembered together, however long they are.

A peer that was told SETTINGS_HEADER_TABLE_SIZE = 0 sends *plain* blocks: they neither use nor change its dynamic table,
so they mean the same whenever they come. A field that is put into a table of size 0 is plain, too. Until the peer has
seen that setting, it may use a table of 4,096 bytes. That table is kept here, block after block.

A field that shows a token is remembered by a digest, and so is its block, so that the token is not. What a peer's
dynamic table keeps of it is what the field means.

Huffman's code of HPACK is DEFLATE's (RFC 1951) with other lengths, and with codes over 15 bits, which no usual text
needs. So zlib decodes a long string, as a block of DEFLATE. What it cannot, a table does, byte by byte.

Left out: a fault of RFC 9113, 4.3.1. A peer's first block after its acknowledgement must begin with the table's new
size. A peer that does not keep to this is understood all the same.
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
"""Blocks remembered on one connection, and bytes of one of them, at most: a server has two or three that come again."""

FIELDS_BYTES_MAX, FIELD_BYTES_MAX = 4096, 2048
"""Bytes of the fields remembered on one connection, and of one of them, at most: as it came, and as RFC 9113, 10.5.1,
counts it. A peer can have 100 KiB of memory used for blocks and fields, and not a megabyte."""

TABLE_BYTES_MAX = 4096
"""A peer's dynamic table, until it knows better."""

_RESIZED_MAX = 2
"""Changes of the table's size in one block, at most (RFC 7541, 4.2): down, and up again."""

_UNFOLDED = 4
"""Lists of so many times the limit are decoded, where the table has to be kept, and no more."""

_NEW_BYTES_MAX = 32_768
"""Bytes of new fields that are decoded in one block, at most: of a list over the limit, those that the table needs."""

_INTEGER_BITS_MAX = 35
"""Bits of a number behind its prefix, at most: more than any limit here needs."""

_NAME_BYTES_MAX = 64
"""Bytes of a field's name that is remembered for all connections."""

_INFLATED_MIN = 16
"""Bytes of a string in Huffman's code that zlib decodes faster than the table, at least: zlib takes 1.2 µs to begin."""

_CODE_BITS_MAX = 15
"""Bits of a code of DEFLATE, at most."""

_AUTHORIZATION = AUTHORIZATION.encode()
_STATIC = HeaderTable.STATIC_TABLE

Field = tuple[bytes, bytes]
"""A header field's name and value."""

Part = TypeVar("Part")
Meaning = TypeVar("Meaning")

_Entry = tuple[int, bytes, Part]
"""A field that was decoded: the bytes that a list counts for it, its name, and what it means."""

_Row = list[tuple["_Row", bytes]]
"""A state of Huffman's decoder: by the next byte, the next state, and what is said in between."""

_ROWS: list[_Row] = [[] for _ in range(len(HUFFMAN_TABLE) // 16)]
"""Each is filled when it is first needed: all of them take 10 MB."""

_STATES = {id(row): state for state, row in enumerate(_ROWS)}
_MAY_END = {id(_ROWS[state]) for state, flags, _ in HUFFMAN_TABLE if flags & HUFFMAN_COMPLETE}
_FAILED: _Row = []
_FAILED += [(_FAILED, b"")] * 256


class BlockError(ValueError):
    """Bytes that are no header block. No later block of the connection can be decoded."""


class ListTooLong(BlockError):
    """A header list over the limit. Later blocks can be decoded all the same."""


class BlockReader(Generic[Part, Meaning]):
    """The header blocks that one connection receives, each as what ``mean`` makes of its parts. One thread's.

    ``part`` says what one field means, by its name and value. Both functions give what must not be changed, since it is
    given again for the same bytes. ``list_bytes_max`` bounds a list, counted as RFC 9113, 10.5.1, does.
    """

    def __init__(
        self, part: Callable[[bytes, bytes], Part], mean: Callable[[Sequence[Part]], Meaning], list_bytes_max: int
    ) -> None:
        self._part, self._mean, self._list_bytes_max = part, mean, list_bytes_max
        self._fields: dict[bytes, _Entry[Part]] = {}
        self._fields_bytes = 0
        self._begun: tuple[bytes, list[Part], int] = b"", [], 0  # how blocks begin: what it means, its bytes in a list
        self._before = b""  # the last block, up to its token
        self._table = deque[_Entry[Part]]()
        self._table_bytes, self._table_bytes_max = 0, TABLE_BYTES_MAX
        self._peeks = False  # whether a block that is not plain is not to be read
        self._plain = self._shows = False  # whether the last block was plain; whether it showed a token
        self._tokens = False  # whether any known block does
        self.known: dict[bytes, Meaning] = {}
        """Plain blocks by their bytes, or by ``concealed`` where they show a token. Others only look."""
        self.changes = 0
        """Number of changes of the table's size. A block known before a change says nothing after it."""
        self.count, self.new_bytes = 0, 0
        """Fields of the last block, and bytes of those that were new; none if the block was known."""

    def read(self, block: bytes) -> Meaning:
        """What a block means; to be asked for every block of the connection, in order. Raises BlockError."""
        self._peeks = False
        return self._read(block)

    def peek(self, block: bytes) -> Meaning | None:
        """Meaning of a plain block, which then need not be read; None for any other block, and for bad bytes."""
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
        """Parts that the fields of a block mean. Raises BlockError."""
        known, list_bytes_max, at, end = self._fields, self._list_bytes_max, 0, len(block)
        unfolded_max = _UNFOLDED * list_bytes_max
        begun, parts, list_bytes = self._begun
        self._plain, self._shows = True, False
        if end > list_bytes_max:  # no encoder makes a field longer than it is
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
                        list_bytes += 32  # nobody asks what it says
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
        """A field that is not known by its bytes; its value begins at an offset. Raises BlockError, IndexError."""
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
        if size <= FIELD_BYTES_MAX and index <= len(_STATIC):  # else its name is the table's, and another one later
            self._fields_bytes += size
            if self._fields_bytes > FIELDS_BYTES_MAX:
                self._fields.clear()
                self._fields_bytes = size
            self._fields[key] = entry
        return entry

    # ---- the peer's dynamic table

    def _kept(self, index: int) -> _Entry[Part]:
        """A field of the table. Raises BlockError."""
        self._not_plain()
        index -= len(_STATIC) + 1
        if index >= len(self._table):
            raise BlockError("a table index that no field has")
        return self._table[index]

    def _keep(self, entry: _Entry[Part]) -> None:
        """Puts a field into the table; one that is larger than that leaves it empty. Raises BlockError."""
        self._not_plain()
        self._table.appendleft(entry)
        self._table_bytes += entry[0]
        self._shrink()

    def _resized(self, block: bytes) -> int:
        """Changes the table's size as a block's beginning says; gives where its fields begin. Raises BlockError."""
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
        """The block uses the table, or changes it. Raises BlockError where that is not to be."""
        self._plain = False
        if self._peeks:
            raise BlockError("a block that is not plain")


def _integer(block: bytes, at: int, most: int) -> tuple[int, int]:
    """The number at an offset, whose prefix has so many values, and where it ends. Raises BlockError, IndexError."""
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
    """Offset of the end of a string that begins at an offset. Raises as ``_integer``."""
    size, start = _integer(block, at, 0x7F)
    return start + size


def _text(string: bytes) -> bytes:
    """Text of a string with its length before it. Raises BlockError."""
    text = string[1:] if string[0] & 0x7F < 0x7F else string[_integer(string, 0, 0x7F)[1] :]
    return _decoded(text) if string[0] & 0x80 else text


_name = lru_cache(256)(_text)


def _block_begin() -> bytes:
    """Beginning of a block of DEFLATE, to the end of a byte, whose literals have HPACK's codes.

    Codes over 15 bits all begin with the same 15 bits, which are ones. Here that is the code for the end of the block.
    """
    lengths = [length if length <= _CODE_BITS_MAX else 0 for length in REQUEST_CODES_LENGTH[:-1]]
    lengths += [_CODE_BITS_MAX, 0]  # the block's end, and the only distance, which has no code
    empty = "0100000000"  # a block with the usual codes, and with nothing but its end: three fill the last byte
    counts = "10100000000001111"  # the last block, which brings its codes: 257 + 1 lengths, by 19 lengths:
    lengths_of_lengths = "000" * 3 + "001" * 16  # none for a repetition, and 4 bits for each length from 0 to 15
    bits = 3 * empty + counts + lengths_of_lengths + "".join(f"{length:04b}" for length in lengths)
    return int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")


_INFLATER = zlib.decompressobj(-9)  # no header of zlib's, and the least window: nothing is repeated
_INFLATER.decompress(_block_begin())
_REVERSED = bytes([int(f"{byte:08b}"[::-1], 2) for byte in range(256)])


def _inflated(code: bytes) -> bytes | None:
    """Text of Huffman's code; None where it is faulty, or has a code over 15 bits."""
    inflater, bits = _INFLATER.copy(), code.translate(_REVERSED)
    text, last = inflater.decompress(bits[:-1]), inflater.decompress(bits[-1:])
    # a symbol that ends in the last byte leaves under 8 bits: if they are ones, further ones make no symbol of them
    return text + last if last and not inflater.decompress(b"\xff\xff") else None


def _decoded(code: bytes) -> bytes:
    """Text of Huffman's code. Raises BlockError."""
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
    """A row, filled."""
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
    """A header block that needs no table but the static one, and changes none. Names are in lower case."""
    block = bytearray()
    for name, value in fields:
        index, values = HeaderTable.STATIC_TABLE_MAPPING.get(name, (0, {}))
        if value in values:
            whole = encode_integer(values[value], 7)
            whole[0] |= 0x80
            block += whole
            continue
        block += encode_integer(index, 4)  # its first four bits are 0: a literal without indexing
        if not index:
            block += encode_integer(len(name), 7) + name
        block += encode_integer(len(value), 7) + value
    return bytes(block)
