"""Error classes of the project, whose attributes hold the facts of an error.

    StockServiceError
    ├── UsageError            a bad option or file: option, given, allowed        → exit 2, one line
    └── Fault                 a request that got no outcome: code, detail         → the transport's own error
        ├── InvalidRequest        INVALID_ARGUMENT      undecodable bytes; a request_id used for other content
        ├── DeadlineExceeded      DEADLINE_EXCEEDED     no reply in time
        ├── NotFound              NOT_FOUND             the request names something that does not exist
        ├── PermissionDenied      PERMISSION_DENIED     the caller is known, and may not do this
        ├── Overloaded            RESOURCE_EXHAUSTED    a limit of the server is reached, or its disk is full
        ├── UnknownMethod         UNIMPLEMENTED         the service has no such method
        ├── InternalFault         INTERNAL              a bug: the handler raised; or the disk of the store failed
        ├── Unavailable           UNAVAILABLE           no connection, a server that stops, a store that is away
        │   └── NotBegun              UNAVAILABLE           the server reports that it has not begun the request
        └── Unauthenticated       UNAUTHENTICATED       the request shows no credential, or an unknown one

Outcomes (an unknown stock, a suspended trade …) are not errors: they are values in a reply.
"""

from enum import IntEnum


class StockServiceError(Exception):
    """The root of every error that this project raises on purpose."""


class UsageError(StockServiceError):
    """An option, argument or file that cannot be used.

    ``option`` names the option or the place in the file (``--port``, ``catalog.toml: stocks[2].price``). ``given`` is
    the value, or None for a missing value. ``allowed`` describes the values that can be used.
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
"""Largest number of characters of each part of a message."""


def _quoted(given: object) -> str:
    """The given value, as Python writes it; for an integer too long for that, its type."""
    try:
        return repr(given)
    except ValueError:
        return f"a value of type {type(given).__name__} too long to print"


def short(text: str) -> str:
    """A text cut to one line of bounded length, for an error message that quotes a user's text."""
    return printable(text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…")


def printable(text: str) -> str:
    """A text that is safe to show on a terminal: control characters, line ends and marks of direction are written as
    escapes. For printing all text that another program sent.
    """
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


class FaultCode(IntEnum):
    """The faults, numbered as gRPC's status codes; the sockets transport sends the same numbers."""

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
    """A request that got no outcome. Raise one of the subclasses below; each subclass has its own ``code``."""

    code: FaultCode

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        """The code and the detail in one line. A client gets the detail from a server, and the server may send several
        lines.
        """
        return f"{self.code.name}: {printable(' '.join(self.detail.split()))}"


class InvalidRequest(Fault):
    """The bytes are no message of the method, or the request_id was used for other content."""

    code = FaultCode.INVALID_ARGUMENT


class DeadlineExceeded(Fault):
    """The reply did not come in time; the request may have had an effect."""

    code = FaultCode.DEADLINE_EXCEEDED


class NotFound(Fault):
    """The request names something that does not exist. An unknown stock is an outcome, and not this fault."""

    code = FaultCode.NOT_FOUND


class PermissionDenied(Fault):
    """The caller is known, but has no right to this method. The request had no effect."""

    code = FaultCode.PERMISSION_DENIED


class Overloaded(Fault):
    """A limit of the server is reached, or its disk is full; the request had no effect."""

    code = FaultCode.RESOURCE_EXHAUSTED


class UnknownMethod(Fault):
    """The service has no method of that name."""

    code = FaultCode.UNIMPLEMENTED


class InternalFault(Fault):
    """The handler raised an exception that is not a fault, which is a bug; or the disk of the store failed."""

    code = FaultCode.INTERNAL


class Unavailable(Fault):
    """The server cannot be reached, or is stopping. A request that was sent may have had an effect."""

    code = FaultCode.UNAVAILABLE


class NotBegun(Unavailable):
    """The server is ending, or has ended the connection, and reports that it did not begin the request. The request had
    no effect.
    """


class Unauthenticated(Fault):
    """The request shows no credential, but needs one, or shows an unknown credential. The request had no effect."""

    code = FaultCode.UNAUTHENTICATED


FAULTS: dict[int, type[Fault]] = {fault.code: fault for fault in Fault.__subclasses__()}
"""The class of each code."""


def coded(code: int, detail: str) -> Fault:
    """The fault of a code that a client received; InternalFault for a code that is not in ``FaultCode``."""
    return FAULTS.get(code, InternalFault)(detail)
