"""What can go wrong, as data; where each is raised and who turns it into words.

    StockServiceError
    ├── UsageError            a bad option or file: option, given, allowed        → exit 2, one line
    └── Fault                 a request that got no outcome: code, detail         → the transport's own error
        ├── InvalidRequest        INVALID_ARGUMENT      undecodable bytes; a request_id used for other content
        ├── DeadlineExceeded      DEADLINE_EXCEEDED     no reply in time
        ├── NotFound              NOT_FOUND             the request names what is not there
        ├── PermissionDenied      PERMISSION_DENIED     the caller is known, and may not do this
        ├── Overloaded            RESOURCE_EXHAUSTED    a limit of the server is reached, or its disk is full
        ├── UnknownMethod         UNIMPLEMENTED         the service has no such method
        ├── InternalFault         INTERNAL              a bug: the handler raised; or the disk of the store failed
        ├── Unavailable           UNAVAILABLE           no connection, a server that stops, a store that is away
        │   └── NotBegun              UNAVAILABLE           the server said that it has not begun the request
        └── Unauthenticated       UNAUTHENTICATED       the request shows no credential, or one that nobody knows

Outcomes (an unknown stock, a suspended trade …) are not errors: they are values in a reply.
"""

from enum import IntEnum


class StockServiceError(Exception):
    """The root of every error that this project raises on purpose."""


class UsageError(StockServiceError):
    """An option, argument or file that cannot be used.

    ``option`` names what is wrong (``--port``, ``catalog.toml: stocks[2].price``), ``given`` what was given, None where
    that is nothing, ``allowed`` what would do.
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
"""Characters of each part of a message, at most."""


def _quoted(given: object) -> str:
    """What was given, as Python would write it; an integer too long for that by its length."""
    try:
        return repr(given)
    except ValueError:
        return f"a value of type {type(given).__name__} too long to print"


def short(text: str) -> str:
    """A text in one line of a bounded length, for a message that quotes what somebody wrote."""
    return printable(text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…")


def printable(text: str) -> str:
    """A text that does nothing to a terminal but show: control characters, line ends and marks of direction are
    written by their escapes. For all that is printed of what another program sent.
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
    """A request that got no outcome. Raise one of the classes below, each of which fixes ``code``."""

    code: FaultCode

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        """One line: at a client the detail is what a server said."""
        return f"{self.code.name}: {printable(' '.join(self.detail.split()))}"


class InvalidRequest(Fault):
    """Bytes that are no such message, or a request_id that was used for other content."""

    code = FaultCode.INVALID_ARGUMENT


class DeadlineExceeded(Fault):
    """The reply did not come in time; whether the request had an effect is unknown."""

    code = FaultCode.DEADLINE_EXCEEDED


class NotFound(Fault):
    """The request names something that is not there; an unknown stock is an outcome instead."""

    code = FaultCode.NOT_FOUND


class PermissionDenied(Fault):
    """The caller is known, and its right is too small for this method; the request had no effect."""

    code = FaultCode.PERMISSION_DENIED


class Overloaded(Fault):
    """A limit of the server is reached, or its disk is full; the request had no effect."""

    code = FaultCode.RESOURCE_EXHAUSTED


class UnknownMethod(Fault):
    """The service has no method of that name."""

    code = FaultCode.UNIMPLEMENTED


class InternalFault(Fault):
    """The handler raised something that is not a fault: a bug. Or the disk of the store failed."""

    code = FaultCode.INTERNAL


class Unavailable(Fault):
    """The server cannot be reached, or is stopping; whether a request that was sent had an effect is unknown."""

    code = FaultCode.UNAVAILABLE


class NotBegun(Unavailable):
    """The server ends, or ended the connection, and said that it has not begun the request: it had no effect."""


class Unauthenticated(Fault):
    """The request shows no credential where one is needed, or one that nobody knows; it had no effect."""

    code = FaultCode.UNAUTHENTICATED


FAULTS: dict[int, type[Fault]] = {fault.code: fault for fault in Fault.__subclasses__()}
"""The class of each code."""


def coded(code: int, detail: str) -> Fault:
    """The fault that a client reads off the wire; InternalFault for a code that is none of ours."""
    return FAULTS.get(code, InternalFault)(detail)
