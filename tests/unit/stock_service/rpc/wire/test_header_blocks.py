"""Header blocks: whatever a peer's table does, look-ups say what decoding would; memory is bounded; junk is refused."""

from collections.abc import Sequence

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.wire.header_blocks import (
    KNOWN_BYTES_MAX,
    KNOWN_MAX,
    BlockError,
    BlockReader,
    Field,
    encode_block,
)

LIST_BYTES_MAX = 16_384

NAMES = st.sampled_from([b":status", b"content-type", b"grpc-status", b"te", b"x" * 20]) | st.from_regex(
    rb"[a-z][a-z0-9-]{0,200}", fullmatch=True
)
VALUES = st.sampled_from([b"200", b"application/grpc", b"0", b"trailers"]) | st.binary(max_size=200)
FIELDS = st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=5)

BLOCKS = st.lists(st.tuples(st.sampled_from([None] * 6 + [0, 0, 64, 4096]), st.integers(0, 3)), max_size=30)
"""The peer's table size before a block, where it changes, and which of four lists of fields the block holds."""


def reader() -> BlockReader[list[Field]]:
    """One whose meaning of a block is its fields."""
    return BlockReader(list, LIST_BYTES_MAX)


@given(FIELDS)
def test_a_block_that_is_sent_needs_no_table(fields: list[Field]) -> None:
    """An independent decoder reads the same fields from it, and its table stays empty."""
    decoder = hpack.Decoder()
    assert decoder.decode(encode_block(fields), raw=True) == fields
    assert not decoder.header_table.dynamic_entries


def test_a_block_that_is_sent_is_short() -> None:
    """Fields of the static table are one byte each, and names in it two at most."""
    assert encode_block([(b":method", b"POST"), (b":scheme", b"http")]) == b"\x83\x86"
    assert encode_block([(b":path", b"/p"), (b"content-type", b"t")]) == b"\x04\x02/p\x0f\x10\x01t"
    assert encode_block([(b"te", b"trailers")]) == b"\x00\x02te\x08trailers"


@given(st.lists(FIELDS, min_size=4, max_size=4), BLOCKS)
def test_look_ups_say_what_decoding_would(lists: list[list[Field]], blocks: list[tuple[int | None, int]]) -> None:
    """A peer that uses its table, shrinks it, turns it off and on again is understood, block after block."""
    encoder, tried = hpack.Encoder(), reader()
    for size, choice in blocks:
        if size is not None:
            encoder.header_table_size = size
        assert tried.read(encoder.encode(lists[choice])) == lists[choice]


def test_a_block_put_into_a_table_of_no_size_is_not_known_once_it_has_one() -> None:
    """The same bytes change a table that has room: what follows refers to it."""
    tried = reader()
    insert = bytes.fromhex("40 01 61 01 62")  # a: b, to be put into the table
    assert tried.read(b"\x20" + insert) == tried.read(insert) == [(b"a", b"b")]
    assert tried.knows(insert)
    before = tried.changes
    assert tried.read(b"\x3f\xe1\x1f") == []  # a table of 4096 bytes
    assert not tried.knows(insert)
    assert tried.changes > before
    assert tried.read(insert) == tried.read(b"\xbe") == [(b"a", b"b")]


def test_a_block_is_parsed_once() -> None:
    """One that comes again is looked up, and stays known while others come."""
    parsed: list[Sequence[Field]] = []

    def parse(fields: Sequence[Field]) -> int:
        parsed.append(fields)
        return len(parsed)

    tried = BlockReader(parse, LIST_BYTES_MAX)
    usual, other = encode_block([(b":status", b"200")]), encode_block([(b"grpc-status", b"0")])
    assert [tried.read(block) for block in (usual, other, usual, other, usual)] == [1, 2, 1, 2, 1]
    assert tried.changes == 0


def test_memory_is_bounded() -> None:
    """Blocks that are always new, and long ones, do not add up."""
    tried = reader()
    for number in range(5 * KNOWN_MAX):
        tried.read(encode_block([(b"date", b"%d" % number)]))
    assert len(tried._known) <= KNOWN_MAX
    long = encode_block([(b"x", bytes(KNOWN_BYTES_MAX))])
    assert tried.read(long) == [(b"x", bytes(KNOWN_BYTES_MAX))]
    assert not tried.knows(long)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param("be", id="the table's first entry, of none"),
        pytest.param("80", id="index 0"),
        pytest.param("40 05 61", id="cut short"),
        pytest.param("3f e2 1f", id="a table larger than was allowed"),
        pytest.param("82 20", id="a table's size behind a field"),
        pytest.param("00 81 ff 00", id="Huffman's code of nothing"),
    ],
)
def test_what_is_no_block_is_refused(block: str) -> None:
    """As an error that says so, and no other."""
    with pytest.raises(BlockError, match=r"."):
        reader().read(bytes.fromhex(block))


def test_a_block_that_unfolds_to_too_much_is_refused() -> None:
    """A few bytes that stand for a long field, many times over, do not fill the memory."""
    tried = reader()
    tried.read(b"\x40\x01a\x7f\xa1\x1e" + bytes(4000))  # into the table
    with pytest.raises(BlockError, match=str(LIST_BYTES_MAX)):
        tried.read(b"\xbe" * 1000)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_block_or_refused(block: bytes) -> None:
    """No other error comes out."""
    try:
        reader().read(block)
    except BlockError:
        pass
