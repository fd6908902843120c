"""Handlers of servicers, and the answers to their calls: grpcio's handlers and interceptors on our protocol.

A call runs in a ``contextvars`` context of its own, which its interceptors share. What a handler raises is the status
UNKNOWN, with its text, as on grpcio.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context as Variables
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import grpc

from stock_service.rpc.errors import Fault
from stock_service.rpc.server.connections import HandlerSession, Inbox
from stock_service.rpc.server.context import CallEnded, Context
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.service import Service
from stock_service.rpc.transports.grpc_static.requests import GrpcRequests
from stock_service.rpc.wire.grpc_calls import END, GZIPPED, GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_replies import PREFIX

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

Code = grpc.StatusCode

_GRANT_BYTES = 32_768
"""Bytes of messages taken, after which a client hears that it may send as many again: half of the smallest window."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Asked:
    """A call, for who has its handler; see ``grpc.HandlerCallDetails``."""

    method: str
    invocation_metadata: Any


Find = Callable[[grpc.HandlerCallDetails], "grpc.RpcMethodHandler[Any, Any] | None"]


class Refused(Exception):
    """Raised for a call that ends with this status and text, unless its handler has set others."""


class Handlers(dict[bytes, Kind]):
    """The handlers of a server, behind its interceptors. To be added to before the server starts.

    Its ``get`` gives a method's kind, before a call of it is known: a generic handler may have any number of methods.
    """

    def __init__(self, interceptors: Sequence[grpc.ServerInterceptor]) -> None:
        super().__init__()
        self.generic: list[grpc.GenericRpcHandler] = []
        self.registered: dict[str, Handler] = {}
        """Handlers by their paths."""
        self._intercepted: Find = self._find
        for interceptor in reversed(interceptors):
            self._intercepted = partial(interceptor.intercept_service, self._intercepted)
        self._bare = not interceptors

    def handler(self, path: str, context: Context) -> Handler:
        """The handler of a call. Raises Refused."""
        try:
            found = self.registered.get(path) if self._bare else None
            found = found or self._intercepted(Asked(path, context.invocation_metadata()))
        except Exception as error:
            _log.exception("Exception servicing handler: %s", error)
            raise Refused(Code.UNKNOWN, "Error in service handler!") from error
        if found is None:
            raise Refused(Code.UNIMPLEMENTED, "Method not found!")
        return found

    def get(self, path: bytes, default: Any = None) -> Any:
        """Kind of a method, else ``default``. Asks generic handlers, on the reading thread."""
        try:
            found = self._find(Asked(path.decode(errors="backslashreplace"), ()))
        except Exception:  # the call will say why
            return Kind.UNARY
        if found is None:
            return default if self._bare else Kind.UNARY
        if found.request_streaming:
            return Kind.STREAMED
        return Kind.REPLIES if found.response_streaming else Kind.UNARY

    def _find(self, asked: grpc.HandlerCallDetails) -> "Handler | None":
        found = self.registered.get(asked.method)
        each = iter(self.generic)
        while found is None and (generic := next(each, None)) is not None:
            found = generic.service(asked)
        return found


class HandlerRequests(GrpcRequests):
    """See ``server_core.protocol.WireProtocol``: each call is answered by its handler."""

    def __init__(self, handlers: Handlers, compresses: bool, message_bytes_max: int, streams_max: int) -> None:
        super().__init__(Service("", {}), Methods({}, {}), message_bytes_max, streams_max)
        self._handlers, self._compresses = handlers, compresses

    def decoder(self) -> HandlerSession:
        """Decoder of a new connection."""
        return HandlerSession(self._handlers, self._message_bytes_max, self._streams_max)

    def answer(self, request: GrpcRequest, arrived_ns: int, peer: Address) -> bytes:
        """The frames that reply to a call; empty for a call that was given up."""
        head, stream, _, _, calls, _ = request
        if stream not in calls:
            return b""
        context = Context(request, arrived_ns, peer, self._compresses)
        try:
            if context.late:
                raise Refused(Code.DEADLINE_EXCEEDED, f"not begun within {head.timeout_ms} ms")
            return Variables().run(self._answer, request, context)
        except Refused as refused:
            return context.ended(*refused.args)
        except CallEnded:
            return context.ended(Code.CANCELLED)
        except BaseException:  # SystemExit too: every call gets its reply
            _log.exception("the call of %r could not be answered", head.path)
            return context.broken(Code.INTERNAL, "the server's log says why")

    def _answer(self, request: GrpcRequest, context: Context) -> bytes:
        handler = self._handlers.handler(request[0].path.decode(errors="backslashreplace"), context)
        requests = Requests(context, request, handler.request_deserializer, self._unzipped)
        asked: Any = requests if handler.request_streaming else next(requests, None)
        if asked is None:
            raise requests.wrong or Refused(Code.UNIMPLEMENTED, "it requires exactly one request message")
        replies = _handled(handler, asked, context)
        if requests.wrong:
            raise requests.wrong
        return replies


