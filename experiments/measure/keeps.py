"""``python -m experiments.measure.keeps`` tests features of the gRPC servers for Python, and writes a table of results.

The servers are from the study ``python_grpc_servers``, whose page shows the table. Each cell of the table has one test,
with a new server. The program prints the reason of each ``no``. Before its tests, each server must answer a call
without TLS. If a method of a server raises an exception, this program ends. So a fault of the method does not become a
``no``. Left out: how well a feature works.
"""

import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from experiments.helloworld.greeter_pb2 import HelloReply, HelloRequest
from experiments.measure.programs import Program, ProgramFailed
from experiments.peers import PEERS, SERVICER, STRANGERS, is_built, why_absent
from experiments.services.greeter import SAY_HELLO
from experiments.services.grpc_servers import TRIAL
from stock_service.rpc.process.command_line import Parser, address

PAGE = Path(__file__).parents[1] / "studies" / "python_grpc_servers" / "KEEPS.md"

SERVERS = (*STRANGERS, SERVICER)

AGE_S, SEEN_S = 0.5, 3.0
"""``AGE_S`` is the age in seconds at which a server must end a connection. ``SEEN_S`` is the longest time in seconds
until the client sees that the connection has ended."""

CALL_S = 5.0
"""Longest time of a call, in seconds."""

WAIT_S, BEGUN_S = 1.0, 0.3
"""``WAIT_S`` is the duration in seconds of the call during which the signal comes. The signal comes ``BEGUN_S`` seconds
after the send. At this time, the call has surely begun."""

EXITS = (0, -15, 143)
"""Allowed exit codes of another project's server after SIGTERM."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_GOAWAY = 7


def command(server: str) -> list[str]:
    """Command that starts a server, without options."""
    if server == SERVICER:
        return [sys.executable, "-m", "experiments.services.servicer", "--transport", "grpc_static", "--port", "0"]
    return [sys.executable, "-m", "experiments.services.grpc_servers", server]


@contextmanager
def started(server: str, *options: str) -> Iterator[tuple[Program, str]]:
    """Context that yields a running server and its HOST:PORT. Raises ProgramFailed if the server does not start."""
    with Program([*command(server), *options], exits=EXITS) as program:
        host, port = program.ready()
        yield program, f"{host}:{port}"


def tls(server: str) -> bool:
    """A call is answered over TLS."""
    from stock_service.rpc.process.credentials import make  # needs cryptography

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "made"
        make(folder)
        options = "--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server-key.pem")
        trusted = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
        with started(server, *options) as (_, at), grpc.secure_channel(at, trusted) as channel:
            return _greets(channel)


def replies(server: str) -> bool:
    """A method sends three replies to a request."""
    with started(server) as (_, at), grpc.insecure_channel(at) as channel:
        call = channel.unary_stream(f"/{TRIAL}/Several", *_CODEC)
        return [each.message for each in call(HelloRequest(name="a"), timeout=CALL_S)] == ["a 0", "a 1", "a 2"]


def turns(server: str) -> bool:
    """A method answers each of a client's requests before the client sends the next request."""
    heard: list[str] = []

    def requests() -> Iterator[HelloRequest]:
        for number in range(3):
            until_s = time.monotonic() + CALL_S
            while len(heard) < number and time.monotonic() < until_s:
                time.sleep(0.01)
            yield HelloRequest(name=f"{number} behind {len(heard)}")

    with started(server) as (_, at), grpc.insecure_channel(at) as channel:
        call = channel.stream_stream(f"/{TRIAL}/Talk", *_CODEC)
        heard.extend(reply.message for reply in call(requests(), timeout=CALL_S))
    return heard == [f"{number} behind {number}" for number in range(3)]


def age(server: str) -> bool:
    """A connection that reaches an age gets a GOAWAY frame, or is closed."""
    option = "--connection-age-s" if server == SERVICER else "--age-s"
    with started(server, option, str(AGE_S)) as (_, at), socket.create_connection(address(at)) as connection:
        connection.sendall(_PREFACE)
        return _told_to_go(connection)


