"""``python -m experiments.services.grpc_servers NAME`` serves the greeter on another project's gRPC server. The code
for each server follows the guide of that server's project.

The study ``python_grpc_servers`` compares these servers with our own server ``grpc_static``. A server with a thread
pool has eight threads. ``--tls-cert`` sets TLS, and ``--age-s`` sets the largest age of a connection. A server that
does not support TLS or an age ignores the option. The command ``experiments.measure.keeps`` tests which features, such
as deadlines and streams, each server supports. For these tests the command calls the service ``TRIAL``, too. The
program prints ``ready HOST:PORT``. SIGTERM ends the program. A server that supports a drain first answers the calls
that have begun. Left out: connectrpc on uvicorn, which speaks only HTTP/1.1, and so cannot serve gRPC.
"""

import argparse
import asyncio
import signal
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from experiments.helloworld import greeter_pb2_grpc
from experiments.helloworld.greeter_pb2 import HelloReply, HelloRequest

Handlers = dict[str, "grpc.RpcMethodHandler[Any, Any]"]

HOST, WORKERS, GRACE_S = "127.0.0.1", 8, 5.0

TRIAL = "trial.Trial"
"""Name of a service with three methods. ``Wait`` replies after the number of seconds in its request. ``Several`` sends
three replies to a request. ``Talk`` sends a reply to each request of a stream.
"""


class Greeter(greeter_pb2_grpc.GreeterServicer):
    """Servicer of the greeter, as in gRPC's examples, for a server whose threads call the method."""

    def SayHello(self, request: HelloRequest, context: object) -> HelloReply:  # noqa: N802
        """Replies ``Hello NAME``."""
        return HelloReply(message=f"Hello {request.name}")


class AwaitedGreeter(greeter_pb2_grpc.GreeterServicer):
    """Servicer of the greeter, as in gRPC's examples, for a server whose event loop runs the method as a coroutine."""

    async def SayHello(self, request: HelloRequest, context: object) -> HelloReply:  # noqa: N802
        """Replies ``Hello NAME``."""
        return HelloReply(message=f"Hello {request.name}")


def waited(request: HelloRequest, left_s: float | None) -> HelloReply:
    """Replies after a wait of ``request.name`` seconds. The reply has ``left_s``: the time in seconds from the call's
    start to its deadline, or None without a deadline. Blocks the thread."""
    time.sleep(float(request.name))
    return HelloReply(message=f"{left_s}")


async def awaited(request: HelloRequest, left_s: float | None) -> HelloReply:
    """Replies after a wait of ``request.name`` seconds. The reply has ``left_s``. For a server with an event loop."""
    await asyncio.sleep(float(request.name))
    return HelloReply(message=f"{left_s}")


def several(request: HelloRequest, _: object) -> Iterator[HelloReply]:
    """Sends three replies: the text of the request with the numbers 0, 1 and 2. For a server with threads."""
    for number in range(3):
        yield HelloReply(message=f"{request.name} {number}")


async def several_on_loop(request: HelloRequest, _: object) -> AsyncIterator[HelloReply]:
    """Sends three replies: the text of the request with the numbers 0, 1 and 2. For a server with an event loop."""
    for reply in several(request, None):
        yield reply


def talked(requests: Iterator[HelloRequest], _: object) -> Iterator[HelloReply]:
    """Sends a reply with the text of each request. For a server with threads."""
    for request in requests:
        yield HelloReply(message=request.name)


async def talked_on_loop(requests: AsyncIterator[HelloRequest], _: object) -> AsyncIterator[HelloReply]:
    """Sends a reply with the text of each request. For a server with an event loop."""
    async for request in requests:
        yield HelloReply(message=request.name)


def trial_handlers() -> Handlers:
    """Handlers of the methods of ``TRIAL`` by name. The handlers are for a server with threads, and have the form of
    generated code.
    """
    return _handlers(lambda request, context: waited(request, context.time_remaining()), several, talked)


def _handlers(unary: Callable[..., Any], stream: Callable[..., Any], talk: Callable[..., Any]) -> Handlers:
    codec = HelloRequest.FromString, HelloReply.SerializeToString
    return {
        "Wait": grpc.unary_unary_rpc_method_handler(unary, *codec),
        "Several": grpc.unary_stream_rpc_method_handler(stream, *codec),
        "Talk": grpc.stream_stream_rpc_method_handler(talk, *codec),
    }


def _threads(server: Any, options: argparse.Namespace) -> None:
    """Runs a server that has the interface of ``grpc.Server``. Blocks until SIGTERM. Then waits for the calls that have
    begun, for ``GRACE_S`` at most.
    """
    greeter_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)

    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TRIAL, trial_handlers()),))
    port = _port(server, options)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    server.start()
    _say(port)
    ended.wait()
    server.stop(GRACE_S).wait()


def _port(server: Any, options: argparse.Namespace) -> int:
    if options.tls_cert is None:
        return int(server.add_insecure_port(f"{HOST}:0"))
    pair = options.tls_key.read_bytes(), options.tls_cert.read_bytes()
    return int(server.add_secure_port(f"{HOST}:0", grpc.ssl_server_credentials([pair])))


def _aged(options: argparse.Namespace) -> list[tuple[str, int]]:
    return [("grpc.max_connection_age_ms", round(1000 * options.age_s))] if options.age_s else []


