"""HTTP/1.1 for the server core (``server_core.protocol.WireProtocol``): finds a request's method, decodes its message,
calls the method, and encodes the response.
"""

import re
import socket
import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.message_json import from_json, to_json
from stock_service.rpc.security import Asked
from stock_service.rpc.server_core.options import Address, ServeOptions, is_loopback
from stock_service.rpc.server_core.protocol import OK, Methods, failure
from stock_service.rpc.service import Method, Route, Service
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.http1 import HttpDecoder, HttpError, HttpMessage, RequestHead, request_decoder, shown
from stock_service.rpc.wire.http1_status import JSON, PROTOBUF, STATUSES, TEXT, encode_response

_METHOD_KINDS = (PROTOBUF, b"application/x-protobuf", JSON)
_ROUTE_KINDS = (JSON,)
"""Accepted content types, for calls by method and for calls by route. Never add a content type that a browser sends to
another site without asking this site first (CORS preflight).
"""

_CLOSE = b"Connection: close\r\n"


class _Target(NamedTuple):
    """Method that a request calls, its path, the message's encoding, and the variables in the path of a route."""

    path: bytes
    method: Method[Any, Any]
    in_json: bool
    variables: Mapping[str, str]


class _Refusal(NamedTuple):
    """Refusal of a request: HTTP status, fault, text, and additional header fields of the response."""

    status: int
    code: FaultCode
    detail: str
    extra: bytes = b""


class Http:
    """Implementation of ``server_core.protocol.WireProtocol`` for HTTP/1.1. Thread-safe."""

    def __init__(self, service: Service, methods: Methods, options: ServeOptions) -> None:
        """Raises OSError if ``options.host`` is a name without an address."""
        self._answered = methods.answered
        self._frame_bytes_max, self._own_hosts = options.frame_bytes_max, _own_hosts(options)
        self._heads: dict[bytes, RequestHead] = {}  # remembered heads of all decoders, which the reading thread uses
        self._methods = {path.encode(): method for path, method in service.methods.items()}
        self._routes = [
            (method.route.verb.encode(), _pattern(method.route), path, method)
            for path, method in self._methods.items()
            if method.route is not None
        ]
        self._dated = (-1, b"")  # monotonic second, and its field Date; one tuple, so that threads see both

    def decoder(self) -> HttpDecoder[RequestHead]:
        """Makes the decoder that cuts a new connection's bytes into requests."""
        return request_decoder(self._heads, self._frame_bytes_max, self._check_site)

    def answer(self, request: HttpMessage[RequestHead], arrived_ns: int, peer: Address) -> bytes:
        """Calls a request's method, and returns the response. An exception becomes a fault in the response."""
        head, payload = request
        if head.verb == b"POST" and head.kind == PROTOBUF and head.path in self._methods:  # nearly always
            code, reply = self._answered(head.path, payload, head.timeout_ms, arrived_ns, peer)
            return self._response(head, code, reply, PROTOBUF)
        target = self._find(head)
        if isinstance(target, _Refusal):
            return _for(head, self._refused(target, head.close))
        if not target.in_json:
            code, reply = self._answered(target.path, payload, head.timeout_ms, arrived_ns, peer)
            return self._response(head, code, reply, PROTOBUF)
        try:
            message = from_json(target.method.request_type, payload, target.variables)
            code, reply = self._answered(target.path, message.SerializeToString(), head.timeout_ms, arrived_ns, peer)
            if code == OK:
                reply = to_json(target.method.response_type.FromString(reply))
        except BaseException as error:
            code, reply = failure(target.path, error)
        return self._response(head, code, reply, JSON)

    def asked(self, request: HttpMessage[RequestHead]) -> Asked:
        """Returns the path of a request's method (None for an unknown method), and the credential that the request
        shows.
        """
        target = self._find(request.head)
        return target.path if isinstance(target, _Target) else None, request.head.shown

    def path(self, request: HttpMessage[RequestHead]) -> bytes:
        """Returns the path of a request's method; empty for an unknown method."""
        return self.asked(request)[0] or b""

    def refusal(self, request: HttpMessage[RequestHead], code: FaultCode, detail: str) -> bytes:
        """Encodes the response that refuses a request with a fault."""
        return self._response(request.head, code, detail.encode(), TEXT)

    def timeout_ms(self, request: HttpMessage[RequestHead]) -> int:
        """Returns a request's time limit in milliseconds; 0 for no time limit."""
        return request.head.timeout_ms

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """Encodes the last response of a connection that the server closes because of a fault."""
        status = 408 if code is FaultCode.DEADLINE_EXCEEDED else STATUSES[code]
        return self._refused(_Refusal(status, code, detail), closes=True)

    def goodbye(self) -> bytes:
        """Returns no bytes, since HTTP/1.1 has no response without a request."""
        return b""

    def objection(self, error: FramingError) -> bytes:
        """Encodes the last response to a client that has sent bytes that are not a request, or a head that the server
        refuses.
        """
        status = error.status if isinstance(error, HttpError) else 400
        return self._refused(_Refusal(status, error.code, str(error)), closes=True)

    def _check_site(self, host: bytes | None, origin: bytes | None) -> None:
        """Raises HttpError if the request comes from a browser that shows a page of another site. This function is a
        ``wire.http1.CheckSite``.
        """
        if self._own_hosts is not None and host is not None and not self._own_hosts.fullmatch(host):
            allowed = "localhost, 127.0.0.0/8, [::1] or --host, with any port; call by one of these"
            detail = f"Host: got {shown(host)}, allowed on loopback: {allowed}"
            raise HttpError(421, detail, FaultCode.PERMISSION_DENIED)
        if origin is not None:
            own = (host or b"").lower()
            if not own or origin.lower() not in (b"http://" + own, b"https://" + own):
                allowed = "none, or the address that the request is for; call from a page of that address"
                detail = f"Origin: got {shown(origin)}, allowed: {allowed}"
                raise HttpError(403, detail, FaultCode.PERMISSION_DENIED)

    def _response(self, head: RequestHead, code: int, reply: bytes, kind: bytes) -> bytes:
        """Encodes the response with a method's result: ``reply`` is a message for ``OK``, otherwise a fault's text."""
        if code == OK:
            return encode_response(200, kind, reply, self._date() + _CLOSE if head.close else self._date())
        fault = FaultCode(code)
        refusal = _Refusal(STATUSES[fault], fault, reply.decode())
        return _for(head, self._refused(refusal, head.close))

    def _refused(self, refusal: _Refusal, closes: bool) -> bytes:
        """Encodes the response of a refusal. ``closes`` is True if the connection ends after the response."""
        extra = self._date() + (_CLOSE if closes else b"") + _fault(refusal.code) + refusal.extra
        return encode_response(refusal.status, TEXT, refusal.detail.encode(), extra)

    def _find(self, head: RequestHead) -> _Target | _Refusal:
        """Finds the method that a request calls, by path or by route. Returns a refusal if no method fits, or if the
        verb or the content type is wrong.
        """
        method = self._methods.get(head.path)
        if method is not None:
            if head.verb != b"POST":
                return _not_allowed(head, b"POST")
            return _not_taken(head, _METHOD_KINDS) or _Target(head.path, method, head.kind == JSON, {})
        verbs = []
        for verb, pattern, path, routed in self._routes:
            found = pattern.fullmatch(head.path)
            if found is None:
                continue
            if verb == head.verb:
                try:
                    variables = {name: unquote_to_bytes(value).decode() for name, value in found.groupdict().items()}
                except UnicodeDecodeError:
                    return _Refusal(400, FaultCode.INVALID_ARGUMENT, "a path that is no text in UTF-8")
                return _not_taken(head, _ROUTE_KINDS) or _Target(path, routed, True, variables)
            verbs.append(verb)
        if verbs:
            return _not_allowed(head, b", ".join(verbs))
        detail = f"no method {head.path.decode(errors='backslashreplace')!r}"
        return _Refusal(404, FaultCode.UNIMPLEMENTED, detail)

    def _date(self) -> bytes:
        """Returns the header field Date. Makes a new field at most once a second. Thread-safe."""
        now_s = time.monotonic_ns() // 1_000_000_000
        second, field = self._dated
        if second != now_s:
            field = f"Date: {formatdate(usegmt=True)}\r\n".encode()
            self._dated = now_s, field
        return field