def _told_to_go(connection: socket.socket) -> bool:
    """True if the server sends a GOAWAY frame or closes the connection within ``SEEN_S``. Blocks up to ``SEEN_S``."""
    until_s, read = time.monotonic() + SEEN_S, b""
    while (left_s := until_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            came = connection.recv(65536)
        except TimeoutError:
            break
        if not came:
            return True
        read += came
        while len(read) >= 9 and len(read) >= 9 + (length := int.from_bytes(read[:3], "big")):
            if read[3] == _GOAWAY:
                return True
            read = read[9 + length :]
    return False


def drain(server: str) -> bool:
    """A call that has begun is answered, although a signal ends the server meanwhile."""
    with started(server) as (program, at), grpc.insecure_channel(at) as channel:
        call = channel.unary_unary(f"/{TRIAL}/Wait", *_CODEC)
        reply = call.future(HelloRequest(name=f"{WAIT_S}"), timeout=WAIT_S + CALL_S)
        time.sleep(BEGUN_S)
        program.stop()
        return bool(reply.result().message)


def deadlines(server: str) -> bool:
    """A method can read the deadline of its client."""
    with started(server) as (_, at), grpc.insecure_channel(at) as channel:
        told = channel.unary_unary(f"/{TRIAL}/Wait", *_CODEC)(HelloRequest(name="0"), timeout=CALL_S).message
        return told != "None" and 0 < float(told) <= CALL_S


TRIES: Mapping[str, Callable[[str], bool]] = {
    "TLS": tls,
    "several replies": replies,
    "requests and replies by turns": turns,
    "connection age": age,
    "drain": drain,
    "deadlines": deadlines,
}
"""Test of each feature. The keys are the headings of the table's columns. A test gives True for a server with the
feature. The page shows the docstrings of the tests."""

_CODEC: Any = HelloRequest.SerializeToString, HelloReply.FromString


def _greets(channel: grpc.Channel) -> bool:
    reply = channel.unary_unary(SAY_HELLO, *_CODEC)(HelloRequest(name="you"), timeout=CALL_S)
    return bool(reply.message == "Hello you")


def tried(server: str, what: str) -> bool:
    """Tests if a server has the feature ``what``, and prints the result. A ``no`` is printed with its reason. Blocks
    for some seconds.

    Raises grpc.RpcError if a method of the server fails.
    """
    try:
        kept, why = TRIES[what](server), "the server does not do this"
    except (grpc.RpcError, ProgramFailed) as error:
        if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.UNKNOWN:
            raise  # the method itself has failed, not the server
        kept, why = False, f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
    print(f"{server}, {what}: {'yes' if kept else f'no ({why})'}", flush=True)
    return kept


def line(server: str) -> str:
    """Tests all features of a server, and gives the server's line of the table.

    Raises ProgramFailed or grpc.RpcError if the server does not answer a call without TLS.
    """
    with started(server) as (_, at), grpc.insecure_channel(at) as channel:
        assert _greets(channel)
    return f"| `{server}` | {' | '.join('yes' if tried(server, what) else 'no' for what in TRIES)} |"


def page(servers: Sequence[str]) -> str:
    """Tests these servers, and gives the text of the page with the results. Blocks for some seconds for each server."""
    head = f"| server | {' | '.join(TRIES)} |\n|---|{'---|' * len(TRIES)}"
    said = "\n".join(f"- {what}: {each.__doc__}" for what, each in TRIES.items())
    told = "`python -m experiments.measure.keeps` writes this page. Each cell is one test on a new server."
    return f"# What each server keeps\n\n{told}\n\n{head}\n" + "\n".join(map(line, servers)) + f"\n\n{said}\n"


def main() -> None:
    """Tests every server whose package is installed. Writes the page only if all servers were tested. Blocks for a
    minute."""
    Parser("python -m experiments.measure.keeps", "Tests features of the gRPC servers for Python.").parse_args()
    absent = [each for each in SERVERS if each in PEERS and not is_built(each)]
    print("\n".join(f"left out: {why_absent(each)}" for each in absent))
    text = page([each for each in SERVERS if each not in absent])
    print(text)
    if not absent:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
