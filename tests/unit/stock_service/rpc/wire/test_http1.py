"""HTTP/1.1's messages: any chunking gives the same, and a message that can be read in two ways is refused."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stock_service.rpc.wire.http1 import (
    CONTINUE,
    HEAD_BYTES_MAX,
    HttpDecoder,
    HttpError,
    HttpMessage,
    RequestHead,
    ResponseHead,
    request_decoder,
    response_decoder,
)
from stock_service.rpc.wire.http1_status import JSON, PROTOBUF, encode_request, encode_response

BODY_MAX = 1000

Outcome = tuple[list[HttpMessage[RequestHead]], int]


def decoder() -> HttpDecoder[RequestHead]:
    """A server's, new."""
    return request_decoder({}, BODY_MAX)


def read(chunks: list[bytes], of: HttpDecoder[RequestHead] | None = None) -> Outcome:
    """The requests of a stream in these chunks, and the status of its refusal, or 0."""
    of = of or decoder()
    requests: list[HttpMessage[RequestHead]] = []
    for chunk in chunks:
        try:
            requests += of.feed(chunk)
        except HttpError as error:
            return requests + list(error.frames), error.status
    return requests, 0


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """A stream cut at these places."""
    at = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:stop] for start, stop in pairwise(at)]


def post(path: bytes, timeout_ms: int, payload: bytes) -> bytes:
    """A method's request."""
    return encode_request(b"POST", path, PROTOBUF, payload, b"Host: a:1\r\nTimeout-Ms: %d\r\n" % timeout_ms)


def chunked(sizes: list[int]) -> bytes:
    """A chunked body."""
    chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (size, b"c" * size) for size in sizes if size)
    return chunks + b"0\r\nTrailer: x\r\n\r\n"


