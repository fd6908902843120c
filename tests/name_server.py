"""A name server for tests: one name with addresses that may change. The server answers the questions of programs'
resolvers."""

import socket
from struct import Struct
from threading import Thread
from types import TracebackType
from typing import Self

_HEADER = Struct("!6H")  # of a message: its number, flags, and how many questions, answers and others follow
_TAIL = Struct("!2H")  # of a question: its type and class
_ANSWER = Struct("!3HIH")  # behind it an address: its name's place, type, class, seconds that it may be kept, length

_ANSWERED, _UNKNOWN = 0x8580, 0x8583
"""Flags: an answer with authority; no such name."""

_A, _IN, _NAME_AT = 1, 1, 0xC00C


class NameServer:
    """A name server that knows the IPv4 addresses of one name. Leaving ``with`` ends it."""

    def __init__(self, name: str, addresses: list[str]) -> None:
        self.name = name
        self.addresses = addresses
        """Addresses in its answers. They may be replaced at any time."""
        self.asked = 0
        """Number of questions for the addresses."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = Thread(target=self._serve, name="name server")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                question, peer = self._socket.recvfrom(4096)
            except ConnectionRefusedError:  # the last one who asked has gone
                continue
            if not question:
                return
            self._socket.sendto(self.answer(question), peer)

    def answer(self, message: bytes) -> bytes:
        """The answer to a message with one question."""
        number = _HEADER.unpack_from(message)[0]
        labels, at = [], _HEADER.size
        while size := message[at]:
            labels.append(message[at + 1 : at + 1 + size])
            at += 1 + size
        stop = at + 1 + _TAIL.size
        kind, _ = _TAIL.unpack_from(message, at + 1)
        known = b".".join(labels).decode().lower() == self.name
        self.asked += known and kind == _A
        found = self.addresses if known and kind == _A else []
        answers = [_ANSWER.pack(_NAME_AT, _A, _IN, 0, 4) + socket.inet_aton(address) for address in found]
        flags = _ANSWERED if known else _UNKNOWN
        return _HEADER.pack(number, flags, 1, len(answers), 0, 0) + message[_HEADER.size : stop] + b"".join(answers)
