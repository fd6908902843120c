"""The socket APIs in Python: whole messages in order, and errors.

``tests/interop/test_peer_servers.py`` tests the process contract of every peer.
"""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from experiments.peers.python.echo_channels import CHANNELS, LENGTH_BYTES, MESSAGE_BYTES_MAX, Berkeley, Channel, Gone
from experiments.peers.python.echo_client import drive
from tests.conformance.running import WAIT_S

SHORT_S = 0.01


@pytest.fixture
def berkeley() -> Iterator[tuple[Berkeley, socket.socket]]:
    """A server over TCP, and a connection to the server."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = probe.getsockname()
    served = Berkeley(True, SHORT_S)
    served.listen(*address)
    with socket.create_connection(address, WAIT_S) as connection:
        yield served, connection
    served.close()


def framed(message: bytes) -> bytes:
    """A message after its length."""
    return len(message).to_bytes(LENGTH_BYTES) + message


def came(served: Channel) -> bytes:
    """The next message. Fails if no message comes."""
    for _ in range(round(WAIT_S / SHORT_S)):
        message = served.receive()
        if message is not None:
            return message
    raise AssertionError("nothing came")


def test_a_message_in_parts_is_whole(berkeley: tuple[Berkeley, socket.socket]) -> None:
    """A part of a message is no message yet. Two messages in one packet are received one after the other."""
    served, connection = berkeley
    connection.sendall(framed(b"first")[:3])
    assert served.receive() is None
    connection.sendall(framed(b"first")[3:] + framed(b"second"))
    for message in (b"first", b"second"):
        assert came(served) == message
        served.send(message)
    expected = framed(b"first") + framed(b"second")
    assert connection.recv(len(expected), socket.MSG_WAITALL) == expected


@pytest.mark.parametrize("last", [b"", (MESSAGE_BYTES_MAX + 1).to_bytes(LENGTH_BYTES)], ids=["gone", "too long"])
def test_the_next_connection_is_served(last: bytes, berkeley: tuple[Berkeley, socket.socket]) -> None:
    """The next connection is served after a client that closed within a message, or sent too long a message."""
    served, connection = berkeley
    connection.sendall(last or framed(b"cut off")[:-1])
    connection.shutdown(socket.SHUT_WR)
    with socket.create_connection(connection.getpeername(), WAIT_S) as other:
        other.sendall(framed(b"other"))
        assert came(served) == b"other"


def planted(reply: Callable[[bytes], bytes | None]) -> Channel:
    """A channel with planted replies."""
    sent: list[bytes] = []
    return cast(Channel, SimpleNamespace(send=sent.append, receive=lambda: reply(sent[-1])))


@pytest.mark.parametrize(
    ("reply", "said"),
    [(lambda _: None, "no reply in time"), (lambda sent: sent[:-1] + b"x", "16 bytes that is not what was sent")],
    ids=["none", "another"],
)
def test_a_wrong_reply_ends_the_client(reply: Callable[[bytes], bytes | None], said: str) -> None:
    """A wrong or a missing reply ends the client."""
    with pytest.raises(Gone, match=said):
        drive(planted(reply), 16, 3)


def test_every_message_is_timed() -> None:
    """Every message has a send and a time, in order, and no two messages are equal."""
    seen: list[bytes] = []

    def reply(sent: bytes) -> bytes:
        seen.append(sent)
        return sent

    sent_ns, took_ns = drive(planted(reply), 16, 3)
    assert (len(took_ns), sent_ns) == (3, sorted(sent_ns))
    assert [len(each) for each in seen] == [16] * 3
    assert len(set(seen)) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "package", "words"),
    [("zeromq", "zmq", "echo_server --port 0"), ("nng", "pynng", "echo_client --address 127.0.0.1:1")],
)
def test_a_missing_library_is_one_line(api: str, package: str, words: str) -> None:
    """A missing library is refused in one line with its name, with exit code 2."""
    assert api in CHANNELS
    hidden = f"import sys, runpy; sys.modules[{package!r}] = None; sys.argv = sys.argv[1:]; "
    program = hidden + "runpy.run_module(sys.argv[0], run_name='__main__')"
    arguments = [*f"experiments.peers.python.{words}".split(), "--api", api]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "the group `bindings` has it" in done.stderr
