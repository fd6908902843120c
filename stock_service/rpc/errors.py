"""Error classes of the project. The attributes of an error hold its facts.

    StockServiceError
    ├── UsageError            a bad option or file: option, given, allowed        → exit code 2, one line
    └── Fault                 a request that got no outcome: code, detail         → the transport's own error
        ├── InvalidRequest        INVALID_ARGUMENT      undecodable bytes; a request_id used for other content
        ├── DeadlineExceeded      DEADLINE_EXCEEDED     no reply in time
        ├── NotFound              NOT_FOUND             the request names something that does not exist
        ├── PermissionDenied      PERMISSION_DENIED     the caller is known, and may not do this
        ├── Overloaded            RESOURCE_EXHAUSTED    a limit of the server is reached, or its disk is full
        ├── UnknownMethod         UNIMPLEMENTED         the service has no such method
        ├── InternalFault         INTERNAL              a bug: the handler raised; or the disk of the store failed
        ├── Unavailable           UNAVAILABLE           no connection, a server that stops, a store out of reach
        │   └── NotBegun              UNAVAILABLE           the server reports that it has not begun the request
        └── Unauthenticated       UNAUTHENTICATED       the request shows no credential, or an unknown credential

An outcome (an unknown stock, a suspended trade …) is not an error, but a value in a reply.
"""

from enum import IntEnum


class StockServiceError(Exception):
    """Base class of every error that this project raises on purpose."""


class UsageError(StockServiceError):
    """Error for an option, argument or file that cannot be used.

    ``option`` names the option or the place in the file (``--port``, ``catalog.toml: stocks[2].price``). ``given`` is
    the value, or None for a missing value. ``allowed`` describes the allowed values.
    """

    def __init__(self, option: str, given: object, allowed: str) -> None:
        super().__init__(option, given, allowed)
        self.option = option
        self.given = given
        self.allowed = allowed

    def __str__(self) -> str:
        given = "missing" if self.given is None else f"got {short(_quoted(self.given))}"
        return f"{short(self.option)}: {given}, allowed: {short(self.allowed)}"


_TEXT_MAX = 300
"""Largest number of characters of each quoted text in an error message."""


def _quoted(given: object) -> str:
    """Returns ``repr(given)``. For an integer that is too long for ``repr``, returns a text with the type."""
    try:
        return repr(given)
    except ValueError:
        return f"a value of type {type(given).__name__} too long to print"


def short(text: str) -> str:
    """Cuts a text to ``_TEXT_MAX`` characters, and writes it in one line. For messages that quote a user's text."""
    return printable(text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…")


def printable(text: str) -> str:
    """Makes a text safe for a terminal: replaces control characters, line ends and direction marks by escapes. Use this
    function for every text from another program.
    """
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


class FaultCode(IntEnum):
    """Codes of faults. The numbers are gRPC's status codes, and the sockets transport sends the same numbers."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class Fault(StockServiceError):
    """Error for a request that got no outcome. Never raise ``Fault`` itself, but a subclass: each subclass has a
    ``code``.
    """

    code: FaultCode

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        """Returns the code and the detail in one line, even if the server sent a detail of several lines."""
        return f"{self.code.name}: {printable(' '.join(self.detail.split()))}"


class InvalidRequest(Fault):
    """Fault of a request whose bytes are no message of the method. Also of a request whose request_id belongs to an
    earlier request with other content.
    """

    code = FaultCode.INVALID_ARGUMENT


class DeadlineExceeded(Fault):
    """Fault of a request whose reply did not come in time. The request may have had an effect."""

    code = FaultCode.DEADLINE_EXCEEDED


class NotFound(Fault):
    """Fault of a request that names something unknown. For an unknown stock a reply with a status is sent instead."""

    code = FaultCode.NOT_FOUND


class PermissionDenied(Fault):
    """Fault of a request whose caller is known, and has no right to the method. The request had no effect."""

    code = FaultCode.PERMISSION_DENIED


class Overloaded(Fault):
    """Fault of a request that exceeds a limit of the server, or comes while the server's disk is full. The request had
    no effect.
    """

    code = FaultCode.RESOURCE_EXHAUSTED


class UnknownMethod(Fault):
    """Fault of a request for a method that the service does not have."""

    code = FaultCode.UNIMPLEMENTED


class InternalFault(Fault):
    """Fault of a request whose handler raised an exception that is no Fault, which is a bug. Also of a change that the
    store's disk failed to store. A client also raises InternalFault for a reply that breaks the protocol.
    """

    code = FaultCode.INTERNAL


class Unavailable(Fault):
    """Fault of a request to a server that cannot be reached, or is stopping. A sent request may have had an effect."""

    code = FaultCode.UNAVAILABLE


class NotBegun(Unavailable):
    """Fault of a request that the server has not begun, because the server is stopping or has ended the connection. The
    server itself reports this fact, so the request had no effect.
    """


class Unauthenticated(Fault):
    """Fault of a request with an unknown credential, or of a request without a credential if the method needs a
    credential. The request had no effect.
    """

    code = FaultCode.UNAUTHENTICATED


FAULTS: dict[int, type[Fault]] = {fault.code: fault for fault in Fault.__subclasses__()}
"""Class of each fault, by its code."""


def coded(code: int, detail: str) -> Fault:
    """Makes the fault of a code that a client has received; InternalFault for a code that is not in ``FaultCode``."""
    return FAULTS.get(code, InternalFault)(detail)
