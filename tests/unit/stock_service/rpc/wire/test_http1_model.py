"""HTTP/1.1's decoder against a model of where in a message each byte stands.

The model decodes no bytes: a client plans its messages part by part, and sends them in pieces of any size. So the model
knows in which part the next byte falls, which messages are whole, and which bytes are held of the others.
"""

from collections import deque
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stock_service.rpc.wire import http1
from stock_service.rpc.wire.http1 import CONTINUE, HttpError, HttpMessage, RequestHead, request_decoder

BODY_MAX = 100


class Part(NamedTuple):
    """Bytes that the decoder takes in one go, once they are all there."""

    state: str
    sent: bytes
    kept: int = 0
    """How many of them it holds on for."""
    whole: bytes | None = None
    """The body of the message that ends with it."""
    asks: bool = False
    """True for a head that asks to be told to go on."""
    last: bool = False
    """True where the part ends the last message."""


WRONG = {
    "HEAD": [(b"\x16\x03", 400), (b"GET /\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417)],
    "SIZE": [(b"-1\r\n", 400), (b"x\r\n", 400), (b"ff\r\n", 413), (b"1;" + b"a" * 300, 400)],
    "DATA": [],
    "TRAILER": [(b" folded: x\r\n", 400), (b"a" * (http1.HEAD_BYTES_MAX + 2), 431)],
    "BODY": [],
}
"""Bytes that are refused at the begin of a part, and the status. In a body every byte is good."""


class HttpDecoderMachine(RuleBasedStateMachine):
    """Rules for the actions of a client."""

    @initialize()
    def connected(self) -> None:
        """A new connection."""
        self.decoder = request_decoder({}, BODY_MAX)
        self.parts: deque[Part] = deque()  # that are not whole
        self.came = 0  # of the first of them
        self.kept = 0  # what is held of the message that it belongs to
        self.done = 0  # messages that are whole
        self.interim = self.ended = self.lost = False

    def sends(self, sent: bytes) -> None:
        """The requests that are whole with it come out."""
        bodies = [body for _, body in self.decoder.feed(sent)]
        assert bodies == self.advanced(len(sent))

    def goes_on(self) -> bool:
        """Tell whether the decoder still reads."""
        return not (self.lost or self.ended)

    def may_plan(self) -> bool:
        """True where not too much is planned already."""
        return self.goes_on() and len(self.parts) < 12

    def may_err(self) -> bool:
        """Tell whether a part begins with the next byte; and enough has gone well before."""
        return self.goes_on() and self.came == 0 and self.done > 2

    @property
    def state(self) -> str:
        """The state of the next byte."""
        return self.parts[0].state if self.parts else "HEAD"

    def advanced(self, count: int) -> list[bytes]:
        """This number of bytes came. Gives the bodies of the messages that are whole with them."""
        bodies = []
        self.came += count
        while self.parts and self.came >= len(self.parts[0].sent) and not self.ended:
            part = self.parts.popleft()
            self.came -= len(part.sent)
            self.kept += part.kept
            if part.asks and not self.came:
                self.interim = True
            if part.whole is not None:
                bodies.append(part.whole)
                self.done += 1
                self.kept, self.interim, self.ended = 0, False, part.last
        return bodies

    # ---- what a client may do

    @precondition(may_plan)
    @rule(size=st.integers(0, 20), asks=st.booleans(), last=st.booleans())
    def client_plans_a_message(self, size: int, asks: bool, last: bool) -> None:
        """The client plans a message with a length."""
        body, last = b"b" * size, last and self.done > 2
        head = b"PUT /a HTTP/1.1\r\nHost: a\r\n%s%sContent-Length: %d\r\n\r\n" % (
            b"Expect: 100-continue\r\n" if asks else b"",
            b"Connection: close\r\n" if last else b"",
            size,
        )
        self.parts += [Part("HEAD", head, 1, asks=asks), Part("BODY", body, whole=body, last=last)]

    @precondition(may_plan)
    @rule(sizes=st.lists(st.integers(1, 20), max_size=4), trailers=st.integers(0, 2), word=st.booleans())
    def client_plans_a_message_in_chunks(self, sizes: list[int], trailers: int, word: bool) -> None:
        """The client plans a message in chunks."""
        self.parts.append(Part("HEAD", b"PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 1))
        for size in sizes:
            self.parts.append(Part("SIZE", b"%x%s\r\n" % (size, b";a=b" if word else b"")))
            self.parts.append(Part("DATA", b"c" * size + b"\r\n", size))
        self.parts.append(Part("SIZE", b"0\r\n"))
        self.parts += [Part("TRAILER", b"a: b\r\n")] * trailers
        self.parts.append(Part("TRAILER", b"\r\n", whole=b"c" * sum(sizes)))

    @precondition(may_plan)
    @rule()
    def client_plans_an_empty_line(self) -> None:
        """Which some send behind a body."""
        self.parts.append(Part("HEAD", b"\r\n"))

    @precondition(lambda self: self.goes_on() and self.parts)
    @rule(count=st.one_of(st.integers(1, 30), st.just(400)))
    def client_sends(self, count: int) -> None:
        """The client sends some of its planned bytes, also of several messages."""
        sent = b"".join(part.sent for part in self.parts)[self.came :][:count]
        self.sends(sent)

    @precondition(lambda self: self.goes_on() and self.parts)
    @rule()
    def client_sends_the_rest_of_a_part(self) -> None:
        """The client sends the rest of a part, so that the next bytes begin one."""
        sent = self.parts[0].sent[self.came :]
        self.sends(sent)

    @precondition(lambda self: self.may_err() and bool(WRONG[self.state]))
    @rule(which=st.integers(0, 3), before=st.booleans())
    def client_errs(self, which: int, before: bool) -> None:
        """Requests that were whole before are given; nothing is read after it."""
        good = b""
        bodies: list[bytes] = []
        if before and self.state == "HEAD":
            good, bodies = b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n", [b""]
        wrong, status = WRONG[self.state][which % len(WRONG[self.state])]
        with pytest.raises(HttpError) as refused:
            self.decoder.feed(good + wrong)
        assert refused.value.status == status
        messages: list[HttpMessage[RequestHead]] = list(refused.value.frames)
        assert [body for _, body in messages] == bodies
        self.lost = True

    @precondition(lambda self: self.may_err() and self.state == "DATA")
    @rule()
    def client_sends_a_chunk_that_is_too_long(self) -> None:
        """The client sends a chunk whose line does not end at its size."""
        with pytest.raises(HttpError, match="longer than its size"):
            self.decoder.feed(self.parts[0].sent[:-2] + b"cc")
        self.lost = True

    @precondition(lambda self: not self.goes_on())
    @rule(sent=st.binary(max_size=20))
    def client_sends_after_its_last_message(self, sent: bytes) -> None:
        """The client sends after its last message, which is not read. After a fault nothing more is asked."""
        assert self.lost or self.decoder.feed(sent) == []

    @precondition(lambda self: self.goes_on())
    @rule()
    def server_asks_what_to_say(self) -> None:
        """The server asks for its words once, for a client that waits and has sent no byte of the body with its
        head."""
        assert self.decoder.take_interim() == (CONTINUE if self.interim else b"")
        self.interim = False

    # ---- what always holds

    @invariant()
    def the_next_byte_falls_where_the_model_says(self) -> None:
        """The next byte falls where the model says, until the stream is lost."""
        if self.goes_on():
            assert self.decoder._state.name == self.state

    @invariant()
    def what_is_held_is_counted(self) -> None:
        """The bytes of the part that is not whole, the chunks before it, and one for its head."""
        if self.goes_on():
            assert self.decoder.pending_bytes == self.came + self.kept
        elif self.ended:
            assert self.decoder.pending_bytes == 0

    @invariant()
    def the_last_message_is_known(self) -> None:
        """The last message is known by its head."""
        assert self.decoder.ended == self.ended


TestHttpDecoder = pytest.mark.slow(HttpDecoderMachine.TestCase)
TestHttpDecoder.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def test_every_state_is_in_the_modules_table() -> None:
    """Every state of the module's table exists and is one of the model."""
    table = http1.__doc__ or ""
    rows = [row.split("|") for row in table.splitlines() if row.startswith("|") and "---" not in row][1:]
    known = {state.name for state in http1._State}
    assert {row[1].strip() for row in rows} == known == set(WRONG)
    assert {row[3].split(",")[0].strip() for row in rows} == known
