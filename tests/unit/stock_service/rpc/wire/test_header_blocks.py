"""Header blocks: an independent decoder reads the same, memory is bounded, junk is refused."""

import re
from collections.abc import Sequence

import hpack
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.huffman_table import decode_huffman
from hypothesis import assume, example, given
from hypothesis import strategies as st

from stock_service.rpc.security import concealed
from stock_service.rpc.wire.header_blocks import (
    FIELDS_BYTES_MAX,
    KNOWN_BYTES_MAX,
    KNOWN_MAX,
    BlockError,
    BlockReader,
    Field,
    ListTooLong,
    encode_block,
)

LIST_BYTES_MAX = 16_384

NAMES = st.sampled_from(
    [b":status", b":path", b"content-type", b"grpc-status", b"te", b"authorization", b"x" * 20]
) | st.from_regex(rb"[a-z][a-z0-9-]{0,200}", fullmatch=True)
VALUES = st.sampled_from([b"200", b"/", b"application/grpc", b"0", b"trailers"]) | st.binary(max_size=200)
FIELDS = st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=5)

BLOCKS = st.lists(
    st.tuples(st.sampled_from([None] * 6 + [0, 0, 64, 4096]), st.integers(0, 3), st.booleans(), st.booleans()),
    max_size=30,
)
"""The peer's table size before a block, where it changes; which of four lists of fields the block holds; whether in
Huffman's code; whether it is peeked at first."""

CHANGES = st.lists(
    st.tuples(st.sampled_from(["byte", "cut", "more"]), st.integers(0, 10_000), st.integers(0, 255)), max_size=3
)
"""Changes to a block on its way."""


TEXTS = st.text("0123456789abcdef", max_size=100).map(str.encode) | st.binary(max_size=60)
"""Long values of usual characters, and values with codes over 15 bits."""


LIMITED = re.compile("too long|sizes")
"""Faults for which an independent decoder has no limit."""


def reader() -> BlockReader[Field, list[Field]]:
    """A reader for which the meaning of a block is its fields."""
    return BlockReader(lambda name, value: (name, value), list, LIST_BYTES_MAX)


def changed(block: bytes, changes: list[tuple[str, int, int]]) -> bytes:
    """A block with these changes."""
    for kind, place, value in changes:
        at = place % (len(block) + 1)
        end = {"byte": at + 1, "cut": len(block), "more": at}[kind]
        block = block[:at] + (b"" if kind == "cut" else bytes((value,))) + block[end:]
    return block


@given(FIELDS)
def test_a_block_that_is_sent_needs_no_table(fields: list[Field]) -> None:
    """An independent decoder reads the same fields from a sent block, and its table stays empty."""
    decoder = hpack.Decoder()
    assert decoder.decode(encode_block(fields), raw=True) == fields
    assert not decoder.header_table.dynamic_entries


def test_a_block_that_is_sent_is_short() -> None:
    """Fields of the static table are one byte each, and names in it two at most."""
    assert encode_block([(b":method", b"POST"), (b":scheme", b"http")]) == b"\x83\x86"
    assert encode_block([(b":path", b"/p"), (b"content-type", b"t")]) == b"\x04\x02/p\x0f\x10\x01t"
    assert encode_block([(b"te", b"trailers")]) == b"\x00\x02te\x08trailers"


@given(st.lists(FIELDS, min_size=4, max_size=4), BLOCKS)
def test_what_is_read_is_what_was_encoded(
    lists: list[list[Field]], blocks: list[tuple[int | None, int, bool, bool]]
) -> None:
    """A peer that uses its table, shrinks it, turns it off and on again is understood, block after block."""
    encoder, tried = hpack.Encoder(), reader()
    for size, choice, huffman, peeks in blocks:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(lists[choice], huffman=huffman)
        assert not peeks or tried.peek(block) in (None, lists[choice])
        assert tried.read(block) == lists[choice]


