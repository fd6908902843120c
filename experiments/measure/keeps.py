"""``python -m experiments.measure.keeps`` tries what each gRPC server for Python keeps, and writes the table of it.

The servers are those of the study ``python_grpc_servers``, which shows the table. Each cell is one try on a fresh
server. A ``no`` is printed with its reason. Each server must first greet in the clear, and a method that raises ends
the program: else a fault of ours would say ``no`` too. Left out: how well a server does what it keeps.
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
"""Age that a server is to end a connection at, and longest time until it is seen to do so."""

CALL_S = 5.0
WAIT_S, BEGUN_S = 1.0, 0.3
"""Length of a call that a signal meets, and time until it has surely begun."""

EXITS = (0, -15, 143)
"""Exit codes with which somebody's server may answer SIGTERM."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_GOAWAY = 7


def command(server: str) -> list[str]:
    """Command that starts a server, before its options."""
    if server == SERVICER:
        return [sys.executable, "-m", "experiments.services.servicer", "--transport", "grpc_static", "--port", "0"]
    return [sys.executable, "-m", "experiments.services.grpc_servers", server]


@contextmanager
def started(server: str, *options: str) -> Iterator[tuple[Program, str]]:
    """A server with its HOST:PORT. Raises ProgramFailed where it does not start."""
    with Program([*command(server), *options], exits=EXITS) as program:
        host, port = program.ready()
        yield program, f"{host}:{port}"


def tls(server: str) -> bool:
    """A call is answered over TLS."""
    from stock_service.rpc.process.credentials import make  # which needs cryptography

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
    """A method answers each of a client's requests before the next one is sent."""
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
    """A connection of an age is told to go, or closed."""
    option = "--connection-age-s" if server == SERVICER else "--age-s"
    with started(server, option, str(AGE_S)) as (_, at), socket.create_connection(address(at)) as connection:
        connection.sendall(_PREFACE)
        return _told_to_go(connection)


def _told_to_go(connection: socket.socket) -> bool:
    """True where GOAWAY or the end of the connection comes in time."""
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
    """A call under way is answered, though a signal ends the server meanwhile."""
    with started(server) as (program, at), grpc.insecure_channel(at) as channel:
        call = channel.unary_unary(f"/{TRIAL}/Wait", *_CODEC)
        reply = call.future(HelloRequest(name=f"{WAIT_S}"), timeout=WAIT_S + CALL_S)
        time.sleep(BEGUN_S)
        program.stop()
        return bool(reply.result().message)


def deadlines(server: str) -> bool:
    """A method is told how long its client waits."""
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
"""Tries by the heads of their columns; each says if a server keeps it."""

_CODEC: Any = HelloRequest.SerializeToString, HelloReply.FromString


def _greets(channel: grpc.Channel) -> bool:
    reply = channel.unary_unary(SAY_HELLO, *_CODEC)(HelloRequest(name="you"), timeout=CALL_S)
    return bool(reply.message == "Hello you")


def tried(server: str, what: str) -> bool:
    """Outcome of one try; says why where it is ``no``. Blocks for some seconds."""
    try:
        kept, why = TRIES[what](server), "it went on without"
    except (grpc.RpcError, ProgramFailed) as error:
        if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.UNKNOWN:
            raise  # the method itself failed: that is no server's doing
        kept, why = False, f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
    print(f"{server}, {what}: {'yes' if kept else f'no ({why})'}", flush=True)
    return kept


def line(server: str) -> str:
    """A server's line of the table. Raises ProgramFailed or grpc.RpcError where it does not even greet."""
    with started(server) as (_, at), grpc.insecure_channel(at) as channel:
        assert _greets(channel)
    return f"| `{server}` | {' | '.join('yes' if tried(server, what) else 'no' for what in TRIES)} |"


def page(servers: Sequence[str]) -> str:
    """The page, of these servers."""
    head = f"| server | {' | '.join(TRIES)} |\n|---|{'---|' * len(TRIES)}"
    said = "\n".join(f"- {what}: {each.__doc__}" for what, each in TRIES.items())
    told = "Written by `python -m experiments.measure.keeps`: each cell is one try on a fresh server."
    return f"# What each server keeps\n\n{told}\n\n{head}\n" + "\n".join(map(line, servers)) + f"\n\n{said}\n"


def main() -> None:
    """Tries every server whose package is here, and writes the page if all are. Blocks for a minute."""
    Parser("python -m experiments.measure.keeps", "Tries what each gRPC server for Python keeps.").parse_args()
    absent = [each for each in SERVERS if each in PEERS and not is_built(each)]
    print("\n".join(f"left out: {why_absent(each)}" for each in absent))
    text = page([each for each in SERVERS if each not in absent])
    print(text)
    if not absent:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