PLAIN = st.builds(post, st.sampled_from([b"/a.B/C", b"/x"]), st.integers(0, 9), st.binary())
CHUNKED = st.lists(st.integers(0, 40), max_size=4).map(
    lambda sizes: b"PUT /x/1?q HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n" + chunked(sizes)
)
LAST = st.just(b"\r\nGET / HTTP/1.1\r\nhost:a\r\nConnection: x, Close\r\n\r\n")
WRONG = st.sampled_from([b"\x16\x03\x01", b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n"])
STREAMS = st.lists(PLAIN | CHUNKED | LAST | WRONG, max_size=5).map(b"".join)


@given(STREAMS | st.binary(max_size=200), st.lists(st.integers(0, 2000), max_size=20))
@example(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r", [])
def test_any_chunking_gives_the_same(data: bytes, places: list[int]) -> None:
    """Any chunking, at once and byte by byte, gives the same requests and the same refusal, also with remembered
    heads."""
    heads: dict[bytes, RequestHead] = {}
    whole = read([data], request_decoder(heads, BODY_MAX))
    assert read(cut(data, places)) == whole
    assert read([data[at : at + 1] for at in range(len(data))]) == whole
    assert read(cut(data, places), request_decoder(heads, BODY_MAX)) == whole


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_limit_of_a_head_is_a_byte(extra: int) -> None:
    """A head may have exactly the limit's bytes before its empty line, in one piece and byte by byte."""
    data = b"GET / HTTP/1.1\r\nHost: a\r\nA: "
    data += b"a" * (HEAD_BYTES_MAX + extra - len(data)) + b"\r\n\r\n"
    whole = read([data])
    assert whole[1] == (431 if extra > 0 else 0)
    assert read([data[at : at + 1] for at in range(len(data))]) == whole


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_requests_come_out_as_they_went_in(payloads: list[bytes]) -> None:
    """Requests come out with method, path and timeout, and without a rest."""
    of = decoder()
    requests, status = read([b"".join(post(b"/a.B/C", 7, each) for each in payloads)], of)
    assert (status, of.pending_bytes, of.ended) == (0, 0, False)
    assert [payload for _, payload in requests] == payloads
    assert {head[3:] for head, _ in requests} <= {(b"POST", b"/a.B/C", PROTOBUF, 7, None)}


HOST = b"Host: a\r\n"


def test_what_can_be_read_in_two_ways_is_refused() -> None:
    """A message that can be read in two ways, or is over a limit, is refused. A good request before it comes out."""
    for head, status in (
        (b"GET / HTTP/1.1\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + HOST, 400),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n", 400),
        (b"GET http://a@b/ HTTP/1.1\r\n" + HOST, 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Type: a\r\nContent-Type: a\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 1\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\ncontent-length: 2\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"GET / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n", 501),
        *(
            (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: " + value + b"\r\n", 400)
            for value in (b"+1", b"-1", b"1,1", b"0x1", b"", b"1 1", b"1" * 19, "١".encode())
        ),
        *(
            (b"GET / HTTP/1.1\r\n" + HOST + line + b"\r\n", 400)
            for line in (b" a: b", b"a : b", b"a b: c", b"a", b": b", b"a: b\0", b"a: b\rc", b"a: b\nc: d", b"\xffa: b")
        ),
        (b"GET  / HTTP/1.1\r\n" + HOST, 400),
        (b"GET /a b HTTP/1.1\r\n" + HOST, 400),
        (b"GET / HTTP/1.1 \r\n" + HOST, 400),
        (b"GET / HTTP/2.0\r\n" + HOST, 505),
        (b"G(T / HTTP/1.1\r\n" + HOST, 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Expect: more\r\n", 417),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Timeout-Ms: soon\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 1001\r\n", 413),
        (b"GET /" + b"a" * HEAD_BYTES_MAX + b" HTTP/1.1\r\n" + HOST, 431),
    ):
        good = post(b"/a.B/C", 0, b"x")
        requests, refused = read([good + head + b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n"])
        assert ([payload for _, payload in requests], refused) == ([b"x"], status)


def test_a_chunked_body_that_is_none_is_refused() -> None:
    """A chunked body is refused for a bad size, a chunk with a wrong end, and an exceeded limit."""
    for body, status in (
        *((body, 400) for body in (b"x\r\n", b"-1\r\n", b" 1\r\n", b"1\r\nab\r\n", b"1\na\n\r\n")),
        (b"3e9\r\n", 413),
        (b"1f4\r\n" + b"a" * 500 + b"\r\n1f5\r\n", 413),
        (b"1;" + b"a" * 300, 400),
        (b"0\r\n folded: x\r\n", 400),
        (b"0\r\n" + b"a: b\r\n" * 3000, 431),
    ):
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert read([head + body]) == ([], status)


LENGTH, CHUNKS = (
    b"PUT /a HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n" % field
    for field in (b"Content-Length: 3", b"Transfer-Encoding: chunked")
)


def test_what_is_held_of_a_message_is_counted() -> None:
    """The bytes of the unfinished part count, the whole chunks before it, and one for a whole head."""
    for begun, held in (
        (b"", 0),
        (b"PUT /", 5),
        (LENGTH, 1),
        (LENGTH + b"ab", 3),
        (LENGTH + b"abc", 0),
        (LENGTH + b"abcPU", 2),
        (CHUNKS + b"3", 2),
        (CHUNKS + b"3\r\n", 1),
        (CHUNKS + b"3\r\nab", 3),
        (CHUNKS + b"3\r\nabc\r\n", 4),
        (CHUNKS + b"3\r\nabc\r\n2;a=b\r\nde\r", 7),
        (CHUNKS + b"3\r\nabc\r\n0\r\na: b", 8),
        (CHUNKS + b"3\r\nabc\r\n0\r\na: b\r\n\r\n", 0),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET", 0),
    ):
        for size in (1, 7, 1000):
            of = decoder()
            read([begun[at : at + size] for at in range(0, len(begun), size)], of)
            assert of.pending_bytes == held


def test_only_a_client_that_waits_is_told_to_go_on() -> None:
    """Only a client that waits is told to go on, once, and not if the body came with the head."""
    of = decoder()
    head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"
    assert of.feed(head) == []
    assert (of.take_interim(), of.take_interim()) == (CONTINUE, b"")
    assert [payload for _, payload in of.feed(b"ab")] == [b"ab"]
    assert [payload for _, payload in of.feed(head + b"cd")] == [b"cd"]
    assert of.take_interim() == b""


def test_who_closes_is_known() -> None:
    """The version tells if the connection closes, unless the head says otherwise. Bytes behind the last request are not
    read."""
    for line, ends in (
        (b"HTTP/1.1\r\nHost: a\r\n", False),
        (b"HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\n", True),
        (b"HTTP/1.0\r\n", True),
        (b"HTTP/1.0\r\nConnection: Keep-Alive\r\n", False),
    ):
        of, first = decoder(), b"GET / " + line + b"\r\n"
        assert (len(of.feed(first + first)), of.ended) == (1 if ends else 2, ends)


def test_a_head_is_checked_once_and_one_that_is_refused_each_time() -> None:
    """A head is checked once, with its host, also in the first line, and its Origin. A refused one is checked each
    time, on every connection."""
    asked: list[tuple[bytes | None, bytes | None]] = []

    def check(host: bytes | None, origin: bytes | None) -> None:
        asked.append((host, origin))
        if origin:
            raise HttpError(403, "planted")

    heads: dict[bytes, RequestHead] = {}
    for _ in range(2):
        for head in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET http://b:1/ HTTP/1.1\r\nHost: a\r\nOrigin: c\r\n\r\n"):
            read([head], request_decoder(heads, BODY_MAX, check))
    assert asked == [(b"a", None), (b"b:1", b"c"), (b"b:1", b"c")]
    assert len(heads) == 1


@pytest.mark.parametrize(
    ("verb", "payload", "kind"),
    [(b"GET", b"", b""), (b"POST", b"", JSON), (b"POST", b"{}", JSON), (b"PUT", b"{}", JSON)],
)
def test_a_routes_request_names_its_type(verb: bytes, payload: bytes, kind: bytes) -> None:
    """A route's request must name its type with a body, and with every POST, which servers refuse without one."""
    ((head, body),), _ = read([encode_request(verb, b"/x", JSON, payload, HOST)])
    assert (head.verb, head.kind, body) == (verb, kind, payload)


@given(st.integers(0, 3).flatmap(lambda count: st.lists(st.binary(max_size=50), min_size=count, max_size=count)))
def test_responses_are_read_too(payloads: list[bytes]) -> None:
    """Responses are read with their status and the fault's name, also behind an interim response."""
    of = response_decoder(BODY_MAX)
    data = CONTINUE + b"".join(encode_response(404, PROTOBUF, each, b"Fault: NOT_FOUND\r\n") for each in payloads)
    heads = [ResponseHead(0, False, False, 100, b"")]
    heads += [ResponseHead(len(each), False, False, 404, b"NOT_FOUND") for each in payloads]
    found = [message for at in range(len(data)) for message in of.feed(data[at : at + 1])]
    assert found == [HttpMessage(head, body) for head, body in zip(heads, [b"", *payloads], strict=True)]


@pytest.mark.parametrize("line", [b"HTTP/1.1 OK", b"HTTP/2 200 OK", b"HTTP/1.1 200 OK\r\nA: b", b"HTTP/1.1 2000"])
def test_what_is_no_response_is_refused(line: bytes) -> None:
    """A first line that is none, and a body that would end with the connection."""
    with pytest.raises(HttpError):
        response_decoder(BODY_MAX).feed(line + b"\r\n\r\n")