@given(st.lists(st.tuples(FIELDS, st.booleans(), CHANGES), max_size=6), st.booleans())
def test_whatever_comes_is_read_as_an_independent_decoder_reads_it(
    blocks: list[tuple[list[Field], bool, list[tuple[str, int, int]]]], shut: bool
) -> None:
    """For any bytes both readers give the same fields, or both refuse. After a refusal no later block counts."""
    encoder, decoder, tried = hpack.Encoder(), hpack.Decoder(1 << 30), reader()
    if shut:
        encoder.header_table_size = 0
    for fields, huffman, changes in blocks:
        block = changed(encoder.encode(fields, huffman=huffman), changes)
        try:
            expected = [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]
        except hpack.HPACKError:
            assert tried.peek(block) is None
            with pytest.raises(BlockError):
                tried.read(block)
            return
        peeked = tried.peek(block)
        try:
            found = tried.read(block)
        except BlockError as error:
            if LIMITED.search(str(error)):
                return
            raise
        assert (found, peeked) == (expected, expected if peeked is not None else None)


@given(TEXTS, TEXTS, CHANGES, st.binary(max_size=2))
@example(b"0" * 24, b"", [], b"\xff")
@example(b"0" * 24, b"", [], b"\xff\xff")
@example(b"0" * 25, b"", [("byte", 15, 0)], b"")
@example(b"0" * 24, b"\\", [], b"")
@example(b"<" * 8, b"", [], b"\xff" * 4)
def test_a_long_value_in_huffmans_code_is_what_an_independent_decoder_reads(
    text: bytes, further: bytes, changes: list[tuple[str, int, int]], padding: bytes
) -> None:
    """A long value in Huffman's code is read as by an independent decoder. Wrong padding, a cut code and the end's code
    are refused."""
    encoder = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)
    code = changed(encoder.encode(text + further) + padding, changes)
    assume(16 <= len(code) < 0x7F)
    block = b"\x00\x01a" + bytes((0x80 | len(code),)) + code
    try:
        expected = decode_huffman(code)
    except hpack.HPACKDecodingError:
        with pytest.raises(BlockError):
            reader().read(block)
    else:
        assert reader().read(block) == [(b"a", expected)]


def test_each_byte_in_a_long_value_is_read() -> None:
    """Each byte in a long value is read, beside any others."""
    for symbol in range(256):
        text = b"abcdefgh" * 3 + bytes((symbol,)) + b"ijklmnop"
        block = hpack.Encoder().encode([(b"a", text)], huffman=True)
        assert reader().read(block) == [(b"a", text)]


def test_a_plain_block_is_peeked_at() -> None:
    """A plain block need not be read. Any other block is not looked at: the table stays as it is."""
    tried = reader()
    assert tried.peek(b"\x82") == [(b":method", b"GET")]
    insert = bytes.fromhex("40 01 61 01 62")  # a: b, to be put into the table
    assert tried.peek(insert) is None
    assert tried.peek(b"\x20") is None
    with pytest.raises(BlockError):
        tried.read(b"\xbe")
    tried = reader()
    tried.read(insert)
    assert tried.peek(b"\xbe") is None
    assert tried.read(b"\xbe") == [(b"a", b"b")]
    tried.read(b"\x20")
    assert tried.peek(insert) == [(b"a", b"b")]


def test_a_block_put_into_a_table_of_no_size_is_not_known_once_it_has_one() -> None:
    """The same bytes change a table that has room, so that a block for a table of no size is not known for it."""
    tried = reader()
    insert = bytes.fromhex("40 01 61 01 62")  # a: b, to be put into the table
    assert tried.read(b"\x20" + insert) == tried.read(insert) == tried.read(insert) == [(b"a", b"b")]
    assert insert in tried.known
    before = tried.changes
    assert tried.read(b"\x3f\xe1\x1f") == []  # a table of 4096 bytes
    assert insert not in tried.known
    assert tried.changes > before
    assert tried.read(insert) == tried.read(b"\xbe") == [(b"a", b"b")]