def _own_hosts(options: ServeOptions) -> re.Pattern[bytes] | None:
    """Returns a pattern of the hosts that a request to a loopback address may name. Returns None for a server on any
    other address, since a client may name such a server by any host name.
    """
    host = options.host
    if options.listener is not None:
        bound = options.listener.socket.getsockname()[0]
    else:
        bound = host if ":" in host else socket.gethostbyname(host)
    if not is_loopback(bound):
        return None
    own = re.escape(f"[{host}]" if ":" in host else host).encode()
    return re.compile(rb"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]|%s)(?::[0-9]*)?" % own, re.IGNORECASE)


def _pattern(route: Route) -> re.Pattern[bytes]:
    """Returns a pattern that matches the paths of a route, with a named group for each variable."""
    parts = [f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part) for part in route.path.split("/")]
    return re.compile("/".join(parts).encode())


def _fault(code: FaultCode) -> bytes:
    asks = b"WWW-Authenticate: Bearer\r\n" if code is FaultCode.UNAUTHENTICATED else b""
    return b"Fault: %s\r\n%s" % (code.name.encode(), asks)


def _not_allowed(head: RequestHead, verbs: bytes) -> _Refusal:
    detail = f"the path takes {verbs.decode()}, got {head.verb.decode()}"
    return _Refusal(405, FaultCode.UNIMPLEMENTED, detail, b"Allow: %s\r\n" % verbs)


def _not_taken(head: RequestHead, kinds: tuple[bytes, ...]) -> _Refusal | None:
    """Returns the refusal of a content type that is not in ``kinds``. Returns None if the type is in ``kinds``, or if
    the request has no content and its verb is not POST.
    """
    if head.kind in kinds or (head.verb != b"POST" and not head.length):
        return None
    given, allowed = head.kind.decode(errors="replace") or "none", b", ".join(kinds).decode()
    detail = f"Content-Type: got {given}, allowed: {allowed}; send the message as one of these, and name it"
    return _Refusal(415, FaultCode.INVALID_ARGUMENT, detail)


def _for(head: RequestHead, response: bytes) -> bytes:
    """Returns the response, without its body if the request's verb is HEAD."""
    return response[: response.find(b"\r\n\r\n") + 4] if head.verb == b"HEAD" else response
