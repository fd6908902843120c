"""Header blocks (HPACK, RFC 7541) where nearly all of them are the same: one dictionary look-up by the block's bytes.

A block that is sent uses only the static table and literals without indexing. So it means the same on every connection,
and is encoded once. A block that comes is decoded by the library ``hpack``, in order, as the peer's dynamic table
needs. A block that neither used nor changed that table means the same whenever it comes again. So its bytes are
remembered with their meaning. A peer that was told SETTINGS_HEADER_TABLE_SIZE = 0 sends hardly any other.

Such a look-up is right if the table is empty now and was empty before and after the block was decoded. Its size must
also be the same still: a block may put fields into a table of size 0, which leaves it empty.

A block that shows a token is remembered by a digest, so that the token is not. What a peer puts into its dynamic table
stays there until the peer makes room, or the connection ends.

Left out: a fault of RFC 9113, 4.3.1. A peer's first block after its acknowledgement must begin with the table's new
size. A peer that does not keep to this is understood all the same.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from hpack import Decoder, HPACKError
from hpack.hpack import encode_integer
from hpack.table import HeaderTable

from stock_service.rpc.security import AUTHORIZATION, concealed

KNOWN_MAX = 16
"""Blocks remembered on one connection, at most: a server has two or three that come again and again."""

KNOWN_BYTES_MAX, KNOWN_FIELDS_MAX = 512, 32
"""Bytes and fields of a block that is remembered, at most: a peer can have 100 KiB remembered, and not a megabyte."""

_AUTHORIZATION = AUTHORIZATION.encode()

Field = tuple[bytes, bytes]
"""A header field's name and value."""

Meaning = TypeVar("Meaning")


class BlockError(ValueError):
    """Bytes that are no header block, or one over the limit. No later block of the connection can be decoded."""


class BlockReader(Generic[Meaning]):
    """The header blocks that one connection receives, each as what ``parse`` makes of its fields. One thread's.

    ``parse`` is called once for each new block. Its value is given again for the same bytes, and must not be changed.
    ``list_bytes_max`` bounds what a block may unfold to, counted as RFC 9113, 10.5.1, does.
    """

    __slots__ = ("_decoder", "_known", "_parse", "changes", "unfolded")

    def __init__(self, parse: Callable[[Sequence[Field]], Meaning], list_bytes_max: int) -> None:
        self._parse: Callable[[Sequence[Field]], Meaning] = parse
        self._decoder = Decoder(list_bytes_max)
        self._known: dict[bytes, Meaning] = {}
        self.changes = 0
        """How often it changed what blocks mean: what was known of a block before says nothing of it after."""
        self.unfolded = 0
        """Fields of the last block, if it was new; else 0."""

    def knows(self, block: bytes) -> bool:
        """Whether this block's meaning is remembered, and stays so until ``changes`` does."""
        return self.key(block) is not None

    def key(self, block: bytes) -> bytes | None:
        """What this block is remembered by: its bytes, or ``concealed`` if it shows a token; None: it is not."""
        return next((key for key in (block, concealed(block)) if key in self._known), None)

    def read(self, block: bytes) -> Meaning:
        """What a block means; to be asked for every block of the connection, in order. Raises BlockError."""
        self.unfolded = 0
        meaning = self._known.get(block)  # of which nothing is left once the table has an entry
        if meaning is None:
            meaning = self._known.get(concealed(block))
        return self._decode(block) if meaning is None else meaning

    def _decode(self, block: bytes) -> Meaning:
        table = self._decoder.header_table
        before = (len(table.dynamic_entries), table.maxsize)
        try:
            fields = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except HPACKError as error:
            raise BlockError(str(error) or type(error).__name__) from error
        self.unfolded = len(fields)
        meaning = self._parse(fields)
        if before != (len(table.dynamic_entries), table.maxsize) or table.dynamic_entries:
            self._known.clear()
            self.changes += 1
        elif len(block) <= KNOWN_BYTES_MAX and len(fields) <= KNOWN_FIELDS_MAX:
            if len(self._known) >= KNOWN_MAX:  # of blocks that hold a time or the like: make room for those that do not
                self._known.clear()
            shows = any(name == _AUTHORIZATION for name, _ in fields)
            self._known[concealed(block) if shows else block] = meaning
        return meaning


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