def test_a_field_and_a_block_are_parsed_once() -> None:
    """A field that comes again is looked up, and stays known while others come."""
    told, parsed = list[Field](), list[Sequence[Field]]()

    def part(name: bytes, value: bytes) -> Field:
        told.append((name, value))
        return name, value

    def parse(fields: Sequence[Field]) -> int:
        parsed.append(fields)
        return len(parsed)

    tried = BlockReader(part, parse, LIST_BYTES_MAX)
    usual, other = encode_block([(b":status", b"200"), (b"a", b"b")]), encode_block([(b"grpc-status", b"0")])
    for block in (usual, other, usual, other):
        tried.read(block)
    assert [tried.read(block) for block in (usual, other, usual, other, usual)] == [3, 4, 3, 4, 3]
    tried.read(encode_block([(b":status", b"200"), (b"c", b"d"), (b"a", b"b")]))
    assert told == [(b":status", b"200"), (b"a", b"b"), (b"grpc-status", b"0"), (b"c", b"d")]
    assert tried.changes == 0


def test_what_blocks_begin_with_is_no_more_than_that() -> None:
    """Blocks with a known beginning are read whole, and so is a block with another beginning."""
    tried = reader()
    begins = [(b":method", b"POST"), (b":path", b"/a"), (b"te", b"trailers")]
    for number in range(9):
        fields = [*begins[: number % 4], (b"number", b"%d" % number), (b"a", b"b")]
        assert tried.read(encode_block(fields)) == fields


@pytest.mark.parametrize("last", [b"traceparent", b"authorization"])
@pytest.mark.parametrize("changes", [True, False])
def test_a_long_beginning_is_parsed_once(last: bytes, changes: bool) -> None:
    """Fields that are too long for the memory of fields must come twice before one that is short."""
    told = list[bytes]()

    def part(name: bytes, _: bytes) -> None:
        told.append(name)

    tried = BlockReader(part, len, LIST_BYTES_MAX)
    begins = [(b":method", b"POST"), *((b"long-%d" % number, bytes(3000)) for number in range(4))]
    for number in range(9):
        if number == 2:
            told.clear()
        assert tried.read(encode_block([*begins, (last, b"%d" % (number if changes else 0))])) == 6
    assert told == [last] * (7 if changes else 0)


def test_a_token_is_known_by_a_digest() -> None:
    """A token's field and block are known by digests. Their bytes are not kept."""
    tried = BlockReader(lambda name, _: name, list, LIST_BYTES_MAX)
    block = encode_block([(b":method", b"POST"), (b"authorization", b"Bearer secret"), (b"a", b"b")])
    for _ in range(3):
        assert tried.read(block) == [b":method", b"authorization", b"a"]
    assert list(tried.known) == [concealed(block)]
    assert tried.count == tried.new_bytes == 0
    kept = (*tried.known, *tried._fields, tried._begun[0], tried._before)
    assert not [key for key in kept if b"secret" in key]
    tried.read(hpack.Encoder().encode([(b"authorization", b"Bearer secret")], huffman=False))
    assert len(tried._table) == 1
    assert "secret" not in repr(tried._table), "nor is it in the peer's table"


def test_a_token_before_a_new_field_is_not_kept() -> None:
    """A field that is new in each block ends what blocks begin with, and a token ends it sooner."""
    tried = BlockReader(lambda name, _: name, list, LIST_BYTES_MAX)
    begins = [(b":method", b"POST"), (b"authorization", b"Bearer secret"), (b"te", b"trailers")]
    for number in (0, 1, 2, 3, 3, 3):
        assert tried.read(encode_block([*begins, (b"traceparent", b"%d" % number)]))
    kept = (*tried.known, *tried._fields, tried._begun[0], tried._before)
    assert not [key for key in kept if b"secret" in key]


def test_of_a_list_that_is_too_long_nothing_is_kept() -> None:
    """Of a list that is too long nothing is kept: no token, which is not decoded, and no length. The next block with
    the same beginning is read."""
    tried = BlockReader(lambda name, _: name, list, LIST_BYTES_MAX)
    begins = [(b":method", b"POST"), (b":scheme", b"http")]
    token, indexed = encode_block([(b"authorization", b"Bearer secret")]), b"\x40" + encode_block([(b"a", b"b")])[1:]
    with pytest.raises(ListTooLong):
        tried.read(encode_block(begins) + token + indexed + encode_block([(b"x", b"y" * LIST_BYTES_MAX)]))
    assert b"secret" not in tried._begun[0]
    assert tried.read(encode_block(begins)) == [b":method", b":scheme"]