class Requests(Iterator[Any]):
    """The requests of a call, as its client sends them; asking for the next one blocks. For the handler's thread."""

    def __init__(self, context: Context, request: GrpcRequest, decode: Any, unzip: Any) -> None:
        self._context, self._decode, self._unzip = context, decode, unzip
        _, _, message, flags, _, inbox = request
        self._messages = inbox.messages if isinstance(inbox, Inbox) else None
        self._only = message, flags
        self._taken = 0  # bytes that were taken, and of which the client has not heard
        self.wrong: Refused | None = None
        """The end of a call of which a request cannot be read."""
        if self._messages is not None and not context.add_callback(partial(self._messages.put, None)):
            self._messages.put(None)

    def __next__(self) -> Any:
        """The next request. Raises CallEnded once the call has ended."""
        message, flags = self._next()
        if self.wrong or flags & END:
            raise StopIteration
        try:
            plain = self._unzip(message) if flags & GZIPPED else message
            return self._decode(plain) if self._decode else plain
        except Fault as fault:
            self.wrong = Refused(fault.code, fault.detail)
        except Exception:
            _log.exception("Exception deserializing message!")
            self.wrong = Refused(Code.INTERNAL, "Exception deserializing request!")
        raise StopIteration

    def _next(self) -> tuple[bytes, int]:
        if self._messages is None:
            only, self._only = self._only, (b"", END)
            return only
        if self._messages.empty():
            self._grant()
        get, empty = self._messages.get, self._messages.empty()
        taken: tuple[bytes, int] | None = self._context.waited(get) if empty else get()
        if taken is None or taken[1] & END:
            self._messages.put(taken)  # it stays so
        if taken is None:
            raise CallEnded
        self._taken += PREFIX.size + len(taken[0])
        if self._taken >= _GRANT_BYTES:
            self._grant()
        return taken

    def _grant(self) -> None:
        if self._taken:
            self._context.grant(self._taken)
            self._taken = 0


def _handled(handler: Handler, asked: Any, context: Context) -> bytes:
    """The last frames of a call: those of its one reply, or those behind several. Raises Refused, CallEnded."""
    streams, encode = handler.response_streaming, handler.response_serializer
    if handler.request_streaming:
        behaviour: Any = handler.stream_stream if streams else handler.stream_unary
    else:
        behaviour = handler.unary_stream if streams else handler.unary_unary
    where = "calling application"
    try:
        reply = behaviour(asked, context)
        where = "iterating responses"
        for each in reply if streams else ():
            if not context.push(_encoded(each, encode)):
                break
    except (Refused, CallEnded):
        raise
    except Exception as error:
        raise _raised(context, error, where) from error
    return context.ended() if streams else context.answered(_encoded(reply, encode))


def _encoded(reply: Any, encode: Any) -> bytes:
    """A reply in bytes. Raises Refused."""
    try:
        encoded: bytes = encode(reply) if encode else reply
        return encoded
    except Exception as error:
        _log.exception("Exception serializing message!")
        raise Refused(Code.INTERNAL, "Failed to serialize response!") from error


def _raised(context: Context, error: Exception, where: str) -> Refused:
    """The end of a call whose handler has raised."""
    if context.aborted:
        return Refused(Code.UNKNOWN, "RPC Aborted")
    _log.error("Exception %s", where, exc_info=error)
    return Refused(Code.UNKNOWN, f"Exception {where}: {error}")