def grpcio(options: argparse.Namespace) -> None:
    """Serves the greeter and ``TRIAL`` on grpcio's server with a ``ThreadPoolExecutor``. Blocks until SIGTERM."""
    _threads(grpc.server(futures.ThreadPoolExecutor(WORKERS), options=_aged(options)), options)


def pygrpc_native(options: argparse.Namespace) -> None:
    """Serves the greeter and ``TRIAL`` on pygrpc-native with a ``ThreadPoolExecutor``. Blocks until SIGTERM."""
    import pygrpc_native

    _threads(pygrpc_native.server(futures.ThreadPoolExecutor(WORKERS), options=_aged(options)), options)


def grpcio_aio(options: argparse.Namespace) -> None:
    """Serves the greeter and ``TRIAL`` on grpcio's asyncio server. Blocks until SIGTERM."""

    async def wait(request: HelloRequest, context: Any) -> HelloReply:
        return await awaited(request, context.time_remaining())

    async def serve() -> None:
        server = grpc.aio.server(options=_aged(options))
        greeter_pb2_grpc.add_GreeterServicer_to_server(AwaitedGreeter(), server)
        trial = grpc.method_handlers_generic_handler(TRIAL, _handlers(wait, several_on_loop, talked_on_loop))
        server.add_generic_rpc_handlers((trial,))
        port = _port(server, options)
        await server.start()
        _say(port)
        await _sigterm()
        await server.stop(GRACE_S)

    asyncio.run(serve())


def grpclib(options: argparse.Namespace) -> None:
    """Serves the greeter and ``TRIAL`` on grpclib, which uses asyncio. Blocks until SIGTERM.

    The class ``Service`` replaces grpclib's generated code: ``__mapping__`` returns the handlers by path.
    """
    from grpclib.const import Cardinality, Handler
    from grpclib.server import Server
    from grpclib.utils import graceful_exit

    greet = Greeter().SayHello

    async def say_hello(stream: Any) -> None:
        await stream.send_message(greet(await stream.recv_message(), None))

    async def wait(stream: Any) -> None:
        left_s = None if stream.deadline is None else stream.deadline.time_remaining()
        await stream.send_message(await awaited(await stream.recv_message(), left_s))

    async def replies(stream: Any) -> None:
        for reply in several(await stream.recv_message(), None):
            await stream.send_message(reply)

    async def talk(stream: Any) -> None:
        async for reply in talked_on_loop(stream, None):
            await stream.send_message(reply)

    class Service:
        def __mapping__(self) -> Mapping[str, Any]:
            kinds = {
                "/helloworld.Greeter/SayHello": (say_hello, Cardinality.UNARY_UNARY),
                f"/{TRIAL}/Wait": (wait, Cardinality.UNARY_UNARY),
                f"/{TRIAL}/Several": (replies, Cardinality.UNARY_STREAM),
                f"/{TRIAL}/Talk": (talk, Cardinality.STREAM_STREAM),
            }
            return {path: Handler(*kind, HelloRequest, HelloReply) for path, kind in kinds.items()}

    async def serve() -> None:
        server, secured = Server([Service()]), None
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind((HOST, 0))  # asyncio sets TCP_NODELAY only for a socket whose protocol is named
        if options.tls_cert is not None:
            secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            secured.load_cert_chain(options.tls_cert, options.tls_key)
            secured.set_alpn_protocols(["h2"])
        with graceful_exit([server]):
            await server.start(sock=listener, ssl=secured, backlog=1024)  # 256 clients connect at once
            _say(listener.getsockname()[1])
            await server.wait_closed()

    asyncio.run(serve())


def _on_pyvoy(interface: str) -> Callable[[argparse.Namespace], None]:
    """Makes a function that serves the greeter and ``TRIAL`` as an application of connectrpc on the server pyvoy.
    ``interface`` is the interface between application and server: ``wsgi`` or ``asgi``.
    """

    def serve_on(options: argparse.Namespace) -> None:
        from pyvoy import PyvoyServer

        async def serve() -> None:
            app = f"experiments.services.connect_apps:{interface}"
            tls = {} if options.tls_cert is None else {"tls_cert": options.tls_cert, "tls_key": options.tls_key}
            threads = {"worker_threads": WORKERS} if interface == "wsgi" else {}
            async with PyvoyServer(app, interface=interface, stderr=None, **threads, **tls) as server:
                _say(server.listener_port)
                await _sigterm()

        asyncio.run(serve())

    return serve_on


async def _sigterm() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


def _say(port: int) -> None:
    print(f"ready {HOST}:{port}", flush=True)


SERVERS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "grpcio": grpcio,
    "grpcio-aio": grpcio_aio,
    "pygrpc-native": pygrpc_native,
    "connectrpc-wsgi": _on_pyvoy("wsgi"),
    "connectrpc-asgi": _on_pyvoy("asgi"),
    "grpclib": grpclib,
}


def main() -> None:
    """Serves the greeter on the named server until SIGTERM."""
    parser = argparse.ArgumentParser(description="A greeter on a gRPC server of somebody else's.")
    parser.add_argument("name", choices=SERVERS, help="whose server")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="speak TLS, with this certificate in PEM …")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="… and this private key")
    parser.add_argument("--age-s", type=float, default=0.0, metavar="S", help="seconds that a connection is kept")
    options = parser.parse_args()
    SERVERS[options.name](options)


if __name__ == "__main__":
    main()