def test_memory_is_bounded() -> None:
    """Blocks that are always new, and long ones, do not add up in memory."""
    tried = reader()
    for number in range(500):
        block = encode_block([(b"date", b"%d" % number)])
        for _ in range(1 + number % 2):
            tried.read(block)
    assert len(tried.known) <= KNOWN_MAX
    assert sum(len(field) + entry[0] for field, entry in tried._fields.items()) <= FIELDS_BYTES_MAX
    for _ in range(3):
        long = encode_block([(b"x", bytes(KNOWN_BYTES_MAX))])
        assert tried.read(long) == [(b"x", bytes(KNOWN_BYTES_MAX))]
    assert long not in tried.known
    longer = encode_block([(b"x", bytes(FIELDS_BYTES_MAX))])
    tried.read(longer)
    assert longer not in tried._fields


NO_BLOCKS = {
    "the table's first entry, of none": "be",
    "index 0": "80",
    "cut short": "40 05 61",
    "a table larger than was allowed": "3f e2 1f",
    "a table's size behind a field": "82 20",
    "the same, and what would be a field": "82 20 01 61 01 62",
    "three sizes of the table": "20" * 3,
    "Huffman's code of nothing": "00 81 ff 00",
    "Huffman's padding of a byte": "00 01 61 82 1f ff",
    "Huffman's padding of zeros": "00 01 61 81 18",
    "Huffman's end": "00 01 61 84 ff ff ff ff",
    "a number without an end": "0f ff ff ff ff ff 01",
    "a string without an end": "00 01 61 7f ff ff ff ff 7f",
}


@pytest.mark.parametrize("block", NO_BLOCKS.values(), ids=NO_BLOCKS)
def test_what_is_no_block_is_refused(block: str) -> None:
    """Bytes that are not a block are refused with the error for it, and no other."""
    with pytest.raises(BlockError, match=r"."):
        reader().read(bytes.fromhex(block))


def test_a_list_that_is_too_long_is_refused_alone() -> None:
    """After a list that is too long, in any way, the table is in step."""
    tried, decoder = reader(), hpack.Decoder(1 << 30)
    begins = b"\x40\x01a\x7f\xa1\x1e" + bytes(4000)  # into the table
    decoder.decode(begins)
    tried.read(begins)
    longs = (
        b"\xbe" * 9 + b"\x40\x01b\x01b",
        encode_block([(b"x", bytes(30_000))]) + b"\x40\x01c\x01c",
        b"\x40\x01d\x7f\xa1\x9b\x01" + bytes(20_000) + b"\x40\x01e\x01e",  # larger than the table: it is left empty
    )
    for long in longs:
        decoder.decode(long)
        with pytest.raises(ListTooLong, match=str(LIST_BYTES_MAX)):
            tried.read(long)
        kept = [(bytes(name), bytes(value)) for name, value in decoder.header_table.dynamic_entries]
        assert [entry[2] for entry in tried._table] == kept
    tried.read(b"\x20")
    with pytest.raises(ListTooLong):
        tried.read(encode_block([(b"x", b"y" * 20_000)]) * 3)
    assert tried.new_bytes == 0, "nothing of it is decoded"


@pytest.mark.parametrize("long", [b"\xbe" * 3000, (b"\x40\x01a\x7f\xc1\x3d" + bytes(8000)) * 7])
def test_a_block_that_unfolds_to_far_too_much_is_none(long: bytes) -> None:
    """A few bytes that stand for a long field, many times over, do not fill the memory, or take long."""
    tried = reader()
    tried.read(b"\x40\x01a\x7f\xa1\x1e" + bytes(4000))
    with pytest.raises(BlockError) as refused:
        tried.read(long)
    assert type(refused.value) is BlockError
